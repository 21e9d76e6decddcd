/* What the staging*.c files and boot.c share. */
#ifndef DD_HOT_STAGING_INTERNAL_H
#define DD_HOT_STAGING_INTERNAL_H

#include "hot/internal.h"
#include "hot/script.h"
#include "hot/staging.h"
#include "hot/sync.h"

struct dd_hot_staging {
    struct dd_hot *h;
    struct dd_sync sync;
    struct dd_scripts scripts;
    struct dd_buf key, tail; /* scratch */
    struct dd_buf slots;     /* struct dd_hot_slot */
    struct dd_buf users;     /* struct dd_hot_user of the last walk */
    struct dd_buf bytes;     /* what their slices point to */
    struct dd_buf fps;       /* of the last read */
    struct dd_buf holders;   /* struct dd_hot_holder */
};

/* s->key becomes the key of one part of a slot. */
void dd_staging_bucket_key(struct dd_hot_staging *s, struct dd_hot_slot slot, unsigned part);
void dd_staging_pending_key(struct dd_hot_staging *s, const struct dd_hot_user *u);
/* The command so far, and s->key as its next argument. */
void dd_staging_arg_key(struct dd_hot_staging *s);

/* Reads an integer reply into *out. DD_UNAVAILABLE; DD_CORRUPT: WRONGTYPE; DD_IO: another error, or not an
 * integer. */
enum dd_err dd_staging_next_number(struct dd_hot_staging *s, int64_t *out) DD_MUST_USE;
/* Of an error reply. */
enum dd_err dd_staging_error(struct dd_hot_staging *s, const struct redisReply *reply) DD_MUST_USE;

#endif
