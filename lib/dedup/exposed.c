/* /exposed, written directly to the store.
 *
 * Steps: every event is judged (time, window) before anything is written; events of users that may be near
 * their cap wait for a read of their set; what is left becomes one batch of merge operands, one commit, one
 * acknowledgement. The store commits, publishes the number and raises the cells before it calls back, so an
 * acknowledged exposure is seen by every later request. */
#include "dedup/internal.h"

struct dd_exposed_state {
    struct dd_exposed_call *c;
    struct dd_dedup_loop *dl;
    struct dd_timer deadline;
    bool answered;
    unsigned io;   /* calls of the store that have not come back */
    unsigned next; /* event whose cap is to be looked at */
    struct work {
        uint64_t seed;
        struct dd_period period;
        struct dd_slice user; /* in the arena: outlives the request's body */
    } * work;                 /* per event */
    struct dd_store_read read;
    struct dd_store_batch batch;
};

static void settle(struct dd_exposed_state *s)
{
    if (!s->answered || s->io) return;
    s->dl->inflight--;
    s->c->finished(s->c->arg);
}

static void answer(struct dd_exposed_state *s, enum dd_err err)
{
    struct dd_exposed_call *c = s->c;
    if (s->answered) return;
    s->answered = true;
    dd_timer_stop(&s->deadline);
    c->err = err;
    if (err != DD_OK) c->accepted = c->expired = c->limited = 0;
    dd_count(s->dl->d->count.exposed_items, c->accepted);
    dd_count(s->dl->d->count.expired_items, c->expired);
    dd_count(s->dl->d->count.limited_items, c->limited);
    c->done(c->arg);
}

static void on_deadline(void *arg)
{
    struct dd_exposed_state *s = arg;
    dd_count(s->dl->d->count.deadline, 1);
    answer(s, DD_TIMEOUT);
    settle(s);
}

static uint64_t tally_hash(const struct work *w)
{
    return dd_mix64(w->seed ^ (uint64_t)(uint32_t)w->period.ordinal);
}

/* Period and result of one event, from its time. DD_INVALID: too far ahead. */
static enum dd_err judge_time(struct dd_dedup *d, struct dd_exposed_event *e, struct work *w)
{
    struct dd_wall now = dd_clock_period_now(d->clock), wall = dd_clock_wall(d->clock);
    struct dd_period newest = dd_period_at(e->scene->period, now);
    e->result = DD_OK;
    w->period = newest;
    if (e->ts_ms == DD_TS_NOW) return DD_OK;
    int64_t latest = wall.ms > now.ms ? wall.ms : now.ms;
    if (e->ts_ms > latest + d->options.max_future_ms) return DD_INVALID;
    if (e->ts_ms < now.ms) w->period = dd_period_at(e->scene->period, (struct dd_wall){e->ts_ms});
    if (newest.ordinal - w->period.ordinal >= (int32_t)e->scene->window) e->result = DD_EXPIRED;
    return DD_OK;
}

static void on_commit(void *arg)
{
    struct dd_exposed_state *s = arg;
    struct dd_exposed_call *c = s->c;
    s->io--;
    c->durability = s->dl->d->options.store_sync ? DD_DURABLE_SYNC : DD_DURABLE_WAL;
    answer(s, s->batch.err);
    settle(s);
}

static enum dd_err make_operand(struct dd_exposed_state *s, unsigned i, struct dd_buf *scratch,
                                struct dd_slice *out)
{
    struct dd_exposed_event *e = &s->c->events[i];
    uint32_t *fps = dd_arena_alloc(s->c->arena, e->n * sizeof *fps);
    if (!fps) return DD_NO_MEMORY;
    for (unsigned k = 0; k < e->n; k++)
        fps[k] = e->items[k].fp = dd_hash_fingerprint(s->work[i].seed, e->items[k].id);
    dd_buf_reset(scratch);
    enum dd_err err = dd_filter_operand(&e->scene->policy, 0, fps, e->n, scratch);
    if (err != DD_OK) return err;
    *out = dd_arena_copy(s->c->arena, dd_buf_slice(scratch));
    return out->len ? DD_OK : DD_NO_MEMORY;
}

/* Makes the operations of all events that are to be written; *n of them. */
static enum dd_err make_ops(struct dd_exposed_state *s, struct dd_store_op *ops, unsigned *n)
{
    struct dd_buf scratch = {0};
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < s->c->n && err == DD_OK; i++) {
        struct dd_exposed_event *e = &s->c->events[i];
        if (e->result != DD_OK) continue;
        struct dd_store_op *op = &ops[(*n)++];
        *op = (struct dd_store_op){.kind = DD_STORE_MERGE,
                                   .scene = dd_scene_slice(e->scene),
                                   .user = s->work[i].user,
                                   .period = s->work[i].period,
                                   .read_number = UINT64_MAX};
        err = make_operand(s, i, &scratch, &op->operand);
        s->c->accepted += e->n;
        dd_tally_add(s->dl->d->tally, tally_hash(&s->work[i]), e->n);
    }
    dd_buf_free(&scratch);
    return err;
}

