#include "fixture.h"

#include <ftw.h>
#include <sys/stat.h>
#include <time.h>

struct dd_store_options test_options(const char *dir)
{
    return (struct dd_store_options){.path = dir,
                                     .block_cache_bytes = 8 << 20,
                                     .write_buffer_bytes = 1 << 20,
                                     .max_open_files = 100,
                                     .pool_threads = 2,
                                     .pool_queue = 64,
                                     .change_cells = 1 << 12,
                                     .change_tables = 4,
                                     .batch_max = 32};
}

void fixture_prepare(struct fixture *f)
{
    f->dir = unit_mkdir();
    f->options = test_options(f->dir);
    f->store = NULL;
    ck_assert_ok(dd_stats_create(&f->stats));
}

void fixture_open(struct fixture *f)
{
    fixture_prepare(f);
    ck_assert_ok(dd_store_open(&f->options, f->stats, &f->store));
}

void fixture_close(struct fixture *f)
{
    dd_store_close(f->store, true);
    dd_stats_destroy(f->stats);
    unit_rmdir(f->dir);
}

void fixture_reopen(struct fixture *f, bool clean)
{
    dd_store_close(f->store, clean);
    ck_assert_ok(dd_store_open(&f->options, f->stats, &f->store));
}

static const struct dd_filter_policy policy = {
    .kind = DD_FILTER_BLOOM, .fpr = 0.0003, .capacity = 256, .cap = 200000, .growth = 2};

struct dd_buf unchecked_operand_of(uint32_t fp)
{
    struct dd_buf b = {0};
    if (dd_filter_operand(&policy, 0, &fp, 1, &b) != DD_OK) dd_buf_reset(&b);
    return b;
}

struct dd_buf operand_of(uint32_t fp)
{
    struct dd_buf b = unchecked_operand_of(fp);
    ck_assert_uint_gt(b.len, 0);
    return b;
}

static enum dd_err write_op(struct dd_store *s, struct dd_store_op *op, const char *user, struct dd_period p)
{
    struct dd_store_batch b = {.ops = op, .n = 1};
    op->scene = SCENE;
    op->user = dd_slice_str(user);
    op->period = p;
    enum dd_err err = dd_store_write_wait(s, &b);
    return err == DD_OK ? op->result : err;
}

enum dd_err try_add(struct dd_store *s, const char *user, struct dd_period p, uint32_t fp,
                    uint64_t read_number, struct dd_store_op *out)
{
    struct dd_buf operand = operand_of(fp);
    struct dd_store_op op = {
        .kind = DD_STORE_MERGE, .operand = dd_buf_slice(&operand), .read_number = read_number};
    enum dd_err err = write_op(s, &op, user, p);
    dd_buf_free(&operand);
    if (out) *out = op;
    return err;
}

void add(struct dd_store *s, const char *user, struct dd_period p, uint32_t fp)
{
    ck_assert_ok(try_add(s, user, p, fp, UINT64_MAX, NULL));
}

enum dd_err erase_set(struct dd_store *s, const char *user, struct dd_period p)
{
    struct dd_store_op op = {.kind = DD_STORE_ERASE};
    return write_op(s, &op, user, p);
}

enum dd_err update_set(struct dd_store *s, const char *user, struct dd_period p,
                       enum dd_err (*update)(void *, struct dd_slice, struct dd_buf *), void *arg,
                       struct dd_store_op *out)
{
    struct dd_store_op op = {
        .kind = DD_STORE_UPDATE, .update = update, .update_arg = arg, .read_number = UINT64_MAX};
    enum dd_err err = write_op(s, &op, user, p);
    if (out) *out = op;
    return err;
}

enum dd_err blob_of(struct dd_store *s, const char *user, struct dd_period p, struct dd_buf *out)
{
    struct dd_store_read r = {.scene = SCENE, .user = dd_slice_str(user), .periods = {p}, .n = 1};
    enum dd_err err = dd_store_read_wait(s, &r);
    if (err == DD_OK) err = r.set[0].err;
    dd_buf_add_slice(out, r.set[0].blob);
    dd_store_read_release(&r);
    return err;
}

