#include "fake.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

void fake_init(struct fake *f, struct dd_clock *clock)
{
    *f = (struct fake){.clock = clock};
    f->flush_start = DD_PENDING;
    f->status = (struct dd_dedup_status){.writable = true, .full = true};
    f->status.store = (struct dd_store_status){.writable = true, .free_bytes = 5000000000, .commits = 3};
    f->status.hot = (struct dd_hot_status){.embedded = true, .up = true, .recent_intact = true};
}

void fake_free(struct fake *f)
{
    free(f->entries);
}

struct dd_dedup_loop *fake_loop(struct fake *f)
{
    return (struct dd_dedup_loop *)(void *)f;
}

struct dd_dedup *fake_dedup(struct fake *f)
{
    return (struct dd_dedup *)(void *)f;
}

struct dd_wheel *fake_wheel(struct fake *f)
{
    return (struct dd_wheel *)(void *)f;
}

static struct fake *of_loop(struct dd_dedup_loop *dl)
{
    return (struct fake *)(void *)dl;
}

void fake_finish(struct fake *f)
{
    f->finished(f->arg);
}

void fake_answer(struct fake *f)
{
    f->done(f->arg);
    if (!f->hold_finish) fake_finish(f);
}

/* Every call ends here. */
static void conclude(struct fake *f, void (*done)(void *), void (*finished)(void *), void *arg)
{
    f->calls++;
    f->done = done;
    f->finished = finished;
    f->arg = arg;
    if (!f->hold) fake_answer(f);
}

/* ---- what is known ---- */

static bool is(const char *text, struct dd_slice s)
{
    return dd_slice_eq(dd_slice_str(text), s);
}

static struct fake_entry *find(struct fake *f, const struct dd_scene *scene, struct dd_slice user,
                               struct dd_slice id)
{
    for (unsigned i = 0; i < f->n; i++) {
        struct fake_entry *e = &f->entries[i];
        if (strcmp(e->scene, scene->name) == 0 && is(e->user, user) && is(e->item, id)) return e;
    }
    return NULL;
}

/* true: it was not known before. */
static bool record(struct fake *f, const struct dd_scene *scene, struct dd_slice user, struct dd_slice id,
                   bool exposed)
{
    struct fake_entry *e = find(f, scene, user, id);
    bool fresh = !e;
    if (!e) {
        f->entries = realloc(f->entries, (f->n + 1) * sizeof *f->entries);
        e = &f->entries[f->n++];
        *e = (struct fake_entry){.exposed = false};
        strcpy(e->scene, scene->name);
        memcpy(e->user, user.ptr, user.len);
        memcpy(e->item, id.ptr, id.len);
    }
    e->exposed = e->exposed || exposed;
    return fresh;
}

/* ---- calls ---- */

static bool take_event(struct fake *f, struct dd_exposed_call *c, unsigned i)
{
    struct dd_exposed_event *e = &c->events[i];
    int64_t now = dd_clock_wall(f->clock).ms;
    e->result = DD_OK;
    if (f->limit_event == i + 1 || f->limit_event == UINT_MAX) {
        e->result = DD_LIMIT;
        c->limited += e->n;
    } else if (e->ts_ms != DD_TS_NOW && e->ts_ms < now - 90LL * 86400000) {
        e->result = DD_EXPIRED;
        c->expired += e->n;
    } else {
        c->accepted += e->n;
    }
    return e->result == DD_OK;
}

static void exposed(struct dd_dedup_loop *dl, struct dd_exposed_call *c)
{
    struct fake *f = of_loop(dl);
    c->err = f->err;
    c->durability = DD_DURABLE_WAL;
    c->accepted = c->expired = c->limited = 0;
    for (unsigned i = 0; i < c->n && c->err == DD_OK; i++) {
        if (c->events[i].ts_ms != DD_TS_NOW && c->events[i].ts_ms > dd_clock_wall(f->clock).ms + 300000) {
            c->err = DD_INVALID;
            c->bad_event = i;
        }
    }
    for (unsigned i = 0; i < c->n && c->err == DD_OK; i++) {
        struct dd_exposed_event *e = &c->events[i];
        if (!take_event(f, c, i)) continue;
        for (unsigned k = 0; k < e->n; k++)
            record(f, e->scene, e->user, e->items[k].id, true);
    }
    conclude(f, c->done, c->finished, c->arg);
}

static uint8_t reason(struct fake *f, const struct dd_filter_call *c, unsigned i)
{
    for (unsigned k = 0; k < i; k++)
        if (dd_slice_eq(c->items[k].id, c->items[i].id)) return DD_REASON_REPEAT;
    const struct fake_entry *e = find(f, c->scene, c->user, c->items[i].id);
    return !e ? DD_REASON_UNSEEN : e->exposed ? DD_REASON_PERIOD : DD_REASON_DELIVERED;
}

static void choose(struct fake *f, struct dd_filter_call *c, uint32_t *chosen, uint8_t *reasons)
{
    c->chosen_n = c->filtered = 0;
    for (unsigned i = 0; i < c->n; i++) {
        reasons[i] = reason(f, c, i);
        if (reasons[i] != DD_REASON_UNSEEN)
            c->filtered++;
        else if (!c->limit || c->chosen_n < c->limit)
            chosen[c->chosen_n++] = i;
    }
    for (unsigned i = 0; i < c->chosen_n && c->claim != DD_CLAIM_NONE; i++)
        record(f, c->scene, c->user, c->items[chosen[i]].id, c->claim == DD_CLAIM_EXPOSED);
}

static void filter(struct dd_dedup_loop *dl, struct dd_filter_call *c)
{
    struct fake *f = of_loop(dl);
    uint32_t *chosen = dd_arena_alloc(c->arena, c->n * sizeof *chosen);
    uint8_t *reasons = dd_arena_alloc(c->arena, c->n);
    c->err = f->err;
    c->chosen = chosen;
    c->reason = reasons;
    c->partial = f->partial;
    c->durability = DD_DURABLE_WAL;
    c->newest = dd_period_at(c->scene->period, dd_clock_wall(f->clock));
    if (c->err == DD_OK) choose(f, c, chosen, reasons);
    conclude(f, c->done, c->finished, c->arg);
}

static void delivered(struct dd_dedup_loop *dl, struct dd_delivered_call *c)
{
    struct fake *f = of_loop(dl);
    uint8_t *won = dd_arena_alloc(c->arena, c->n);
    c->err = f->err;
    c->won = won;
    c->partial = f->partial;
    for (unsigned i = 0; i < c->n && c->err == DD_OK; i++)
        won[i] = record(f, c->scene, c->user, c->items[i].id, false);
    conclude(f, c->done, c->finished, c->arg);
}

static void status(struct dd_dedup *d, struct dd_dedup_status *out)
{
    *out = ((struct fake *)(void *)d)->status;
}

static enum dd_err flush(struct dd_wheel *w, struct dd_wheel_flush *call)
{
    struct fake *f = (struct fake *)(void *)w;
    if (f->flush_start == DD_PENDING) f->flush = call;
    f->calls++;
    return f->flush_start;
}

static unsigned slots(struct dd_wheel *w, struct dd_wheel_slot_info *out, unsigned max)
{
    ck_assert_uint_eq(max, DD_WHEEL_SLOTS_SHOWN);
    *out = ((struct fake *)(void *)w)->slot;
    return 1;
}

const struct dd_api_backend fake_backend = {.exposed = exposed,
                                            .filter = filter,
                                            .delivered = delivered,
                                            .status = status,
                                            .flush = flush,
                                            .slots = slots};
