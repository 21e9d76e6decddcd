/* /delivered: deliveries that the backend chose itself (it ranks after filtering), recorded in one atomic
 * step. */
#include "dedup/index.h"
#include "dedup/internal.h"
#include "dedup/trace.h"

struct dd_delivered_state {
    struct dd_delivered_call *c;
    struct dd_dedup_loop *dl;
    struct dd_timer deadline;
    bool answered;
    unsigned io;
    struct dd_index index;
    uint32_t *claimed_item; /* per claimed id: which item it is */
    uint8_t *won;           /* per item */
    struct dd_hot_claim claim;
};

static void settle(struct dd_delivered_state *s)
{
    if (!s->answered || s->io) return;
    s->dl->inflight--;
    s->c->finished(s->c->arg);
}

static void answer(struct dd_delivered_state *s, enum dd_err err)
{
    if (s->answered) return;
    s->answered = true;
    dd_timer_stop(&s->deadline);
    s->c->err = err;
    s->c->won = s->won;
    s->c->done(s->c->arg);
}

static void on_deadline(void *arg)
{
    struct dd_delivered_state *s = arg;
    dd_count(s->dl->d->count.deadline, 1);
    answer(s, DD_TIMEOUT);
    settle(s);
}

static void trace(const struct dd_delivered_state *s)
{
    struct dd_dedup *d = s->dl->d;
    struct dd_trace_note *note = NULL;
    for (unsigned i = 0; d->options.trace && s->claim.err == DD_OK && i < s->claim.n; i++) {
        if (!s->claim.won[i]) continue;
        if (!note)
            note = dd_trace_begin(d->options.trace, s->claim.scene, s->claim.user, DD_TRACE_DELIVERED,
                                  DD_TRACE_BY_REQUEST, s->claim.now_ms);
        if (!note) return;
        dd_trace_add(note, s->claim.ids[i]);
    }
    dd_trace_end(d->options.trace, note);
}

static void take_claim(struct dd_delivered_state *s)
{
    struct dd_dedup *d = s->dl->d;
    if (s->claim.in_memory && !dd_hot_is_embedded(d->hot)) s->c->partial = true;
    for (unsigned i = 0; s->claim.err == DD_OK && i < s->claim.n; i++) {
        s->won[s->claimed_item[i]] = s->claim.won[i];
        dd_count(s->claim.won[i] ? d->count.claimed : d->count.claim_lost, 1);
    }
    trace(s);
    answer(s, s->claim.err);
}

/* Nobody was told of what this claim won: it is taken back, so that a retry is not called a duplicate. */
static void take_back(struct dd_delivered_state *s)
{
    struct dd_slice *ids = dd_arena_alloc(s->c->arena, s->claim.n * sizeof *ids);
    unsigned n = 0;
    for (unsigned i = 0; ids && s->claim.err == DD_OK && i < s->claim.n; i++)
        if (s->claim.won[i]) ids[n++] = s->claim.ids[i];
    if (n) dd_hot_unclaim(s->dl->hot, s->claim.scene, s->claim.user, ids, n);
}

static void on_claim(void *arg)
{
    struct dd_delivered_state *s = arg;
    s->io--;
    if (s->answered)
        take_back(s);
    else
        take_claim(s);
    settle(s);
}

static enum dd_err prepare(struct dd_delivered_state *s)
{
    struct dd_delivered_call *c = s->c;
    struct dd_slice *ids = dd_arena_alloc(c->arena, c->n * sizeof *ids);
    s->claim.scene = dd_scene_slice(c->scene);
    s->claim.user = dd_arena_copy(c->arena, c->user);
    s->claim.won = dd_arena_calloc(c->arena, c->n, 1);
    s->claimed_item = dd_arena_alloc(c->arena, c->n * sizeof *s->claimed_item);
    s->won = dd_arena_calloc(c->arena, c->n, 1);
    if (!ids || !s->claim.user.len || !s->claim.won || !s->claimed_item || !s->won) return DD_NO_MEMORY;
    uint64_t seed = dd_hash_user_seed(s->dl->d->secret, s->claim.scene, s->claim.user);
    if (dd_index_build(&s->index, c->items, c->n, seed, c->arena) != DD_OK) return DD_NO_MEMORY;
    s->claim.n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        if (s->index.reason[i] != DD_REASON_UNSEEN) continue;
        s->claimed_item[s->claim.n] = i;
        ids[s->claim.n] = dd_arena_copy(c->arena, c->items[i].id);
        if (!ids[s->claim.n++].len) return DD_NO_MEMORY;
    }
    s->claim.ids = ids;
    return DD_OK;
}

static void claim(struct dd_delivered_state *s)
{
    s->claim.now_ms = dd_clock_wall(s->dl->d->clock).ms;
    s->claim.recent_ttl_ms = s->c->scene->recent_ttl_ms;
    s->claim.recent_max = s->c->scene->recent_max;
    s->claim.done = on_claim;
    s->claim.arg = s;
    enum dd_err err = dd_hot_claim(s->dl->hot, &s->claim);
    if (err == DD_PENDING)
        s->io++;
    else if (err == DD_OK)
        take_claim(s);
    else
        answer(s, err);
}

void dd_dedup_delivered(struct dd_dedup_loop *dl, struct dd_delivered_call *c)
{
    struct dd_delivered_state *s = dd_arena_calloc(c->arena, 1, sizeof *s);
    c->state = s;
    c->won = NULL;
    c->partial = false;
    if (!s) {
        c->err = DD_NO_MEMORY;
        c->done(c->arg);
        c->finished(c->arg);
        return;
    }
    s->c = c;
    s->dl = dl;
    dl->inflight++;
    dd_timer_init(&s->deadline, dl->loop, on_deadline, s);
    dd_timer_start(&s->deadline, dl->d->options.deadline_ms);
    enum dd_err err = prepare(s);
    if (err == DD_OK)
        claim(s);
    else
        answer(s, err);
    settle(s);
}
