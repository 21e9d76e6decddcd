/* /health: what works and what does not, in words that an operator can act on. 503 only when this process can
 * serve nothing worth having; anything less is "degraded" with 200, because taking a degraded node out of a
 * load balancer turns a weaker answer into none.
 *
 * /health/live never looks at a dependency: restarting the process does not bring Redis back.
 * /health/ready is 503 while draining, so that a balancer stops sending before the listeners close. */
#include <stdarg.h>
#include <stdio.h>

#include "api/internal.h"
#include "api/json.h"

/* A clock that stepped back by more is an error: reads cover both periods, but somebody should look. */
#define CLOCK_BEHIND_MS 3600000

enum level { OK, DEGRADED, DOWN };

static const char *const level_names[] = {"ok", "degraded", "down"};

/* One component while it is being written: its reasons are gathered, its figures follow. */
struct component {
    struct dd_buf *out;
    enum level level;
    unsigned reasons;
    char reason[4][256];
};

__attribute__((format(printf, 3, 4))) static void degrade(struct component *c, enum level level,
                                                          const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (level > c->level) c->level = level;
    if (c->reasons < sizeof c->reason / sizeof *c->reason)
        vsnprintf(c->reason[c->reasons++], sizeof c->reason[0], fmt, ap);
    va_end(ap);
}

/* `"name":{"status":"...","reasons":[...]` without its closing brace. */
static void open_component(const struct component *c, const char *name)
{
    dd_buf_addf(c->out, "\"%s\":{\"status\":\"%s\",\"reasons\":[", name, level_names[c->level]);
    for (unsigned i = 0; i < c->reasons; i++) {
        if (i) dd_buf_add_u8(c->out, ',');
        dd_json_add_string(c->out, dd_slice_str(c->reason[i]));
    }
    dd_buf_add_u8(c->out, ']');
}

static enum level add_store(struct dd_buf *out, const struct dd_store_status *s)
{
    struct component c = {.out = out};
    unsigned long long free_mb = s->free_bytes / 1000000;
    if (!s->writable && (s->last_error == DD_OK || s->last_error == DD_DISK_FULL))
        degrade(&c, DEGRADED,
                "the disk is nearly full (%llu MB free): exposures are refused, /filter goes on", free_mb);
    else if (!s->writable)
        degrade(&c, DEGRADED, "writes fail (%s): exposures are refused, /filter goes on",
                dd_err_text(s->last_error));
    if (s->corrupt)
        degrade(&c, DEGRADED,
                "%llu stored filter sets failed their checksum: answers for those users say partial",
                (unsigned long long)s->corrupt);
    open_component(&c, "store");
    dd_buf_addf(out, ",\"writable\":%s,\"free_bytes\":%llu}", s->writable ? "true" : "false",
                (unsigned long long)s->free_bytes);
    return c.level;
}

static enum level add_hot(struct dd_buf *out, const struct dd_hot_status *h)
{
    struct component c = {.out = out};
    if (!h->embedded && !h->up)
        degrade(&c, DEGRADED,
                "Redis does not answer (%s): deliveries are kept in this process, answers say partial",
                *h->last_error ? h->last_error : "not connected yet");
    if (!h->recent_intact)
        degrade(&c, DEGRADED,
                "Redis may have lost deliveries: answers say partial until recent.ttl_s has passed");
    open_component(&c, h->embedded ? "memory" : "redis");
    if (h->embedded)
        dd_buf_addf(out, ",\"bytes\":%zu,\"users\":%llu}", h->memory_bytes,
                    (unsigned long long)h->memory_users);
    else
        dd_buf_addf(out, ",\"connections\":%u,\"connections_up\":%u,\"down_since_ms\":%lld}", h->connections,
                    h->connections_up, (long long)h->down_since_ms);
    return c.level;
}

/* The exact store that a migration still asks (migrate.mode: dual). */
static enum level add_migration(struct dd_buf *out, const struct dd_legacy_status *l)
{
    struct component c = {.out = out};
    if (!l->up)
        degrade(&c, DEGRADED,
                "the old store does not answer (%s): answers say partial and offer what only it knows",
                l->last_error);
    open_component(&c, "migration");
    dd_buf_addf(out, ",\"connections\":%u,\"connections_up\":%u,\"down_since_ms\":%lld}", l->connections,
                l->connections_up, (long long)l->down_since_ms);
    return c.level;
}

/* A loss is news for an hour; the counter in /metrics keeps it. */
#define LOSS_SHOWN_MS 3600000

static const char *staging_name(enum dd_wheel_staging s)
{
    return s == DD_STAGING_FIRM ? "staged" : s == DD_STAGING_VOLATILE ? "volatile" : "off";
}

