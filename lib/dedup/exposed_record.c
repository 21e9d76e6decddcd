/* Raw ids beside the sets: history and trace of exposures.
 *
 * A direct event's record goes into the commit of its merge: both or neither. A staged event's record is
 * committed before it is staged, so that whatever a set or pending holds is in history too; that is what lets
 * a rebuild replace a set (rebuild.c). The record is stripped if the set was erased since the call began, and
 * the event is not acknowledged if an erase was at work meanwhile (history.h). */
#include "dedup/exposed_impl.h"

enum dd_err dd_exposed_record_make(struct dd_exposed_state *s)
{
    struct dd_history *h = s->dl->d->options.history;
    if (dd_history_mode(h) == DD_HISTORY_OFF) return DD_OK;
    for (unsigned i = 0; i < s->c->n; i++) {
        const struct dd_exposed_event *e = &s->c->events[i];
        struct dd_exposed_work *w = &s->work[i];
        if (w->route == DD_ROUTE_DONE || !dd_history_wants(h, dd_scene_slice(e->scene), w->user)) continue;
        enum dd_err err = dd_history_make(h, s->c->arena, e->ts_ms, e->items, e->n, &w->suffix, &w->record);
        if (err != DD_OK) return err;
    }
    return DD_OK;
}

static struct dd_store_op op_of(const struct dd_exposed_state *s, unsigned event, uint64_t read_number)
{
    const struct dd_exposed_work *w = &s->work[event];
    return (struct dd_store_op){.kind = DD_STORE_RECORD,
                                .scene = dd_scene_slice(s->c->events[event].scene),
                                .user = w->user,
                                .period = w->period,
                                .suffix = w->suffix,
                                .operand = w->record,
                                .read_number = read_number};
}

static void on_recorded(void *arg)
{
    struct dd_exposed_state *s = arg;
    s->io--;
    enum dd_err err = s->batch.err;
    for (unsigned i = 0; i < s->batch.n && err == DD_OK; i++)
        err = s->batch.ops[i].result;
    if (err != DD_OK)
        dd_exposed_answer(s, err);
    else if (!s->answered)
        s->then(s);
    dd_exposed_settle(s);
}

enum dd_err dd_exposed_record_first(struct dd_exposed_state *s, void (*next)(struct dd_exposed_state *s))
{
    struct dd_dedup *d = s->dl->d;
    struct dd_store_op *ops = NULL;
    unsigned n = 0;
    uint64_t number = dd_change_number(d->change);
    for (unsigned i = 0; i < s->c->n; i++) {
        struct dd_exposed_work *w = &s->work[i];
        if (w->route != DD_ROUTE_STAGE || !w->record.len) continue;
        if (!ops) ops = dd_arena_alloc(s->c->arena, s->c->n * sizeof *ops);
        if (!ops) return DD_NO_MEMORY;
        w->calm = dd_history_calm(d->options.history, w->user);
        w->recorded = true;
        ops[n++] = op_of(s, i, number);
    }
    if (!n) return DD_OK;
    s->then = next;
    s->batch = (struct dd_store_batch){.ops = ops,
                                       .n = n,
                                       .sync = dd_wheel_staging(d->wheel) == DD_STAGING_FIRM,
                                       .loop = s->dl->loop,
                                       .done = on_recorded,
                                       .arg = s};
    enum dd_err err = dd_store_write(d->store, &s->batch);
    if (err == DD_PENDING) s->io++;
    return err;
}

bool dd_exposed_record_op(struct dd_exposed_state *s, unsigned event, struct dd_store_op *op)
{
    const struct dd_exposed_work *w = &s->work[event];
    bool write = w->route == DD_ROUTE_DIRECT && !w->recorded;
    bool undo = w->route == DD_ROUTE_DONE && w->recorded && s->c->events[event].result == DD_LIMIT;
    if (!w->record.len || !(write || undo)) return false;
    *op = op_of(s, event, UINT64_MAX);
    if (undo) op->operand = dd_slice_of(NULL, 0);
    return true;
}

bool dd_exposed_record_stands(const struct dd_exposed_state *s)
{
    for (unsigned i = 0; s->work && i < s->c->n; i++) {
        const struct dd_exposed_work *w = &s->work[i];
        if (!w->recorded || s->c->events[i].result != DD_OK) continue;
        if (!dd_history_stayed_calm(s->dl->d->options.history, w->user, w->calm)) return false;
    }
    return true;
}

void dd_exposed_trace(const struct dd_exposed_state *s)
{
    struct dd_dedup *d = s->dl->d;
    for (unsigned i = 0; d->options.trace && i < s->c->n; i++) {
        const struct dd_exposed_event *e = &s->c->events[i];
        if (e->result != DD_OK) continue;
        int64_t ts_ms = e->ts_ms == DD_TS_NOW ? dd_clock_wall(d->clock).ms : e->ts_ms;
        dd_trace_items(d->options.trace, dd_scene_slice(e->scene), s->work[i].user, DD_TRACE_EXPOSED,
                       s->c->claimed ? DD_TRACE_BY_CLAIM : DD_TRACE_BY_REQUEST, ts_ms, e->items, NULL, e->n);
    }
}
