/* /exposed: every event is judged (time, window, cap) before anything is written; exposed_write.c takes it
 * from there.
 *
 * Events of users that may be near their cap wait for a read of their set (see tally.h). */
#include "dedup/exposed_impl.h"

void dd_exposed_settle(struct dd_exposed_state *s)
{
    if (!s->answered || s->io) return;
    s->dl->inflight--;
    s->c->finished(s->c->arg);
}

void dd_exposed_answer(struct dd_exposed_state *s, enum dd_err err)
{
    struct dd_exposed_call *c = s->c;
    if (s->answered) return;
    s->answered = true;
    dd_timer_stop(&s->deadline);
    if (err == DD_OK && !dd_exposed_record_stands(s)) err = DD_BUSY;
    c->err = err;
    if (err == DD_OK) dd_exposed_trace(s);
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
    dd_exposed_answer(s, DD_TIMEOUT);
    dd_exposed_settle(s);
}

uint64_t dd_exposed_tally_hash(const struct dd_exposed_work *w)
{
    return dd_mix64(w->seed ^ (uint64_t)(uint32_t)w->period.ordinal);
}

/* Period and result of one event, from its time. DD_INVALID: too far ahead. */
static enum dd_err judge_time(struct dd_dedup *d, struct dd_exposed_event *e, struct dd_exposed_work *w)
{
    struct dd_wall now = dd_clock_period_now(d->clock);
    struct dd_period newest = dd_period_at(e->scene->period, now);
    e->result = DD_OK;
    w->period = newest;
    if (e->ts_ms == DD_TS_NOW) return DD_OK;
    if (e->ts_ms > now.ms + d->options.max_future_ms) return DD_INVALID;
    if (e->ts_ms < now.ms) w->period = dd_period_at(e->scene->period, (struct dd_wall){e->ts_ms});
    if (newest.ordinal - w->period.ordinal >= (int32_t)e->scene->window) e->result = DD_EXPIRED;
    return DD_OK;
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
        dd_tally_restart(s->dl->d->tally, dd_exposed_tally_hash(&s->work[s->next]));
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
    dd_exposed_settle(s);
}

static enum dd_err read_set(struct dd_exposed_state *s)
{
    s->read.scene = dd_scene_slice(s->c->events[s->next].scene);
    s->read.user = s->work[s->next].user;
    s->read.periods[0] = s->work[s->next].period;
    s->read.n = 1;
    s->read.loop = s->dl->loop;
    s->read.done = on_cap_read;
    s->read.arg = s;
    return dd_store_read(s->dl->d->store, &s->read);
}

static bool is_cap_due(const struct dd_exposed_state *s)
{
    const struct dd_exposed_event *e = &s->c->events[s->next];
    uint64_t hash = dd_exposed_tally_hash(&s->work[s->next]);
    return e->result == DD_OK && dd_tally_is_due(s->dl->d->tally, hash, e->n, e->scene->policy.cap);
}

/* Goes through the events from s->next on; reads the set of each whose tally is due, one after the other. */
static void check_caps(struct dd_exposed_state *s)
{
    while (s->next < s->c->n) {
        if (!is_cap_due(s)) {
            s->next++;
            continue;
        }
        enum dd_err err = read_set(s);
        if (err == DD_PENDING) {
            s->io++;
            return;
        }
        if (err != DD_OK) {
            dd_exposed_answer(s, err);
            return;
        }
        judge_cap(s);
    }
    dd_exposed_write(s);
}

static enum dd_err prepare(struct dd_exposed_state *s)
{
    struct dd_exposed_call *c = s->c;
    s->work = dd_arena_calloc(c->arena, c->n, sizeof *s->work);
    if (!s->work) return DD_NO_MEMORY;
    for (unsigned i = 0; i < c->n; i++) {
        struct dd_exposed_event *e = &c->events[i];
        struct dd_exposed_work *w = &s->work[i];
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
    c->durability = DD_DURABLE_SYNC;
    c->state = s;
    if (!s) {
        c->err = DD_NO_MEMORY;
        c->done(c->arg);
        c->finished(c->arg);
        return;
    }
    s->c = c;
    s->dl = dl;
    s->answered = s->staging_failed = s->direct = false;
    s->work = NULL;
    s->io = s->next = s->stage_tries = 0;
    dl->inflight++;
    dd_timer_init(&s->deadline, dl->loop, on_deadline, s);
    dd_timer_start(&s->deadline, dl->d->options.deadline_ms);
    enum dd_err err = prepare(s);
    if (err == DD_OK)
        check_caps(s);
    else
        dd_exposed_answer(s, err);
    dd_exposed_settle(s);
}
