/* Opening, closing, and what a store says about itself. In the data directory:
 *
 *   db/           RocksDB
 *   change.table  the change table of the last clean stop, until the next start */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "store/files.h"
#include "store/store_impl.h"

static enum dd_err check_options(const struct dd_store_options *o)
{
    bool ok = o->path && o->path[0] && o->batch_max > 0 && o->pool_threads > 0 &&
              o->write_buffer_bytes >= 1 << 16;
    return ok ? DD_OK : DD_INVALID;
}

static enum dd_err make_paths(struct dd_store *s, const char *path)
{
    s->path = strdup(path);
    if (asprintf(&s->db_path, "%s/%s", path, DD_STORE_DB_DIR) < 0) s->db_path = NULL;
    if (asprintf(&s->change_path, "%s/change.table", path) < 0) s->change_path = NULL;
    return s->path && s->db_path && s->change_path ? DD_OK : DD_NO_MEMORY;
}

static void register_metrics(struct dd_store *s, struct dd_stats *st)
{
    s->commits = dd_stats_counter(st, "dedupd_store_commits_total", "Commits to the store");
    s->requests = dd_stats_counter(st, "dedupd_store_commit_requests_total",
                                   "Write requests in those commits");
    s->operations = dd_stats_counter(st, "dedupd_store_commit_operations_total",
                                     "Set changes in those requests");
    s->commit_time = dd_stats_histogram(st, "dedupd_store_commit_seconds",
                                        "Time of one commit, fsync included");
    s->reads_kept = dd_stats_counter(st, "dedupd_store_sets_kept_total",
                                     "Sets that were kept from an earlier read");
    s->reads_memory = dd_stats_counter(st, "dedupd_store_reads_total{from=\"memory\"}",
                                       "Reads of a user's sets");
    s->reads_pool = dd_stats_counter(st, "dedupd_store_reads_total{from=\"pool\"}", "Reads of a user's sets");
    s->reads_busy = dd_stats_counter(st, "dedupd_store_reads_refused_total",
                                     "Reads refused: the pool's queue was full");
    s->pool_time = dd_stats_histogram(st, "dedupd_store_read_blocking_seconds",
                                      "Time of reads that may touch the disk");
    s->corrupt_total = dd_stats_counter(st, "dedupd_store_quarantined_total", "Unreadable sets put aside");
    s->stripped = dd_stats_counter(st, "dedupd_store_stripped_total",
                                   "Changes left out because of a later erase");
    s->write_errors = dd_stats_counter(st, "dedupd_store_write_errors_total", "Commits that failed");
    s->guard_gauge = dd_stats_gauge(st, "dedupd_store_disk_guard",
                                    "1: writes are refused for lack of disk space");
    s->free_gauge = dd_stats_gauge(st, "dedupd_store_disk_free_bytes", "Free space where the store lives");
    s->writer.queue_gauge = dd_stats_gauge(st, "dedupd_store_write_queue", "Write requests waiting");
}

/* The file is used up here, under RocksDB's LOCK, even if nobody resumes: a commit of this run makes it
 * worthless. */
static enum dd_err load_change(struct dd_store *s)
{
    const struct dd_store_options *o = &s->options;
    enum dd_err err = dd_change_load(s->change_path, o->change_cells, o->change_tables, &s->saved);
    if (err == DD_CORRUPT)
        dd_warn("store.change_table", "path=\"%s\" note=\"unreadable, starts anew\"", s->change_path);
    if (err != DD_OK) s->saved = NULL;
    if (err == DD_IO || err == DD_NO_MEMORY) return err; /* it may still be there */
    return dd_change_create(o->change_cells, o->change_tables, &s->change);
}

static enum dd_err open_parts(struct dd_store *s, struct dd_stats *stats)
{
    enum dd_err err = dd_dir_make(s->path);
    if (err == DD_OK) err = dd_merge_op_create(stats, &s->merge);
    if (err == DD_OK) err = dd_marks_create(&s->marks);
    if (err == DD_OK) err = dd_set_cache_create(s->options.block_cache_bytes / 4, &s->cache);
    if (err == DD_OK) err = dd_rocks_open(&s->rocks, s->db_path, &s->options, s->merge);
    if (err != DD_OK) return err;
    dd_guard_check(s);
    err = dd_meta_open(s);
    if (err == DD_OK) atomic_store(&s->has_records, dd_history_any(s));
    if (err == DD_OK) err = load_change(s);
    if (err == DD_OK) err = dd_pool_create(s->options.pool_threads, s->options.pool_queue, &s->pool);
    if (err == DD_OK) err = dd_writer_start(s);
    return err;
}

