/* A backup's order: all slots are flushed, then what is still staged is counted, then the checkpoint is made.
 * Counted before: what the wheel moves in between is in the checkpoint and counted all the same; the other
 * way round it could be in neither. Counted as nothing, a note beside the checkpoint says so (staged.h). A
 * flush under which something was forgotten leaves a user for the next one (DD_BUSY), so it is asked for
 * again a few times. */
#include <stdlib.h>

#include "dedup/admin_impl.h"
#include "dedup/staged.h"

#define FLUSHES_MAX 4
#define PAGE        256

static void finish(struct dd_checkpoint_call *c)
{
    c->dl->inflight--;
    if (c->err == DD_OK) dd_count(c->admin->count.checkpoints, 1);
    c->done(c->arg);
}

/* ---- what is pending ---- */

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct count {
    uint64_t user, items;
};

static enum dd_err count_page(struct dd_hot_staging *staging, struct dd_hot_user *users, unsigned n,
                              struct dd_buf *counts)
{
    enum dd_err err = dd_hot_staging_read(staging, users, n);
    for (unsigned i = 0; err == DD_OK && i < n; i++) {
        struct count one = {dd_hash64(users[i].member, 0), users[i].n};
        if (one.items) dd_buf_add(counts, &one, sizeof one);
    }
    return err;
}

static enum dd_err count_slot(struct dd_hot_staging *staging, struct dd_hot_slot slot, struct dd_buf *counts)
{
    struct dd_hot_walk walk = {.slot = slot};
    enum dd_err err = DD_OK;
    while (err == DD_OK && !walk.ended) {
        struct dd_hot_user *users;
        unsigned n;
        err = dd_hot_staging_walk(staging, &walk, PAGE, &users, &n);
        if (err == DD_OK && n) err = count_page(staging, users, n, counts);
    }
    return err;
}

/* A user stands in several slots, and a walk may show one twice; his pending is one. */
static void sum_up(struct dd_checkpoint_call *c, struct dd_buf *counts)
{
    struct count *all = (struct count *)(void *)counts->data;
    size_t n = counts->len / sizeof *all;
    if (n) qsort(all, n, sizeof *all, compare);
    for (size_t i = 0; i < n; i++) {
        bool last = i + 1 == n || all[i + 1].user != all[i].user;
        if (!last && all[i].items > all[i + 1].items) all[i + 1].items = all[i].items;
        if (!last) continue;
        c->pending_users++;
        c->pending_items += all[i].items;
    }
}

static enum dd_err count_pending(struct dd_checkpoint_call *c, struct dd_hot_staging *staging)
{
    const struct dd_hot_slot *slots;
    unsigned n;
    enum dd_err err = dd_hot_staging_slots(staging, &slots, &n);
    if (err != DD_OK || !n) return err;
    struct dd_hot_slot *copy = malloc(n * sizeof *copy); /* theirs may go with the next call */
    struct dd_buf counts = {0};
    if (!copy) return DD_NO_MEMORY;
    memcpy(copy, slots, n * sizeof *copy);
    for (unsigned i = 0; i < n && err == DD_OK; i++)
        err = count_slot(staging, copy[i], &counts);
    if (err == DD_OK && !dd_buf_ok(&counts)) err = DD_NO_MEMORY;
    if (err == DD_OK) sum_up(c, &counts);
    dd_buf_free(&counts);
    free(copy);
    return err;
}

/* ---- the steps ---- */

/* All that was acknowledged before the call is in the checkpoint. Embedded nothing is known of what an
 * earlier run may have staged: its mark stays. */
static bool holds_everything(const struct dd_checkpoint_call *c)
{
    return c->admin->store_staging && c->flush_err == DD_OK && c->pending_known && !c->pending_users;
}

static void run(void *arg)
{
    struct dd_checkpoint_call *c = arg;
    struct dd_hot_staging *staging = c->admin->store_staging;
    c->pending_known = !staging || count_pending(c, staging) == DD_OK;
    c->err = dd_store_checkpoint(c->admin->d->store, c->path);
    if (c->err == DD_OK && holds_everything(c) && dd_staged_note(c->path) != DD_OK) return; /* was logged */
}

static void on_run(void *arg)
{
    finish(arg);
}

static void start_run(struct dd_checkpoint_call *c)
{
    enum dd_err err = dd_admin_submit(c->admin->store, &c->job, c->dl->loop, run, on_run, c);
    if (err == DD_OK) return; /* the call belongs to the thread now */
    c->err = err;
    finish(c);
}

static enum dd_err start_flush(struct dd_checkpoint_call *c);

static void on_flush(void *arg)
{
    struct dd_checkpoint_call *c = arg;
    c->flush_err = c->flush.err;
    if (c->flush_err == DD_BUSY && c->flushes < FLUSHES_MAX && start_flush(c) == DD_PENDING) return;
    start_run(c);
}

static enum dd_err start_flush(struct dd_checkpoint_call *c)
{
    struct dd_wheel *wheel = c->admin->d->wheel;
    c->flushes++;
    c->flush = (struct dd_wheel_flush){.all = true, .loop = c->dl->loop, .done = on_flush, .arg = c};
    return wheel ? dd_wheel_flush(wheel, &c->flush) : DD_UNSUPPORTED;
}

void dd_checkpoint(struct dd_admin *a, struct dd_dedup_loop *dl, struct dd_checkpoint_call *c)
{
    c->admin = a;
    c->dl = dl;
    c->flushes = 0;
    c->pending_users = c->pending_items = 0;
    c->pending_known = false;
    dl->inflight++;
    enum dd_err err = start_flush(c);
    if (err == DD_PENDING) return;
    c->flush_err = err == DD_UNSUPPORTED ? DD_OK : err; /* unsupported: nothing is ever staged */
    start_run(c);
}
