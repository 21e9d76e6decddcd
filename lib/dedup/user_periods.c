/* Where anything of a user may stand. Keys begin with the period, so a user's periods cannot be listed; but
 * the periods of a scene can, and there are few. */
#include "dedup/admin_impl.h"

#include <stdlib.h>

/* A slot's name comes from Redis: it cannot make the list longer than this. */
#define PERIODS_MAX 2048

struct gather {
    struct dd_admin *a;
    struct dd_slice only;
    const struct dd_period *period;
    struct dd_arena *arena;
    struct dd_buf scenes; /* struct dd_user_scene */
    bool known;           /* `only` is among the registered ones */
    int64_t oldest_s;     /* start of the oldest slot; INT64_MAX: none */
};

static void visit_scene(void *arg, struct dd_slice name, enum dd_period_kind kind, unsigned window)
{
    struct gather *g = arg;
    if (g->only.len && !dd_slice_eq(name, g->only)) return;
    g->known = true;
    if (g->period && g->period->kind != kind) return;
    const struct dd_scene *configured = dd_scenes_find(g->a->d->scenes, name);
    if (configured && configured->window > window) window = configured->window;
    struct dd_user_scene s = {.name = dd_arena_copy(g->arena, name), .kind = kind, .window = window};
    if (!s.name.len) g->scenes.failed = true;
    dd_buf_add(&g->scenes, &s, sizeof s);
}

static enum dd_err find_oldest_slot(struct gather *g)
{
    const struct dd_hot_slot *slots;
    unsigned n;
    g->oldest_s = INT64_MAX;
    if (!g->a->users_staging) return DD_OK;
    enum dd_err err = dd_hot_staging_slots(g->a->users_staging, &slots, &n);
    for (unsigned i = 0; err == DD_OK && i < n; i++)
        if (slots[i].start_s < g->oldest_s) g->oldest_s = slots[i].start_s;
    return err;
}

/* ---- periods of one scene ---- */

struct range {
    enum dd_period_kind kind;
    int32_t low, high;
    struct dd_buf periods; /* struct dd_period */
};

static void add_period(struct range *r, int32_t ordinal)
{
    struct dd_period p = {r->kind, ordinal};
    dd_buf_add(&r->periods, &p, sizeof p);
}

static int32_t ordinal_at(const struct range *r, int64_t ms)
{
    return dd_period_at(r->kind, (struct dd_wall){ms}).ordinal;
}

/* The window, one period before it that is kept for a while, and what a slot may hold: the period at its
 * start and the one before (nothing older is staged). */
static void set_range(struct range *r, const struct gather *g, unsigned window)
{
    int32_t newest = ordinal_at(r, dd_clock_period_now(g->a->d->clock).ms);
    int32_t shown = ordinal_at(r, dd_clock_wall(g->a->d->clock).ms);
    r->high = newest > shown ? newest : shown;
    r->low = (newest < shown ? newest : shown) - (int32_t)window;
    if (g->oldest_s != INT64_MAX) {
        int32_t slot = ordinal_at(r, g->oldest_s > INT64_MAX / 1000 ? INT64_MAX : g->oldest_s * 1000) - 1;
        if (slot < r->low) r->low = slot;
    }
    if (r->low < r->high - PERIODS_MAX) r->low = r->high - PERIODS_MAX;
    if (r->low < 0) r->low = 0;
}

static enum dd_err visit_period(void *arg, struct dd_period p)
{
    struct range *r = arg;
    if (p.ordinal < r->low || p.ordinal > r->high) add_period(r, p.ordinal);
    return DD_OK;
}

static int newest_first(const void *a, const void *b)
{
    const struct dd_period *p = a, *q = b;
    return (p->ordinal < q->ordinal) - (p->ordinal > q->ordinal);
}

static enum dd_err list_periods(const struct gather *g, struct dd_user_scene *s)
{
    struct range r = {.kind = s->kind};
    enum dd_err err = DD_OK;
    if (g->period) {
        add_period(&r, g->period->ordinal);
    } else {
        set_range(&r, g, s->window);
        for (int32_t o = r.high; o >= r.low; o--)
            add_period(&r, o);
        err = dd_store_each_period(g->a->d->store, s->name, s->kind, visit_period, &r);
        /* Damaged files (logged): what is missed lies outside the window and waits for its expiry. */
        if (err == DD_CORRUPT) err = DD_OK;
    }
    struct dd_slice copy = dd_arena_copy(g->arena, dd_buf_slice(&r.periods));
    if (err == DD_OK && (!dd_buf_ok(&r.periods) || !copy.len)) err = DD_NO_MEMORY;
    if (err == DD_OK) {
        s->period = (struct dd_period *)(uintptr_t)copy.ptr;
        s->n = (unsigned)(copy.len / sizeof *s->period);
        qsort(s->period, s->n, sizeof *s->period, newest_first);
    }
    dd_buf_free(&r.periods);
    return err;
}

enum dd_err dd_user_scenes(struct dd_admin *a, struct dd_slice only, const struct dd_period *period,
                           struct dd_arena *arena, struct dd_user_scene **out, unsigned *n)
{
    struct gather g = {.a = a, .only = only, .period = period, .arena = arena};
    enum dd_err err = find_oldest_slot(&g);
    if (err != DD_OK) return err;
    dd_store_each_scene(a->d->store, visit_scene, &g);
    struct dd_slice copy = dd_arena_copy(arena, dd_buf_slice(&g.scenes));
    *n = (unsigned)(copy.len / sizeof **out);
    *out = (struct dd_user_scene *)(uintptr_t)copy.ptr;
    if (!dd_buf_ok(&g.scenes) || copy.len != g.scenes.len) err = DD_NO_MEMORY;
    dd_buf_free(&g.scenes);
    if (err == DD_OK && !*n) err = g.known ? DD_INVALID : DD_NOT_FOUND;
    for (unsigned i = 0; i < *n && err == DD_OK; i++)
        err = list_periods(&g, &(*out)[i]);
    return err;
}