static void commit(struct dd_exposed_state *s)
{
    struct dd_exposed_call *c = s->c;
    struct dd_store_op *ops = dd_arena_alloc(c->arena, c->n * sizeof *ops);
    unsigned n = 0;
    enum dd_err err = ops ? make_ops(s, ops, &n) : DD_NO_MEMORY;
    if (err == DD_OK && n) {
        s->batch = (struct dd_store_batch){
            .ops = ops, .n = n, .loop = s->dl->loop, .done = on_commit, .arg = s};
        err = dd_store_write(s->dl->d->store, &s->batch);
    }
    if (err == DD_PENDING) {
        s->io++;
        return;
    }
    c->durability = s->dl->d->options.store_sync ? DD_DURABLE_SYNC : DD_DURABLE_WAL;
    answer(s, err);
}

static void check_caps(struct dd_exposed_state *s);

/* The set of event s->next has been read: is there room for its items? */
static void judge_cap(struct dd_exposed_state *s)
{
    struct dd_exposed_event *e = &s->c->events[s->next];
    struct dd_filter_view view;
    bool readable = s->read.err == DD_OK && s->read.set[0].err == DD_OK &&
                    dd_filter_view_open(&view, s->read.set[0].blob) == DD_OK;
    if (readable && view.items + (uint64_t)e->n > e->scene->policy.cap) {
        e->result = DD_LIMIT;
        s->c->limited += e->n;
    } else {
        dd_tally_restart(s->dl->d->tally, tally_hash(&s->work[s->next]));
    }
    dd_store_read_release(&s->read);
    s->next++;
}

static void on_cap_read(void *arg)
{
    struct dd_exposed_state *s = arg;
    s->io--;
    judge_cap(s);
    if (!s->answered) check_caps(s);
    settle(s);
}

/* Goes through the events from s->next on; reads the set of each whose tally is due, one after the other. */
static void check_caps(struct dd_exposed_state *s)
{
    for (; s->next < s->c->n; s->next++) {
        struct dd_exposed_event *e = &s->c->events[s->next];
        struct work *w = &s->work[s->next];
        if (e->result != DD_OK) continue;
        if (!dd_tally_is_due(s->dl->d->tally, tally_hash(w), e->n, e->scene->policy.cap)) continue;
        s->read.scene = dd_scene_slice(e->scene);
        s->read.user = w->user;
        s->read.periods[0] = w->period;
        s->read.n = 1;
        s->read.loop = s->dl->loop;
        s->read.done = on_cap_read;
        s->read.arg = s;
        enum dd_err err = dd_store_read(s->dl->d->store, &s->read);
        if (err == DD_PENDING) {
            s->io++;
            return;
        }
        if (err != DD_OK) {
            answer(s, err);
            return;
        }
        judge_cap(s);
        s->next--; /* the loop moves on */
    }
    commit(s);
}

static enum dd_err prepare(struct dd_exposed_state *s)
{
    struct dd_exposed_call *c = s->c;
    s->work = dd_arena_alloc(c->arena, c->n * sizeof *s->work);
    if (!s->work) return DD_NO_MEMORY;
    for (unsigned i = 0; i < c->n; i++) {
        struct dd_exposed_event *e = &c->events[i];
        struct work *w = &s->work[i];
        if (judge_time(s->dl->d, e, w) != DD_OK) {
            c->bad_event = i;
            return DD_INVALID;
        }
        w->user = dd_arena_copy(c->arena, e->user);
        if (!w->user.len) return DD_NO_MEMORY;
        w->seed = dd_hash_user_seed(s->dl->d->secret, dd_scene_slice(e->scene), w->user);
        if (e->result == DD_EXPIRED) c->expired += e->n;
    }
    return DD_OK;
}

void dd_dedup_exposed(struct dd_dedup_loop *dl, struct dd_exposed_call *c)
{
    struct dd_exposed_state *s = dd_arena_alloc(c->arena, sizeof *s);
    c->accepted = c->expired = c->limited = 0;
    c->state = s;
    if (!s) {
        c->err = DD_NO_MEMORY;
        c->done(c->arg);
        c->finished(c->arg);
        return;
    }
    s->c = c;
    s->dl = dl;
    s->answered = false;
    s->io = s->next = 0;
    dl->inflight++;
    dd_timer_init(&s->deadline, dl->loop, on_deadline, s);
    dd_timer_start(&s->deadline, dl->d->options.deadline_ms);
    enum dd_err err = prepare(s);
    if (err == DD_OK)
        check_caps(s);
    else
        answer(s, err);
    settle(s);
}
