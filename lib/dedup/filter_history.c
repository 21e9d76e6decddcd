/* What the tiers know of the user: marks in the index. The orders that must hold stand at the head of
 * filter.c.
 */
#include "dedup/filter_impl.h"

/* ---- history ---- */

static void mark_set(struct dd_filter_state *s, unsigned period, const struct dd_filter_view *view)
{
    uint8_t reason = (uint8_t)(DD_REASON_PERIOD + period);
    if (view->damaged) s->c->partial = true;
    dd_index_mark_set(&s->index, view, reason, s->c->explain, s->scratch);
}

/* What a commit has outdated meanwhile is not put: it would serve nobody, and after an erase it would be what
 * is left of the user. */
static void fill_cache(struct dd_filter_state *s, unsigned period, struct dd_slice blob, uint64_t number)
{
    if (number < dd_change_cell(s->dl->d->change, s->period[period], s->index.seed)) return;
    dd_hot_cache_put(s->dl->hot, s->scene, s->user, s->period[period],
                     dd_change_incarnation(s->dl->d->change), number, dd_clock_wall(s->dl->d->clock).ms,
                     s->c->scene->cache_ttl_ms, blob);
}

static void take_set(struct dd_filter_state *s, unsigned period, const struct dd_store_set *set)
{
    struct dd_dedup *d = s->dl->d;
    s->number[period] = set->number;
    struct dd_filter_view view;
    enum dd_err err = set->err;
    if (err == DD_OK)
        err = set->cached ? dd_filter_view_reopen(&view, set->blob) : dd_filter_view_open(&view, set->blob);
    if (err == DD_OK) {
        if (!s->answered) mark_set(s, period, &view);
        fill_cache(s, period, set->blob, set->number);
        return;
    }
    s->c->partial = true;
    if (err != DD_CORRUPT) return;
    dd_count(d->count.blob_corrupt, 1);
    dd_store_quarantine(d->store, s->scene, s->user, s->period[period]);
}

static void take_read(struct dd_filter_state *s)
{
    if (s->read.err != DD_OK) s->c->partial = true;
    for (unsigned i = 0; s->read.err == DD_OK && i < s->read.n; i++)
        take_set(s, s->missing[i], &s->read.set[i]);
    dd_store_read_release(&s->read);
}

static void judge_again(struct dd_filter_state *s);

/* Everything has been looked at, the old key perhaps not. */
static void go_on(struct dd_filter_state *s)
{
    s->ready = true;
    s->stage = STAGE_READ;
    if (s->dual_pending) return;
    if (s->dual_late)
        judge_again(s);
    else
        dd_filter_choose(s);
}

static void on_read(void *arg)
{
    struct dd_filter_state *s = arg;
    s->io--;
    take_read(s);
    if (!s->answered) go_on(s);
    dd_filter_settle(s);
}

static void read_missing(struct dd_filter_state *s, unsigned n)
{
    s->stage = STAGE_READ;
    s->read.scene = s->scene;
    s->read.user = s->user;
    s->read.n = n;
    for (unsigned i = 0; i < n; i++) {
        s->read.periods[i] = s->period[s->missing[i]];
        s->number[s->missing[i]] = 0;
    }
    s->read.loop = s->dl->loop;
    s->read.done = on_read;
    s->read.arg = s;
    enum dd_err err = dd_store_read(s->dl->d->store, &s->read);
    if (err == DD_PENDING) {
        s->io++;
        return;
    }
    if (err != DD_OK) {
        dd_filter_answer(s, err);
        return;
    }
    take_read(s);
    go_on(s);
}

/* A cached set is used if its number proves it fresh: see store/change.h. */
static bool use_cached(struct dd_filter_state *s, unsigned period, const struct dd_hot_cached *cached)
{
    struct dd_dedup *d = s->dl->d;
    struct dd_filter_view view;
    if (!cached->present) {
        dd_count(d->count.cache_miss, 1);
        return false;
    }
    uint64_t cell = dd_change_cell(d->change, s->period[period], s->index.seed);
    if (cached->incarnation != dd_change_incarnation(d->change) || cached->number < cell) {
        dd_count(d->count.cache_stale, 1);
        return false;
    }
    if (dd_filter_view_open(&view, cached->blob) != DD_OK) {
        dd_count(d->count.cache_corrupt, 1);
        return false;
    }
    dd_count(d->count.cache_hit, 1);
    mark_set(s, period, &view);
    s->number[period] = cached->number;
    int64_t age_ms = dd_clock_wall(d->clock).ms - cached->filled_ms;
    if (age_ms > s->c->scene->cache_ttl_ms / 2 || age_ms < 0)
        fill_cache(s, period, cached->blob, cached->number);
    return true;
}

static void mark_hot(struct dd_filter_state *s)
{
    struct dd_hot_fetch *f = &s->fetch;
    const struct dd_wheel *wheel = s->dl->d->wheel;
    if (!f->complete || !f->recent_intact || (wheel && dd_wheel_is_blind(wheel))) s->c->partial = true;
    for (unsigned i = 0; i < f->recent_n; i++)
        dd_index_mark_id(&s->index, f->recent[i].id, DD_REASON_DELIVERED);
    for (unsigned p = 0; p < f->pending_n; p++)
        for (unsigned i = 0; i < f->pending[p].n; i++)
            dd_index_mark_fp(&s->index, f->pending[p].fps[i], DD_REASON_PENDING);
}

void dd_filter_take_fetch(struct dd_filter_state *s)
{
    unsigned missing = 0;
    mark_hot(s);
    for (unsigned p = 0; p < s->periods; p++)
        if (p >= s->fetch.cached_n || !use_cached(s, p, &s->fetch.cached[p]))
            s->missing[missing++] = (uint8_t)p;
    if (missing)
        read_missing(s, missing);
    else
        go_on(s);
}

/* ---- the old key ---- */

/* The reply came after sets were judged: those that a commit has touched since are read, for the migrator may
 * have moved an entry from the key into one of them in between. */
static void judge_again(struct dd_filter_state *s)
{
    unsigned missing = 0;
    s->dual_late = false;
    for (unsigned p = 0; p < s->periods; p++)
        if (s->number[p] < dd_change_cell(s->dl->d->change, s->period[p], s->index.seed))
            s->missing[missing++] = (uint8_t)p;
    if (missing)
        read_missing(s, missing);
    else
        dd_filter_choose(s);
}

static void take_dual(struct dd_filter_state *s)
{
    s->dual_pending = false;
    if (s->dual->err != DD_OK) s->c->partial = true;
    if (s->ready)
        judge_again(s);
    else
        s->dual_late = s->stage != STAGE_FETCH; /* some were judged, others are being read */
}

static void on_dual(void *arg)
{
    struct dd_filter_state *s = arg;
    s->io--;
    if (!s->answered) take_dual(s);
    dd_filter_settle(s);
}

/* Sent before the request's other commands: on the same connection its reply comes first. */
void dd_filter_ask_old_key(struct dd_filter_state *s)
{
    if (!dd_dual_wanted(s->dl->d, s->c->scene)) return;
    s->dual = dd_arena_calloc(s->c->arena, 1, sizeof *s->dual);
    if (!s->dual) {
        s->c->partial = true;
        return;
    }
    s->dual->dl = s->dl;
    s->dual->user = s->user;
    s->dual->index = &s->index;
    s->dual->dead = &s->answered;
    s->dual->done = on_dual;
    s->dual->arg = s;
    if (dd_dual_start(s->dual) == DD_PENDING) {
        s->dual_pending = true;
        s->io++;
    } else {
        take_dual(s);
    }
}
