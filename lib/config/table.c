/* The options. A row names its field (the option http.workers is the field http.workers), and the macros
 * refuse to compile when the field is not of the row's type. Rows of a section stand together, in the order
 * in which they are printed.
 *
 * Upper bounds that no user would meet (an exbibyte, a century) are there so that arithmetic on a value, in
 * milliseconds or bytes, cannot overflow, and so that every integer is exact as a double (2^53). */
#include <stdio.h>

#include "base/address.h"
#include "config/config.h"
#include "config/option.h"

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define PIB (1024 * 1024 * GIB)

/* 100 years, in seconds. */
#define CENTURY_S 3153600000.0

#define AT(owner, field, ctype) _Generic(((owner *)0)->field, ctype : offsetof(owner, field))

#define ROW(owner, field, ctype, kind, def)                                                                  \
    .name = #field, .type = kind, .offset = AT(owner, field, ctype), .initial = def
#define NUMBERS(lo, hi, what, bits, words) .min = lo, .max = hi, .unit = what, .flags = bits, .text = words

#define INT(field, def, lo, hi, what, bits, words)                                                           \
    {                                                                                                        \
        ROW(struct dd_config, field, int64_t, DD_OPTION_INT, def), NUMBERS(lo, hi, what, bits, words)        \
    }
#define BOOL(field, def, bits, words)                                                                        \
    {                                                                                                        \
        ROW(struct dd_config, field, bool, DD_OPTION_BOOL, def), .unit = "", .flags = bits, .text = words    \
    }
#define CHOICE(field, ctype, list, def, bits, words)                                                         \
    {                                                                                                        \
        ROW(struct dd_config, field, ctype, DD_OPTION_CHOICE, def), .choices = list, .unit = "",             \
                                                                    .flags = bits, .text = words             \
    }
#define TEXT(field, def, test, shape, bits, words)                                                           \
    {                                                                                                        \
        ROW(struct dd_config, field, char *, DD_OPTION_TEXT, def), .check = test, .unit = shape,             \
                                                                   .flags = bits, .text = words              \
    }

#define SCENE_INT(field, def, lo, hi, what, words)                                                           \
    {                                                                                                        \
        ROW(struct dd_scene_config, field, int64_t, DD_OPTION_INT, def), NUMBERS(lo, hi, what, 0, words)     \
    }
#define SCENE_REAL(field, def, lo, hi, words)                                                                \
    {                                                                                                        \
        ROW(struct dd_scene_config, field, double, DD_OPTION_REAL, def), NUMBERS(lo, hi, "", 0, words)       \
    }
#define SCENE_CHOICE(field, ctype, list, def, words)                                                         \
    {                                                                                                        \
        ROW(struct dd_scene_config, field, ctype, DD_OPTION_CHOICE, def), .choices = list, .unit = "",       \
                                                                          .text = words                      \
    }

/* Choices are stored and read as int. */
_Static_assert(sizeof(enum dd_log_level) == sizeof(int) && sizeof(enum dd_period_kind) == sizeof(int),
               "enum size");

static const struct dd_choice levels[] = {
    {"debug", DD_LOG_DEBUG}, {"info", DD_LOG_INFO}, {"warn", DD_LOG_WARN}, {"error", DD_LOG_ERROR}, {0}};
static const struct dd_choice engines[] = {{"rocksdb", DD_CONFIG_ENGINE_ROCKSDB}, {0}};
static const struct dd_choice durabilities[] = {
    {"wal", DD_CONFIG_DURABILITY_WAL}, {"sync", DD_CONFIG_DURABILITY_SYNC}, {0}};
static const struct dd_choice compressions[] = {{"none", DD_CONFIG_COMPRESSION_NONE},
                                                {"lz4", DD_CONFIG_COMPRESSION_LZ4},
                                                {"zstd", DD_CONFIG_COMPRESSION_ZSTD},
                                                {0}};
static const struct dd_choice ingests[] = {{"auto", DD_CONFIG_INGEST_AUTO},
                                           {"direct", DD_CONFIG_INGEST_DIRECT},
                                           {"staged", DD_CONFIG_INGEST_STAGED},
                                           {0}};
