/* Configuration: every option of dedupd, from defaults, a JSON file, the environment and the command line.
 *
 * Purpose. One table (table.c) holds name, type, default, bounds, unit and text of every option. Parsing,
 * validation, printing, the reference page and the names of environment variables all come from it; an option
 * is added by a row there and a field here.
 *
 * Sources, lowest first: defaults, the file, the environment (DEDUPD_HTTP_WORKERS for http.workers), --set.
 *
 * Limits. A file has at most 1 MiB, a text value 4,096 bytes without control bytes. At most 1,000 scenes.
 *
 * Errors are text, one line each, "source: key: what is wrong (what is allowed)", appended to the caller's
 * buffer; loading goes on after an error, so that one run shows all of them. Passwords never appear in them.
 * Nothing is printed here.
 *
 * Threads: no shared state. A config may be read by many threads while none changes it (dd_config_reload_diff
 * does). Ownership: a config owns its texts and scenes until dd_config_destroy. */
#ifndef DD_CONFIG_CONFIG_H
#define DD_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"
#include "base/period.h"
#include "config/redis_url.h"
#include "filter/filter.h"

enum dd_config_engine { DD_CONFIG_ENGINE_ROCKSDB };
enum dd_config_durability { DD_CONFIG_DURABILITY_WAL, DD_CONFIG_DURABILITY_SYNC };
enum dd_config_compression {
    DD_CONFIG_COMPRESSION_NONE,
    DD_CONFIG_COMPRESSION_LZ4,
    DD_CONFIG_COMPRESSION_ZSTD
};
enum dd_config_ingest { DD_CONFIG_INGEST_AUTO, DD_CONFIG_INGEST_DIRECT, DD_CONFIG_INGEST_STAGED };
enum dd_config_migrate { DD_CONFIG_MIGRATE_OFF, DD_CONFIG_MIGRATE_DUAL, DD_CONFIG_MIGRATE_DONE };
enum dd_config_legacy_type { DD_CONFIG_LEGACY_ZSET, DD_CONFIG_LEGACY_LIST, DD_CONFIG_LEGACY_SET };
enum dd_config_score_unit { DD_CONFIG_SCORE_AUTO, DD_CONFIG_SCORE_S, DD_CONFIG_SCORE_MS };
enum dd_config_after { DD_CONFIG_AFTER_KEEP, DD_CONFIG_AFTER_EXPIRE, DD_CONFIG_AFTER_DELETE };
enum dd_config_history { DD_CONFIG_HISTORY_OFF, DD_CONFIG_HISTORY_TRACED, DD_CONFIG_HISTORY_ALL };

/* A scene and its policy. `policy` is made from the other fields (its fpr is the scene's fpr / window) and
 * has passed dd_filter_policy_check. */
struct dd_scene_config {
    char *name; /* 1..64 bytes of [A-Za-z0-9_.-] */
    enum dd_period_kind period;
    int64_t window;
    double fpr;
    enum dd_filter_kind filter;
    int64_t capacity, growth, max_layers;
    enum dd_filter_on_full on_full;
    int64_t fingerprint_bits, tightening, cap;
    struct {
        int64_t max, ttl_s;
    } recent;
    struct {
        int64_t ttl_s;
    } cache;
    struct dd_filter_policy policy;
    int64_t cap_lowered_from; /* 0: cap is as given, or the default fits fpr and window */
    uint64_t given;           /* bit i: row i of the scene table was set by a source */
};

