/* What reaches the disk when, and writes that fail. The seam: this program's fdatasync and fsync are the ones
 * that RocksDB calls. */
#include "fixture.h"

#include <sys/syscall.h>

#define P month(100)

static _Atomic unsigned syncs;

int fdatasync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fsync, fd);
}

static unsigned syncs_of(struct dd_store *s, struct dd_store_op *ops, unsigned n, bool sync)
{
    struct dd_store_batch b = {.ops = ops, .n = n, .sync = sync};
    unsigned before = atomic_load(&syncs);
    ck_assert_ok(dd_store_write_wait(s, &b));
    return atomic_load(&syncs) - before;
}

static enum dd_err leave(void *arg, struct dd_slice current, struct dd_buf *out)
{
    (void)arg, (void)current, (void)out;
    return DD_EXISTS;
}

START_TEST(failure_synced_before_done_when_asked)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_buf one = operand_of(1);
    struct dd_store_op ops[2] = {{.scene = SCENE,
                                  .user = dd_slice_str("anna"),
                                  .period = P,
                                  .operand = dd_buf_slice(&one),
                                  .read_number = UINT64_MAX}};
    ops[1] = ops[0];
    ops[1].kind = DD_STORE_UPDATE;
    ops[1].update = leave;
    ck_assert_uint_eq(syncs_of(f.store, ops, 1, false), 0);
    ck_assert_uint_ge(syncs_of(f.store, ops, 1, true), 1);
    /* The merge is written when the update has to read; the update writes nothing. */
    ck_assert_uint_eq(syncs_of(f.store, ops, 2, false), 0);
    ck_assert_uint_ge(syncs_of(f.store, ops, 2, true), 1);
    dd_store_close(f.store, true);
    f.options.sync = true;
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    ck_assert_uint_ge(syncs_of(f.store, ops, 1, false), 1);
    dd_buf_free(&one);
    fixture_close(&f);
}
END_TEST

/* One write through a dropped family, and RocksDB refuses all others until it is reopened. */
static void break_writing(struct dd_store *s)
{
    char *text = NULL;
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_column_family_handle_t *h = rocksdb_create_column_family(s->rocks.db, o, "doomed", &text);
    ck_assert_ptr_null(text);
    rocksdb_drop_column_family(s->rocks.db, h, &text);
    ck_assert_ptr_null(text);
    rocksdb_put_cf(s->rocks.db, s->rocks.write, h, "k", 1, "v", 1, &text);
    ck_assert_ptr_nonnull(text);
    rocksdb_free(text);
    rocksdb_column_family_handle_destroy(h);
    rocksdb_options_destroy(o);
}

START_TEST(failure_of_a_write_is_told_and_counted)
{
    struct fixture f;
    struct dd_store_status st;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    uint64_t user = dd_hash_user_seed(dd_store_secret(f.store), SCENE, dd_slice_str("anna"));
    break_writing(f.store);
    ck_assert_err(try_add(f.store, "anna", P, 2, UINT64_MAX, NULL), DD_IO);
    /* Nobody knows what reached the log: cached sets are stale. */
    ck_assert_uint_eq(dd_change_cell(dd_store_change(f.store), P, user), 2);
    dd_store_get_status(f.store, &st);
    ck_assert(!st.writable && !st.guard);
    ck_assert_err(st.last_error, DD_IO);
    ck_assert_uint_ge(dd_counter_get(f.store->write_errors), 1);
    ck_assert(has(f.store, "anna", P, 1)); /* reads go on */

    uint64_t incarnation = st.incarnation, number = st.number;
    fixture_reopen(&f, true); /* not so clean: the table is not to be trusted */
    ck_assert(!dd_store_resume(f.store, incarnation, number));
    ck_assert(has(f.store, "anna", P, 1));
    add(f.store, "anna", P, 2);
    fixture_close(&f);
}
END_TEST

static bool is_writable(void *arg)
{
    struct dd_store_status st;
    dd_store_get_status(arg, &st);
    return st.writable;
}

/* Without any request, the writer finds out by itself that writing works again. */
START_TEST(failure_that_passes_is_noticed_without_a_request)
{
    struct fixture f;
    fixture_open(&f);
    atomic_store(&f.store->last_error, DD_IO);
    ck_assert(!is_writable(f.store));
    wait_until(is_writable, f.store);
    fixture_close(&f);
}
END_TEST

Suite *suite_failure(void)
{
    Suite *s = suite_create("store failure");
    TCase *t = tcase_create("failure");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, failure_synced_before_done_when_asked);
    tcase_add_test(t, failure_of_a_write_is_told_and_counted);
    tcase_add_test(t, failure_that_passes_is_noticed_without_a_request);
    suite_add_tcase(s, t);
    return s;
}