static const struct dd_choice histories[] = {{"off", DD_CONFIG_HISTORY_OFF},
                                             {"traced", DD_CONFIG_HISTORY_TRACED},
                                             {"all", DD_CONFIG_HISTORY_ALL},
                                             {0}};
static const struct dd_choice migrations[] = {
    {"off", DD_CONFIG_MIGRATE_OFF}, {"dual", DD_CONFIG_MIGRATE_DUAL}, {"done", DD_CONFIG_MIGRATE_DONE}, {0}};
static const struct dd_choice legacy_types[] = {
    {"zset", DD_CONFIG_LEGACY_ZSET}, {"list", DD_CONFIG_LEGACY_LIST}, {"set", DD_CONFIG_LEGACY_SET}, {0}};
static const struct dd_choice score_units[] = {
    {"auto", DD_CONFIG_SCORE_AUTO}, {"s", DD_CONFIG_SCORE_S}, {"ms", DD_CONFIG_SCORE_MS}, {0}};
static const struct dd_choice afters[] = {{"keep", DD_CONFIG_AFTER_KEEP},
                                          {"expire", DD_CONFIG_AFTER_EXPIRE},
                                          {"delete", DD_CONFIG_AFTER_DELETE},
                                          {0}};
static const struct dd_choice periods[] = {{"day", DD_PERIOD_DAY},         {"week", DD_PERIOD_WEEK},
                                           {"month", DD_PERIOD_MONTH},     {"quarter", DD_PERIOD_QUARTER},
                                           {"forever", DD_PERIOD_FOREVER}, {0}};
static const struct dd_choice filters[] = {{"bloom", DD_FILTER_BLOOM},
                                           {"counting", DD_FILTER_COUNTING},
                                           {"cuckoo", DD_FILTER_CUCKOO},
                                           {"compact", DD_FILTER_COMPACT},
                                           {0}};
static const struct dd_choice on_fulls[] = {
    {"grow", DD_ON_FULL_GROW}, {"rotate", DD_ON_FULL_ROTATE}, {"saturate", DD_ON_FULL_SATURATE}, {0}};

static bool check_listen(const char *text, char *why, size_t why_size)
{
    struct dd_slice list = dd_slice_str(text);
    struct dd_address address;
    enum dd_err err;
    size_t n = 0;
    while ((err = dd_address_next(&list, &address, why, why_size)) == DD_OK)
        n++;
    if (err == DD_NOT_FOUND && n == 0) snprintf(why, why_size, "at least one address is needed");
    if (err == DD_NOT_FOUND && n > DD_ADDRESSES_MAX)
        snprintf(why, why_size, "more than %d addresses", DD_ADDRESSES_MAX);
    return err == DD_NOT_FOUND && n > 0 && n <= DD_ADDRESSES_MAX;
}

static bool check_redis(const char *text, char *why, size_t why_size)
{
    struct dd_redis_url url = {0};
    bool ok = dd_redis_url_parse(dd_slice_str(text), &url, why, why_size) == DD_OK;
    explicit_bzero(&url, sizeof url);
    return ok;
}

static bool check_pattern(const char *text, char *why, size_t why_size)
{
    const char *at = strstr(text, "{user}");
    if (at && !strstr(at + 1, "{user}")) return true;
    snprintf(why, why_size, "it must hold {user} once");
    return false;
}

static bool check_not_empty(const char *text, char *why, size_t why_size)
{
    if (!*text) snprintf(why, why_size, "it must not be empty");
    return *text;
}

#define LISTEN_SHAPE "numeric address:port, [v6]:port or unix:/path, separated by commas"
#define REDIS_SHAPE  "redis://[user:password@]host:port/db, unix:///path, or empty"

