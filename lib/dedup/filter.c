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
 *   - While users are being migrated (migrate.h) their old keys are asked beside the hot tier. An entry that
 * the migrator has just removed there is in a set whose cell was raised before. So the cells count that are
 * looked up after the old key's reply: when it comes last, every set is judged once more (judge_again).
 *
 * The deadline answers with what is known while the store is being read, marked partial; where nothing may be
 * promised yet (a claim, an exposure under way) it answers DD_TIMEOUT. */
#include "dedup/filter_impl.h"
#include "dedup/trace.h"

void dd_filter_settle(struct dd_filter_state *s)
{
    if (!s->answered || s->io) return;
    s->dl->inflight--;
    s->c->finished(s->c->arg);
}

static void count_answer(const struct dd_filter_state *s)
{
    const struct dd_filter_call *c = s->c;
    unsigned delivered = 0, pending = 0, history = 0, legacy = 0;
    for (unsigned i = 0; i < c->n; i++) {
        delivered += c->reason[i] == DD_REASON_DELIVERED;
        pending += c->reason[i] == DD_REASON_PENDING;
        legacy += c->reason[i] == DD_REASON_LEGACY;
        history += c->reason[i] >= DD_REASON_PERIOD;
    }
    struct dd_dedup *d = s->dl->d;
    dd_count(d->count.candidates, c->n);
    dd_count(d->count.seen_delivered, delivered);
    dd_count(d->count.seen_pending, pending);
    dd_count(d->count.seen_history, history);
    dd_count(d->count.seen_legacy, legacy);
    if (c->partial) dd_count(d->count.partial, 1);
}

void dd_filter_answer(struct dd_filter_state *s, enum dd_err err)
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
        if (c->claim != DD_CLAIM_NONE)
            dd_trace_items(s->dl->d->options.trace, s->scene, s->user, DD_TRACE_DELIVERED, DD_TRACE_BY_CLAIM,
                           s->claim.now_ms, s->index.items, s->chosen, c->chosen_n);
    }
    c->done(c->arg);
}

/* ---- choosing and claiming ---- */

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
    dd_filter_answer(s, err);
}

static void on_record_finished(void *arg)
{
    struct dd_filter_state *s = arg;
    s->io--;
    if (!s->recording) dd_filter_settle(s); /* else whoever called record() settles */
}

/* claim "exposed": writes what was chosen. The items were copied by keep_items. */
static void record(struct dd_filter_state *s)
{
    struct dd_filter_call *c = s->c;
    struct dd_item *items = dd_arena_alloc(c->arena, c->chosen_n * sizeof *items);
    if (!items) {
        dd_filter_answer(s, DD_NO_MEMORY);
        return;
    }
    for (unsigned i = 0; i < c->chosen_n; i++)
        items[i] = s->index.items[s->chosen[i]];
    s->stage = STAGE_RECORD;
    s->record_event = (struct dd_exposed_event){
        .scene = c->scene, .user = s->user, .items = items, .n = c->chosen_n, .ts_ms = DD_TS_NOW};
    s->record = (struct dd_exposed_call){.events = &s->record_event,
                                         .n = 1,
                                         .claimed = true,
                                         .arena = c->arena,
                                         .done = on_record_done,
                                         .finished = on_record_finished,
                                         .arg = s};
    s->io++;
    s->recording = true;
    dd_dedup_exposed(s->dl, &s->record);
    s->recording = false;
}

static void conclude(struct dd_filter_state *s)
{
    if (s->c->claim == DD_CLAIM_EXPOSED && s->c->chosen_n)
        record(s);
    else
        dd_filter_answer(s, DD_OK);
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
        dd_filter_choose(s);
    else if (s->claim.err == DD_LIMIT && s->c->chosen_n)
        conclude(s);
    else
        dd_filter_answer(s, s->claim.err);
    dd_filter_settle(s);
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
        dd_filter_answer(s, DD_NO_MEMORY);
        return;
    }
    while (c->chosen_n < s->limit) {
        unsigned n = collect_round(s, ids);
        if (!n) break;
        enum dd_err err = start_claim(s, ids, n);
        if (err == DD_PENDING) return;
        if (err == DD_LIMIT && c->chosen_n) break;
        if (err != DD_OK) {
            dd_filter_answer(s, err);
            return;
        }
        take_round(s);
    }
    conclude(s);
}

void dd_filter_choose(struct dd_filter_state *s)
{
    struct dd_filter_call *c = s->c;
    if (c->claim != DD_CLAIM_NONE) {
        claim_rounds(s);
        return;
    }
    for (; s->scan < c->n && c->chosen_n < s->limit; s->scan++)
        if (s->index.reason[s->scan] == DD_REASON_UNSEEN) s->chosen[c->chosen_n++] = s->scan;
    dd_filter_answer(s, DD_OK);
}

/* ---- start ---- */

static void on_fetch(void *arg)
{
    struct dd_filter_state *s = arg;
    s->io--;
    if (!s->answered) dd_filter_take_fetch(s);
    dd_filter_settle(s);
}

static void on_deadline(void *arg)
{
    struct dd_filter_state *s = arg;
    dd_count(s->dl->d->count.deadline, 1);
    if (s->stage == STAGE_READ && s->c->claim == DD_CLAIM_NONE) {
        s->c->partial = true;
        dd_filter_choose(s);
    } else {
        dd_filter_answer(s, DD_TIMEOUT);
    }
    dd_filter_settle(s);
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
    bool cut;
    s->periods = dd_window_periods(s->dl->d->clock, c->scene, window, &cut, s->period);
    if (cut) c->partial = true;
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
    dd_filter_ask_old_key(s);
    enum dd_err err = dd_hot_fetch(s->dl->hot, f);
    if (err == DD_PENDING) {
        s->io++;
    } else if (err == DD_OK) {
        dd_filter_take_fetch(s);
        dd_hot_fetch_release(f);
    } else {
        dd_filter_answer(s, err);
    }
}

/* Zeroes the fields that are read before they are written; the arrays of the window are not worth clearing.
 */
static void init(struct dd_filter_state *s, struct dd_dedup_loop *dl, struct dd_filter_call *c)
{
    s->c = c;
    s->dl = dl;
    s->stage = STAGE_FETCH;
    s->recording = false;
    s->answered = s->dual_pending = s->dual_late = s->ready = false;
    s->dual = NULL;
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
        dd_filter_answer(s, err);
    dd_filter_settle(s);
}
