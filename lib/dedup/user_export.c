/* A user's set of one period as a blob that tests the way /filter does: what is staged is merged in. */
#include "dedup/internal.h"
#include "dedup/user.h"

struct export
{
    struct dd_export_call *c;
    struct dd_dedup_loop *dl;
    struct dd_buf operand; /* of what is staged */
    struct dd_hot_fetch fetch;
    struct dd_store_read read;
};

static void finish(struct export *s, enum dd_err err)
{
    struct dd_export_call *c = s->c;
    dd_buf_free(&s->operand);
    c->err = err;
    s->dl->inflight--;
    c->done(c->arg);
}

static enum dd_err merge(struct export *s, struct dd_slice stored)
{
    struct dd_export_call *c = s->c;
    struct dd_filter_view view;
    struct dd_slice operand = dd_buf_slice(&s->operand);
    if (!stored.len && !operand.len) return c->partial ? DD_UNAVAILABLE : DD_NOT_FOUND;
    if (dd_filter_view_open(&view, stored) != DD_OK) return DD_CORRUPT;
    struct dd_buf merged = {0};
    enum dd_err err = DD_OK;
    if (operand.len)
        err = dd_filter_merge(stored, &operand, 1, &merged, NULL);
    else
        dd_buf_add_slice(&merged, stored);
    c->blob = dd_arena_copy(c->arena, dd_buf_slice(&merged));
    if (err == DD_OK && (!dd_buf_ok(&merged) || !c->blob.len)) err = DD_NO_MEMORY;
    dd_buf_free(&merged);
    return err;
}

static void take_read(struct export *s)
{
    enum dd_err err = s->read.err;
    if (err == DD_OK) err = s->read.set[0].err;
    if (err == DD_OK) err = merge(s, s->read.set[0].blob);
    dd_store_read_release(&s->read);
    finish(s, err);
}

static void on_read(void *arg)
{
    take_read(arg);
}

static void read_store(struct export *s)
{
    s->read.scene = dd_scene_slice(s->c->scene);
    s->read.user = s->c->user;
    s->read.periods[0] = s->c->period;
    s->read.n = 1;
    s->read.loop = s->dl->loop;
    s->read.done = on_read;
    s->read.arg = s;
    enum dd_err err = dd_store_read(s->dl->d->store, &s->read);
    if (err == DD_OK)
        take_read(s);
    else if (err != DD_PENDING)
        finish(s, err);
}

/* The store is read after pending: what the wheel moves in between is in both. */
static enum dd_err take_fetch(struct export *s)
{
    const struct dd_hot_fetch *f = &s->fetch;
    if (!f->complete) s->c->partial = true;
    if (!f->complete || !f->pending_n || !f->pending[0].n) return DD_OK;
    s->c->pending = f->pending[0].n;
    return dd_filter_operand(&s->c->scene->policy, 0, f->pending[0].fps, f->pending[0].n, &s->operand);
}

static void on_fetch(void *arg)
{
    struct export *s = arg;
    enum dd_err err = take_fetch(s);
    if (err == DD_OK)
        read_store(s);
    else
        finish(s, err);
}

static void fetch(struct export *s)
{
    struct dd_hot_fetch *f = &s->fetch;
    f->scene = dd_scene_slice(s->c->scene);
    f->user = s->c->user;
    f->now_ms = dd_clock_wall(s->dl->d->clock).ms;
    f->recent_ttl_ms = s->c->scene->recent_ttl_ms;
    f->pending_period[0] = s->c->period;
    f->pending_n = dd_hot_is_embedded(s->dl->d->hot) ? 0 : 1;
    f->done = on_fetch;
    f->arg = s;
    enum dd_err err = dd_hot_fetch(s->dl->hot, f);
    if (err == DD_PENDING) return;
    if (err == DD_OK) {
        err = take_fetch(s);
        dd_hot_fetch_release(f);
    }
    if (err == DD_OK)
        read_store(s);
    else
        finish(s, err);
}

void dd_user_export(struct dd_dedup_loop *dl, struct dd_export_call *c)
{
    struct export *s = dd_arena_calloc(c->arena, 1, sizeof *s);
    c->partial = false;
    c->pending = 0;
    c->blob = (struct dd_slice){0};
    c->seed = dd_hash_user_seed(dl->d->secret, dd_scene_slice(c->scene), c->user);
    if (!s) {
        c->err = DD_NO_MEMORY;
        c->done(c->arg);
        return;
    }
    s->c = c;
    s->dl = dl;
    dl->inflight++;
    fetch(s);
}