static const struct dd_option options[] = {
    CHOICE(log.level, enum dd_log_level, levels, "info", DD_OPTION_RELOAD, "The least level that is logged."),

    TEXT(data_dir, "/var/lib/dedupd", check_not_empty, "path", 0,
         "Directory of the store and of what a clean stop saves. One process at a time."),

    TEXT(http.listen, "127.0.0.1:8080", check_listen, LISTEN_SHAPE, 0,
         "Where requests are taken. Port 0 lets the system choose; the ready line names the real one."),
    INT(http.workers, "0", 0, 256, "threads", 0, "Threads that serve requests; 0: one for each core."),
    INT(http.max_connections, "20000", 1, 1000000, "", 0,
        "Open connections of the data listener; past it 503."),
    INT(http.max_inflight, "4096", 1, 1000000, "", 0, "Requests being worked on; past it the answer is 503."),
    INT(http.max_body_bytes, "1048576", KIB, 64 * MIB, "bytes", 0, "Largest body of a request; past it 413."),
    INT(http.max_head_bytes, "8192", KIB, 64 * KIB, "bytes", 0,
        "Largest request line with headers; past it 431."),
    INT(http.head_timeout_ms, "5000", 10, 600000, "ms", 0,
        "From the first byte of a request to the end of its headers."),
    INT(http.body_timeout_ms, "10000", 10, 600000, "ms", 0,
        "From the end of the headers to that of the body."),
    INT(http.write_timeout_ms, "10000", 10, 600000, "ms", 0, "For a client to take its answer."),
    INT(http.idle_timeout_s, "75", 1, 86400, "s", 0,
        "For a connection without a request. Keep it longer than the load balancer's."),
    INT(http.deadline_ms, "200", 5, 60000, "ms", 0,
        "For a request's turn, and then for the work on it; past it 503, or an answer without what is "
        "missing (partial)."),
    INT(http.drain_delay_s, "5", 0, 600, "s", 0,
        "When stopping: how long /health/ready says 503 while requests are still taken."),
    INT(http.drain_timeout_s, "30", 1, 600, "s", 0,
        "When stopping: how long requests in flight may take once the listeners are closed."),
    INT(http.max_candidates, "10000", 1, 10000, "", 0, "Candidates of one filter request; past it 400."),
    INT(http.max_items, "10000", 1, 10000, "", 0, "Exposures or deliveries of one request; past it 400."),
    BOOL(http.protected, "true", 0,
         "Refuse clients from other hosts as long as no tokens are configured (auth.tokens_file)."),

    TEXT(auth.tokens_file, "", NULL, "path, or empty", 0,
         "File of bearer tokens with their roles; read again on SIGHUP. Empty: no tokens."),

    TEXT(admin.listen, "127.0.0.1:8081", check_listen, LISTEN_SHAPE, 0,
         "Where the admin interface is served."),

    TEXT(redis.url, "", check_redis, REDIS_SHAPE, DD_OPTION_SECRET,
         "The hot tier. Empty: embedded, in process memory. Reserved characters percent-encoded."),
    TEXT(redis.password_file, "", NULL, "path, or empty", 0,
         "File that holds the password, instead of the URL; one line break at its end is ignored."),
    INT(redis.connect_timeout_ms, "300", 10, 60000, "ms", 0, "For a connection to be made."),
    INT(redis.timeout_ms, "100", 1, 60000, "ms", 0, "For the reply to a command."),
    INT(redis.retry_max_ms, "2000", 50, 60000, "ms", 0, "Longest pause between attempts to reconnect."),
    INT(redis.max_inflight, "16384", 1, 1000000, "commands", 0,
        "Commands without a reply, for each connection."),
    INT(redis.max_output_bytes, "8388608", 64 * KIB, 16 * GIB, "bytes", 0,
        "Bytes that wait to be sent, for each connection."),

    INT(memory.max_bytes, "268435456", MIB, PIB, "bytes", 0,
        "Deliveries kept in process memory: embedded, or while Redis is away."),

    CHOICE(store.engine, enum dd_config_engine, engines, "rocksdb", 0, "The durable store."),
    CHOICE(store.durability, enum dd_config_durability, durabilities, "wal", 0,
           "What an acknowledged write survives: wal, a crash of the process; sync, a power cut too."),
    INT(store.block_cache_bytes, "268435456", MIB, PIB, "bytes", 0, "Memory for blocks read from the store."),
    INT(store.write_buffer_bytes, "33554432", 64 * KIB, 16 * GIB, "bytes", 0,
        "Memory for new writes before they become a file."),
    INT(store.max_open_files, "1000", 16, 1000000, "files", DD_OPTION_OR_MINUS1,
        "Files of the store kept open; -1: all."),
    CHOICE(store.compression, enum dd_config_compression, compressions, "none", 0,
           "Of the store's files. Fingerprints hardly compress; keys do."),
    INT(store.pool_threads, "4", 1, 64, "threads", 0, "Threads for reads that must wait for the disk."),
    INT(store.pool_queue, "1024", 1, 1000000, "", 0, "Such reads that may wait; past it 503."),
    INT(store.change_cells, "1048576", 1024, 268435456, "cells", DD_OPTION_POWER2,
        "Cells of the change table, 8 bytes each, for each period of a window. Rule: 8 cells for each write "
        "within "
        "cache.ttl_s; fewer make cached sets look stale, which costs reads, never a wrong answer."),
    INT(store.min_free_bytes, "268435456", 16 * MIB, PIB, "bytes", 0,
        "Free disk space below which exposures are refused (507)."),
    INT(store.batch_max, "512", 1, 10000, "writes", 0, "Most writes in one commit."),
    INT(store.batch_wait_us, "0", 0, 100000, "us", 0,
        "How long a commit waits for more writes; 0: not at all."),

    CHOICE(ingest.mode, enum dd_config_ingest, ingests, "auto", 0,
           "Where exposures are acknowledged: direct, in the store; staged, in Redis, then moved to the "
           "store by the "
           "wheel. auto: staged if there is a Redis."),
    INT(ingest.slot_s, "3600", 1, 86400, "s", 0, "Length of a slot of staging."),
    INT(ingest.grace_s, "30", 0, 3600, "s", 0,
        "After the end of a slot until it is sealed: more than clocks of processes may differ."),
    BOOL(ingest.allow_volatile, "false", 0,
         "Stage in a Redis that loses writes when it is killed; answers then say volatile."),
    BOOL(ingest.abandon_staged, "false", 0,
         "Without redis.url: give up what an earlier run staged in a Redis that is gone for good, so that "
         "answers say full again."),
    INT(ingest.max_future_s, "300", 0, 86400, "s", 0,
        "How far ahead of the clock an event time may be; it then counts as now."),
    INT(ingest.pending_max, "20000", 100, 1000000, "items", 0,
        "Staged exposures of one user that are not yet in the store; past it 429."),

    INT(wheel.batch_users, "256", 1, 10000, "users", 0, "Users moved to the store by one commit."),
    INT(wheel.rate_users_s, "0", 0, 1000000000, "users/s", DD_OPTION_RELOAD,
        "Most users moved a second; 0: no limit."),
    BOOL(wheel.paused, "false", DD_OPTION_RELOAD, "Move nothing for now."),
    INT(wheel.tick_s, "5", 1, 3600, "s", 0, "How often the wheel looks for sealed slots."),
    INT(wheel.lag_warn_s, "7200", 1, 31536000, "s", 0,
        "Age of the oldest unflushed slot from which /health warns."),

    INT(expiry.hold_s, "3600", 0, CENTURY_S, "s", 0,
        "How long a period must have left the window, while running, before it is dropped."),

    INT(clock.offset_s, "0", -CENTURY_S, CENTURY_S, "s", DD_OPTION_RELOAD,
        "Added to the wall clock, to rehearse the turn of a period."),

    CHOICE(history.mode, enum dd_config_history, histories, "off", 0,
           "Whose raw ids are kept beside the filters: nobody's, traced users', everybody's."),

    CHOICE(
        migrate.mode, enum dd_config_migrate, migrations, "off", 0,
        "Moving from an exact store in Redis. dual: the old keys are read beside the filters, and users are "
        "migrated; done: they are not read any more."),
    TEXT(migrate.source, "", check_redis, REDIS_SHAPE, DD_OPTION_SECRET,
         "The Redis that holds the old keys. Empty: the one of redis.url."),
    TEXT(migrate.key, "played_videos:{user}", check_pattern, "a key with {user} in it", 0,
         "Name of a user's old key."),
    CHOICE(migrate.type, enum dd_config_legacy_type, legacy_types, "zset", 0,
           "Type of the old keys. zset: member is the item, score the time it was seen; list, set: no times, "
           "everything counts for the period of the migration."),
    CHOICE(migrate.score_unit, enum dd_config_score_unit, score_units, "auto", 0,
           "Of the scores of a zset: seconds or milliseconds since 1970. auto: seconds below 1e11."),
    TEXT(migrate.scene, "default", check_not_empty, "name of a scene", 0,
         "The scene that the old keys belong to."),
    BOOL(migrate.lazy, "true", 0, "Migrate each user who is seen in traffic, in the background."),
    INT(migrate.rate_users_s, "0", 0, 1000000000, "users/s", 0,
        "Most users migrated a second; 0: no limit. POST /admin/migration changes it."),
    INT(migrate.margin_s, "300", 0, 31536000, "s", 0,
        "How much older than a user's migration an entry of the old key may be and still be read in dual "
        "mode: "
        "more than clocks differ, and than writers are late."),
    CHOICE(migrate.after, enum dd_config_after, afters, "keep", 0,
           "What becomes of what was migrated: keep, expire the old key, delete the entries that were "
           "migrated."),
    INT(migrate.expire_days, "30", 1, 36500, "days", 0,
        "With migrate.after expire: the life of an old key from the user's last migration."),
};

