/* /filter: one request's way through the tiers.
 *
 *   start     index the candidates, ask the hot tier            (one round trip)
 *   on_fetch  deliveries, pending, cached sets that are fresh    -> marks
 *   on_read   periods that were missing or stale, from the store -> marks, cache fills
 *   choose    the first survivors, up to limit; claimed if asked (a loser is replaced by the next survivor)
 *   record    claim "exposed": what was chosen is written as an exposure
 *
 * Orders that carry the promise of no repeat:
 *   - The change table is looked up in on_fetch, after the reply that carried pending; the store is read
 * last. Whoever finds pending already empty also finds the cell raised, because the wheel publishes the other
 * way round: store, change table, removal.
 *   - A cache fill carries the number that the store loaded before it read (dd_store_read.number).
 *
 * The deadline answers with what is known while the store is being read, marked partial; where nothing may be
 * promised yet (a claim, an exposure under way) it answers DD_TIMEOUT. */
#include "dedup/index.h"
#include "dedup/internal.h"

enum stage { STAGE_FETCH, STAGE_READ, STAGE_CLAIM, STAGE_RECORD };

struct dd_filter_state {
    struct dd_filter_call *c;
    struct dd_dedup_loop *dl;
    struct dd_timer deadline;
    enum stage stage;
    bool answered;
    unsigned io; /* calls that have not come back */
    struct dd_slice scene, user;
    struct dd_index index;
    struct dd_period period[DD_WINDOW_MAX]; /* newest first */
    unsigned periods;
    uint8_t missing[DD_WINDOW_MAX]; /* numbers of the periods to read from the store */
    unsigned limit;
    uint32_t *chosen;
    unsigned scan;        /* the next candidate to look at */
    uint32_t *round_item; /* candidates of the claim under way */
    uint8_t *scratch;
    struct dd_hot_fetch fetch;
    struct dd_store_read read;
    struct dd_hot_claim claim;
    struct dd_exposed_call record;
    struct dd_exposed_event record_event;
};

static void settle(struct dd_filter_state *s)
{
    if (!s->answered || s->io) return;
    s->dl->inflight--;
    s->c->finished(s->c->arg);
}

static void count_answer(const struct dd_filter_state *s)
{
    const struct dd_filter_call *c = s->c;
    unsigned delivered = 0, pending = 0, history = 0;
    for (unsigned i = 0; i < c->n; i++) {
        delivered += c->reason[i] == DD_REASON_DELIVERED;
        pending += c->reason[i] == DD_REASON_PENDING;
        history += c->reason[i] >= DD_REASON_PERIOD;
    }
    struct dd_dedup *d = s->dl->d;
    dd_count(d->count.candidates, c->n);
    dd_count(d->count.seen_delivered, delivered);
    dd_count(d->count.seen_pending, pending);
    dd_count(d->count.seen_history, history);
    if (c->partial) dd_count(d->count.partial, 1);
}

static void answer(struct dd_filter_state *s, enum dd_err err)
{
    struct dd_filter_call *c = s->c;
    if (s->answered) return;
    s->answered = true;
    dd_timer_stop(&s->deadline);
    c->err = err;
    c->chosen = s->chosen;
    c->reason = s->index.reason;
    c->filtered = 0;
    if (err == DD_OK) {
        for (unsigned i = 0; i < c->n; i++)
            c->filtered += c->reason[i] != DD_REASON_UNSEEN;
        count_answer(s);
    }
    c->done(c->arg);
}

/* ---- choosing and claiming ---- */

static void choose(struct dd_filter_state *s);

static void unclaim_chosen(struct dd_filter_state *s)
{
    struct dd_filter_call *c = s->c;
    struct dd_slice *ids = dd_arena_alloc(c->arena, (c->chosen_n + 1) * sizeof *ids);
    if (!ids || !c->chosen_n) return;
    for (unsigned i = 0; i < c->chosen_n; i++)
        ids[i] = s->index.items[s->chosen[i]].id;
    dd_hot_unclaim(s->dl->hot, s->scene, s->user, ids, c->chosen_n);
}

