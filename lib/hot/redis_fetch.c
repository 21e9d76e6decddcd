/* One round trip: SMEMBERS for each period of pending, ZRANGE of the deliveries, HMGET of the cached sets.
 *
 * Sets are read whole: asking for 100 candidates in a sorted set of 100 costs Redis ten times what reading it
 * does. HMGET goes last, so that the blobs need not be copied: they are slices into the reply that is being
 * handled when done runs. Everything else is gathered in three buffers of a context that is reused: no
 * allocation an element here.
 *
 * An error reply (a key of another type under a user's name) hurts only that part of that user's answer. */
#include <hiredis/async.h>

#include <stdlib.h>

#include "hot/internal.h"
#include "hot/keys.h"
#include "hot/redis_reader.h"
#include "hot/resp.h"
#include "hot/value.h"

/* A set outside the window that was put longer ago than this is not in use by requests with a longer window.
 */
#define STALE_MS (2 * 3600 * 1000)

/* Larger buffers of a rare heavy user are not kept. */
#define KEEP_BYTES (256 << 10)

struct dd_fetch_ctx {
    struct dd_fetch_ctx *next;
    struct dd_hot_loop *hl;
    struct dd_hot_fetch *f;
    unsigned replies, expected; /* replies so far, in the order of sending */
    bool complete, intact;
    int64_t sent_ns;
    struct dd_buf recent; /* struct dd_hot_recent; until the end their ptr is an offset into ids */
    struct dd_buf ids;
    struct dd_buf fps;              /* uint32_t of all periods */
    size_t fps_from[DD_WINDOW_MAX]; /* where each period's begin, in numbers */
};

static struct dd_fetch_ctx *obtain(struct dd_hot_loop *hl, struct dd_hot_fetch *f)
{
    struct dd_fetch_ctx *ctx = hl->free_fetch;
    if (ctx)
        hl->free_fetch = ctx->next;
    else
        ctx = calloc(1, sizeof *ctx);
    if (!ctx) return NULL;
    ctx->hl = hl;
    ctx->f = f;
    ctx->replies = ctx->expected = 0;
    ctx->complete = ctx->intact = true;
    dd_buf_reset(&ctx->recent);
    dd_buf_reset(&ctx->ids);
    dd_buf_reset(&ctx->fps);
    return ctx;
}

static void give_back(struct dd_fetch_ctx *ctx)
{
    if (ctx->recent.cap > KEEP_BYTES) dd_buf_free(&ctx->recent);
    if (ctx->ids.cap > KEEP_BYTES) dd_buf_free(&ctx->ids);
    if (ctx->fps.cap > KEEP_BYTES) dd_buf_free(&ctx->fps);
    ctx->next = ctx->hl->free_fetch;
    ctx->hl->free_fetch = ctx;
}

void dd_hot_free_fetches(struct dd_hot_loop *hl)
{
    while (hl->free_fetch) {
        struct dd_fetch_ctx *ctx = hl->free_fetch;
        hl->free_fetch = ctx->next;
        dd_buf_free(&ctx->recent);
        dd_buf_free(&ctx->ids);
        dd_buf_free(&ctx->fps);
        free(ctx);
    }
}

void dd_hot_fetch_release(struct dd_hot_fetch *f)
{
    if (f->priv) give_back(f->priv);
    f->priv = NULL;
}

/* ---- taking replies ---- */

static void take_pending(struct dd_fetch_ctx *ctx, const struct redisReply *reply)
{
    if (!reply || reply->type != REDIS_REPLY_ARRAY) {
        ctx->complete = false;
        return;
    }
    for (size_t i = 0; i < reply->elements; i++) {
        uint32_t fp;
        if (dd_redis_read_fp(reply->element[i], &fp))
            dd_buf_add(&ctx->fps, &fp, sizeof fp);
        else
            dd_count(ctx->hl->h->count.bad_member, 1);
    }
}

static bool read_score(const struct redisReply *e, int64_t *out)
{
    if (e->type != REDIS_REPLY_STRING || e->len == 0) return false;
    char *end;
    double v = strtod(e->str, &end);
    if (end != e->str + e->len || !(v > -9e15 && v < 9e15)) return false;
    *out = (int64_t)v;
    return true;
}

static void take_recent(struct dd_fetch_ctx *ctx, const struct redisReply *reply)
{
    if (!reply || reply->type != REDIS_REPLY_ARRAY) {
        ctx->complete = ctx->intact = false;
        return;
    }
    int64_t newer_than = ctx->f->now_ms - ctx->f->recent_ttl_ms;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const struct redisReply *id = reply->element[i];
        struct dd_hot_recent r;
        if (id->type != REDIS_REPLY_STRING || !read_score(reply->element[i + 1], &r.at_ms)) continue;
        if (r.at_ms <= newer_than) continue;
        r.id = dd_slice_of((const uint8_t *)(uintptr_t)ctx->ids.len, id->len);
        dd_buf_add(&ctx->recent, &r, sizeof r);
        dd_buf_add(&ctx->ids, id->str, id->len);
    }
}

