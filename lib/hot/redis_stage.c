/* Staging: SADD of the slot's name, then for each entry SADD of its slot entry, SCARD and SADD of its
 * pending, one pipeline.
 *
 * An entry is good when its three additions are acknowledged; the slot's name counts for all. SCARD tells
 * what was there before: the entry that meets pending_max is refused, although it was added, since nothing
 * can be taken out again without risk for what others had acknowledged. To keep such a user from growing by
 * refused requests, the loop remembers it in a small table, and asks first the next time: only then does the
 * rest follow. */
#include <hiredis/async.h>

#include <stdlib.h>

#include "base/hash.h"
#include "hot/internal.h"
#include "hot/keys.h"
#include "hot/resp.h"

struct dd_stage_ctx {
    struct dd_stage_ctx *next;
    struct dd_hot_loop *hl;
    struct dd_hot_stage *st;
    unsigned replies, sent;
    unsigned at;       /* the entry whose reply comes next */
    unsigned step;     /* which of its three */
    bool asking;       /* the first round: SCARD of users that were full */
    enum dd_err named; /* of the slot's name */
};

static struct dd_stage_ctx *obtain(struct dd_hot_loop *hl, struct dd_hot_stage *st)
{
    struct dd_stage_ctx *ctx = hl->free_stage;
    if (ctx)
        hl->free_stage = ctx->next;
    else
        ctx = malloc(sizeof *ctx);
    if (ctx) *ctx = (struct dd_stage_ctx){.hl = hl, .st = st};
    return ctx;
}

static void give_back(struct dd_stage_ctx *ctx)
{
    ctx->next = ctx->hl->free_stage;
    ctx->hl->free_stage = ctx;
}

void dd_hot_free_stages(struct dd_hot_loop *hl)
{
    while (hl->free_stage) {
        struct dd_stage_ctx *ctx = hl->free_stage;
        hl->free_stage = ctx->next;
        free(ctx);
    }
}

static void finish(struct dd_stage_ctx *ctx)
{
    struct dd_hot_stage *st = ctx->st;
    for (unsigned i = 0; i < st->n; i++) {
        struct dd_hot_stage_entry *e = &st->entries[i];
        if (e->result == DD_PENDING) e->result = DD_UNAVAILABLE; /* was never sent */
        if (e->result == DD_OK) e->result = ctx->named;
    }
    give_back(ctx);
    st->done(st->arg); /* the caller may free st inside */
}

/* ---- the table of full users ---- */

static void pending_key(struct dd_hot_loop *hl, const struct dd_hot_stage_entry *e)
{
    dd_hot_begin_user(hl, e->scene, e->user);
    dd_hot_key_add_pending(&hl->key, hl->h->store, e->period);
}

/* hl->key is the key of the pending. */
static uint64_t *full_cell(struct dd_hot_loop *hl, uint64_t *hash)
{
    *hash = dd_hash64(dd_buf_slice(&hl->key), 2) | 1; /* never 0, which is a free cell */
    return &hl->full[(*hash >> 1) % DD_FULL_TABLE];
}

static void mark_full(struct dd_hot_loop *hl, const struct dd_hot_stage_entry *e, bool full)
{
    uint64_t hash;
    pending_key(hl, e);
    uint64_t *cell = full_cell(hl, &hash);
    if (full)
        *cell = hash;
    else if (*cell == hash)
        *cell = 0;
}

static bool is_marked(struct dd_hot_loop *hl, const struct dd_hot_stage_entry *e)
{
    uint64_t hash;
    pending_key(hl, e);
    uint64_t *cell = full_cell(hl, &hash);
    return *cell == hash;
}

/* ---- sending ---- */

static void on_reply(void *arg, struct redisReply *reply);

static bool send(struct dd_stage_ctx *ctx)
{
    if (dd_hot_send(ctx->hl, on_reply, ctx)) return false;
    ctx->sent++;
    return true;
}

static bool send_scard(struct dd_stage_ctx *ctx, const struct dd_hot_stage_entry *e)
{
    struct dd_hot_loop *hl = ctx->hl;
    pending_key(hl, e);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 2, "SCARD");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    return send(ctx);
}

static bool send_name(struct dd_stage_ctx *ctx)
{
    struct dd_hot_loop *hl = ctx->hl;
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 3, "SADD");
    dd_buf_reset(&hl->key);
    dd_hot_key_slots(&hl->key, hl->h->store);
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    dd_buf_reset(&hl->key);
    dd_hot_slot_name(&hl->key, ctx->st->slot_start_s, ctx->st->slot_end_s);
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    return send(ctx);
}

static bool send_member(struct dd_stage_ctx *ctx, const struct dd_hot_stage_entry *e)
{
    struct dd_hot_loop *hl = ctx->hl;
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 3, "SADD");
    dd_buf_reset(&hl->key);
    dd_hot_key_bucket(&hl->key, hl->h->store, ctx->st->slot_start_s, ctx->st->slot_end_s,
                      dd_hot_part_of(e->scene, e->user));
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    dd_buf_reset(&hl->key);
    dd_hot_member(&hl->key, e->scene, e->user, e->period);
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    return send(ctx);
}

static bool send_fps(struct dd_stage_ctx *ctx, const struct dd_hot_stage_entry *e)
{
    struct dd_hot_loop *hl = ctx->hl; /* its key still is that of the pending */
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 2 + e->n, "SADD");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    for (unsigned i = 0; i < e->n; i++)
        dd_resp_arg_i64(&hl->command, (int32_t)e->fps[i]);
    return send(ctx);
}

