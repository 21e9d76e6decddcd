#include "build.h"

#include <string.h>

#define WORKERS_MAX_BUFFER                                                                                   \
    ((size_t)256 << 20) /* what all connections of a listener may hold above their first read */

struct dd_scene dd_build_scene(const struct dd_scene_config *sc)
{
    struct dd_scene s = {.period = sc->period,
                         .window = (unsigned)sc->window,
                         .policy = sc->policy,
                         .recent_max = (unsigned)sc->recent.max,
                         .recent_ttl_ms = sc->recent.ttl_s * 1000,
                         .cache_ttl_ms = sc->cache.ttl_s * 1000};
    strncpy(s.name, sc->name, DD_SCENE_NAME_MAX); /* configuration has bounded it; s.name ends in NUL */
    return s;
}

static enum dd_store_compression compression(enum dd_config_compression c)
{
    if (c == DD_CONFIG_COMPRESSION_LZ4) return DD_STORE_LZ4;
    return c == DD_CONFIG_COMPRESSION_ZSTD ? DD_STORE_ZSTD : DD_STORE_RAW;
}

struct dd_store_options dd_build_store(const struct dd_config *c)
{
    unsigned longest = 1;
    for (size_t i = 0; i < c->scene_count; i++)
        if (c->scenes[i].window > longest) longest = (unsigned)c->scenes[i].window;
    return (struct dd_store_options){.path = c->data_dir,
                                     .sync = c->store.durability == DD_CONFIG_DURABILITY_SYNC,
                                     .block_cache_bytes = (uint64_t)c->store.block_cache_bytes,
                                     .write_buffer_bytes = (uint64_t)c->store.write_buffer_bytes,
                                     .min_free_bytes = (uint64_t)c->store.min_free_bytes,
                                     .max_open_files = (int)c->store.max_open_files,
                                     .compression = compression(c->store.compression),
                                     .pool_threads = (unsigned)c->store.pool_threads,
                                     .pool_queue = (unsigned)c->store.pool_queue,
                                     .change_cells = (uint32_t)c->store.change_cells,
                                     .change_tables = longest + 1,
                                     .batch_max = (unsigned)c->store.batch_max,
                                     .batch_wait_us = (unsigned)c->store.batch_wait_us};
}

static const char *text_or_null(const char *s)
{
    return *s ? s : NULL;
}

struct dd_hot_options dd_build_hot(const struct dd_config *c, const char *store_id)
{
    const struct dd_redis_url *r = &c->redis.server;
    int64_t recent_ttl_s = 1;
    for (size_t i = 0; i < c->scene_count; i++)
        if (c->scenes[i].recent.ttl_s > recent_ttl_s) recent_ttl_s = c->scenes[i].recent.ttl_s;
    return (struct dd_hot_options){.host = text_or_null(r->host),
                                   .path = text_or_null(r->path),
                                   .user = text_or_null(r->user),
                                   .password = text_or_null(r->password),
                                   .port = r->port,
                                   .db = r->db,
                                   .connect_timeout_ms = (int)c->redis.connect_timeout_ms,
                                   .timeout_ms = (int)c->redis.timeout_ms,
                                   .retry_max_ms = (int)c->redis.retry_max_ms,
                                   .max_inflight = (unsigned)c->redis.max_inflight,
                                   .max_output_bytes = (size_t)c->redis.max_output_bytes,
                                   .memory_max_bytes = (size_t)c->memory.max_bytes,
                                   .store_id = store_id,
                                   .recent_ttl_ms_max = recent_ttl_s * 1000};
}