bool has(struct dd_store *s, const char *user, struct dd_period p, uint32_t fp)
{
    struct dd_buf b = {0};
    struct dd_filter_view v;
    uint8_t seen = 0;
    ck_assert_ok(blob_of(s, user, p, &b));
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&b)));
    dd_filter_view_test(&v, &fp, 1, &seen, 1);
    dd_buf_free(&b);
    return seen;
}

bool is_damaged(struct dd_store *s, const char *user, struct dd_period p)
{
    struct dd_buf b = {0};
    struct dd_filter_view v;
    ck_assert_ok(blob_of(s, user, p, &b));
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&b)));
    bool damaged = v.damaged;
    dd_buf_free(&b);
    return damaged;
}

void put_raw(struct dd_store *s, const char *user, struct dd_period p, struct dd_slice bytes)
{
    struct dd_key key;
    char *text = NULL;
    ck_assert_ok(dd_key_encode(&key, p, SCENE, dd_slice_str(user)));
    rocksdb_put_cf(s->rocks.db, s->rocks.write, s->rocks.family[DD_FAMILY_SETS], (const char *)key.bytes,
                   key.len, (const char *)bytes.ptr, bytes.len, &text);
    ck_assert_ptr_null(text);
}

void flush_memtable(struct dd_store *s)
{
    char *text = NULL;
    rocksdb_flushoptions_t *fo = rocksdb_flushoptions_create();
    rocksdb_flush_cf(s->rocks.db, fo, s->rocks.family[DD_FAMILY_SETS], &text);
    rocksdb_flushoptions_destroy(fo);
    ck_assert_ptr_null(text);
}

void compact_all(struct dd_store *s)
{
    rocksdb_compactoptions_t *o = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(o, 2);
    rocksdb_compact_range_cf_opt(s->rocks.db, s->rocks.family[DD_FAMILY_SETS], o, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(o);
}

enum dd_err quarantined(struct dd_store *s, const char *user, struct dd_period p, struct dd_buf *out)
{
    struct dd_key key;
    struct dd_repair_key meta;
    ck_assert_ok(dd_key_encode(&key, p, SCENE, dd_slice_str(user)));
    dd_repair_meta_key(&meta, dd_key_slice(&key));
    return dd_rocks_get(&s->rocks, DD_FAMILY_META, dd_slice_of(meta.bytes, meta.len), out);
}

void wait_until(bool (*condition)(void *arg), void *arg)
{
    struct dd_clock c = {.manual = false};
    struct dd_mono start = dd_clock_mono(&c);
    while (!condition(arg)) {
        ck_assert_msg(dd_mono_ms_between(start, dd_clock_mono(&c)) < unit_patience_ms(30000),
                      "it does not come");
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

static uint64_t *sum_of_files; /* nftw has no argument for its callback */

static int add_size(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path, (void)ftw;
    if (type == FTW_F) *sum_of_files += (uint64_t)st->st_size;
    return 0;
}

uint64_t disk_bytes_under(const char *path)
{
    uint64_t sum = 0;
    sum_of_files = &sum;
    nftw(path, add_size, 16, FTW_PHYS);
    return sum;
}

static enum dd_err wait_in_update(void *arg, struct dd_slice current, struct dd_buf *out)
{
    struct gate *g = arg;
    (void)current, (void)out;
    sem_post(&g->entered);
    sem_wait(&g->leave);
    return DD_EXISTS; /* changes nothing */
}

static void nothing(void *arg)
{
    (void)arg;
}

void gate_shut(struct gate *g, struct dd_store *s, const char *user)
{
    sem_init(&g->entered, 0, 0);
    sem_init(&g->leave, 0, 0);
    g->op = (struct dd_store_op){.kind = DD_STORE_UPDATE,
                                 .scene = SCENE,
                                 .user = dd_slice_str(user),
                                 .period = month(1),
                                 .update = wait_in_update,
                                 .update_arg = g,
                                 .read_number = UINT64_MAX};
    g->batch = (struct dd_store_batch){.ops = &g->op, .n = 1, .done = nothing};
    ck_assert_err(dd_store_write(s, &g->batch), DD_PENDING);
    sem_wait(&g->entered);
}

void gate_open(struct gate *g)
{
    sem_post(&g->leave);
}
