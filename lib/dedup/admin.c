#include "dedup/admin_impl.h"

#include <stdlib.h>

/* Calls that wait for a thread; one more is told to try again. */
#define USERS_QUEUE 1024
#define STORE_QUEUE 16

static void register_counters(struct dd_admin *a, struct dd_stats *stats)
{
    a->count.erased = dd_stats_counter(stats, "dedupd_admin_erased_users_total", "Users erased.");
    a->count.forgotten = dd_stats_counter(stats, "dedupd_admin_forgotten_items_total",
                                          "Exposures taken back by /forget.");
    a->count.checkpoints = dd_stats_counter(stats, "dedupd_admin_checkpoints_total", "Checkpoints made.");
    a->count.verified = dd_stats_counter(stats, "dedupd_admin_verified_sets_total",
                                         "Filter sets read by verification.");
    a->count.rebuilt = dd_stats_counter(stats, "dedupd_admin_rebuilt_sets_total",
                                        "Filter sets made anew from history.");
}

static enum dd_err open_parts(struct dd_admin *a)
{
    enum dd_err err = dd_pool_create(1, USERS_QUEUE, &a->users);
    if (err == DD_OK) err = dd_pool_create(1, STORE_QUEUE, &a->store);
    if (err != DD_OK || dd_hot_is_embedded(a->d->hot)) return err;
    err = dd_hot_staging_open(a->d->hot, &a->users_staging);
    return err == DD_OK ? dd_hot_staging_open(a->d->hot, &a->store_staging) : err;
}

enum dd_err dd_admin_create(struct dd_dedup *d, struct dd_stats *stats, struct dd_admin **out)
{
    struct dd_admin *a = calloc(1, sizeof *a);
    if (!a) return DD_NO_MEMORY;
    a->d = d;
    pthread_mutex_init(&a->lock, NULL);
    register_counters(a, stats);
    enum dd_err err = open_parts(a);
    if (err != DD_OK) {
        dd_admin_destroy(a);
        return err;
    }
    *out = a;
    return DD_OK;
}

void dd_admin_destroy(struct dd_admin *a)
{
    if (!a) return;
    atomic_store(&a->stop, true);
    if (a->users) dd_pool_destroy(a->users);
    if (a->store) dd_pool_destroy(a->store);
    if (a->users_staging) dd_hot_staging_close(a->users_staging);
    if (a->store_staging) dd_hot_staging_close(a->store_staging);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

enum dd_err dd_admin_submit(struct dd_pool *pool, struct dd_job *job, struct dd_loop *loop,
                            void (*run)(void *arg), void (*done)(void *arg), void *arg)
{
    *job = (struct dd_job){.run = run, .done = done, .arg = arg, .loop = loop};
    return dd_pool_submit(pool, job);
}
