/* Opening RocksDB. What was decided, and why:
 *
 * - No manual log flushing: every commit is in the kernel before it is acknowledged, so kill -9 loses
 *   nothing (with manual_wal_flush, 28 of 37,000 acknowledged writes were gone). A power cut needs sync.
 * - Recovery stays "point in time" (the default): a torn record at the end of the log is what a crash leaves.
 * - avoid_flush_during_recovery: after a disk-full crash, opening must not need the space that is missing.
 * - max_total_wal_size: a family that is seldom written (meta) would otherwise keep every log for ever.
 * - Index and filter blocks live in the block cache: its size then bounds the memory of reading. They are
 *   pinned, so that a read looks up one block there and not three (130 against 140 thousand instructions for
 * a /filter of 100 candidates and three periods; with the next point 128).
 * - Blocks of 4 KB: a read wants one set of about 2 KB, and with 16 KB (the size before) a cold one fetches,
 * and a cached one keeps, seven more that nobody asked for. Files become 1.2 % larger. Each fourth key is
 * whole rather than each sixteenth, so that a search steps over fewer of these long values. Both together
 * with the pinning: 19.5 against 23 us of user time for that request.
 * - Whole-key Bloom filter of 10 bits, also in memtables: most reads of older periods find nothing.
 * - Filter sets look random, so they are compressed only if the operator asks; history is text and always is.
 * - max_successive_merges bounds what a read of a hot user must merge; see merge_op.c for the measurement. */
#include "store/rocks.h"

#include <stdlib.h>

#include "base/log.h"

/* At most so many merges of one key follow one another in a memtable before the writer folds them. */
#define MAX_SUCCESSIVE_MERGES 64

static const char *const family_names[DD_FAMILIES] = {"default", "meta", "history"};

static const char db_options[] =
    "track_and_verify_wals_in_manifest=true;"
    "avoid_flush_during_recovery=true;"
    "stats_dump_period_sec=0;stats_persist_period_sec=0;"
    "keep_log_file_num=5;max_log_file_size=16777216;"
    "max_background_jobs=2;"
    "bytes_per_sync=1048576;"
    "level_compaction_dynamic_level_bytes=true;"
    "memtable_whole_key_filtering=true;memtable_prefix_bloom_size_ratio=0.02;"
    "max_write_buffer_number=3;"
    "block_based_table_factory={metadata_cache_options={"
    "unpartitioned_pinning=kAll;top_level_index_pinning=kAll;partition_pinning=kNone;}};";

static int compression_of(enum dd_store_compression c)
{
    if (c == DD_STORE_LZ4) return rocksdb_lz4_compression;
    if (c == DD_STORE_ZSTD) return rocksdb_zstd_compression;
    return rocksdb_no_compression;
}

