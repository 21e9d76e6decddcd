/* Claims: ZREMRANGEBYSCORE (expired), ZCARD, one ZADD NX an id, PEXPIRE, in one pipeline. Each ZADD has its
 * own reply, so each id has exactly one winner among all processes; a script would cost Redis several times
 * as much.
 *
 * What nobody waits for follows: when more than recent_max are there, the score of the first one to stay is
 * read, and all below it and older than a minute go. By score and not by rank or member, since between the
 * two steps others may have claimed, lapsed or claimed again: what is new has a new score and cannot be hit.
 * Of several with one score all stay.
 *
 * The limit of DD_DELIVERIES_MAX young deliveries cannot be known before adding without a script. So it is
 * judged after: only when the count says that it may be exceeded are the young ones counted, and then what
 * was added is taken back.
 *
 * While Redis is away, and for ids that it did not acknowledge, the claim is made in memory. What was claimed
 * there is looked up first, as long as there is anything. */
#include <hiredis/async.h>

#include <stdlib.h>

#include "hot/internal.h"
#include "hot/keys.h"
#include "hot/resp.h"

#define KEEP_BYTES (64 << 10)

/* HELD: it is a delivery in memory already. UNKNOWN: Redis did not acknowledge it. KEPT: won in memory
 * instead. */
enum { ID_SENT, ID_HELD, ID_WON, ID_LOST, ID_UNKNOWN, ID_KEPT };
_Static_assert(ID_HELD == 1, "dd_mem_find marks what it finds with 1");

struct dd_claim_ctx {
    struct dd_claim_ctx *next;
    struct dd_hot_loop *hl;
    struct dd_hot_claim *c; /* NULL once done has run */
    unsigned replies, sent; /* commands */
    unsigned adds;          /* of them ZADD, from the third on */
    unsigned next_id;       /* where the next ZADD's reply goes */
    uint64_t card, added;
    int64_t keep_from_ms;
    unsigned recent_max;
    struct dd_buf key;   /* of the deliveries */
    struct dd_buf state; /* one byte an id */
    struct dd_buf some;  /* struct dd_slice: a part of the ids */
};

static struct dd_claim_ctx *obtain(struct dd_hot_loop *hl)
{
    struct dd_claim_ctx *ctx = hl->free_claim;
    if (ctx)
        hl->free_claim = ctx->next;
    else
        ctx = calloc(1, sizeof *ctx);
    if (!ctx) return NULL;
    struct dd_buf key = ctx->key, state = ctx->state, some = ctx->some;
    *ctx = (struct dd_claim_ctx){.hl = hl, .key = key, .state = state, .some = some};
    dd_buf_reset(&ctx->key);
    dd_buf_reset(&ctx->state);
    dd_buf_reset(&ctx->some);
    return ctx;
}

static void give_back(struct dd_claim_ctx *ctx)
{
    if (ctx->some.cap > KEEP_BYTES) dd_buf_free(&ctx->some);
    ctx->next = ctx->hl->free_claim;
    ctx->hl->free_claim = ctx;
}

void dd_hot_free_claims(struct dd_hot_loop *hl)
{
    while (hl->free_claim) {
        struct dd_claim_ctx *ctx = hl->free_claim;
        hl->free_claim = ctx->next;
        dd_buf_free(&ctx->key);
        dd_buf_free(&ctx->state);
        dd_buf_free(&ctx->some);
        free(ctx);
    }
}

/* ---- memory ---- */

static enum dd_err claim_in_memory(struct dd_hot_loop *hl, struct dd_hot_claim *c, const struct dd_slice *ids,
                                   unsigned n, uint8_t *won)
{
    struct dd_mem_claim m = {c->scene, c->user, ids, n, c->now_ms, c->recent_ttl_ms, c->recent_max, won};
    if (!hl->h->embedded) dd_count(hl->h->count.memory_claims, 1);
    return dd_mem_claim(hl->h->mem, &m);
}