struct dd_config {
    struct {
        enum dd_log_level level;
    } log;
    char *data_dir;
    struct {
        char *listen; /* addresses: dd_address_next takes them apart */
        int64_t workers, max_connections, max_inflight, max_body_bytes, max_head_bytes;
        int64_t head_timeout_ms, body_timeout_ms, write_timeout_ms, idle_timeout_s, deadline_ms;
        int64_t drain_delay_s, drain_timeout_s, max_candidates, max_items;
        bool protected;
    } http;
    struct {
        char *tokens_file;
    } auth;
    struct {
        char *listen;
    } admin;
    struct {
        char *url, *password_file;
        int64_t connect_timeout_ms, timeout_ms, retry_max_ms, max_inflight, max_output_bytes;
        struct dd_redis_url
            server; /* from url and password_file; dd_redis_url_is_set tells whether there is one */
    } redis;
    struct {
        int64_t max_bytes;
    } memory;
    struct {
        enum dd_config_engine engine;
        enum dd_config_durability durability;
        int64_t block_cache_bytes, write_buffer_bytes, max_open_files;
        enum dd_config_compression compression;
        int64_t pool_threads, pool_queue, change_cells, min_free_bytes, batch_max, batch_wait_us;
    } store;
    struct {
        enum dd_config_ingest mode;
        int64_t slot_s, grace_s;
        bool allow_volatile, abandon_staged;
        int64_t max_future_s, pending_max;
    } ingest;
    struct {
        int64_t batch_users, rate_users_s;
        bool paused;
        int64_t tick_s, lag_warn_s;
    } wheel;
    struct {
        int64_t hold_s;
    } expiry;
    struct {
        int64_t offset_s;
    } clock;
    struct {
        enum dd_config_history mode;
    } history;
    struct {
        enum dd_config_migrate mode;
        char *source, *key, *scene;
        enum dd_config_legacy_type type;
        enum dd_config_score_unit score_unit;
        enum dd_config_after after;
        int64_t expire_days, margin_s, rate_users_s;
        bool lazy;
        struct dd_redis_url server; /* from source; not set: the hot tier's Redis */
    } migrate;
    struct dd_scene_config *scenes; /* "default" first, then in order of appearance */
    size_t scene_count;
};

struct dd_config_sources {
    const char *file;         /* NULL: no file */
    char *const *environment; /* as environ, NULL-terminated; NULL: none */
    const char *const *sets;  /* "a.b=value" each */
    size_t set_count;
};

/* DD_OK; DD_IO: the file or the password file cannot be read; DD_INVALID: any other error in a source;
 * DD_NO_MEMORY. Except for DD_OK, *out is NULL, and errors has gained a line at least (unless memory ran
 * out). */
enum dd_err dd_config_load(const struct dd_config_sources *from, struct dd_config **out,
                           struct dd_buf *errors) DD_MUST_USE;

/* NULL is accepted. Passwords are overwritten before their memory is freed. */
void dd_config_destroy(struct dd_config *cfg);

/* NULL: no such scene. */
const struct dd_scene_config *dd_config_scene(const struct dd_config *cfg, struct dd_slice name);

/* Whether exposures are staged in Redis: ingest.mode, with auto resolved by redis.url. */
bool dd_config_is_staged(const struct dd_config *cfg);

/* Appends the whole configuration as nested JSON, every option with its value, passwords as "***". What it
 * prints, loaded as a file, prints the same. DD_NO_MEMORY. */
enum dd_err dd_config_print(const struct dd_config *cfg, struct dd_buf *out) DD_MUST_USE;

/* Appends the reference of all options in Markdown. DD_NO_MEMORY. */
enum dd_err dd_config_reference(struct dd_buf *out) DD_MUST_USE;

/* For SIGHUP. Copies the changed options that may change at run time from `now` into `running` and appends
 * them to `applied` ("wheel.paused=true log.level=debug"); appends the names of other changed options to
 * `restart`
 * ("http.workers scenes.push.window"), and leaves those alone. Both stay empty when nothing changed.
 * DD_NO_MEMORY: `running` may have taken some of the changes, each of them whole. */
enum dd_err dd_config_reload_diff(struct dd_config *running, const struct dd_config *now,
                                  struct dd_buf *applied, struct dd_buf *restart) DD_MUST_USE;

#endif
