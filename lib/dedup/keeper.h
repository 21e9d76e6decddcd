/* The keeper: the thread that lets old periods go.
 *
 * Writes older than the window are refused one whole period before its range is dropped, and a period is
 * dropped only after it has been out of that margin for hold_ms of uptime, so that a jump of the clock erases
 * nothing. Scenes that are no longer configured age out by the kind and window they had.
 *
 * Threads: create and destroy from one thread; the keeper's own thread does the work. */
#ifndef DD_DEDUP_KEEPER_H
#define DD_DEDUP_KEEPER_H

#include "dedup/scene.h"
#include "store/store.h"

struct dd_keeper;

/* Borrows store, scenes and clock. tick_ms: how often it looks. Starts the thread. */
enum dd_err dd_keeper_create(struct dd_store *store, const struct dd_scenes *scenes, struct dd_clock *clock,
                             int64_t hold_ms, int64_t tick_ms, struct dd_stats *stats,
                             struct dd_keeper **out) DD_MUST_USE;
/* Waits for what it is doing. */
void dd_keeper_destroy(struct dd_keeper *k);

#endif
