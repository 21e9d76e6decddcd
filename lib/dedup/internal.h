/* What the files of lib/dedup share. Nothing outside includes it. */
#ifndef DD_DEDUP_INTERNAL_H
#define DD_DEDUP_INTERNAL_H

#include <pthread.h>

#include "dedup/dedup.h"
#include "dedup/retired.h"
#include "dedup/tally.h"

struct dd_dedup {
    struct dd_dedup_options options;
    const struct dd_scenes *scenes;
    struct dd_retired retired;
    struct dd_store *store;
    struct dd_hot *hot;
    struct dd_wheel *wheel; /* NULL: nothing is staged */
    struct dd_clock *clock;
    struct dd_tally *tally;
    struct dd_migrate *migrate; /* NULL: nothing is migrated */
    const struct dd_secret *secret;
    const struct dd_change *change;
    pthread_mutex_t loops_lock;
    struct dd_dedup_loop *loops; /* all that live */
    struct {
        struct dd_counter *candidates, *seen_delivered, *seen_pending, *seen_history, *seen_legacy, *partial;
        struct dd_counter *cache_hit, *cache_stale, *cache_miss, *cache_corrupt, *blob_corrupt;
        struct dd_counter *exposed_items, *expired_items, *limited_items, *claimed, *claim_lost, *deadline;
    } count;
};

struct dd_dedup_loop {
    struct dd_dedup *d;
    struct dd_loop *loop;
    struct dd_hot_loop *hot;
    struct dd_legacy_loop *legacy; /* NULL: no old keys are read */
    unsigned inflight;
    struct dd_dedup_loop *next; /* under loops_lock */
};

/* The periods that a request consults, newest first: the window, and when the wall clock was stepped back
 * also the window that the clock now shows. Returns how many. *cut (may be NULL): there would be more than
 * DD_WINDOW_MAX, and the oldest are left out. */
unsigned dd_window_periods(struct dd_clock *clock, const struct dd_scene *scene, unsigned window, bool *cut,
                           struct dd_period out[DD_WINDOW_MAX]);

/* Of those periods, which may have pending: all whose exposures a slot that is not flushed may hold. The
 * newest first; returns how many of `period` to read. */
unsigned dd_window_pending(const struct dd_dedup *d, const struct dd_period *period, unsigned n);

#endif