static const struct dd_option scene_options[] = {
    SCENE_CHOICE(period, enum dd_period_kind, periods, "month", "Calendar slice of a filter set, in UTC."),
    SCENE_INT(
        window, "3", 1, DD_WINDOW_MAX, "periods",
        "Periods that count, the current one included. With period forever 1, which is then the default. "
        "Bounds cap (see there)."),
    SCENE_REAL(
        fpr, "0.001", 1e-4, 0.05,
        "Share of never seen candidates that may be dropped, over all periods of the window together. Bounds "
        "cap (see there)."),
    SCENE_CHOICE(filter, enum dd_filter_kind, filters, "bloom",
                 "Kind of the sets. Exposures of counting scenes are always written directly: what is staged "
                 "cannot count."),
    SCENE_INT(capacity, "1024", 16, 1000000, "items", "Of the first dense layer of a set."),
    SCENE_INT(growth, "2", 1, 2, "",
              "2: each new layer doubles the capacity of the set; 1: layers are all alike."),
    SCENE_INT(tightening, "0", 0, 95, "percent",
              "With growth 2: error share of a layer over that of the one before, 10 to 95; 0: 30."),
    SCENE_INT(
        max_layers, "0", 0, 64, "layers",
        "Most layers: with on_full rotate 2 to 64, with saturate 1 to 64, with grow 0, which is no limit."),
    SCENE_CHOICE(
        on_full, enum dd_filter_on_full, on_fulls, "grow",
        "When the last layer is full: add one; drop the oldest, which forgets; or go on filling it, at a "
        "rising rate of false positives."),
    SCENE_INT(fingerprint_bits, "0", 0, 32, "bits",
              "At least so many: of cuckoo sets 4 to 32, of compact sets 16 to 32; 0: as many as fpr needs."),
    SCENE_INT(cap, "200000", 100, 16000000, "items",
              "Most items of a user in one period; past it 429. At most fpr / window * 2^31: more is "
              "refused, and the "
              "default is lowered to it."),
    SCENE_INT(recent.max, "100", 1, 1000, "items", "Newest deliveries of a user that are remembered."),
    SCENE_INT(recent.ttl_s, "1800", 1, 604800, "s", "How long a delivery is remembered."),
    SCENE_INT(cache.ttl_s, "1800", 1, 604800, "s",
              "How long a set stays cached in the hot tier without use."),
};

const struct dd_table dd_config_table = {options, sizeof options / sizeof *options};
const struct dd_table dd_scene_table = {scene_options, sizeof scene_options / sizeof *scene_options};

_Static_assert(sizeof scene_options / sizeof *scene_options <= 64, "dd_scene_config.given has 64 bits");