static enum dd_err all_in_memory(struct dd_hot_loop *hl, struct dd_hot_claim *c)
{
    c->in_memory = !hl->h->embedded;
    c->err = claim_in_memory(hl, c, c->ids, c->n, c->won);
    return DD_OK;
}

/* Gathers the ids of a state in ctx->some. */
static unsigned gather(struct dd_claim_ctx *ctx, uint8_t state)
{
    dd_buf_reset(&ctx->some);
    for (unsigned i = 0; i < ctx->c->n; i++)
        if (ctx->state.data[i] == state) dd_buf_add(&ctx->some, &ctx->c->ids[i], sizeof(struct dd_slice));
    return dd_buf_ok(&ctx->some) ? (unsigned)(ctx->some.len / sizeof(struct dd_slice)) : 0;
}

static const struct dd_slice *gathered(const struct dd_claim_ctx *ctx)
{
    return (const struct dd_slice *)(const void *)ctx->some.data;
}

/* What Redis did not acknowledge, or was never asked for. */
static void rest_in_memory(struct dd_claim_ctx *ctx)
{
    struct dd_hot_claim *c = ctx->c;
    uint8_t *state = ctx->state.data;
    for (unsigned i = 0; i < c->n; i++)
        if (state[i] == ID_SENT) state[i] = ID_UNKNOWN;
    unsigned n = gather(ctx, ID_UNKNOWN);
    if (n == 0) return;
    uint8_t won[DD_DELIVERIES_MAX];
    c->in_memory = true;
    c->err = claim_in_memory(ctx->hl, c, gathered(ctx), n, won);
    if (c->err) return;
    for (unsigned i = 0, k = 0; i < c->n; i++) {
        if (state[i] != ID_UNKNOWN) continue;
        c->won[i] = won[k++];
        state[i] = c->won[i] ? ID_KEPT : ID_LOST;
    }
}

/* ---- Redis ---- */

static void send_zrem(struct dd_hot_loop *hl, struct dd_slice key, const struct dd_slice *ids, unsigned n)
{
    if (n == 0 || dd_redis_may_send(&hl->conn, 1)) return;
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 2 + n, "ZREM");
    dd_resp_arg(&hl->command, key);
    for (unsigned i = 0; i < n; i++)
        dd_resp_arg(&hl->command, ids[i]);
    dd_hot_send_forgotten(hl); /* if it fails the ids lapse by themselves */
}

/* None shall have been added. */
static void take_back(struct dd_claim_ctx *ctx, enum dd_err err)
{
    struct dd_hot_claim *c = ctx->c;
    unsigned n = gather(ctx, ID_WON);
    send_zrem(ctx->hl, dd_buf_slice(&ctx->key), gathered(ctx), n);
    n = gather(ctx, ID_KEPT);
    if (n) dd_mem_unclaim(ctx->hl->h->mem, c->scene, c->user, gathered(ctx), n);
    memset(c->won, 0, c->n);
    c->err = err;
}

static void on_cutoff(void *arg, struct redisReply *reply)
{
    struct dd_claim_ctx *ctx = arg;
    struct dd_hot_loop *hl = ctx->hl;
    dd_hot_count_error(hl, reply);
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
        int64_t below = (int64_t)strtod(reply->element[1]->str, NULL);
        if (below > ctx->keep_from_ms) below = ctx->keep_from_ms;
        dd_buf_reset(&hl->key);
        dd_buf_addf(&hl->key, "(%lld", (long long)below);
        dd_buf_reset(&hl->command);
        dd_resp_begin(&hl->command, 4, "ZREMRANGEBYSCORE");
        dd_resp_arg(&hl->command, dd_buf_slice(&ctx->key));
        dd_resp_arg_str(&hl->command, "-inf");
        dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
        dd_hot_send_forgotten(hl); /* if it fails, the next claim trims */
    }
    give_back(ctx);
}

