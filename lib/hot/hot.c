#include "hot/hot.h"

#include <hiredis/async.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "hot/internal.h"
#include "hot/keys.h"

/* How long an eviction may go unnoticed. INFO costs Redis about 0.2 ms. */
#define WATCH_MS 10000

/* ---- the shared part ---- */

static enum dd_err copy_string(const char *from, const char **to)
{
    *to = from && *from ? strdup(from) : NULL;
    return from && *from && !*to ? DD_NO_MEMORY : DD_OK;
}

static void or_default(int *value, int fallback)
{
    if (*value <= 0) *value = fallback;
}

static enum dd_err copy_options(struct dd_hot *h, const struct dd_hot_options *o)
{
    h->o = *o;
    h->o.host = h->o.path = h->o.user = h->o.password = h->o.store_id = NULL;
    if (copy_string(o->host, &h->o.host) || copy_string(o->path, &h->o.path)) return DD_NO_MEMORY;
    if (copy_string(o->user, &h->o.user) || copy_string(o->password, &h->o.password)) return DD_NO_MEMORY;
    if (copy_string(o->store_id, &h->o.store_id)) return DD_NO_MEMORY;
    or_default(&h->o.connect_timeout_ms, 300);
    or_default(&h->o.timeout_ms, 100);
    or_default(&h->o.retry_max_ms, 2000);
    if (h->o.max_inflight == 0) h->o.max_inflight = 16384;
    if (h->o.max_output_bytes == 0) h->o.max_output_bytes = 8 << 20;
    if (h->o.memory_max_bytes == 0) h->o.memory_max_bytes = 64 << 20;
    h->embedded = !h->o.host && !h->o.path;
    h->store = dd_slice_str(h->o.store_id ? h->o.store_id : "shared");
    return DD_OK;
}

static void register_counts(struct dd_hot *h, struct dd_stats *s)
{
    h->count.commands = dd_stats_counter(s, "dedupd_hot_commands_total", "commands sent to Redis");
    h->count.errors = dd_stats_counter(s, "dedupd_hot_errors_total",
                                       "commands that Redis refused or did not answer");
    h->count.connects = dd_stats_counter(s, "dedupd_hot_connects_total", "connections to Redis that came up");
    h->count.failures = dd_stats_counter(s, "dedupd_hot_failures_total",
                                         "connections to Redis that failed or were lost");
    h->count.wrong_type = dd_stats_counter(s, "dedupd_hot_wrong_type_total",
                                           "keys of another type met in Redis");
    h->count.bad_value = dd_stats_counter(s, "dedupd_hot_bad_values_total",
                                          "cached sets that could not be read");
    h->count.bad_member = dd_stats_counter(s, "dedupd_hot_bad_members_total",
                                           "members in Redis that could not be read");
    h->count.memory_claims = dd_stats_counter(s, "dedupd_hot_memory_claims_total",
                                              "claims made in memory because Redis was away");
    h->count.put_skipped = dd_stats_counter(s, "dedupd_hot_cache_skipped_total", "cache fills left out");
    h->count.busy = dd_stats_counter(s, "dedupd_hot_busy_total",
                                     "calls refused because a connection was at its caps");
    h->count.up = dd_stats_gauge(s, "dedupd_hot_connections_up", "connections to Redis that answer");
    h->count.fetch = dd_stats_histogram(s, "dedupd_hot_fetch_seconds",
                                        "time of a user's round trip to Redis");
}

enum dd_err dd_hot_create(const struct dd_hot_options *o, struct dd_clock *clock, struct dd_stats *stats,
                          struct dd_hot **out)
{
    struct dd_hot *h = calloc(1, sizeof *h);
    if (!h) return DD_NO_MEMORY;
    h->clock = clock;
    pthread_mutex_init(&h->lock, NULL);
    dd_server_init(&h->server);
    enum dd_err err = copy_options(h, o);
    if (!err) err = dd_mem_create(h->o.memory_max_bytes, &h->mem);
    if (!err && h->o.host && !h->o.path) err = dd_resolve_create(h->o.host, &h->resolve);
    if (err) {
        dd_hot_destroy(h);
        return err;
    }
    register_counts(h, stats);
    *out = h;
    return DD_OK;
}

static void free_string(const char *s)
{
    free((void *)(uintptr_t)s);
}

void dd_hot_destroy(struct dd_hot *h)
{
    if (!h) return;
    dd_resolve_destroy(h->resolve);
    dd_mem_destroy(h->mem);
    dd_server_reset(&h->server);
    pthread_mutex_destroy(&h->lock);
    free_string(h->o.host);
    free_string(h->o.path);
    free_string(h->o.user);
    free_string(h->o.password);
    free_string(h->o.store_id);
    free(h);
}

bool dd_hot_is_embedded(const struct dd_hot *h)
{
    return h->embedded;
}

static bool is_within(int64_t lost_ms, int64_t now_ms, int64_t ttl_ms)
{
    return lost_ms != INT64_MIN && now_ms < lost_ms + ttl_ms;
}

bool dd_hot_is_intact(const struct dd_hot *h, int64_t now_ms)
{
    int64_t ttl_ms = h->o.recent_ttl_ms_max;
    return !is_within(dd_server_recent_lost_ms(&h->server), now_ms, ttl_ms) &&
           !is_within(dd_mem_lost_ms(h->mem), now_ms, ttl_ms);
}

enum dd_err dd_hot_memory_save(struct dd_hot *h, const char *path)
{
    return dd_mem_save(h->mem, path);
}

enum dd_err dd_hot_memory_load(struct dd_hot *h, const char *path)
{
    return dd_mem_load(h->mem, path);
}

/* ---- state ---- */

