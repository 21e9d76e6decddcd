/* One verification at a time, on the store's thread; who asked reads its progress. */
#include "dedup/admin_impl.h"

/* The report is copied this often, not after each set. */
#define PUBLISH_SETS 256

static bool on_progress(void *arg, const struct dd_verify_report *so_far)
{
    struct dd_admin *a = arg;
    if (so_far->sets % PUBLISH_SETS == 0) {
        pthread_mutex_lock(&a->lock);
        a->verify.report = *so_far;
        pthread_mutex_unlock(&a->lock);
    }
    return !atomic_load_explicit(&a->stop, memory_order_relaxed);
}

static void run(void *arg)
{
    struct dd_admin *a = arg;
    struct dd_verify_options o = {.quarantine = a->verify.quarantine, .progress = on_progress, .arg = a};
    struct dd_verify_report report;
    enum dd_err err = dd_store_verify(a->d->store, &o, &report);
    dd_count(a->count.verified, report.sets);
    pthread_mutex_lock(&a->lock);
    a->verify.report = report;
    a->verify.err = err;
    pthread_mutex_unlock(&a->lock);
}

/* Only now, since the job is the pool's until here. */
static void on_run(void *arg)
{
    struct dd_admin *a = arg;
    pthread_mutex_lock(&a->lock);
    a->verify.running = false;
    a->verify.ended_ms = dd_clock_wall(a->d->clock).ms;
    pthread_mutex_unlock(&a->lock);
}

static enum dd_err start(struct dd_admin *a, struct dd_dedup_loop *dl, bool quarantine)
{
    struct dd_store_status status;
    if (a->verify.running) return DD_EXISTS;
    struct dd_verify_status before = a->verify;
    dd_store_get_status(a->d->store, &status);
    a->verify = (struct dd_verify_status){.ever = true,
                                          .running = true,
                                          .quarantine = quarantine,
                                          .started_ms = dd_clock_wall(a->d->clock).ms,
                                          .sets_estimate = status.keys_estimate};
    enum dd_err err = dd_admin_submit(a->store, &a->verify_job, dl->loop, run, on_run, a);
    if (err != DD_OK) a->verify = before;
    return err;
}

enum dd_err dd_verify_start(struct dd_admin *a, struct dd_dedup_loop *dl, bool quarantine)
{
    pthread_mutex_lock(&a->lock);
    enum dd_err err = start(a, dl, quarantine);
    pthread_mutex_unlock(&a->lock);
    return err;
}

void dd_verify_get(struct dd_admin *a, struct dd_verify_status *out)
{
    pthread_mutex_lock(&a->lock);
    *out = a->verify;
    pthread_mutex_unlock(&a->lock);
}
