/* Waiting for what other loops have already sent to Redis.
 *
 * An erase that has committed still meets cache fills that were sent before: each loop has its own
 * connection, and nothing orders one against another. So a question is sent on every connection; when all are
 * answered, everything before them has been executed. What is sent later sees the raised cell and is not sent
 * (filter.c).
 *
 * A connection that is away has nothing of ours under way any more, so any answer will do.
 *
 * Every loop gets a leg. A leg may be stuck in a loop that is stopping, so the wait has an end, and the legs
 * own their memory: the last one frees it. */
#include <stdlib.h>

#include "dedup/admin_impl.h"

#define PATIENCE_MS 2000

struct leg {
    struct dd_barrier_wait *wait;
    struct dd_dedup_loop *dl;
    struct dd_task task; /* there, and then back */
    struct dd_hot_fetch fetch;
};

struct dd_barrier_wait {
    struct dd_loop *home;
    struct dd_timer patience;
    void (*done)(void *arg, bool all);
    void *arg;
    bool over;
    unsigned out, n; /* legs that have not come back */
    struct leg leg[];
};

/* On the home loop. */
static void settle(struct dd_barrier_wait *w, bool over)
{
    if (over && !w->over) {
        w->over = true;
        dd_timer_stop(&w->patience);
        w->done(w->arg, w->out == 0);
    }
    if (!w->out) free(w);
}

static void on_back(void *arg)
{
    struct dd_barrier_wait *w = ((struct leg *)arg)->wait;
    settle(w, --w->out == 0);
}

static void on_patience(void *arg)
{
    settle(arg, true);
}

static void go_back(struct leg *leg)
{
    leg->dl->inflight--;
    leg->task = (struct dd_task){.run = on_back, .arg = leg};
    dd_loop_post(leg->wait->home, &leg->task);
}

static void on_reply(void *arg)
{
    go_back(arg);
}

/* On the leg's loop: any question will do. */
static void on_there(void *arg)
{
    struct leg *leg = arg;
    leg->dl->inflight++;
    leg->fetch = (struct dd_hot_fetch){.scene = dd_slice_str("default"),
                                       .user = dd_slice_str("-"),
                                       .cached_period = {{DD_PERIOD_FOREVER, 0}},
                                       .cached_n = 1,
                                       .done = on_reply,
                                       .arg = leg};
    enum dd_err err = dd_hot_fetch(leg->dl->hot, &leg->fetch);
    if (err == DD_PENDING) return;
    if (err == DD_OK) dd_hot_fetch_release(&leg->fetch);
    go_back(leg);
}

/* With loops_lock. NULL: no memory. */
static struct dd_barrier_wait *make_wait(struct dd_dedup *d, struct dd_loop *home)
{
    unsigned n = 0;
    for (const struct dd_dedup_loop *l = d->loops; l; l = l->next)
        n++;
    struct dd_barrier_wait *w = calloc(1, sizeof *w + n * sizeof *w->leg);
    if (!w) return NULL;
    w->home = home;
    w->out = n;
    for (struct dd_dedup_loop *l = d->loops; l; l = l->next) {
        struct leg *leg = &w->leg[w->n++];
        *leg = (struct leg){.wait = w, .dl = l, .task = {.run = on_there, .arg = leg}};
    }
    return w;
}

/* The lock is held while posting, so that no loop of the list is destroyed meanwhile. */
void dd_barrier(struct dd_dedup_loop *dl, void (*done)(void *arg, bool all), void *arg)
{
    struct dd_dedup *d = dl->d;
    pthread_mutex_lock(&d->loops_lock);
    bool embedded = dd_hot_is_embedded(d->hot); /* no connections */
    struct dd_barrier_wait *w = embedded ? NULL : make_wait(d, dl->loop);
    if (w) {
        w->done = done;
        w->arg = arg;
        dd_timer_init(&w->patience, dl->loop, on_patience, w);
        dd_timer_start(&w->patience, PATIENCE_MS);
        for (unsigned i = 0, n = w->n; i < n; i++)
            dd_loop_post(w->leg[i].dl->loop, &w->leg[i].task);
    }
    pthread_mutex_unlock(&d->loops_lock);
    if (!w) done(arg, embedded);
}
