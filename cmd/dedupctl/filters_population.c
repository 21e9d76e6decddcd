/* dedupctl filters --population: every kind in turn, in a store of its own, without and with hints. */
#include "filters_population.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "filters_measure.h"
#include "filters_table.h"

/* ---- a store and its directory ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path) == 0 ? 0 : -1;
}

void dd_filters_remove_dir(const char *dir)
{
    if (nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        fprintf(stderr, "dedupctl: filters: %s could not be removed\n", dir);
}

enum dd_err dd_filters_make_dir(const char *dir, char **out)
{
    const char *from_env = getenv("TMPDIR");
    if (!dir) dir = from_env && *from_env ? from_env : "/tmp";
    if (asprintf(out, "%s/dedupctl-filters-XXXXXX", dir) < 0) return DD_NO_MEMORY;
    if (mkdtemp(*out)) return DD_OK;
    fprintf(stderr, "dedupctl: filters: --dir %s: %m\n", dir);
    free(*out);
    return DD_NOT_FOUND;
}

/* Write buffer: so small that one visit of everybody is about one flush, as in a store of many millions. In a
 * larger one a small population's month would be merged in one step, which fits layers better than growing
 * does (1.3 times the optimum and not 1.4, bloom with hints). */
static uint64_t write_buffer(uint32_t users)
{
    uint64_t visit = (uint64_t)users * 100, least = 64 << 10, most = 32 << 20;
    return visit < least ? least : visit > most ? most : visit;
}

static struct dd_store_options store_options(const char *path, uint32_t users)
{
    return (struct dd_store_options){.path = path,
                                     .block_cache_bytes = 64 << 20,
                                     .write_buffer_bytes = write_buffer(users),
                                     .min_free_bytes = 256 << 20,
                                     .max_open_files = 256,
                                     .compression = DD_STORE_RAW,
                                     .pool_threads = 1,
                                     .pool_queue = 16,
                                     .change_cells = 1 << 12,
                                     .change_tables = DD_POPULATION_MONTHS + 1,
                                     .batch_max = 512};
}

static double seconds(const struct dd_clock *clock)
{
    return (double)dd_clock_mono(clock).ns / 1e9;
}

static enum dd_err fill_and_count(struct dd_population *p, struct dd_store *s, uint32_t probes,
                                  struct dd_own_redis *redis, struct dd_progress *bar, struct dd_census *out)
{
    char label[64];
    p->secret = dd_store_secret(s);
    snprintf(label, sizeof label, "items in %s%s", dd_filter_kind_name(p->policy.kind),
             p->hinted ? " with hints" : "");
    double start = seconds(&bar->bar.clock);
    enum dd_err err = dd_population_load(p, s, bar, label);
    double load_s = seconds(&bar->bar.clock) - start;
    if (err != DD_OK) return err;
    dd_store_compact(s); /* before sets are counted: what a read merges may differ from what is stored */
    err = dd_population_census(p, s, probes, redis, out);
    struct dd_store_status status;
    dd_store_get_status(s, &status);
    out->load_s = load_s;
    out->disk_bytes = status.disk_bytes;
    return err;
}

enum dd_err dd_population_run(struct dd_population *p, const char *dir, uint32_t probes,
                              struct dd_own_redis *redis, struct dd_progress *bar, struct dd_census *out)
{
    struct dd_stats *stats = NULL;
    struct dd_store *s = NULL;
    struct dd_store_options o = store_options(dir, p->users);
    enum dd_err err = dd_stats_create(&stats);
    if (err == DD_OK) err = dd_store_open(&o, stats, &s);
    if (err == DD_OK) err = fill_and_count(p, s, probes, redis, bar, out);
    dd_store_close(s, err == DD_OK);
    dd_stats_destroy(stats);
    if (access(dir, F_OK) == 0) dd_filters_remove_dir(dir);
    return err;
}

/* ---- the table ---- */

enum column {
    KIND,
    HINTS,
    DISK,
    BLOBS,
    PER_ITEM,
    RATIO,
    HOT,
    FPR,
    LOW,
    HIGH,
    FORGOTTEN,
    SETS,
    USERS,
    RATE,
    COLUMNS
};

static const struct dd_table_column columns[COLUMNS] = {
    [KIND] = {"kind", "kind", DD_TABLE_TEXT},
    [HINTS] = {"hints", "hints", DD_TABLE_TEXT},
    [DISK] = {"disk_bytes_per_user", "disk B/user", DD_TABLE_COUNT},
    [BLOBS] = {"set_bytes_per_user", "sets B/user", DD_TABLE_COUNT},
    [PER_ITEM] = {"bytes_per_item", "B/item", DD_TABLE_FIXED},
    [RATIO] = {"ratio", "ratio", DD_TABLE_FIXED},
    [HOT] = {"redis_bytes_per_user", "Redis B/user", DD_TABLE_COUNT},
    [FPR] = {"fpr", "fpr", DD_TABLE_RATE},
    [LOW] = {"fpr_low", "95% from", DD_TABLE_RATE},
    [HIGH] = {"fpr_high", "to", DD_TABLE_RATE},
    [FORGOTTEN] = {"forgotten", "forgotten", DD_TABLE_PERCENT},
    [SETS] = {"sparse_sets", "sparse sets", DD_TABLE_PERCENT},
    [USERS] = {"sparse_users", "users", DD_TABLE_PERCENT},
    [RATE] = {"items_per_s", "items/s", DD_TABLE_COUNT},
};