struct dd_migrate_options dd_build_migrate(const struct dd_config *c, const struct dd_scenes *scenes,
                                           struct dd_hot_options *server)
{
    static const enum dd_legacy_type types[] = {[DD_CONFIG_LEGACY_ZSET] = DD_LEGACY_ZSET,
                                                [DD_CONFIG_LEGACY_LIST] = DD_LEGACY_LIST,
                                                [DD_CONFIG_LEGACY_SET] = DD_LEGACY_SET};
    static const enum dd_legacy_unit units[] = {[DD_CONFIG_SCORE_AUTO] = DD_LEGACY_AUTO,
                                                [DD_CONFIG_SCORE_S] = DD_LEGACY_S,
                                                [DD_CONFIG_SCORE_MS] = DD_LEGACY_MS};
    static const enum dd_migrate_after afters[] = {[DD_CONFIG_AFTER_KEEP] = DD_AFTER_KEEP,
                                                   [DD_CONFIG_AFTER_EXPIRE] = DD_AFTER_EXPIRE,
                                                   [DD_CONFIG_AFTER_DELETE] = DD_AFTER_DELETE};
    const struct dd_redis_url *r = &c->migrate.server;
    bool own = dd_redis_url_is_set(r);
    *server = dd_build_hot(c, "");
    server->host = text_or_null(r->host);
    server->path = text_or_null(r->path);
    server->user = text_or_null(r->user);
    server->password = text_or_null(r->password);
    server->port = r->port;
    server->db = r->db;
    return (struct dd_migrate_options){.scene = dd_scenes_find(scenes, dd_slice_str(c->migrate.scene)),
                                       .legacy = {.server = own ? server : NULL,
                                                  .key = c->migrate.key,
                                                  .type = types[c->migrate.type],
                                                  .unit = units[c->migrate.score_unit]},
                                       .dual = c->migrate.mode == DD_CONFIG_MIGRATE_DUAL,
                                       .lazy = c->migrate.lazy,
                                       .rate_users_s = (unsigned)c->migrate.rate_users_s,
                                       .margin_ms = c->migrate.margin_s * 1000,
                                       .after = afters[c->migrate.after],
                                       .expire_s = c->migrate.expire_days * 86400};
}

struct dd_dedup_options dd_build_dedup(const struct dd_config *c)
{
    return (struct dd_dedup_options){.deadline_ms = c->http.deadline_ms,
                                     .max_future_ms = c->ingest.max_future_s * 1000,
                                     .pending_max = (unsigned)c->ingest.pending_max,
                                     .store_sync = c->store.durability == DD_CONFIG_DURABILITY_SYNC};
}

struct dd_history_options dd_build_history(const struct dd_config *c)
{
    static const enum dd_history_mode modes[] = {[DD_CONFIG_HISTORY_OFF] = DD_HISTORY_OFF,
                                                 [DD_CONFIG_HISTORY_TRACED] = DD_HISTORY_TRACED,
                                                 [DD_CONFIG_HISTORY_ALL] = DD_HISTORY_ALL};
    return (struct dd_history_options){.mode = modes[c->history.mode],
                                       .data_dir = c->data_dir,
                                       .gap = c->migrate.mode == DD_CONFIG_MIGRATE_DUAL ? c->migrate.scene
                                                                                        : NULL};
}

struct dd_wheel_options dd_build_wheel(const struct dd_config *c)
{
    return (struct dd_wheel_options){.stage = dd_config_is_staged(c),
                                     .abandon_staged = c->ingest.abandon_staged,
                                     .refuse_evicting = c->ingest.mode == DD_CONFIG_INGEST_STAGED,
                                     .allow_volatile = c->ingest.allow_volatile,
                                     .slot_s = (unsigned)c->ingest.slot_s,
                                     .grace_s = (unsigned)c->ingest.grace_s,
                                     .batch_users = (unsigned)c->wheel.batch_users,
                                     .rate_users_s = (unsigned)c->wheel.rate_users_s,
                                     .paused = c->wheel.paused,
                                     .tick_ms = c->wheel.tick_s * 1000,
                                     .lag_warn_s = (unsigned)c->wheel.lag_warn_s};
}

struct dd_http_options dd_build_http(const struct dd_config *c, const char *name)
{
    struct dd_http_options o;
    dd_http_options_init(&o);
    o.name = name;
    o.max_connections = (unsigned)c->http.max_connections;
    o.max_inflight = (unsigned)c->http.max_inflight;
    o.max_body_bytes = (size_t)c->http.max_body_bytes;
    o.max_head_bytes = (size_t)c->http.max_head_bytes;
    o.max_buffered_bytes = WORKERS_MAX_BUFFER;
    o.max_wait_ms = (int)c->http.deadline_ms;
    o.always_path = "/health/live";
    o.head_timeout_ms = (int)c->http.head_timeout_ms;
    o.body_timeout_ms = (int)c->http.body_timeout_ms;
    o.write_timeout_ms = (int)c->http.write_timeout_ms;
    o.idle_timeout_ms = (int)c->http.idle_timeout_s * 1000;
    return o;
}
