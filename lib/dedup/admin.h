/* Operator work: what may block for long and is asked for seldom. Two threads: one for single users (erase,
 * forget), so that nobody waits there behind minutes of work, and one for the whole store (backup,
 * verification). Each has a connection of its own to Redis.
 *
 * Calls have the shape of dedup.h: the caller fills the "in" part and starts the call on its loop's thread;
 * done(arg) runs exactly once on that loop, perhaps before the starting function returns, and is the last
 * that touches the call and its arena. Their limits are those of Redis and of the writer's queue: there is no
 * deadline on top, because a half-done erase would have to be done again anyway.
 *
 * Threads: create and destroy from the main thread; calls on their loop's thread.
 * Ownership: borrows dedup and everything that it borrows. */
#ifndef DD_DEDUP_ADMIN_H
#define DD_DEDUP_ADMIN_H

#include "dedup/dedup.h"

struct dd_admin;

/* Starts the threads. DD_OK, DD_NO_MEMORY. */
enum dd_err dd_admin_create(struct dd_dedup *d, struct dd_stats *stats, struct dd_admin **out) DD_MUST_USE;
/* No call may be in flight. A verification under way is given up. */
void dd_admin_destroy(struct dd_admin *a);

#endif
