/* The Lua scripts: for rare steps that must be one step. Each is loaded once a connection and run by its
 * digest; when Redis has forgotten it (NOSCRIPT) it is loaded again and the step repeated, which all of them
 * allow. Private to lib/hot. */
#ifndef DD_HOT_SCRIPT_H
#define DD_HOT_SCRIPT_H

#include "hot/sync.h"

enum dd_script { DD_SCRIPT_DROP_SLOT, DD_SCRIPT_REGISTER, DD_SCRIPT_BEAT, DD_SCRIPT_LEAVE, DD_SCRIPTS };

struct dd_scripts {
    char sha[DD_SCRIPTS][41]; /* "" until loaded */
};

/* After dd_sync_begin: makes sure that the digest is known. */
enum dd_err dd_script_load(struct dd_scripts *all, struct dd_sync *s, enum dd_script which) DD_MUST_USE;
/* Begins an EVALSHA in s->command; `keys` keys and then `args` arguments follow. */
void dd_script_begin(struct dd_scripts *all, struct dd_sync *s, enum dd_script which, unsigned keys,
                     unsigned args);

struct redisReply;
bool dd_script_is_missing(const struct redisReply *reply);
/* All digests must be fetched anew. */
void dd_script_forget(struct dd_scripts *all);

#endif
