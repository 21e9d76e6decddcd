/* Blobs that cannot be read, wherever they are met: nobody else notices. */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define P month(100)

static struct dd_slice garbage(void)
{
    static uint8_t bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    return dd_slice_of(bytes, sizeof bytes);
}

static bool is_quarantined(void *arg)
{
    struct dd_buf b = {0};
    enum dd_err err = quarantined(arg, "anna", P, &b);
    dd_buf_free(&b);
    return err == DD_OK;
}

static void expect_aside(struct dd_store *s, struct dd_slice expected)
{
    struct dd_buf b = {0};
    wait_until(is_quarantined, s);
    ck_assert_ok(quarantined(s, "anna", P, &b));
    ck_assert(dd_slice_eq(dd_buf_slice(&b), expected));
    dd_buf_free(&b);
}

START_TEST(corrupt_blobs_are_read_raw_and_quarantined_once)
{
    struct fixture f;
    fixture_open(&f);
    add(f.store, "ben", P, 1);
    put_raw(f.store, "anna", P, garbage());
    struct dd_buf b = {0};
    struct dd_filter_view v;
    ck_assert_ok(blob_of(f.store, "anna", P, &b));
    ck_assert(dd_slice_eq(dd_buf_slice(&b), garbage()));
    ck_assert_err(dd_filter_view_open(&v, dd_buf_slice(&b)), DD_CORRUPT);

    uint64_t before = dd_change_number(dd_store_change(f.store));
    for (int i = 0; i < 500; i++)
        dd_store_quarantine(f.store, SCENE, dd_slice_str("anna"), P);
    add(f.store, "anna", P, 2); /* after the first of them, before or after the others */
    ck_assert(is_damaged(f.store, "anna", P));
    ck_assert(has(f.store, "anna", P, 2));
    ck_assert(has(f.store, "ben", P, 1) && !is_damaged(f.store, "ben", P));
    uint64_t user = dd_hash_user_seed(dd_store_secret(f.store), SCENE, dd_slice_str("anna"));
    ck_assert_uint_gt(dd_change_cell(dd_store_change(f.store), P, user), before);
    expect_aside(f.store, garbage());
    struct dd_store_status st;
    dd_store_get_status(f.store, &st);
    ck_assert_uint_eq(st.corrupt, 1);
    dd_buf_free(&b);
    fixture_close(&f);
}
END_TEST

START_TEST(corrupt_quarantine_requests_are_bounded)
{
    struct fixture f;
    fixture_open(&f);
    struct gate g;
    char user[16];
    put_raw(f.store, "anna", P, garbage());
    gate_shut(&g, f.store, "gate");
    for (int i = 0; i < 500; i++)
        dd_store_quarantine(f.store, SCENE, dd_slice_str("anna"), P);
    ck_assert_uint_eq(dd_writer_queued(f.store), 1);
    for (int i = 0; i < 500; i++) {
        snprintf(user, sizeof user, "u%d", i);
        dd_store_quarantine(f.store, SCENE, dd_slice_str(user), P);
    }
    ck_assert_uint_eq(dd_writer_queued(f.store), DD_REPAIRING_MAX);
    gate_open(&g);
    expect_aside(f.store, garbage());
    fixture_close(&f);
}
END_TEST

