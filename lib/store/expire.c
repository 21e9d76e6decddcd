/* Dropping whole periods of a scene, in three steps:
 *
 * 1 files that lie wholly inside the range are unlinked: no reading, no writing;
 * 2 a range delete, through the writer, covers what is left at the edges and in memory. It comes after step
 * 1, which may unlink a file with an older range delete in it and so uncover keys that it had hidden; 3 a
 * compaction of the range removes them from the disk.
 *
 * A family per period, dropped at once, was tried and rejected: one late write through a dropped handle makes
 * RocksDB refuse every later write until it is reopened. */
#include <stdlib.h>

#include "base/log.h"
#include "store/store_impl.h"

struct ranges {
    struct dd_slice scene;
    struct dd_period *period;
    size_t n, cap;
};

/* Gathered first: an open iterator would keep the unlinked files on the disk. */
static enum dd_err gather(void *arg, struct dd_period period)
{
    struct ranges *r = arg;
    for (size_t i = 0; i < r->n; i++)
        if (dd_period_eq(r->period[i], period)) return DD_OK;
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 16;
        struct dd_period *grown = realloc(r->period, cap * sizeof *grown);
        if (!grown) return DD_NO_MEMORY;
        r->period = grown;
        r->cap = cap;
    }
    r->period[r->n++] = period;
    return DD_OK;
}

struct range {
    struct dd_key start, end;
    struct dd_store_batch batch;
};

static const enum dd_family ranged[] = {DD_FAMILY_SETS, DD_FAMILY_HISTORY};

static enum dd_err delete_files(struct dd_store *s, const struct range *r)
{
    for (size_t i = 0; i < sizeof ranged / sizeof *ranged; i++) {
        char *text = NULL;
        rocksdb_delete_file_in_range_cf(s->rocks.db, s->rocks.family[ranged[i]], (const char *)r->start.bytes,
                                        r->start.len, (const char *)r->end.bytes, r->end.len, &text);
        enum dd_err err = dd_rocks_take_logged(text, "store.expire_failed", "delete files");
        if (err != DD_OK) return err == DD_DISK_FULL ? err : DD_IO;
    }
    return DD_OK;
}

/* On the writer thread. */
static enum dd_err delete_range(struct dd_commit *c, struct dd_store_batch *b)
{
    const struct range *r = b->arg_call;
    struct dd_rocks *rocks = &c->store->rocks;
    for (size_t i = 0; i < sizeof ranged / sizeof *ranged; i++)
        rocksdb_writebatch_delete_range_cf(c->batch, rocks->family[ranged[i]], (const char *)r->start.bytes,
                                           r->start.len, (const char *)r->end.bytes, r->end.len);
    struct dd_repair_key from, to;
    dd_repair_meta_key(&from, dd_key_slice(&r->start));
    dd_repair_meta_key(&to, dd_key_slice(&r->end));
    rocksdb_writebatch_delete_range_cf(c->batch, rocks->family[DD_FAMILY_META], (const char *)from.bytes,
                                       from.len, (const char *)to.bytes, to.len);
    return DD_OK;
}

static void compact(struct dd_store *s, const struct range *r)
{
    rocksdb_compactoptions_t *o = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(o, 0); /* others go on meanwhile */
    rocksdb_compactoptions_set_bottommost_level_compaction(
        o, 3); /* kForceOptimized: also the last level, once */
    for (size_t i = 0; i < sizeof ranged / sizeof *ranged; i++)
        rocksdb_compact_range_cf_opt(s->rocks.db, s->rocks.family[ranged[i]], o, (const char *)r->start.bytes,
                                     r->start.len, (const char *)r->end.bytes, r->end.len);
    rocksdb_compactoptions_destroy(o);
}

static enum dd_err drop(struct dd_store *s, struct dd_slice scene, struct dd_period period)
{
    struct range r = {.batch = {.sync = true, .call = delete_range}};
    enum dd_err err = dd_key_range(period, scene, &r.start, &r.end);
    if (err == DD_OK) err = delete_files(s, &r);
    r.batch.arg_call = &r;
    if (err == DD_OK) err = dd_writer_push_wait(s, &r.batch, true);
    if (err != DD_OK) return err;
    compact(s, &r);
    char text[DD_PERIOD_TEXT];
    dd_info("store.expired", "scene=\"%.*s\" period=%s", (int)scene.len, (const char *)scene.ptr,
            dd_period_format(period, text));
    return DD_OK;
}

enum dd_err dd_store_expire(struct dd_store *s, struct dd_slice scene, enum dd_period_kind kind,
                            int32_t first_kept)
{
    struct ranges r = {.scene = scene};
    enum dd_err err = DD_OK;
    for (size_t i = 0; i < sizeof ranged / sizeof *ranged && err == DD_OK; i++)
        err = dd_scan_periods(s, ranged[i], scene, kind, first_kept, gather, &r);
    for (size_t i = 0; i < r.n && err == DD_OK; i++)
        err = drop(s, scene, r.period[i]);
    free(r.period);
    return err;
}

void dd_store_end_expiry(struct dd_store *s)
{
    rocksdb_disable_manual_compaction(s->rocks.db);
}
