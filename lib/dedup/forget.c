/* Taking single exposures back, so that nothing in flight brings them back:
 *
 *   1 ask     deliveries, pending, and whether every set that holds one of the items can forget it
 *   2 pending of every period: the items' fingerprints are removed
 *   3 the store, on the writer thread: the sets are rewritten without them, and marked: a merge whose content
 *     was read before this commit is refused and read again
 *   4 deliveries are taken back, and a question on the same connection says that it is done
 *
 * A wheel that read pending before step 2 carries an item in its operand. It commits before step 3, and the
 * update sees the item; or after, and is told to read again: from pending, where the item no longer is. It
 * loses nothing else, which stripping (as for an erase) would. Step 2 before step 3: a wheel that reads after
 * the mark must not find the item.
 *
 * Cached sets need no care: the commit has raised the cells. Records of the history are rewritten without the
 * items before step 3, so that a rebuild comes before the sets are rewritten or does not find the items;
 * while that goes on no staged exposure of the user is acknowledged (history.h). */
#include "dedup/admin_impl.h"
#include "dedup/history.h"
#include "store/history.h"
#include "dedup/user.h"

struct forget {
    struct dd_forget_call *c;
    struct dd_admin *a;
    struct dd_dedup_loop *dl;
    struct dd_slice scene, user;
    uint32_t *fps; /* per item, as the following */
    struct dd_slice *ids;
    uint8_t *known, *seen;
    struct dd_user_scene *where;
    bool confirming; /* step 4 */
    enum dd_err err;
    struct dd_hot_fetch fetch;
    struct dd_job job;
};

static void finish(struct forget *s, enum dd_err err)
{
    struct dd_forget_call *c = s->c;
    c->err = err;
    for (unsigned i = 0; i < c->n; i++)
        c->forgotten += s->known[i];
    if (err == DD_OK) dd_count(s->a->count.forgotten, c->forgotten);
    s->dl->inflight--;
    c->done(c->arg);
}

/* ---- steps 2 and 3, on the users' thread ---- */

/* Before anything is changed: a call that cannot be done whole should do nothing. */
static enum dd_err check_set(const struct forget *s, struct dd_slice blob)
{
    struct dd_buf scratch = {0};
    size_t removed;
    enum dd_err err = dd_filter_forget(blob, s->fps, s->c->n, &scratch, &removed);
    dd_buf_free(&scratch);
    return err == DD_CORRUPT ? DD_OK : err; /* a set that cannot be read is put aside later */
}

static enum dd_err check_sets(struct forget *s)
{
    struct dd_store_read *r = dd_arena_calloc(s->c->arena, 1, sizeof *r);
    if (!r) return DD_NO_MEMORY;
    enum dd_err err = DD_OK;
    for (unsigned from = 0; from < s->where->n && err == DD_OK; from += r->n) {
        *r = (struct dd_store_read){.scene = s->scene, .user = s->user};
        r->n = s->where->n - from < DD_WINDOW_MAX ? s->where->n - from : DD_WINDOW_MAX;
        memcpy(r->periods, s->where->period + from, r->n * sizeof *r->periods);
        err = dd_store_read_wait(s->a->d->store, r);
        for (unsigned i = 0; i < r->n && err == DD_OK; i++)
            err = r->set[i].err == DD_OK ? check_set(s, r->set[i].blob) : DD_OK;
        dd_store_read_release(r);
    }
    return err;
}

/* In every period: what is not there costs nothing to remove. */
static enum dd_err remove_pending(struct forget *s)
{
    const struct dd_wheel *wheel = s->a->d->wheel;
    if (!s->a->users_staging || !wheel || dd_wheel_oldest_s(wheel) == INT64_MAX) return DD_OK;
    struct dd_hot_user *users = dd_arena_calloc(s->c->arena, s->where->n, sizeof *users);
    if (!users) return DD_NO_MEMORY;
    for (unsigned i = 0; i < s->where->n; i++)
        users[i] = (struct dd_hot_user){
            .scene = s->scene, .user = s->user, .period = s->where->period[i], .fps = s->fps, .n = s->c->n};
    return dd_hot_staging_remove(s->a->users_staging, users, s->where->n);
}

/* On the writer thread. A result other than DD_OK leaves the set as it is. */
static enum dd_err update(void *arg, struct dd_slice current, struct dd_buf *out)
{
    struct forget *s = arg;
    struct dd_filter_view view;
    size_t removed;
    if (dd_filter_view_open(&view, current) != DD_OK) return DD_CORRUPT;
    memset(s->seen, 0, s->c->n);
    if (!dd_filter_view_test(&view, s->fps, s->c->n, s->seen, 1)) return DD_NOT_FOUND;
    for (unsigned i = 0; i < s->c->n; i++)
        s->known[i] |= s->seen[i];
    return dd_filter_forget(current, s->fps, s->c->n, out, &removed);
}