static void on_record_done(void *arg)
{
    struct dd_filter_state *s = arg;
    s->c->durability = s->record.durability;
    enum dd_err err = s->record.err;
    if (err == DD_OK && s->record_event.result != DD_OK) err = s->record_event.result;
    if (err != DD_OK) unclaim_chosen(s);
    answer(s, err);
}

static void on_record_finished(void *arg)
{
    struct dd_filter_state *s = arg;
    s->io--;
    settle(s);
}

/* claim "exposed": writes what was chosen. The items were copied by keep_items. */
static void record(struct dd_filter_state *s)
{
    struct dd_filter_call *c = s->c;
    struct dd_item *items = dd_arena_alloc(c->arena, c->chosen_n * sizeof *items);
    if (!items) {
        answer(s, DD_NO_MEMORY);
        return;
    }
    for (unsigned i = 0; i < c->chosen_n; i++)
        items[i] = s->index.items[s->chosen[i]];
    s->stage = STAGE_RECORD;
    s->record_event = (struct dd_exposed_event){
        .scene = c->scene, .user = s->user, .items = items, .n = c->chosen_n, .ts_ms = DD_TS_NOW};
    s->record = (struct dd_exposed_call){.events = &s->record_event,
                                         .n = 1,
                                         .arena = c->arena,
                                         .done = on_record_done,
                                         .finished = on_record_finished,
                                         .arg = s};
    s->io++;
    dd_dedup_exposed(s->dl, &s->record);
}

static void conclude(struct dd_filter_state *s)
{
    if (s->c->claim == DD_CLAIM_EXPOSED && s->c->chosen_n)
        record(s);
    else
        answer(s, DD_OK);
}

/* The result of one round of claims: winners are chosen, losers dropped. */
static void take_round(struct dd_filter_state *s)
{
    struct dd_filter_call *c = s->c;
    if (s->claim.in_memory && !dd_hot_is_embedded(s->dl->d->hot)) c->partial = true;
    for (unsigned i = 0; i < s->claim.n; i++) {
        uint32_t item = s->round_item[i];
        if (s->claim.won[i])
            s->chosen[c->chosen_n++] = item;
        else
            s->index.reason[item] = DD_REASON_DELIVERED;
        dd_count(s->claim.won[i] ? s->dl->d->count.claimed : s->dl->d->count.claim_lost, 1);
    }
}

static void on_claim(void *arg)
{
    struct dd_filter_state *s = arg;
    s->io--;
    if (s->claim.err == DD_OK) take_round(s);
    if (s->answered)
        unclaim_chosen(s); /* the deadline said that nothing was claimed */
    else if (s->claim.err == DD_OK)
        choose(s);
    else if (s->claim.err == DD_LIMIT && s->c->chosen_n)
        conclude(s);
    else
        answer(s, s->claim.err);
    settle(s);
}

/* Collects the survivors of one round of claims. The ids are copied: the claim may outlive the request's
 * body. */
static unsigned collect_round(struct dd_filter_state *s, struct dd_slice *ids)
{
    unsigned n = 0, want = s->limit - s->c->chosen_n;
    for (; s->scan < s->c->n && n < want; s->scan++) {
        if (s->index.reason[s->scan] != DD_REASON_UNSEEN) continue;
        struct dd_item *item = &s->index.items[s->scan];
        item->id = dd_arena_copy(s->c->arena, item->id);
        if (!item->id.len) break; /* no memory: fewer are returned */
        s->round_item[n] = s->scan;
        ids[n++] = item->id;
    }
    return n;
}

static enum dd_err start_claim(struct dd_filter_state *s, struct dd_slice *ids, unsigned n)
{
    const struct dd_scene *scene = s->c->scene;
    s->stage = STAGE_CLAIM;
    s->claim.ids = ids;
    s->claim.n = n;
    s->claim.scene = s->scene;
    s->claim.user = s->user;
    s->claim.now_ms = dd_clock_wall(s->dl->d->clock).ms;
    s->claim.recent_ttl_ms = scene->recent_ttl_ms;
    s->claim.recent_max = scene->recent_max;
    s->claim.done = on_claim;
    s->claim.arg = s;
    enum dd_err err = dd_hot_claim(s->dl->hot, &s->claim);
    if (err == DD_PENDING) s->io++;
    return err == DD_OK ? s->claim.err : err;
}

