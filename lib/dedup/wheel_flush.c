/* Emptying one slot, page by page. The order of the steps is that of wheel.h and must not change:
 * number, pending, commit (synced), removal, entries, name. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "dedup/wheel_impl.h"

/* Times that a user is read in one page: more than one if his set was changed meanwhile by something that
 * outdates what was read: a forget, or an erase, which emptied pending before it committed. What is pending
 * after an erase was exposed after it, also when the page's number is older, and must not be lost. */
#define READS_MAX 3

struct page {
    struct dd_wheel *w;
    struct dd_hot_slot slot;
    struct dd_hot_user *users;
    unsigned n;
    struct dd_arena arena;
    struct dd_store_op *ops; /* of the users that have anything to write */
    unsigned *op_user;
    unsigned ops_n;
    struct dd_hot_user *done; /* whose pending is in the store */
    unsigned done_n;
    struct dd_hot_user *busy; /* to be read again */
    unsigned busy_n;
    uint64_t items;
    bool again; /* a user was left for the next tick */
};

/* A scene that is no longer configured keeps what is staged under the default policy. */
static const struct dd_filter_policy *policy_of(const struct page *p, struct dd_slice scene)
{
    const struct dd_scene *s = dd_scenes_find(p->w->scenes, scene);
    if (!s) s = dd_scenes_find(p->w->scenes, dd_slice_str("default"));
    return &s->policy;
}

/* Items that the period may reach: what the user's previous period has. 0: not known, or not wanted now; the
 * set keeps a hint that it was once given. */
static uint32_t hint_of(struct page *p, const struct dd_filter_policy *policy, const struct dd_hot_user *u)
{
    struct dd_wheel *w = p->w;
    uint64_t seed = dd_hash_user_seed(dd_store_secret(w->store), u->scene, u->user);
    if (!dd_hints_due(&w->hints, policy, seed, u->period, u->n)) return 0;
    struct dd_store_read r = {.scene = u->scene, .user = u->user, .n = 1};
    struct dd_filter_view view;
    r.periods[0] = (struct dd_period){u->period.kind, u->period.ordinal - 1};
    if (dd_store_read_wait(w->store, &r) != DD_OK) return 0;
    uint32_t items = r.set[0].err == DD_OK && dd_filter_view_open(&view, r.set[0].blob) == DD_OK ? view.items
                                                                                                 : 0;
    dd_store_read_release(&r);
    return items;
}

static enum dd_err add_op(struct page *p, unsigned user, uint64_t number, struct dd_buf *scratch)
{
    struct dd_hot_user *u = &p->users[user];
    dd_buf_reset(scratch);
    const struct dd_filter_policy *policy = policy_of(p, u->scene);
    enum dd_err err = dd_filter_operand(policy, hint_of(p, policy, u), u->fps, u->n, scratch);
    if (err != DD_OK) return err;
    struct dd_slice operand = dd_arena_copy(&p->arena, dd_buf_slice(scratch));
    if (!operand.len) return DD_NO_MEMORY;
    p->op_user[p->ops_n] = user;
    p->ops[p->ops_n++] = (struct dd_store_op){.kind = DD_STORE_MERGE,
                                              .scene = u->scene,
                                              .user = u->user,
                                              .period = u->period,
                                              .operand = operand,
                                              .read_number = number};
    return DD_OK;
}

/* One operand per user that has pending; users without any only lose their entry. */
static enum dd_err make_ops(struct page *p, uint64_t number)
{
    struct dd_buf scratch = {0};
    enum dd_err err = DD_OK;
    p->ops = dd_arena_alloc(&p->arena, p->n * sizeof *p->ops);
    p->op_user = dd_arena_alloc(&p->arena, p->n * sizeof *p->op_user);
    p->done = dd_arena_alloc(&p->arena, p->n * sizeof *p->done);
    p->busy = dd_arena_alloc(&p->arena, p->n * sizeof *p->busy);
    if (!p->ops || !p->op_user || !p->done || !p->busy) return DD_NO_MEMORY;
    for (unsigned i = 0; i < p->n && err == DD_OK; i++) {
        struct dd_hot_user *u = &p->users[i];
        if (u->err != DD_OK) {
            dd_error("wheel.bad_pending",
                     "part=%u hint=\"a key of another type stands under a user's pending\"", u->part);
            p->again = true;
        } else if (u->n == 0) {
            p->done[p->done_n++] = *u;
        } else {
            /* However old its period is by this clock, which may have jumped: what does not belong into the
             * store any more is dropped by the keeper, which waits, with its range. */
            err = add_op(p, i, number, &scratch);
        }
    }
    dd_buf_free(&scratch);
    return err;
}

