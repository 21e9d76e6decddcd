/* Commands on the blocking connection, for legacy_sync.c and legacy_load.c. */
#ifndef DD_HOT_LEGACY_SYNC_H
#define DD_HOT_LEGACY_SYNC_H

#include "hot/legacy_impl.h"

struct redisReply;

/* Connects if need be and begins a command of `args` arguments, its name and, with a user, the key
 * included. */
enum dd_err dd_legacy_begin(struct dd_legacy_sync *s, struct dd_slice user, unsigned args,
                            const char *name) DD_MUST_USE;
/* Sends it. DD_OK: a reply of this type. DD_CORRUPT: WRONGTYPE. DD_NOT_FOUND: nil. DD_IO: another error.
 * DD_UNAVAILABLE. */
enum dd_err dd_legacy_call(struct dd_legacy_sync *s, int type, const struct redisReply **reply) DD_MUST_USE;

#endif