static struct dd_store_op *make_ops(struct forget *s)
{
    struct dd_store_op *ops = dd_arena_calloc(s->c->arena, s->where->n, sizeof *ops);
    for (unsigned i = 0; ops && i < s->where->n; i++)
        ops[i] = (struct dd_store_op){.kind = DD_STORE_UPDATE,
                                      .scene = s->scene,
                                      .user = s->user,
                                      .period = s->where->period[i],
                                      .update = update,
                                      .update_arg = s,
                                      .outdates = true,
                                      .read_number = UINT64_MAX};
    return ops;
}

static enum dd_err judge_op(struct forget *s, const struct dd_store_op *op)
{
    if (op->result == DD_NOT_FOUND) return DD_OK;
    if (op->result != DD_CORRUPT) return op->result;
    dd_store_quarantine(s->a->d->store, s->scene, s->user, op->period);
    return DD_OK;
}

static enum dd_err rewrite_sets(struct forget *s)
{
    struct dd_store_op *ops = make_ops(s);
    if (!ops) return DD_NO_MEMORY;
    struct dd_store_batch batch = {.ops = ops, .n = s->where->n, .sync = true};
    enum dd_err err = dd_store_write_wait(s->a->d->store, &batch);
    for (unsigned i = 0; i < s->where->n && err == DD_OK; i++)
        err = judge_op(s, &ops[i]);
    return err;
}

/* ---- history ---- */

struct rewrite {
    struct forget *s;
    struct dd_buf ops; /* struct dd_store_op */
    struct dd_period period;
};

static bool is_named(const struct forget *s, struct dd_slice item)
{
    for (unsigned i = 0; i < s->c->n; i++)
        if (dd_slice_eq(item, s->ids[i])) return true;
    return false;
}

/* The record without the items: only its head when none is left. */
static void copy_rest(const struct forget *s, struct dd_slice value, struct dd_slice rest, struct dd_buf *out)
{
    struct dd_slice item;
    dd_buf_add(out, value.ptr, value.len - rest.len);
    while (dd_history_next_item(&rest, &item))
        if (!is_named(s, item)) dd_buf_add(out, item.ptr - 2, item.len + 2);
}

static bool rewrite_record(void *arg, struct dd_slice suffix, struct dd_slice value)
{
    struct rewrite *r = arg;
    struct forget *s = r->s;
    struct dd_buf out = {0};
    struct dd_slice rest;
    int64_t ts_ms;
    if (!dd_history_open_record(value, &ts_ms, &rest)) return true;
    size_t head = value.len - rest.len;
    copy_rest(s, value, rest, &out);
    if (dd_buf_ok(&out) && out.len != value.len) {
        struct dd_store_op op = {.kind = DD_STORE_RECORD,
                                 .scene = s->scene,
                                 .user = s->user,
                                 .period = r->period,
                                 .suffix = dd_arena_copy(s->c->arena, suffix),
                                 .read_number = UINT64_MAX};
        if (out.len > head) op.operand = dd_arena_copy(s->c->arena, dd_buf_slice(&out));
        if (!op.suffix.len || (out.len > head && !op.operand.len)) r->ops.failed = true;
        dd_buf_add(&r->ops, &op, sizeof op);
    }
    if (!dd_buf_ok(&out)) r->ops.failed = true;
    dd_buf_free(&out);
    return dd_buf_ok(&r->ops);
}

static enum dd_err rewrite_records(struct forget *s)
{
    struct rewrite r = {.s = s};
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < s->where->n && err == DD_OK; i++) {
        r.period = s->where->period[i];
        err = dd_store_each_record(s->a->d->store, s->scene, s->user, r.period, rewrite_record, &r);
    }
    if (err == DD_OK && !dd_buf_ok(&r.ops)) err = DD_NO_MEMORY;
    struct dd_store_batch batch = {.ops = (struct dd_store_op *)(void *)r.ops.data,
                                   .n = (unsigned)(r.ops.len / sizeof(struct dd_store_op)),
                                   .sync = true};
    if (err == DD_OK && batch.n) err = dd_store_write_wait(s->a->d->store, &batch);
    dd_buf_free(&r.ops);
    return err;
}