static void set_table_options(rocksdb_options_t *opt, rocksdb_cache_t *cache)
{
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(t, cache);
    rocksdb_block_based_options_set_block_size(t, 4 << 10);
    rocksdb_block_based_options_set_block_restart_interval(t, 4);
    rocksdb_block_based_options_set_format_version(t, 5);
    rocksdb_block_based_options_set_filter_policy(
        t, rocksdb_filterpolicy_create_bloom_full(10)); /* owned by t */
    rocksdb_block_based_options_set_whole_key_filtering(t, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(t, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(t, 1);
    rocksdb_options_set_block_based_table_factory(opt, t);
    rocksdb_block_based_options_destroy(t);
}

static enum dd_err make_options(const struct dd_store_options *o, enum dd_family family,
                                rocksdb_cache_t *cache, struct dd_merge_op *merge, rocksdb_options_t **out)
{
    rocksdb_options_t *base = rocksdb_options_create(), *opt = rocksdb_options_create();
    char *text = NULL;
    set_table_options(base, cache); /* before the string, which adds to them */
    rocksdb_get_options_from_string(base, db_options, opt, &text);
    rocksdb_options_destroy(base);
    bool sets = family == DD_FAMILY_SETS;
    rocksdb_options_set_create_if_missing(opt, 1);
    rocksdb_options_set_create_missing_column_families(opt, 1);
    rocksdb_options_set_info_log_level(opt, 2); /* warnings */
    rocksdb_options_set_max_open_files(opt, o->max_open_files);
    rocksdb_options_set_write_buffer_size(opt, family == DD_FAMILY_META ? 1 << 20 : o->write_buffer_bytes);
    rocksdb_options_set_max_total_wal_size(opt, 4 * o->write_buffer_bytes);
    rocksdb_options_set_compression(opt, sets ? compression_of(o->compression) : rocksdb_zstd_compression);
    if (sets) {
        rocksdb_options_set_max_successive_merges(opt, MAX_SUCCESSIVE_MERGES);
        rocksdb_options_set_merge_operator(opt, dd_merge_op_rocks(merge)); /* owned by opt */
    }
    *out = opt;
    return dd_rocks_take_logged(text, "store.options", "options");
}

/* All families must be named at opening: ours, then any other that is there. */
struct families {
    const char *name[DD_ROCKS_FAMILIES_MAX];
    const rocksdb_options_t *options[DD_ROCKS_FAMILIES_MAX];
    size_t n;
    char **listed;
    size_t listed_n;
};

static bool is_ours(const char *name)
{
    for (int i = 0; i < DD_FAMILIES; i++)
        if (strcmp(name, family_names[i]) == 0) return true;
    return false;
}

static enum dd_err list_families(struct families *f, const char *dir, rocksdb_options_t *opt[DD_FAMILIES])
{
    for (f->n = 0; f->n < DD_FAMILIES; f->n++) {
        f->name[f->n] = family_names[f->n];
        f->options[f->n] = opt[f->n];
    }
    char *text = NULL;
    f->listed = rocksdb_list_column_families(opt[0], dir, &f->listed_n, &text);
    if (text) { /* nothing there yet; if it is there and unreadable, opening says so */
        rocksdb_free(text);
        if (f->listed) rocksdb_list_column_families_destroy(f->listed, f->listed_n);
        f->listed = NULL;
        return DD_OK;
    }
    for (size_t i = 0; i < f->listed_n; i++) {
        if (is_ours(f->listed[i])) continue;
        if (f->n == DD_ROCKS_FAMILIES_MAX) return DD_UNSUPPORTED;
        f->name[f->n] = f->listed[i];
        f->options[f->n++] = opt[DD_FAMILY_META];
    }
    return DD_OK;
}

static void make_io_options(struct dd_rocks *r)
{
    r->read = rocksdb_readoptions_create();
    r->read_memory = rocksdb_readoptions_create();
    rocksdb_readoptions_set_read_tier(r->read_memory, 1); /* kBlockCacheTier */
    r->write = rocksdb_writeoptions_create();
    r->write_sync = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(r->write_sync, 1);
}

static enum dd_err open_with(struct dd_rocks *r, const char *dir, rocksdb_options_t *opt[DD_FAMILIES])
{
    struct families f = {.listed = NULL};
    enum dd_err err = list_families(&f, dir, opt);
    if (err == DD_OK) {
        char *text = NULL;
        r->db = rocksdb_open_column_families(opt[0], dir, (int)f.n, f.name, f.options, r->family, &text);
        r->families = r->db ? f.n : 0;
        if (text) dd_error("store.open_failed", "path=\"%s\" error=\"%s\"", dir, text);
        err = dd_rocks_take(text);
    }
    if (f.listed) rocksdb_list_column_families_destroy(f.listed, f.listed_n);
    if (err == DD_OK) make_io_options(r);
    return err == DD_INVALID ? DD_CORRUPT : err;
}

enum dd_err dd_rocks_open(struct dd_rocks *r, const char *dir, const struct dd_store_options *o,
                          struct dd_merge_op *merge)
{
    memset(r, 0, sizeof *r);
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(o->block_cache_bytes - o->block_cache_bytes / 4);
    rocksdb_options_t *opt[DD_FAMILIES] = {NULL};
    enum dd_err err = DD_OK;
    for (int i = 0; i < DD_FAMILIES && err == DD_OK; i++)
        err = make_options(o, (enum dd_family)i, cache, merge, &opt[i]);
    if (err == DD_OK) err = open_with(r, dir, opt);
    for (int i = 0; i < DD_FAMILIES; i++)
        if (opt[i]) rocksdb_options_destroy(opt[i]);
    rocksdb_cache_destroy(cache); /* the tables keep their share */
    return err;
}

void dd_rocks_close(struct dd_rocks *r)
{
    if (!r->db) return;
    for (size_t i = 0; i < r->families; i++)
        rocksdb_column_family_handle_destroy(r->family[i]);
    rocksdb_readoptions_destroy(r->read);
    rocksdb_readoptions_destroy(r->read_memory);
    rocksdb_writeoptions_destroy(r->write);
    rocksdb_writeoptions_destroy(r->write_sync);
    rocksdb_close(r->db);
    r->db = NULL;
}

enum dd_err dd_rocks_get(struct dd_rocks *r, enum dd_family family, struct dd_slice key, struct dd_buf *out)
{
    char *text = NULL;
    rocksdb_pinnableslice_t *pin = rocksdb_get_pinned_cf(r->db, r->read, r->family[family],
                                                         (const char *)key.ptr, key.len, &text);
    enum dd_err err = dd_rocks_take(text);
    if (err != DD_OK) return err;
    if (!pin) return DD_NOT_FOUND;
    size_t len = 0;
    const char *value = rocksdb_pinnableslice_value(pin, &len);
    dd_buf_add(out, value, len);
    rocksdb_pinnableslice_destroy(pin);
    return dd_buf_ok(out) ? DD_OK : DD_NO_MEMORY;
}

uint64_t dd_rocks_property(struct dd_rocks *r, const char *name)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < r->families; i++) {
        uint64_t value = 0;
        if (rocksdb_property_int_cf(r->db, r->family[i], name, &value) == 0) sum += value;
    }
    return sum;
}