void dd_hot_get_status(struct dd_hot *h, struct dd_hot_status *out)
{
    pthread_mutex_lock(&h->lock);
    *out = (struct dd_hot_status){
        .embedded = h->embedded,
        .up = h->embedded || (h->connections > 0 && h->connections_up == h->connections),
        .connections = h->connections,
        .connections_up = h->connections_up,
        .down_since_ms = h->down_since_ms,
    };
    if (!out->up) memcpy(out->last_error, h->last_error, sizeof out->last_error);
    pthread_mutex_unlock(&h->lock);
    out->recent_intact = dd_hot_is_intact(h, dd_clock_wall(h->clock).ms);
    out->memory_bytes = dd_mem_bytes(h->mem);
    out->memory_users = dd_mem_users(h->mem);
}

/* With the lock: one more or less is up, or is there at all. */
static void adjust(struct dd_hot *h, int connections, int up)
{
    h->connections += (unsigned)connections;
    h->connections_up += (unsigned)up;
    bool all = h->connections_up == h->connections;
    if (all)
        h->down_since_ms = 0;
    else if (h->down_since_ms == 0)
        h->down_since_ms = dd_clock_wall(h->clock).ms;
    dd_gauge_set(h->count.up, h->connections_up);
}

static void changed(void *arg, bool up, const char *reason)
{
    struct dd_hot_loop *hl = arg;
    struct dd_hot *h = hl->h;
    bool was_up = hl->was_up;
    hl->was_up = up;
    pthread_mutex_lock(&h->lock);
    adjust(h, 0, (int)up - (int)was_up);
    bool news = was_up || strcmp(h->last_error, reason) != 0;
    if (!up) snprintf(h->last_error, sizeof h->last_error, "%s", reason);
    pthread_mutex_unlock(&h->lock);
    dd_count(up ? h->count.connects : h->count.failures, 1);
    if (up)
        dd_info("hot.connected", "to=%s port=%u", h->o.path ? h->o.path : h->o.host,
                h->o.path ? 0u : h->o.port);
    else if (news)
        dd_warn("hot.disconnected", "reason=\"%s\"", reason);
}

/* ---- a loop's part ---- */

static void hello(void *arg)
{
    dd_hot_hello(arg);
}

static void on_watch(void *arg)
{
    struct dd_hot_loop *hl = arg;
    dd_timer_start(&hl->watch, WATCH_MS);
    dd_mem_sweep(hl->h->mem, dd_clock_wall(hl->h->clock).ms);
    if (!hl->h->embedded && dd_redis_is_up(&hl->conn)) dd_hot_sample(hl);
}

static void open_connection(struct dd_hot_loop *hl)
{
    struct dd_hot *h = hl->h;
    pthread_mutex_lock(&h->lock);
    adjust(h, 1, 0);
    pthread_mutex_unlock(&h->lock);
    hl->conn = (struct dd_redis){
        .o = &h->o, .resolve = h->resolve, .loop = hl->loop, .hello = hello, .changed = changed, .arg = hl};
    if (dd_random(&hl->conn.random, sizeof hl->conn.random)) hl->conn.random = (uint64_t)(uintptr_t)hl;
    dd_redis_open(&hl->conn);
}

enum dd_err dd_hot_loop_create(struct dd_hot *h, struct dd_loop *loop, struct dd_hot_loop **out)
{
    struct dd_hot_loop *hl = calloc(1, sizeof *hl);
    if (!hl) return DD_NO_MEMORY;
    hl->h = h;
    hl->loop = loop;
    dd_timer_init(&hl->watch, loop, on_watch, hl);
    dd_timer_start(&hl->watch, WATCH_MS);
    if (!h->embedded) open_connection(hl);
    *out = hl;
    return DD_OK;
}

void dd_hot_loop_destroy(struct dd_hot_loop *hl)
{
    if (!hl) return;
    dd_timer_stop(&hl->watch);
    if (!hl->h->embedded) {
        dd_redis_close(&hl->conn);
        pthread_mutex_lock(&hl->h->lock);
        adjust(hl->h, -1, hl->was_up ? -1 : 0);
        pthread_mutex_unlock(&hl->h->lock);
    }
    dd_hot_free_fetches(hl);
    dd_hot_free_claims(hl);
    dd_hot_free_stages(hl);
    dd_buf_free(&hl->command);
    dd_buf_free(&hl->key);
    free(hl);
}

enum dd_err dd_hot_send(struct dd_hot_loop *hl, dd_redis_fn fn, void *arg)
{
    if (!dd_buf_ok(&hl->command) || !dd_buf_ok(&hl->key)) return DD_NO_MEMORY;
    dd_count(hl->h->count.commands, 1);
    return dd_redis_send(&hl->conn, dd_buf_slice(&hl->command), fn, arg);
}

static void on_forgotten(void *arg, struct redisReply *reply)
{
    dd_hot_count_error(arg, reply);
}

void dd_hot_send_forgotten(struct dd_hot_loop *hl)
{
    if (dd_hot_send(hl, on_forgotten, hl)) dd_count(hl->h->count.errors, 1);
}

size_t dd_hot_begin_user(struct dd_hot_loop *hl, struct dd_slice scene, struct dd_slice user)
{
    dd_buf_reset(&hl->key);
    dd_hot_key_user(&hl->key, scene, user);
    return hl->key.len;
}

void dd_hot_count_error(struct dd_hot_loop *hl, const struct redisReply *reply)
{
    if (reply && reply->type != REDIS_REPLY_ERROR) return;
    dd_count(hl->h->count.errors, 1);
    if (reply && strncmp(reply->str, "WRONGTYPE", 9) == 0) dd_count(hl->h->count.wrong_type, 1);
}
