/* Where exposures go.
 *
 *   staged   three additions in Redis, all acknowledged, into a slot that is still open at the
 * acknowledgement; else staged again into the slot that is open now. Only the current and the previous
 * period. direct   one merge operand per event, one batch, one commit: the store publishes the number and
 * raises the cells before it calls back. Late events, kinds that count, embedded mode, and whatever could not
 * be staged.
 *
 * Staging comes first, then what is left is written directly: an event whose staging failed half-way may end
 * up in both, which is harmless, since a set that has an item does not take it twice. */
#include "dedup/exposed_impl.h"

#define STAGE_TRIES                                                                                          \
    3 /* a slot is sealed at most once an hour; three in a row means that this process was stopped */

static const int durability_rank[] = {
    [DD_DURABLE_SYNC] = 0, [DD_DURABLE_STAGED] = 1, [DD_DURABLE_WAL] = 2, [DD_DURABLE_VOLATILE] = 3};

/* The answer names the weakest promise among its events. */
static void weaken(struct dd_exposed_call *c, enum dd_durability to)
{
    if (durability_rank[to] > durability_rank[c->durability]) c->durability = to;
}

static enum dd_durability direct_durability(const struct dd_exposed_state *s)
{
    return s->dl->d->options.store_sync ? DD_DURABLE_SYNC : DD_DURABLE_WAL;
}

static void accept(struct dd_exposed_state *s, unsigned event)
{
    s->work[event].route = DD_ROUTE_DONE;
    s->c->accepted += s->c->events[event].n;
    dd_tally_add(s->dl->d->tally, dd_exposed_tally_hash(&s->work[event]), s->c->events[event].n);
}

/* ---- direct ---- */

static void on_commit(void *arg)
{
    struct dd_exposed_state *s = arg;
    s->io--;
    enum dd_err err = s->batch.err;
    if (err == DD_DISK_FULL && s->staging_failed)
        err = DD_UNAVAILABLE; /* Redis and the store are both away */
    if (s->direct)
        weaken(s->c, direct_durability(s));
    else
        err = DD_OK; /* a record too many does no harm */
    dd_exposed_answer(s, err);
    dd_exposed_settle(s);
}

static enum dd_err make_op(struct dd_exposed_state *s, unsigned event, struct dd_buf *scratch,
                           struct dd_store_op *op)
{
    struct dd_exposed_event *e = &s->c->events[event];
    struct dd_exposed_work *w = &s->work[event];
    *op = (struct dd_store_op){.kind = DD_STORE_MERGE,
                               .scene = dd_scene_slice(e->scene),
                               .user = w->user,
                               .period = w->period,
                               .read_number = UINT64_MAX};
    dd_buf_reset(scratch);
    enum dd_err err = dd_filter_operand(&e->scene->policy, 0, w->fps, e->n, scratch);
    if (err != DD_OK) return err;
    op->operand = dd_arena_copy(s->c->arena, dd_buf_slice(scratch));
    return op->operand.len ? DD_OK : DD_NO_MEMORY;
}

static enum dd_err make_ops(struct dd_exposed_state *s, struct dd_store_op *ops, unsigned *n)
{
    struct dd_buf scratch = {0};
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < s->c->n && err == DD_OK; i++) {
        if (dd_exposed_record_op(s, i, &ops[*n])) ++*n;
        if (s->work[i].route != DD_ROUTE_DIRECT) continue;
        s->direct = true;
        err = make_op(s, i, &scratch, &ops[(*n)++]);
        accept(s, i);
    }
    dd_buf_free(&scratch);
    return err;
}

static void write_direct(struct dd_exposed_state *s)
{
    struct dd_exposed_call *c = s->c;
    struct dd_store_op *ops = dd_arena_alloc(c->arena, 2 * c->n * sizeof *ops);
    unsigned n = 0;
    enum dd_err err = ops ? make_ops(s, ops, &n) : DD_NO_MEMORY;
    if (err == DD_OK && n) {
        s->batch = (struct dd_store_batch){
            .ops = ops, .n = n, .loop = s->dl->loop, .done = on_commit, .arg = s};
        err = dd_store_write(s->dl->d->store, &s->batch);
    } else if (err == DD_OK && !c->accepted) {
        weaken(c, direct_durability(s)); /* nothing was kept: all expired or limited */
    }
    if (err == DD_PENDING) {
        s->io++;
        return;
    }
    if (err == DD_DISK_FULL && s->staging_failed) err = DD_UNAVAILABLE;
    dd_exposed_answer(s, err);
}

/* ---- staged ---- */

static void stage(struct dd_exposed_state *s);