static void run(void *arg)
{
    struct forget *s = arg;
    struct dd_history *h = s->a->d->options.history;
    unsigned n;
    dd_history_enter(h, s->user);
    s->err = dd_user_scenes(s->a, s->scene, NULL, s->c->arena, &s->where, &n);
    if (s->err == DD_OK) s->err = check_sets(s);
    if (s->err == DD_OK) s->err = remove_pending(s);
    if (s->err == DD_OK) s->err = rewrite_records(s);
    if (s->err == DD_OK) s->err = rewrite_sets(s);
    dd_history_leave(h, s->user);
}

/* ---- steps 1 and 4, on the loop ---- */

static void ask(struct forget *s);

static void on_run(void *arg)
{
    struct forget *s = arg;
    if (s->err != DD_OK) {
        finish(s, s->err);
        return;
    }
    dd_hot_unclaim(s->dl->hot, s->scene, s->user, s->ids, s->c->n);
    s->confirming = true;
    ask(s);
}

/* Items and what is known are both short lists of one user. */
static void note_known(struct forget *s)
{
    const struct dd_hot_fetch *f = &s->fetch;
    for (unsigned k = 0; k < s->c->n; k++) {
        for (unsigned i = 0; i < f->recent_n && !s->known[k]; i++)
            s->known[k] = dd_slice_eq(f->recent[i].id, s->ids[k]);
        for (unsigned p = 0; p < f->pending_n; p++)
            for (unsigned i = 0; i < f->pending[p].n && !s->known[k]; i++)
                s->known[k] = f->pending[p].fps[i] == s->fps[k];
    }
}

static void take_reply(struct forget *s, bool complete)
{
    enum dd_err err = complete ? DD_OK : DD_UNAVAILABLE;
    if (complete && !s->confirming) {
        err = dd_admin_submit(s->a->users, &s->job, s->dl->loop, run, on_run, s);
        if (err == DD_OK) return;
    }
    finish(s, err);
}

static void on_reply(void *arg)
{
    struct forget *s = arg;
    if (!s->confirming) note_known(s);
    take_reply(s, s->fetch.complete);
}

static void ask(struct forget *s)
{
    struct dd_dedup *d = s->dl->d;
    struct dd_hot_fetch *f = &s->fetch;
    struct dd_period period[DD_WINDOW_MAX];
    unsigned n = dd_window_periods(d->clock, s->c->scene, s->c->scene->window, NULL, period);
    f->scene = s->scene;
    f->user = s->user;
    f->want_recent = true;
    f->now_ms = dd_clock_wall(d->clock).ms;
    f->recent_ttl_ms = s->c->scene->recent_ttl_ms;
    f->pending_n = s->confirming ? 0 : dd_window_pending(d, period, n);
    memcpy(f->pending_period, period, f->pending_n * sizeof *period);
    f->done = on_reply;
    f->arg = s;
    enum dd_err err = dd_hot_fetch(s->dl->hot, f);
    if (err == DD_PENDING) return;
    if (err != DD_OK) {
        finish(s, err);
        return;
    }
    if (!s->confirming) note_known(s);
    bool complete = f->complete;
    dd_hot_fetch_release(f);
    take_reply(s, complete);
}

static enum dd_err prepare(struct forget *s)
{
    const struct dd_forget_call *c = s->c;
    s->fps = dd_arena_calloc(c->arena, c->n, sizeof *s->fps);
    s->ids = dd_arena_calloc(c->arena, c->n, sizeof *s->ids);
    s->known = dd_arena_calloc(c->arena, c->n, 1);
    s->seen = dd_arena_calloc(c->arena, c->n, 1);
    if (!s->fps || !s->ids || !s->known || !s->seen) return DD_NO_MEMORY;
    uint64_t seed = dd_hash_user_seed(s->dl->d->secret, s->scene, s->user);
    for (unsigned i = 0; i < c->n; i++) {
        s->ids[i] = c->items[i].id;
        s->fps[i] = dd_hash_fingerprint(seed, c->items[i].id);
    }
    return DD_OK;
}

void dd_user_forget(struct dd_admin *a, struct dd_dedup_loop *dl, struct dd_forget_call *c)
{
    struct forget *s = dd_arena_calloc(c->arena, 1, sizeof *s);
    c->forgotten = 0;
    c->err = DD_NO_MEMORY;
    if (s) {
        *s = (struct forget){.c = c, .a = a, .dl = dl, .scene = dd_scene_slice(c->scene), .user = c->user};
        c->err = prepare(s);
    }
    if (c->err != DD_OK) {
        c->done(c->arg);
        return;
    }
    dl->inflight++;
    ask(s);
}
