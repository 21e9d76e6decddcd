#include "dedup/trace_call.h"

#include "dedup/admin_impl.h"

static bool visit(void *arg, const struct dd_trace_entry *e)
{
    struct dd_trace_call *c = arg;
    c->more = c->n == c->limit;
    if (c->more) return false;
    struct dd_trace_entry *copy = &c->entry[c->n];
    *copy = *e;
    copy->scene = dd_arena_copy(c->arena, e->scene);
    copy->item = dd_arena_copy(c->arena, e->item);
    copy->cursor = dd_arena_copy(c->arena, e->cursor);
    if (!copy->cursor.len || copy->item.len != e->item.len) {
        c->err = DD_NO_MEMORY;
        return false;
    }
    c->n++;
    return true;
}

static enum dd_err show(struct dd_trace_call *c)
{
    c->entry = dd_arena_calloc(c->arena, c->limit, sizeof *c->entry);
    if (!c->entry) return DD_NO_MEMORY;
    enum dd_err err = dd_trace_get(c->trace, c->user, &c->state);
    if (err == DD_OK) err = dd_trace_show(c->trace, c->user, c->scene, c->before, visit, c);
    return err == DD_OK ? c->err : err;
}

static void run(void *arg)
{
    struct dd_trace_call *c = arg;
    if (c->verb == DD_TRACE_START)
        c->err = dd_trace_start(c->trace, c->user, c->scene, c->days, &c->state);
    else if (c->verb == DD_TRACE_STOP)
        c->err = dd_trace_stop(c->trace, c->user, dd_slice_of(NULL, 0), &c->removed);
    else
        c->err = show(c);
}

static void on_run(void *arg)
{
    struct dd_trace_call *c = arg;
    c->dl->inflight--;
    c->done(c->arg);
}

void dd_trace_call(struct dd_admin *a, struct dd_dedup_loop *dl, struct dd_trace_call *c)
{
    c->err = DD_OK;
    c->n = 0;
    c->more = false;
    c->removed = 0;
    c->trace = a->d->options.trace;
    c->dl = dl;
    enum dd_err err = c->trace ? dd_admin_submit(a->users, &c->job, dl->loop, run, on_run, c)
                               : DD_UNSUPPORTED;
    if (err == DD_OK) {
        dl->inflight++;
        return;
    }
    c->err = err;
    c->done(c->arg);
}