static void take_stage_entry(struct dd_exposed_state *s, const struct dd_hot_stage_entry *entry,
                             unsigned event)
{
    struct dd_exposed_work *w = &s->work[event];
    if (entry->result == DD_LIMIT) {
        w->route = DD_ROUTE_DONE;
        s->c->events[event].result = DD_LIMIT;
        s->c->limited += entry->n;
    } else if (entry->result != DD_OK) {
        s->staging_failed = true;
        w->route = DD_ROUTE_DIRECT;
    } else if (dd_wheel_is_open(s->dl->d->wheel, s->slot)) { /* after the acknowledgement: see wheel.h */
        accept(s, event);
        weaken(s->c, dd_wheel_staging(s->dl->d->wheel) == DD_STAGING_FIRM ? DD_DURABLE_STAGED
                                                                          : DD_DURABLE_VOLATILE);
    } else if (s->stage_tries >= STAGE_TRIES) {
        w->route = DD_ROUTE_DIRECT;
    }
}

static void on_stage(void *arg)
{
    struct dd_exposed_state *s = arg;
    s->io--;
    for (unsigned i = 0; i < s->stage.n; i++)
        take_stage_entry(s, &s->stage.entries[i], s->stage_event[i]);
    if (!s->answered) stage(s);
    dd_exposed_settle(s);
}

static enum dd_err collect_entries(struct dd_exposed_state *s)
{
    struct dd_exposed_call *c = s->c;
    if (!s->stage_event) {
        s->stage_event = dd_arena_alloc(c->arena, c->n * sizeof *s->stage_event);
        s->stage.entries = dd_arena_alloc(c->arena, c->n * sizeof *s->stage.entries);
        if (!s->stage_event || !s->stage.entries) return DD_NO_MEMORY;
    }
    s->stage.n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        if (s->work[i].route != DD_ROUTE_STAGE) continue;
        s->stage_event[s->stage.n] = i;
        s->stage.entries[s->stage.n++] = (struct dd_hot_stage_entry){
            .scene = dd_scene_slice(c->events[i].scene),
            .user = s->work[i].user,
            .period = s->work[i].period,
            .fps = s->work[i].fps,
            .n = c->events[i].n};
    }
    return DD_OK;
}

static enum dd_err start_stage(struct dd_exposed_state *s)
{
    s->stage_tries++;
    s->slot = dd_wheel_open_slot(s->dl->d->wheel);
    s->stage.slot_start_s = s->slot.start_s;
    s->stage.slot_end_s = s->slot.end_s;
    s->stage.pending_max = s->dl->d->options.pending_max;
    s->stage.done = on_stage;
    s->stage.arg = s;
    return dd_hot_stage(s->dl->hot, &s->stage);
}

/* Stages what is to be staged, then writes the rest. */
static void stage(struct dd_exposed_state *s)
{
    enum dd_err err = collect_entries(s);
    if (err == DD_OK && s->stage.n) {
        if (start_stage(s) == DD_PENDING) {
            s->io++;
            return;
        }
        s->staging_failed = true;
        for (unsigned i = 0; i < s->stage.n; i++)
            s->work[s->stage_event[i]].route = DD_ROUTE_DIRECT;
    }
    if (err == DD_OK)
        write_direct(s);
    else
        dd_exposed_answer(s, err);
}

/* ---- routing ---- */

static enum dd_route route_of(const struct dd_exposed_state *s, unsigned event)
{
    const struct dd_scene *scene = s->c->events[event].scene;
    const struct dd_wheel *wheel = s->dl->d->wheel;
    if (s->c->events[event].result != DD_OK) return DD_ROUTE_DONE;
    if (!wheel || dd_wheel_staging(wheel) == DD_STAGING_OFF) return DD_ROUTE_DIRECT;
    if (scene->policy.kind == DD_FILTER_COUNTING)
        return DD_ROUTE_DIRECT; /* pending is a set: it cannot count */
    int32_t newest = dd_period_at(scene->period, dd_clock_period_now(s->dl->d->clock)).ordinal;
    return newest - s->work[event].period.ordinal > 1 ? DD_ROUTE_DIRECT : DD_ROUTE_STAGE;
}

void dd_exposed_write(struct dd_exposed_state *s)
{
    struct dd_exposed_call *c = s->c;
    s->stage_event = NULL;
    for (unsigned i = 0; i < c->n; i++) {
        struct dd_exposed_event *e = &c->events[i];
        s->work[i].route = route_of(s, i);
        if (s->work[i].route == DD_ROUTE_DONE) continue;
        s->work[i].fps = dd_arena_alloc(c->arena, e->n * sizeof *s->work[i].fps);
        if (!s->work[i].fps) {
            dd_exposed_answer(s, DD_NO_MEMORY);
            return;
        }
        for (unsigned k = 0; k < e->n; k++)
            s->work[i].fps[k] = e->items[k].fp = dd_hash_fingerprint(s->work[i].seed, e->items[k].id);
    }
    enum dd_err err = dd_exposed_record_make(s);
    if (err == DD_OK) err = dd_exposed_record_first(s, stage);
    if (err == DD_OK)
        stage(s);
    else if (err != DD_PENDING)
        dd_exposed_answer(s, err);
}