/* What is left after the threads are gone; also after a half-done open. */
static void free_parts(struct dd_store *s)
{
    dd_rocks_close(&s->rocks);
    dd_set_cache_destroy(s->cache);
    dd_merge_op_destroy(s->merge);
    dd_marks_destroy(s->marks);
    dd_change_destroy(s->change);
    dd_change_destroy(s->saved);
    pthread_mutex_destroy(&s->repairing_lock);
    free(s->path);
    free(s->db_path);
    free(s->change_path);
    free(s);
}

enum dd_err dd_store_open(const struct dd_store_options *o, struct dd_stats *stats, struct dd_store **out)
{
    enum dd_err err = check_options(o);
    if (err != DD_OK) return err;
    struct dd_store *s = calloc(1, sizeof *s);
    if (!s) return DD_NO_MEMORY;
    s->options = *o;
    pthread_mutex_init(&s->repairing_lock, NULL);
    register_metrics(s, stats);
    err = make_paths(s, o->path);
    s->options.path = s->path;
    if (err == DD_OK) err = open_parts(s, stats);
    if (err != DD_OK) {
        dd_error("store.open_failed", "path=\"%s\" err=%s", o->path, dd_err_name(err));
        if (s->pool) dd_pool_destroy(s->pool);
        free_parts(s);
        return err;
    }
    *out = s;
    return DD_OK;
}

bool dd_store_resume(struct dd_store *s, uint64_t incarnation, uint64_t number)
{
    struct dd_change *saved = s->saved;
    s->saved = NULL;
    bool same = saved && dd_change_incarnation(saved) == incarnation && dd_change_number(saved) == number;
    if (same) {
        dd_change_destroy(s->change);
        s->change = saved;
    } else {
        dd_change_destroy(saved);
    }
    return same;
}

static enum dd_err flush_all(struct dd_store *s)
{
    rocksdb_flushoptions_t *fo = rocksdb_flushoptions_create();
    enum dd_err err = DD_OK;
    for (int i = 0; i < DD_FAMILIES && err == DD_OK; i++) {
        char *text = NULL;
        rocksdb_flush_cf(s->rocks.db, fo, s->rocks.family[i], &text);
        err = dd_rocks_take_logged(text, "store.close", "flush");
    }
    rocksdb_flushoptions_destroy(fo);
    return err;
}

/* With the disk guard on, or after a failed write, there may be no room: then the log alone keeps what was
 * committed. */
static enum dd_err settle(struct dd_store *s)
{
    char *text = NULL;
    if (!atomic_load(&s->guard) && atomic_load(&s->last_error) == DD_OK) {
        dd_repair_aside(s);
        enum dd_err err = flush_all(s);
        if (err != DD_OK) return err;
        dd_repair_aside(s); /* the flush may have merged onto more */
    }
    rocksdb_flush_wal(s->rocks.db, 1, &text);
    return dd_rocks_take_logged(text, "store.close", "sync");
}

void dd_store_close(struct dd_store *s, bool clean)
{
    if (!s) return;
    dd_writer_stop(s);
    dd_pool_destroy(s->pool);
    if (clean && settle(s) == DD_OK && atomic_load(&s->last_error) == DD_OK) {
        enum dd_err err = dd_change_save(s->change, s->change_path);
        if (err != DD_OK)
            dd_warn("store.change_table", "path=\"%s\" err=%s", s->change_path, dd_err_name(err));
    }
    free_parts(s);
}

const char *dd_store_id(const struct dd_store *s)
{
    return s->id;
}

const struct dd_secret *dd_store_secret(const struct dd_store *s)
{
    return &s->secret;
}

const struct dd_change *dd_store_change(const struct dd_store *s)
{
    return s->change;
}

void dd_store_get_status(struct dd_store *s, struct dd_store_status *out)
{
    *out = (struct dd_store_status){
        .guard = atomic_load(&s->guard),
        .last_error = atomic_load(&s->last_error),
        .free_bytes = atomic_load(&s->free_bytes),
        .disk_bytes = dd_rocks_property(&s->rocks, "rocksdb.total-sst-files-size"),
        .keys_estimate = 0,
        .commits = dd_counter_get(s->commits),
        .number = dd_change_number(s->change),
        .incarnation = dd_change_incarnation(s->change),
        .write_queue = dd_writer_queued(s),
        .read_queue = dd_pool_queued(s->pool),
        .corrupt = atomic_load(&s->corrupt),
    };
    rocksdb_property_int_cf(s->rocks.db, s->rocks.family[DD_FAMILY_SETS], "rocksdb.estimate-num-keys",
                            &out->keys_estimate);
    out->writable = !out->guard && out->last_error == DD_OK;
}