/* Rounds of claims until the limit is reached or no survivor is left. */
static void claim_rounds(struct dd_filter_state *s)
{
    struct dd_filter_call *c = s->c;
    struct dd_slice *ids = dd_arena_alloc(c->arena, (s->limit + 1) * sizeof *ids);
    if (!ids) {
        answer(s, DD_NO_MEMORY);
        return;
    }
    while (c->chosen_n < s->limit) {
        unsigned n = collect_round(s, ids);
        if (!n) break;
        enum dd_err err = start_claim(s, ids, n);
        if (err == DD_PENDING) return;
        if (err == DD_LIMIT && c->chosen_n) break;
        if (err != DD_OK) {
            answer(s, err);
            return;
        }
        take_round(s);
    }
    conclude(s);
}

static void choose(struct dd_filter_state *s)
{
    struct dd_filter_call *c = s->c;
    if (c->claim != DD_CLAIM_NONE) {
        claim_rounds(s);
        return;
    }
    for (; s->scan < c->n && c->chosen_n < s->limit; s->scan++)
        if (s->index.reason[s->scan] == DD_REASON_UNSEEN) s->chosen[c->chosen_n++] = s->scan;
    answer(s, DD_OK);
}

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
    struct dd_filter_view view;
    enum dd_err err = set->err == DD_OK ? dd_filter_view_open(&view, set->blob) : set->err;
    if (err == DD_OK) {
        if (!s->answered) mark_set(s, period, &view);
        fill_cache(s, period, set->blob, s->read.number);
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

static void on_read(void *arg)
{
    struct dd_filter_state *s = arg;
    s->io--;
    take_read(s);
    if (!s->answered) choose(s);
    settle(s);
}

static void read_missing(struct dd_filter_state *s, unsigned n)
{
    s->stage = STAGE_READ;
    s->read.scene = s->scene;
    s->read.user = s->user;
    s->read.n = n;
    for (unsigned i = 0; i < n; i++)
        s->read.periods[i] = s->period[s->missing[i]];
    s->read.loop = s->dl->loop;
    s->read.done = on_read;
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
    take_read(s);
    choose(s);
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
    int64_t age_ms = dd_clock_wall(d->clock).ms - cached->filled_ms;
    if (age_ms > s->c->scene->cache_ttl_ms / 2 || age_ms < 0)
        fill_cache(s, period, cached->blob, cached->number);
    return true;
}

static void mark_hot(struct dd_filter_state *s)
{
    struct dd_hot_fetch *f = &s->fetch;
    if (!f->complete || !f->recent_intact) s->c->partial = true;
    for (unsigned i = 0; i < f->recent_n; i++)
        dd_index_mark_id(&s->index, f->recent[i].id, DD_REASON_DELIVERED);
    for (unsigned p = 0; p < f->pending_n; p++)
        for (unsigned i = 0; i < f->pending[p].n; i++)
            dd_index_mark_fp(&s->index, f->pending[p].fps[i], DD_REASON_PENDING);
}

static void take_fetch(struct dd_filter_state *s)
{
    unsigned missing = 0;
    mark_hot(s);
    for (unsigned p = 0; p < s->periods; p++)
        if (p >= s->fetch.cached_n || !use_cached(s, p, &s->fetch.cached[p]))
            s->missing[missing++] = (uint8_t)p;
    if (missing)
        read_missing(s, missing);
    else
        choose(s);
}

static void on_fetch(void *arg)
{
    struct dd_filter_state *s = arg;
    s->io--;
    if (!s->answered) take_fetch(s);
    settle(s);
}

/* ---- start ---- */

static void on_deadline(void *arg)
{
    struct dd_filter_state *s = arg;
    dd_count(s->dl->d->count.deadline, 1);
    if (s->stage == STAGE_READ && s->c->claim == DD_CLAIM_NONE) {
        s->c->partial = true;
        choose(s);
    } else {
        answer(s, DD_TIMEOUT);
    }
    settle(s);
}

static enum dd_err prepare(struct dd_filter_state *s)
{
    struct dd_filter_call *c = s->c;
    unsigned window = c->window && c->window < c->scene->window ? c->window : c->scene->window;
    s->scene = dd_scene_slice(c->scene);
    s->user = dd_arena_copy(c->arena, c->user);
    s->limit = c->limit && c->limit < c->n ? c->limit : c->n;
    s->chosen = dd_arena_alloc(c->arena, (s->limit + 1) * sizeof *s->chosen);
    s->scratch = c->explain ? dd_arena_alloc(c->arena, c->n + 1) : NULL;
    if (!s->user.len || !s->chosen || (c->explain && !s->scratch)) return DD_NO_MEMORY;
    if (c->claim != DD_CLAIM_NONE) {
        s->round_item = dd_arena_alloc(c->arena, (s->limit + 1) * sizeof *s->round_item);
        s->claim.won = dd_arena_alloc(c->arena, s->limit + 1);
        if (!s->round_item || !s->claim.won) return DD_NO_MEMORY;
    }
    s->periods = dd_window_periods(s->dl->d->clock, c->scene, window, s->period);
    c->newest = s->period[0];
    enum dd_err err = dd_index_build(&s->index, c->items, c->n,
                                     dd_hash_user_seed(s->dl->d->secret, s->scene, s->user), c->arena);
    return err == DD_OK && c->max_seen ? dd_index_allow(&s->index, c->max_seen, c->arena) : err;
}

static void fetch(struct dd_filter_state *s)
{
    struct dd_hot_fetch *f = &s->fetch;
    f->scene = s->scene;
    f->user = s->user;
    f->want_recent = true;
    f->now_ms = dd_clock_wall(s->dl->d->clock).ms;
    f->recent_ttl_ms = s->c->scene->recent_ttl_ms;
    f->pending_n = dd_window_pending(s->dl->d, s->period, s->periods);
    memcpy(f->pending_period, s->period, f->pending_n * sizeof *s->period);
    f->cached_n = dd_hot_is_embedded(s->dl->d->hot) ? 0 : s->periods;
    memcpy(f->cached_period, s->period, f->cached_n * sizeof *s->period);
    f->done = on_fetch;
    f->arg = s;
    s->stage = STAGE_FETCH;
    enum dd_err err = dd_hot_fetch(s->dl->hot, f);
    if (err == DD_PENDING) {
        s->io++;
    } else if (err == DD_OK) {
        take_fetch(s);
        dd_hot_fetch_release(f);
    } else {
        answer(s, err);
    }
}

/* Zeroes the fields that are read before they are written; the arrays of the window are not worth clearing.
 */
static void init(struct dd_filter_state *s, struct dd_dedup_loop *dl, struct dd_filter_call *c)
{
    s->c = c;
    s->dl = dl;
    s->stage = STAGE_FETCH;
    s->answered = false;
    s->io = s->scan = 0;
    s->chosen = s->round_item = NULL;
    s->claim.won = NULL;
    s->index = (struct dd_index){0};
    dd_timer_init(&s->deadline, dl->loop, on_deadline, s);
}

void dd_dedup_filter(struct dd_dedup_loop *dl, struct dd_filter_call *c)
{
    struct dd_filter_state *s = dd_arena_alloc(c->arena, sizeof *s);
    c->state = s;
    c->chosen_n = c->filtered = 0;
    c->chosen = NULL;
    c->reason = NULL;
    c->partial = false;
    if (!s) {
        c->err = DD_NO_MEMORY;
        c->done(c->arg);
        c->finished(c->arg);
        return;
    }
    init(s, dl, c);
    dl->inflight++;
    dd_timer_start(&s->deadline, dl->d->options.deadline_ms);
    enum dd_err err = prepare(s);
    if (err == DD_OK)
        fetch(s);
    else
        answer(s, err);
    settle(s);
}
