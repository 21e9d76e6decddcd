/* Filter sets made anew from history, under the current policy, while serving. See rebuild.c for why nothing
 * that is acknowledged meanwhile is lost.
 *
 * A set of a period that history covers whole is replaced; another is united with what history knows (sets of
 * kind counting are then left as they are: a union would count twice). A set of which history knows nothing
 * stays as it is. */
#ifndef DD_DEDUP_REBUILD_H
#define DD_DEDUP_REBUILD_H

#include "dedup/admin.h"
#include "dedup/scene.h"

struct dd_rebuild_what {
    struct dd_slice user, scene; /* empty: all */
};

struct dd_rebuild_status {
    bool ever, running;
    char user[DD_USER_MAX_BYTES], scene[DD_SCENE_NAME_MAX];
    unsigned user_len, scene_len;
    int64_t started_ms, ended_ms;     /* wall time; 0: not yet */
    uint64_t total;                   /* sets to go through; 0: not counted yet */
    uint64_t done;                    /* of these: */
    uint64_t replaced, united, empty; /* empty: history knows nothing of it */
    uint64_t left;                    /* counting, and not covered */
    uint64_t failed;
    uint64_t items;  /* read from history */
    enum dd_err err; /* of one that has ended: DD_OK; DD_SHUTDOWN; that of the last set that failed */
};

/* Starts on the store's thread. DD_OK; DD_EXISTS: one is running; DD_INVALID: a name is too long; DD_BUSY. */
enum dd_err dd_rebuild_start(struct dd_admin *a, struct dd_dedup_loop *dl,
                             const struct dd_rebuild_what *what) DD_MUST_USE;
/* Any thread. */
void dd_rebuild_get(struct dd_admin *a, struct dd_rebuild_status *out);

#endif