/* What stands between exposures and the store when they are staged in Redis. */
static enum level add_ingest(struct dd_buf *out, const struct dd_dedup_status *s, int64_t now_ms)
{
    struct component c = {.out = out};
    const struct dd_wheel_status *w = &s->wheel;
    bool away = !s->hot.embedded && !s->hot.up;
    if (w->blind)
        degrade(&c, DEGRADED,
                "an earlier run staged exposures in a Redis that is not configured: answers say partial");
    if (away && w->staging_wanted)
        degrade(&c, DEGRADED, "Redis takes no writes: exposures go to the store directly");
    const struct dd_hot_durability *d = &w->durability;
    if (w->staging_wanted && w->staging == DD_STAGING_OFF)
        degrade(&c, DEGRADED, "exposures are not staged but written directly, which costs more: %s",
                d->known && *d->warnings ? d->warnings : "Redis has not said yet how durable it is");
    if (w->lagging)
        degrade(&c, DEGRADED, "the oldest ended slot has waited %lld s to be emptied into the store%s",
                (long long)w->lag_s, w->paused ? " (wheel.paused is on)" : "");
    if (*w->last_error) degrade(&c, DEGRADED, "the wheel's last tick failed: %s", w->last_error);
    if (w->displaced) degrade(&c, DEGRADED, "another process has taken this store's place in Redis");
    if (d->losses && now_ms - d->last_loss_ms < LOSS_SHOWN_MS)
        degrade(&c, DEGRADED, "Redis lost staged exposures (%llu times since the start)",
                (unsigned long long)d->losses);
    open_component(&c, "ingest");
    dd_buf_addf(out, ",\"durability\":\"%s\",\"lag_s\":%lld,\"slots\":%u,\"warnings\":",
                away ? "off" : staging_name(w->staging), (long long)w->lag_s, w->slots);
    dd_json_add_string(out, dd_slice_str(d->warnings));
    dd_buf_add_u8(out, '}');
    return c.level;
}

static enum level add_clock(struct dd_buf *out, int64_t behind_ms)
{
    struct component c = {.out = out};
    if (behind_ms > CLOCK_BEHIND_MS)
        degrade(&c, DEGRADED,
                "the system clock stands %lld s behind the latest time seen; periods do not move back",
                (long long)(behind_ms / 1000));
    open_component(&c, "clock");
    dd_buf_addf(out, ",\"behind_ms\":%lld}", (long long)behind_ms);
    return c.level;
}

static enum level max_level(enum level a, enum level b)
{
    return a > b ? a : b;
}

/* Neither can an exposure be taken nor a whole answer be given. */
static bool is_down(const struct dd_dedup_status *s)
{
    return !s->writable && !s->full;
}

void dd_api_health(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    const struct dd_api *a = al->api;
    struct dd_dedup_status s;
    struct dd_buf parts = {0}, *out = dd_http_request_scratch(o->req);
    a->options.backend->status(a->options.dedup, &s);
    enum level level = is_down(&s) ? DOWN : OK;
    level = max_level(level, add_store(&parts, &s.store));
    dd_buf_add_u8(&parts, ',');
    level = max_level(level, add_hot(&parts, &s.hot));
    dd_buf_add_u8(&parts, ',');
    if (!s.hot.embedded || s.wheel.blind) {
        level = max_level(level, add_ingest(&parts, &s, dd_clock_wall(a->options.clock).ms));
        dd_buf_add_u8(&parts, ',');
    }
    if (s.legacy.asked) {
        level = max_level(level, add_migration(&parts, &s.legacy));
        dd_buf_add_u8(&parts, ',');
    }
    level = max_level(level, add_clock(&parts, s.clock_behind_ms));
    dd_buf_reset(out);
    dd_buf_addf(out, "{\"status\":\"%s\",\"version\":\"%s\",\"uptime_s\":%lld,\"draining\":%s,",
                level_names[level], a->options.version, (long long)dd_api_uptime_s(a),
                atomic_load(&a->draining) ? "true" : "false");
    dd_buf_addf(out, "\"exposures_accepted\":%s,\"history\":\"%s\",\"components\":{",
                s.writable ? "true" : "false", s.full ? "full" : "partial");
    dd_buf_add_slice(out, dd_buf_slice(&parts));
    if (!dd_buf_ok(&parts)) out->failed = true;
    dd_buf_add_str(out, "}}");
    dd_buf_free(&parts);
    dd_api_answer_buf(o, level == DOWN ? 503 : 200, DD_API_JSON, out);
}

void dd_api_health_live(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    (void)al;
    dd_api_answer(o, 200, DD_API_JSON, dd_slice_str("{\"status\":\"ok\"}"));
}

void dd_api_health_ready(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    const struct dd_api *a = al->api;
    struct dd_dedup_status s;
    if (atomic_load_explicit(&a->draining, memory_order_relaxed)) {
        dd_api_answer(o, 503, DD_API_JSON, dd_slice_str("{\"status\":\"draining\"}"));
        return;
    }
    a->options.backend->status(a->options.dedup, &s);
    if (is_down(&s))
        dd_api_answer(o, 503, DD_API_JSON, dd_slice_str("{\"status\":\"down\"}"));
    else
        dd_api_answer(o, 200, DD_API_JSON, dd_slice_str("{\"status\":\"ok\"}"));
}