/* The period before the oldest that is wanted. false: there is none. */
static bool period_before(const struct dd_hot_fetch *f, struct dd_period *out)
{
    *out = f->cached_period[0];
    for (unsigned i = 1; i < f->cached_n; i++)
        if (f->cached_period[i].ordinal < out->ordinal) *out = f->cached_period[i];
    out->ordinal--;
    return out->kind != DD_PERIOD_FOREVER && out->ordinal >= 0;
}

/* The hash of an active user never lapses, so a set that has left the window must be taken out. It stands
 * just before the window for a whole period: whoever reads the user then finds it. */
static void drop_stale(struct dd_fetch_ctx *ctx, const struct redisReply *e)
{
    struct dd_hot_loop *hl = ctx->hl;
    struct dd_hot_value v;
    struct dd_period period;
    char text[DD_PERIOD_TEXT];
    if (e->type != REDIS_REPLY_STRING || !period_before(ctx->f, &period) || !dd_redis_has_room(&hl->conn))
        return;
    bool sound = dd_hot_value_decode(dd_slice_of(e->str, e->len), &v) == DD_OK;
    if (sound && ctx->f->now_ms - v.filled_ms < STALE_MS) return;
    dd_hot_begin_user(hl, ctx->f->scene, ctx->f->user);
    dd_hot_key_add_cached(&hl->key, hl->h->store);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 3, "HDEL");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    dd_resp_arg_str(&hl->command, dd_period_format(period, text));
    dd_hot_send_forgotten(hl);
}

static void take_cached(struct dd_fetch_ctx *ctx, const struct redisReply *reply)
{
    struct dd_hot_fetch *f = ctx->f;
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < f->cached_n) return;
    if (reply->elements > f->cached_n) drop_stale(ctx, reply->element[f->cached_n]);
    for (unsigned i = 0; i < f->cached_n; i++) {
        const struct redisReply *e = reply->element[i];
        struct dd_hot_value v;
        if (e->type != REDIS_REPLY_STRING) continue;
        if (dd_hot_value_decode(dd_slice_of(e->str, e->len), &v)) {
            dd_count(ctx->hl->h->count.bad_value, 1);
            continue;
        }
        f->cached[i] = (struct dd_hot_cached){true, v.incarnation, v.number, v.filled_ms, v.blob};
    }
}

/* ---- the answer ---- */

static int by_time(const void *a, const void *b)
{
    int64_t x = ((const struct dd_hot_recent *)a)->at_ms, y = ((const struct dd_hot_recent *)b)->at_ms;
    return (x > y) - (x < y);
}

/* Deliveries in memory: all of them when embedded, else those of an outage that have not lapsed. */
static void add_memory(struct dd_fetch_ctx *ctx)
{
    struct dd_hot *h = ctx->hl->h;
    const struct dd_hot_fetch *f = ctx->f;
    if (!f->want_recent || !dd_mem_may_hold(h->mem)) return;
    size_t before = ctx->recent.len;
    dd_mem_fetch(h->mem, f->scene, f->user, f->now_ms - f->recent_ttl_ms, &ctx->recent, &ctx->ids);
    if (before && ctx->recent.len > before && dd_buf_ok(&ctx->recent))
        qsort(ctx->recent.data, ctx->recent.len / sizeof(struct dd_hot_recent), sizeof(struct dd_hot_recent),
              by_time);
}

static void point_recent(struct dd_fetch_ctx *ctx)
{
    struct dd_hot_recent *r = (struct dd_hot_recent *)(void *)ctx->recent.data;
    unsigned n = (unsigned)(ctx->recent.len / sizeof *r);
    for (unsigned i = 0; i < n; i++)
        r[i].id.ptr = r[i].id.len ? ctx->ids.data + (uintptr_t)r[i].id.ptr : NULL;
    ctx->f->recent = r;
    ctx->f->recent_n = n;
}

static void point_pending(struct dd_fetch_ctx *ctx)
{
    const uint32_t *fps = (const uint32_t *)(const void *)ctx->fps.data;
    struct dd_hot_fetch *f = ctx->f;
    size_t end = ctx->fps.len / sizeof *fps;
    for (unsigned i = f->pending_n; i-- > 0;) {
        size_t from = i < ctx->replies ? ctx->fps_from[i] : end;
        f->pending[i].n = (unsigned)(end - from);
        f->pending[i].fps = f->pending[i].n ? fps + from : NULL;
        end = from;
    }
}

static void compose(struct dd_fetch_ctx *ctx)
{
    struct dd_hot_fetch *f = ctx->f;
    add_memory(ctx);
    bool whole = dd_buf_ok(&ctx->recent) && dd_buf_ok(&ctx->ids) && dd_buf_ok(&ctx->fps);
    if (whole) {
        point_recent(ctx);
        point_pending(ctx);
    }
    f->complete = ctx->complete && whole;
    f->recent_intact = ctx->intact && dd_hot_is_intact(ctx->hl->h, f->now_ms);
}