/* DD_PENDING is the mark of an entry that waits to be sent; DD_BUSY that its replies are awaited. After a
 * failure to send nothing more is, so that replies keep their places. */
static void send_entries(struct dd_stage_ctx *ctx)
{
    ctx->asking = false;
    ctx->replies = ctx->sent = ctx->at = ctx->step = 0;
    if (!send_name(ctx)) return;
    for (unsigned i = 0; i < ctx->st->n; i++) {
        struct dd_hot_stage_entry *e = &ctx->st->entries[i];
        if (e->result != DD_PENDING) continue;
        e->result = DD_BUSY;
        if (!send_member(ctx, e) || !send_scard(ctx, e) || !send_fps(ctx, e)) {
            e->result = DD_PENDING;
            return;
        }
    }
}

static void send_asks(struct dd_stage_ctx *ctx)
{
    ctx->asking = true;
    for (unsigned i = 0; i < ctx->st->n; i++) {
        struct dd_hot_stage_entry *e = &ctx->st->entries[i];
        if (!is_marked(ctx->hl, e)) continue;
        e->result = DD_BUSY;
        if (send_scard(ctx, e)) continue;
        e->result = DD_PENDING;
        return;
    }
}

/* ---- replies ---- */

static struct dd_hot_stage_entry *awaited(struct dd_stage_ctx *ctx)
{
    while (ctx->at < ctx->st->n && ctx->st->entries[ctx->at].result != DD_BUSY)
        ctx->at++;
    return ctx->at < ctx->st->n ? &ctx->st->entries[ctx->at] : NULL;
}

static bool is_full(const struct dd_stage_ctx *ctx, const struct redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_INTEGER &&
           (unsigned long long)reply->integer >= ctx->st->pending_max;
}

static bool is_number(const struct redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_INTEGER;
}

static void take_ask(struct dd_stage_ctx *ctx, const struct redisReply *reply)
{
    struct dd_hot_stage_entry *e = awaited(ctx);
    if (!e) return;
    if (is_full(ctx, reply)) {
        e->result = DD_LIMIT;
    } else {
        e->result = is_number(reply) ? DD_PENDING : DD_UNAVAILABLE;
        mark_full(ctx->hl, e, false);
    }
    ctx->at++;
}

/* The three replies of an entry are gathered in bits, and judged with the last. */
enum { GOOD_MEMBER = 4, GOOD_CARD = 8, GOOD_FPS = 16, FULL = 32 };

static void take_entry(struct dd_stage_ctx *ctx, const struct redisReply *reply)
{
    struct dd_hot_stage_entry *e = awaited(ctx);
    if (!e) return;
    unsigned which = ctx->step & 3;
    if (is_number(reply)) ctx->step |= (unsigned)GOOD_MEMBER << which;
    if (which == 1 && is_full(ctx, reply)) ctx->step |= FULL;
    ctx->step++;
    if (which < 2) return;
    if (ctx->step & FULL) mark_full(ctx->hl, e, true);
    bool good = (ctx->step & GOOD_MEMBER) && (ctx->step & GOOD_CARD) && (ctx->step & GOOD_FPS);
    e->result = ctx->step & FULL ? DD_LIMIT : good ? DD_OK : DD_UNAVAILABLE;
    ctx->at++;
    ctx->step = 0;
}

/* After the asks: what is not full follows, if the connection still takes it. */
static void continue_or_finish(struct dd_stage_ctx *ctx)
{
    unsigned waiting = 0;
    for (unsigned i = 0; i < ctx->st->n; i++)
        waiting += ctx->st->entries[i].result == DD_PENDING;
    if (ctx->asking && waiting && dd_redis_may_send(&ctx->hl->conn, 1 + 3 * waiting) == DD_OK) {
        send_entries(ctx);
        if (ctx->sent) return;
    }
    finish(ctx);
}

static void on_reply(void *arg, struct redisReply *reply)
{
    struct dd_stage_ctx *ctx = arg;
    dd_hot_count_error(ctx->hl, reply);
    if (ctx->asking)
        take_ask(ctx, reply);
    else if (ctx->replies == 0)
        ctx->named = is_number(reply) ? DD_OK : DD_UNAVAILABLE;
    else
        take_entry(ctx, reply);
    if (++ctx->replies == ctx->sent) continue_or_finish(ctx);
}

/* ---- the call ---- */

static enum dd_err check(const struct dd_hot_stage *st, unsigned *marked, struct dd_hot_loop *hl)
{
    if (st->n == 0) return DD_INVALID;
    for (unsigned i = 0; i < st->n; i++) {
        if (st->entries[i].n == 0) return DD_INVALID;
        st->entries[i].result = DD_PENDING;
        *marked += is_marked(hl, &st->entries[i]);
    }
    return DD_OK;
}

enum dd_err dd_hot_stage(struct dd_hot_loop *hl, struct dd_hot_stage *st)
{
    unsigned marked = 0;
    if (hl->h->embedded) return DD_UNAVAILABLE;
    enum dd_err err = check(st, &marked, hl);
    if (!err) err = dd_redis_may_send(&hl->conn, marked ? marked : 1 + 3 * st->n);
    if (err == DD_BUSY) dd_count(hl->h->count.busy, 1);
    if (err) return err;
    struct dd_stage_ctx *ctx = obtain(hl, st);
    if (!ctx) return DD_NO_MEMORY;
    st->priv = ctx;
    if (marked)
        send_asks(ctx);
    else
        send_entries(ctx);
    if (ctx->sent) return DD_PENDING;
    give_back(ctx);
    return DD_NO_MEMORY;
}