/* true: the context stays in use for the trim. */
static bool start_trim(struct dd_claim_ctx *ctx)
{
    struct dd_hot_loop *hl = ctx->hl;
    uint64_t total = ctx->card + ctx->added;
    if (total <= ctx->recent_max || !dd_redis_has_room(&hl->conn)) return false;
    int64_t rank = (int64_t)(total - ctx->recent_max);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 5, "ZRANGE");
    dd_resp_arg(&hl->command, dd_buf_slice(&ctx->key));
    dd_resp_arg_i64(&hl->command, rank);
    dd_resp_arg_i64(&hl->command, rank);
    dd_resp_arg_str(&hl->command, "WITHSCORES");
    return dd_hot_send(hl, on_cutoff, ctx) == DD_OK;
}

static void finish(struct dd_claim_ctx *ctx)
{
    struct dd_hot_claim *c = ctx->c;
    bool trimming = c->err == DD_OK && start_trim(ctx);
    ctx->c = NULL;
    c->done(c->arg); /* the caller may free c inside */
    if (!trimming) give_back(ctx);
}

static void on_young(void *arg, struct redisReply *reply)
{
    struct dd_claim_ctx *ctx = arg;
    dd_hot_count_error(ctx->hl, reply);
    if (reply && reply->type == REDIS_REPLY_INTEGER && reply->integer > DD_DELIVERIES_MAX)
        take_back(ctx, DD_LIMIT);
    finish(ctx);
}

static enum dd_err count_young(struct dd_claim_ctx *ctx)
{
    struct dd_hot_loop *hl = ctx->hl;
    enum dd_err err = dd_redis_may_send(&hl->conn, 1);
    if (err) return err;
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 4, "ZCOUNT");
    dd_resp_arg(&hl->command, dd_buf_slice(&ctx->key));
    dd_resp_arg_i64(&hl->command, ctx->keep_from_ms + 1);
    dd_resp_arg_str(&hl->command, "+inf");
    return dd_hot_send(hl, on_young, ctx);
}

static void conclude(struct dd_claim_ctx *ctx)
{
    rest_in_memory(ctx);
    if (ctx->c->err) take_back(ctx, ctx->c->err);
    bool may_exceed = !ctx->c->err && ctx->added && ctx->card + ctx->added > DD_DELIVERIES_MAX;
    if (may_exceed && count_young(ctx) == DD_OK) return;
    finish(ctx);
}

static void take_zadd(struct dd_claim_ctx *ctx, const struct redisReply *reply)
{
    uint8_t *state = ctx->state.data;
    while (state[ctx->next_id] != ID_SENT)
        ctx->next_id++;
    unsigned i = ctx->next_id++;
    if (!reply || reply->type != REDIS_REPLY_INTEGER) {
        state[i] = ID_UNKNOWN;
        return;
    }
    state[i] = reply->integer ? ID_WON : ID_LOST;
    ctx->c->won[i] = reply->integer ? 1 : 0;
    ctx->added += reply->integer ? 1 : 0;
}

static void on_reply(void *arg, struct redisReply *reply)
{
    struct dd_claim_ctx *ctx = arg;
    unsigned at = ctx->replies++;
    dd_hot_count_error(ctx->hl, reply);
    if (at == 1 && reply && reply->type == REDIS_REPLY_INTEGER)
        ctx->card = (uint64_t)reply->integer;
    else if (at >= 2 && at < 2 + ctx->adds)
        take_zadd(ctx, reply);
    if (ctx->replies == ctx->sent) conclude(ctx);
}

/* ---- sending ---- */

static struct dd_buf *begin(struct dd_claim_ctx *ctx, unsigned args, const char *name)
{
    struct dd_buf *b = &ctx->hl->command;
    dd_buf_reset(b);
    dd_resp_begin(b, args, name);
    dd_resp_arg(b, dd_buf_slice(&ctx->key));
    return b;
}

/* false: no memory; what was sent before is answered, and the rest claimed in memory. */
static bool send(struct dd_claim_ctx *ctx)
{
    if (dd_hot_send(ctx->hl, on_reply, ctx)) return false;
    ctx->sent++;
    return true;
}