START_TEST(corrupt_quarantine_leaves_good_and_absent_sets_alone)
{
    struct fixture f;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    dd_store_quarantine(f.store, SCENE, dd_slice_str("anna"), P);
    dd_store_quarantine(f.store, SCENE, dd_slice_str("nobody"), P);
    dd_store_quarantine(f.store, SCENE, dd_slice_of("", 0), P);
    add(f.store, "ben", P, 1);
    ck_assert(has(f.store, "anna", P, 1) && !is_damaged(f.store, "anna", P));
    ck_assert(!is_quarantined(f.store));
    ck_assert_uint_eq(atomic_load(&f.store->corrupt), 0);
    struct dd_buf b = {0};
    ck_assert_ok(blob_of(f.store, "nobody", P, &b));
    ck_assert_uint_eq(b.len, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(corrupt_erase_takes_the_quarantined_bytes_along)
{
    struct fixture f;
    fixture_open(&f);
    put_raw(f.store, "anna", P, garbage());
    dd_store_quarantine(f.store, SCENE, dd_slice_str("anna"), P);
    expect_aside(f.store, garbage());
    ck_assert_ok(erase_set(f.store, "anna", P));
    ck_assert(!is_quarantined(f.store));
    ck_assert(!has(f.store, "anna", P, 1));
    fixture_close(&f);
}
END_TEST

/* Garbage as the base of merges: met by a read (0), a flush or a compaction (1), by the bound on successive
 * merges (2). */
START_TEST(corrupt_bases_met_by_a_merge_are_kept_aside)
{
    struct fixture f;
    fixture_open(&f);
    put_raw(f.store, "anna", P, garbage());
    add(f.store, "ben", P, 1);
    flush_memtable(f.store);
    for (uint32_t i = 0; i < (_i == 2 ? 300 : 3); i++)
        add(f.store, "anna", P, 1000 + i);
    if (_i == 0) ck_assert(has(f.store, "anna", P, 1000));
    if (_i == 1) compact_all(f.store);
    expect_aside(f.store, garbage());
    add(f.store, "ben", P, 2); /* RocksDB still writes */
    flush_memtable(f.store);
    compact_all(f.store);
    add(f.store, "ben", P, 3);
    ck_assert(has(f.store, "anna", P, 1000) && has(f.store, "anna", P, 1002) &&
              is_damaged(f.store, "anna", P));
    ck_assert(has(f.store, "ben", P, 1) && has(f.store, "ben", P, 3) && !is_damaged(f.store, "ben", P));
    ck_assert_uint_eq(atomic_load(&f.store->corrupt), 1);
    fixture_reopen(&f, true);
    ck_assert(has(f.store, "anna", P, 1001) && is_damaged(f.store, "anna", P));
    expect_aside(f.store, garbage());
    fixture_close(&f);
}
END_TEST

START_TEST(corrupt_bases_met_while_closing_are_kept_aside)
{
    struct fixture f;
    fixture_open(&f);
    put_raw(f.store, "anna", P, garbage());
    add(f.store, "anna", P, 1);
    fixture_reopen(&f, true); /* the last flush merges */
    expect_aside(f.store, garbage());
    ck_assert(has(f.store, "anna", P, 1));
    fixture_close(&f);
}
END_TEST

START_TEST(corrupt_operands_are_left_out)
{
    struct fixture f;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    struct dd_store_op op = {.scene = SCENE,
                             .user = dd_slice_str("anna"),
                             .period = P,
                             .operand = garbage(),
                             .read_number = UINT64_MAX};
    struct dd_store_batch b = {.ops = &op, .n = 1};
    ck_assert_ok(dd_store_write_wait(f.store, &b));
    add(f.store, "anna", P, 2);
    for (int round = 0; round < 3; round++) {
        ck_assert(has(f.store, "anna", P, 1) && has(f.store, "anna", P, 2) && is_damaged(f.store, "anna", P));
        if (round == 0) flush_memtable(f.store);
        if (round == 1) compact_all(f.store);
    }
    add(f.store, "ben", P, 1);
    ck_assert_uint_gt(dd_counter_get(dd_stats_counter(f.stats, "dedupd_store_operands_skipped_total", "")),
                      0);
    fixture_close(&f);
}
END_TEST

/* ---- a flipped bit in RocksDB's own file ---- */

static void flip_in_tables(const char *dir)
{
    char path[1500];
    snprintf(path, sizeof path, "%s/db", dir);
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len < 4 || strcmp(e->d_name + len - 4, ".sst") != 0) continue;
        snprintf(path, sizeof path, "%s/db/%s", dir, e->d_name);
        struct stat st;
        ck_assert_int_eq(stat(path, &st), 0);
        if (st.st_size < 100000) continue; /* the small ones are meta */
        uint8_t byte;
        int fd = open(path, O_RDWR);
        ck_assert_int_eq(pread(fd, &byte, 1, 100), 1);
        byte ^= 1;
        ck_assert_int_eq(pwrite(fd, &byte, 1, 100), 1);
        close(fd);
    }
    closedir(d);
}

START_TEST(corrupt_blocks_cost_the_users_in_them_only)
{
    struct fixture f;
    fixture_open(&f);
    char user[16];
    static uint8_t big[2000];
    for (int i = 0; i < 100; i++) {
        snprintf(user, sizeof user, "u%03d", i);
        memset(big, i, sizeof big);
        put_raw(f.store, user, P, dd_slice_of(big, sizeof big));
    }
    dd_store_close(f.store, true);
    flip_in_tables(f.dir);
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    struct dd_buf b = {0};
    ck_assert_err(blob_of(f.store, "u000", P, &b), DD_CORRUPT); /* in the first block */
    ck_assert_ok(blob_of(f.store, "u099", P, &b));
    dd_store_quarantine(f.store, SCENE, dd_slice_str("u000"), P);
    add(f.store, "u000", P, 7);
    ck_assert(has(f.store, "u000", P, 7) && is_damaged(f.store, "u000", P));
    ck_assert_uint_eq(atomic_load(&f.store->corrupt), 1);
    dd_buf_free(&b);
    fixture_close(&f);
}
END_TEST

Suite *suite_corrupt(void)
{
    Suite *s = suite_create("store corruption");
    TCase *t = tcase_create("corrupt");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, corrupt_blobs_are_read_raw_and_quarantined_once);
    tcase_add_test(t, corrupt_quarantine_requests_are_bounded);
    tcase_add_test(t, corrupt_quarantine_leaves_good_and_absent_sets_alone);
    tcase_add_test(t, corrupt_erase_takes_the_quarantined_bytes_along);
    tcase_add_loop_test(t, corrupt_bases_met_by_a_merge_are_kept_aside, 0, 3);
    tcase_add_test(t, corrupt_bases_met_while_closing_are_kept_aside);
    tcase_add_test(t, corrupt_operands_are_left_out);
    tcase_add_test(t, corrupt_blocks_cost_the_users_in_them_only);
    suite_add_tcase(s, t);
    return s;
}