static void add_row(struct dd_table *t, const struct dd_population *p, const struct dd_census *c)
{
    double users = p->users, per_item = (double)c->bytes / (double)c->items;
    struct dd_interval i = dd_interval_of(c->hits, c->trials);
    dd_table_row(t);
    dd_table_set_text(t, KIND, dd_filter_kind_name(p->policy.kind));
    dd_table_set_text(t, HINTS, p->hinted ? "yes" : "no");
    dd_table_set(t, DISK, (double)c->disk_bytes / users);
    dd_table_set(t, BLOBS, (double)c->bytes / users);
    dd_table_set(t, PER_ITEM, per_item);
    dd_table_set(t, RATIO, 8 * per_item / log2(1 / p->policy.fpr));
    if (c->hot_users > 0) dd_table_set(t, HOT, (double)c->hot_bytes / (double)c->hot_users);
    dd_table_set(t, FPR, (double)c->hits / (double)c->trials);
    dd_table_set(t, LOW, i.low);
    dd_table_set(t, HIGH, i.high);
    dd_table_set(t, FORGOTTEN, (double)c->forgotten / (double)c->asked);
    dd_table_set(t, SETS, (double)c->sparse_sets / (double)c->sets);
    dd_table_set(t, USERS, (double)c->sparse_users / users);
    dd_table_set(t, RATE, (double)c->items / c->load_s);
}

static void add_notes(struct dd_table *t, const struct dd_population *p, const struct dd_filters_args *a,
                      enum dd_err redis)
{
    double items = (double)dd_population_all_items(p) / p->users / DD_POPULATION_MONTHS;
    dd_table_note(t,
                  "%u users, %.1f items a month on average (log-normal, median 60, at most %d), %d months.",
                  p->users, items, DD_POPULATION_TAIL, DD_POPULATION_MONTHS);
    dd_table_note(t, "Bytes are of all three months. Disk: RocksDB's table files after a compaction, "
                     "uncompressed.");
    dd_table_note(t,
                  "Fpr: over the window, promise %g, on a sample of users. Ratio: bits an item over log2(1 / "
                  "%g), the share of a period.",
                  a->fpr, p->policy.fpr);
    dd_table_note(t, "Sparse users: none of their months has a layer, only the list of fingerprints.");
    if (redis == DD_OK)
        dd_table_note(t, "Redis: MEMORY USAGE of a user's cached sets, the mean of a sample.");
    else
        dd_table_note(t,
                      "Redis: not measured, a redis-server could not be started here (%s); a user's sets "
                      "take their bytes (sets B/user) and Redis's own for the key.",
                      dd_err_text(redis));
}

static enum dd_err run_all(struct dd_table *t, struct dd_population *p, const struct dd_filters_args *a,
                           const char *dir, struct dd_own_redis *redis, struct dd_progress *bar)
{
    char path[4096];
    enum dd_err err = DD_OK;
    for (unsigned i = 2 * DD_FILTER_BLOOM; err == DD_OK && i < 2 * DD_FILTER_COMPACT + 2; i++) {
        enum dd_filter_kind kind = (enum dd_filter_kind)(i / 2);
        struct dd_census c = {0};
        if (a->kind && a->kind != kind) continue;
        p->policy = dd_filters_policy(a, kind);
        p->hinted = i % 2;
        snprintf(path, sizeof path, "%s/%s-%u", dir, dd_filter_kind_name(kind), i % 2);
        err = dd_population_run(p, path, a->probes, redis, bar, &c);
        if (err == DD_OK) add_row(t, p, &c);
    }
    return err;
}

int dd_filters_population(const struct dd_filters_args *a)
{
    struct dd_population p = {.users = a->users ? a->users : 100000, .seed = a->seed};
    struct dd_own_redis redis;
    struct dd_progress bar;
    struct dd_table t;
    char *dir = NULL;
    if (dd_filters_make_dir(a->dir, &dir) != DD_OK) return DD_CTL_FAILED;
    dd_log_set_level(DD_LOG_WARN);
    dd_progress_begin(&bar, dd_population_all_items(&p) * (a->kind ? 2 : 8));
    enum dd_err has_redis = dd_own_redis_open(&redis, dir);
    p.policy = dd_filters_policy(a, DD_FILTER_BLOOM);
    dd_table_init(&t, "population", columns, COLUMNS);
    enum dd_err err = run_all(&t, &p, a, dir, has_redis == DD_OK ? &redis : NULL, &bar);
    dd_own_redis_close(&redis);
    dd_progress_end(&bar);
    dd_filters_remove_dir(dir);
    add_notes(&t, &p, a, has_redis);
    if (err == DD_OK) err = dd_table_print(&t, a->json);
    dd_table_free(&t);
    free(dir);
    return dd_filters_exit(err, "population");
}