static bool send_adds(struct dd_claim_ctx *ctx, const struct dd_hot_claim *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        if (ctx->state.data[i] != ID_SENT) continue;
        struct dd_buf *b = begin(ctx, 5, "ZADD");
        dd_resp_arg_str(b, "NX");
        dd_resp_arg_i64(b, c->now_ms);
        dd_resp_arg(b, c->ids[i]);
        if (!send(ctx)) return false;
        ctx->adds++;
    }
    return true;
}

static void send_all(struct dd_claim_ctx *ctx, const struct dd_hot_claim *c)
{
    struct dd_buf *b = begin(ctx, 4, "ZREMRANGEBYSCORE");
    dd_resp_arg_str(b, "-inf");
    dd_resp_arg_i64(b, c->now_ms - c->recent_ttl_ms);
    if (!send(ctx)) return;
    begin(ctx, 2, "ZCARD");
    if (!send(ctx) || !send_adds(ctx, c)) return;
    b = begin(ctx, 3, "PEXPIRE");
    dd_resp_arg_i64(b, c->recent_ttl_ms);
    (void)send(ctx);
}

/* Fills key and state; returns how many ids are to be sent. */
static unsigned prepare(struct dd_claim_ctx *ctx, struct dd_hot_claim *c)
{
    struct dd_hot_loop *hl = ctx->hl;
    dd_hot_key_user(&ctx->key, c->scene, c->user);
    dd_hot_key_add_deliveries(&ctx->key);
    uint8_t *state = dd_buf_extend(&ctx->state, c->n);
    if (!state || !dd_buf_ok(&ctx->key)) return 0;
    memset(state, ID_SENT, c->n);
    unsigned held = 0;
    if (dd_mem_may_hold(hl->h->mem)) /* marks with 1, which is ID_HELD */
        held = dd_mem_find(hl->h->mem, c->scene, c->user, c->ids, c->n, c->now_ms - c->recent_ttl_ms, state);
    return c->n - held;
}

static enum dd_err claim_in_redis(struct dd_claim_ctx *ctx, struct dd_hot_claim *c)
{
    memset(c->won, 0, c->n);
    ctx->c = c;
    ctx->keep_from_ms = c->now_ms - DD_DELIVERIES_KEEP_MS;
    ctx->recent_max = c->recent_max;
    unsigned n = prepare(ctx, c);
    if (!dd_buf_ok(&ctx->state) || !dd_buf_ok(&ctx->key)) return DD_NO_MEMORY;
    if (n == 0) return DD_OK;
    send_all(ctx, c);
    return ctx->sent ? DD_PENDING : DD_NO_MEMORY;
}

enum dd_err dd_hot_claim(struct dd_hot_loop *hl, struct dd_hot_claim *c)
{
    if (c->n == 0 || c->n > DD_DELIVERIES_MAX) return DD_INVALID;
    c->err = DD_OK;
    c->in_memory = false;
    c->priv = NULL;
    enum dd_err err = hl->h->embedded ? DD_UNAVAILABLE : dd_redis_may_send(&hl->conn, c->n + 3);
    if (err == DD_BUSY) dd_count(hl->h->count.busy, 1);
    if (err) return all_in_memory(hl, c);
    struct dd_claim_ctx *ctx = obtain(hl);
    if (!ctx) return DD_NO_MEMORY;
    err = claim_in_redis(ctx, c);
    if (err != DD_PENDING) give_back(ctx);
    return err;
}

void dd_hot_unclaim(struct dd_hot_loop *hl, struct dd_slice scene, struct dd_slice user,
                    const struct dd_slice *ids, unsigned n)
{
    if (dd_mem_may_hold(hl->h->mem)) dd_mem_unclaim(hl->h->mem, scene, user, ids, n);
    if (hl->h->embedded) return;
    dd_hot_begin_user(hl, scene, user);
    dd_hot_key_add_deliveries(&hl->key);
    send_zrem(hl, dd_buf_slice(&hl->key), ids, n);
}