static void finish(struct dd_fetch_ctx *ctx)
{
    struct dd_hot_loop *hl = ctx->hl;
    compose(ctx);
    dd_histogram_record(hl->h->count.fetch, (dd_loop_now(hl->loop).ns - ctx->sent_ns) / 1000);
    ctx->f->priv = NULL;
    ctx->f->done(ctx->f->arg); /* the caller may free f inside */
    give_back(ctx);
}

static void on_reply(void *arg, struct redisReply *reply)
{
    struct dd_fetch_ctx *ctx = arg;
    const struct dd_hot_fetch *f = ctx->f;
    unsigned at = ctx->replies++;
    dd_hot_count_error(ctx->hl, reply);
    if (at < f->pending_n) {
        ctx->fps_from[at] = ctx->fps.len / sizeof(uint32_t);
        take_pending(ctx, reply);
    } else if (at == f->pending_n && f->want_recent) {
        take_recent(ctx, reply);
    } else {
        take_cached(ctx, reply);
        if (!reply) ctx->complete = false;
    }
    if (ctx->replies == ctx->expected) finish(ctx);
}

/* ---- asking ---- */

/* Replies are told apart by their order: after a failure nothing more is asked. */
static void ask(struct dd_fetch_ctx *ctx)
{
    if (!ctx->complete) return;
    if (dd_hot_send(ctx->hl, on_reply, ctx))
        ctx->complete = false;
    else
        ctx->expected++;
}

static void ask_pending(struct dd_fetch_ctx *ctx, size_t prefix, struct dd_period period)
{
    struct dd_hot_loop *hl = ctx->hl;
    hl->key.len = prefix;
    dd_hot_key_add_pending(&hl->key, hl->h->store, period);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 2, "SMEMBERS");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    ask(ctx);
}

/* The newest thousand, oldest first: more stand there only for the moment between a claim and its trim. */
static void ask_recent(struct dd_fetch_ctx *ctx, size_t prefix)
{
    struct dd_hot_loop *hl = ctx->hl;
    hl->key.len = prefix;
    dd_hot_key_add_deliveries(&hl->key);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 5, "ZRANGE");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    dd_resp_arg_i64(&hl->command, -DD_DELIVERIES_MAX);
    dd_resp_arg_str(&hl->command, "-1");
    dd_resp_arg_str(&hl->command, "WITHSCORES");
    ask(ctx);
}

static void ask_cached(struct dd_fetch_ctx *ctx, size_t prefix)
{
    struct dd_hot_loop *hl = ctx->hl;
    const struct dd_hot_fetch *f = ctx->f;
    char text[DD_PERIOD_TEXT];
    struct dd_period before;
    bool has_before = period_before(f, &before);
    hl->key.len = prefix;
    dd_hot_key_add_cached(&hl->key, hl->h->store);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 2 + f->cached_n + has_before, "HMGET");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    for (unsigned i = 0; i < f->cached_n; i++)
        dd_resp_arg_str(&hl->command, dd_period_format(f->cached_period[i], text));
    if (has_before) dd_resp_arg_str(&hl->command, dd_period_format(before, text));
    ask(ctx);
}

static void ask_all(struct dd_fetch_ctx *ctx)
{
    const struct dd_hot_fetch *f = ctx->f;
    size_t prefix = dd_hot_begin_user(ctx->hl, f->scene, f->user);
    for (unsigned i = 0; i < f->pending_n; i++)
        ask_pending(ctx, prefix, f->pending_period[i]);
    if (f->want_recent) ask_recent(ctx, prefix);
    if (f->cached_n) ask_cached(ctx, prefix);
}

static void clear_out(struct dd_hot_fetch *f)
{
    f->complete = f->recent_intact = false;
    f->recent = NULL;
    f->recent_n = 0;
    f->priv = NULL;
    memset(f->pending, 0, sizeof *f->pending * f->pending_n);
    memset(f->cached, 0, sizeof *f->cached * f->cached_n);
}

enum dd_err dd_hot_fetch(struct dd_hot_loop *hl, struct dd_hot_fetch *f)
{
    if (f->pending_n > DD_WINDOW_MAX || f->cached_n > DD_WINDOW_MAX) return DD_INVALID;
    clear_out(f);
    struct dd_fetch_ctx *ctx = obtain(hl, f);
    if (!ctx) return DD_NO_MEMORY;
    unsigned commands = f->pending_n + f->want_recent + (f->cached_n > 0);
    if (!hl->h->embedded && commands > 0) {
        enum dd_err err = dd_redis_may_send(&hl->conn, commands);
        if (err == DD_BUSY) dd_count(hl->h->count.busy, 1);
        ctx->complete = !err;
        ctx->sent_ns = dd_loop_now(hl->loop).ns;
        if (!err) ask_all(ctx);
        if (ctx->expected) return DD_PENDING;
    }
    compose(ctx);
    f->priv = ctx;
    return DD_OK;
}