static enum dd_err commit(struct page *p)
{
    if (!p->ops_n) return DD_OK;
    struct dd_store_batch batch = {.ops = p->ops, .n = p->ops_n, .sync = true};
    enum dd_err err = dd_store_write_wait(p->w->store, &batch);
    if (err != DD_OK) return err;
    for (unsigned i = 0; i < p->ops_n; i++) {
        struct dd_hot_user *u = &p->users[p->op_user[i]];
        bool stripped = p->ops[i].result == DD_OK && p->ops[i].stripped;
        if (stripped) dd_count(p->w->count.stripped, 1);
        if (stripped || p->ops[i].result == DD_BUSY) p->busy[p->busy_n++] = *u;
        if (stripped || p->ops[i].result != DD_OK) {
            p->again = p->again || (!stripped && p->ops[i].result != DD_BUSY);
            continue;
        }
        p->items += u->n;
        p->done[p->done_n++] = *u;
    }
    return DD_OK;
}

/* One page through all steps. *step names the one that failed. */
static enum dd_err flush_page(struct page *p, const char **step)
{
    struct dd_wheel *w = p->w;
    uint64_t number = dd_change_number(dd_store_change(w->store)); /* before pending is read */
    *step = "read";
    enum dd_err err = dd_hot_staging_read(w->staging, p->users, p->n);
    if (err != DD_OK) return err;
    *step = "commit";
    err = make_ops(p, number);
    if (err == DD_OK) err = commit(p);
    if (err != DD_OK) return err;
    /* If this process stood still meanwhile, another may have taken the store over, which has nothing of what
     * was committed here: then nothing may be removed. */
    dd_wheel_beat(w, true);
    if (w->displaced) return DD_SHUTDOWN;
    *step = "remove"; /* only now: the commit is synced and the cells are raised */
    err = dd_hot_staging_remove(w->staging, p->done, p->done_n);
    if (err != DD_OK) return err;
    *step = "unlist";
    return dd_hot_staging_unlist(w->staging, p->slot, p->done, p->done_n);
}

static enum dd_err flush_users(struct page *p, const char **step)
{
    unsigned n = p->n, done_n = 0;
    enum dd_err err = flush_page(p, step);
    for (int reads = 1; err == DD_OK && p->busy_n && reads < READS_MAX; reads++) {
        done_n += p->done_n;
        p->users = p->busy;
        p->n = p->busy_n;
        p->ops_n = p->done_n = p->busy_n = 0;
        err = flush_page(p, step);
    }
    p->again = p->again || p->busy_n;
    p->done_n += done_n;
    p->n = n;
    return err;
}

static int64_t now_us(const struct dd_wheel *w)
{
    return dd_clock_mono(w->clock).ns / 1000;
}

/* Spreads the pages so that at most rate users a second are flushed; requests never wait for the wheel. */
static bool pace(struct dd_wheel *w, unsigned users, int64_t took_us)
{
    pthread_mutex_lock(&w->lock);
    unsigned rate = w->rate_users_s;
    bool stop = w->stop;
    pthread_mutex_unlock(&w->lock);
    int64_t due_ms = rate ? (int64_t)users * 1000 / rate - took_us / 1000 : 0;
    return due_ms > 0 ? dd_wheel_rest(w, due_ms, false) : !stop;
}

static enum dd_err next_page(struct dd_wheel *w, struct dd_hot_walk *walk, struct page *p, const char **step)
{
    *step = "walk";
    enum dd_err err = dd_hot_staging_walk(w->staging, walk, w->options.batch_users, &p->users, &p->n);
    if (err == DD_OK && p->n) err = flush_users(p, step);
    return err;
}

static enum dd_err drop(struct dd_wheel *w, struct dd_hot_slot slot, bool again, const char **step)
{
    bool dropped = false;
    *step = "drop";
    enum dd_err err = dd_hot_staging_drop_slot(w->staging, slot, &dropped);
    if (err == DD_OK && (again || !dropped)) {
        *step = "left";
        err = DD_BUSY;
    }
    return err;
}

enum dd_err dd_wheel_empty_slot(struct dd_wheel *w, struct dd_hot_slot slot, uint64_t *users, uint64_t *items,
                                char *why, size_t why_size)
{
    struct dd_hot_walk walk = {.slot = slot};
    struct dd_arena arena = {0};
    const char *step = "walk";
    enum dd_err err = DD_OK;
    bool again = false;
    while (err == DD_OK && !walk.ended) {
        struct page p = {.w = w, .slot = slot, .arena = arena};
        int64_t begin = now_us(w);
        err = next_page(w, &walk, &p, &step);
        *users += p.done_n;
        *items += p.items;
        again = again || p.again;
        arena = p.arena;
        dd_arena_reset(&arena);
        if (err != DD_OK) break;
        dd_count(w->count.users, p.done_n);
        dd_count(w->count.items, p.items);
        dd_count(w->count.pages, 1);
        dd_histogram_record(w->count.page_us, now_us(w) - begin);
        if (!pace(w, p.n, now_us(w) - begin)) err = DD_SHUTDOWN;
    }
    dd_arena_free(&arena);
    if (err == DD_OK) err = drop(w, slot, again, &step);
    if (err != DD_OK && err != DD_SHUTDOWN) {
        dd_count(w->count.failures, 1);
        const char *detail = err == DD_UNAVAILABLE || err == DD_TIMEOUT ? dd_hot_staging_error(w->staging)
                                                                        : "";
        snprintf(why, why_size, "%s: %s%s%s", step, dd_err_name(err), *detail ? ": " : "", detail);
    }
    return err;
}
