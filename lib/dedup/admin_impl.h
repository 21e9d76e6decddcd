/* What the files of operator work share. Nothing outside lib/dedup includes it. */
#ifndef DD_DEDUP_ADMIN_IMPL_H
#define DD_DEDUP_ADMIN_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "dedup/admin.h"
#include "dedup/backup.h"
#include "dedup/internal.h"
#include "dedup/rebuild.h"

struct dd_admin {
    struct dd_dedup *d;
    struct dd_pool *users, *store;                        /* of one thread each */
    struct dd_hot_staging *users_staging, *store_staging; /* of those threads; NULL: embedded */
    struct {
        struct dd_counter *erased, *forgotten, *checkpoints, *verified, *rebuilt;
    } count;
    _Atomic bool stop;
    pthread_mutex_t lock; /* guards what follows */
    struct dd_verify_status verify;
    struct dd_job verify_job;
    struct dd_rebuild_status rebuild;
    struct dd_job rebuild_job;
};

/* Runs run(arg) on the pool's thread, then done(arg) on the loop. DD_BUSY, DD_SHUTDOWN: neither runs. */
enum dd_err dd_admin_submit(struct dd_pool *pool, struct dd_job *job, struct dd_loop *loop,
                            void (*run)(void *arg), void (*done)(void *arg), void *arg) DD_MUST_USE;

/* ---- user_periods.c ---- */

/* A scene that the store knows, with every period in which anything of a user may stand, newest first. */
struct dd_user_scene {
    struct dd_slice name;
    enum dd_period_kind kind;
    unsigned window;
    struct dd_period *period;
    unsigned n;
};

/* Lists the scenes: `only`, or all that were ever registered when it is empty. Periods: those of the window,
 * the ones around it that staged exposures may belong to, and whatever the store holds of the scene; or only
 * *period, for scenes of its kind. Blocks; on the users' thread. DD_NOT_FOUND: no such scene. DD_INVALID: no
 * scene has periods of that kind. DD_UNAVAILABLE: Redis. */
enum dd_err dd_user_scenes(struct dd_admin *a, struct dd_slice only, const struct dd_period *period,
                           struct dd_arena *arena, struct dd_user_scene **out, unsigned *n) DD_MUST_USE;

/* ---- barrier.c ---- */

/* done runs on dl's loop once Redis has executed everything that any loop sent before this call, or after two
 * seconds, or at once when there is no memory; all: the former. Embedded: at once, with all. */
void dd_barrier(struct dd_dedup_loop *dl, void (*done)(void *arg, bool all), void *arg);

#endif
