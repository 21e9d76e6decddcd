#include "fixture.h"

#define USERS 3000

static void fill(struct dd_store *s, const char *scene, struct dd_period p)
{
    static uint32_t fps[200];
    struct dd_filter_policy policy = {
        .kind = DD_FILTER_BLOOM, .fpr = 0.0003, .capacity = 256, .cap = 200000, .growth = 2};
    for (uint32_t i = 0; i < 200; i++)
        fps[i] = i * 2654435761u;
    struct dd_buf operand = {0};
    ck_assert_ok(dd_filter_operand(&policy, 0, fps, 200, &operand));
    static struct dd_store_op ops[USERS];
    static char names[USERS][8];
    for (unsigned i = 0; i < USERS; i++) {
        snprintf(names[i], sizeof names[i], "u%05u", i);
        ops[i] = (struct dd_store_op){.kind = DD_STORE_MERGE,
                                      .scene = dd_slice_str(scene),
                                      .user = dd_slice_str(names[i]),
                                      .period = p,
                                      .operand = dd_buf_slice(&operand),
                                      .read_number = UINT64_MAX};
    }
    struct dd_store_batch b = {.ops = ops, .n = USERS};
    ck_assert_ok(dd_store_write_wait(s, &b));
    dd_buf_free(&operand);
}

struct count {
    unsigned home, push, other;
};

static bool count_one(void *arg, struct dd_slice scene, struct dd_slice user, struct dd_period p,
                      struct dd_slice blob)
{
    struct count *c = arg;
    (void)user, (void)blob;
    if (dd_slice_eq(scene, dd_slice_str("home")))
        c->home++;
    else if (dd_slice_eq(scene, dd_slice_str("push")))
        c->push++;
    else
        c->other++;
    ck_assert_int_eq(p.kind, DD_PERIOD_MONTH);
    return true;
}

static struct count counts(struct dd_store *s)
{
    struct count c = {0};
    ck_assert_ok(dd_store_each(s, count_one, &c));
    return c;
}

/* Whether the sets lie in memory, in new files, or compacted. */
static void settle(struct dd_store *s, int how)
{
    if (how >= 1) flush_memtable(s);
    if (how >= 2) compact_all(s);
}

START_TEST(expire_frees_the_disk_and_touches_nothing_else)
{
    struct fixture f;
    fixture_open(&f);
    fill(f.store, "home", month(10));
    fill(f.store, "home", month(11));
    fill(f.store, "home", month(12));
    fill(f.store, "push", month(10));
    settle(f.store, _i);
    flush_memtable(f.store); /* so that sizes compare */
    uint64_t before = dd_rocks_property(&f.store->rocks, "rocksdb.live-sst-files-size");
    ck_assert_ok(dd_store_expire(f.store, SCENE, DD_PERIOD_MONTH, 12));
    struct count c = counts(f.store);
    ck_assert_uint_eq(c.home, USERS);
    ck_assert_uint_eq(c.push, USERS);
    uint64_t after = dd_rocks_property(&f.store->rocks, "rocksdb.live-sst-files-size");
    ck_assert_msg(after < before * 6 / 10, "%llu bytes before, %llu after", (unsigned long long)before,
                  (unsigned long long)after);
    ck_assert(has(f.store, "u00000", month(12), 0));
    ck_assert(!has(f.store, "u00000", month(11), 0));

    ck_assert_ok(dd_store_expire(f.store, SCENE, DD_PERIOD_MONTH, 12)); /* again: nothing to do */
    add(f.store, "late", month(10), 5);                                 /* is kept until the next time */
    ck_assert(has(f.store, "late", month(10), 5));
    fixture_reopen(&f, true);
    ck_assert(has(f.store, "late", month(10), 5));
    ck_assert(!has(f.store, "u00000", month(10), 0));
    ck_assert_ok(dd_store_expire(f.store, SCENE, DD_PERIOD_MONTH, 12));
    ck_assert(!has(f.store, "late", month(10), 5));
    c = counts(f.store);
    ck_assert_uint_eq(c.home, USERS);
    ck_assert_uint_eq(c.push, USERS);
    fixture_close(&f);
}
END_TEST

START_TEST(expire_really_shrinks_the_directory)
{
    struct fixture f;
    fixture_open(&f);
    for (int32_t p = 10; p < 14; p++)
        fill(f.store, "home", month(p));
    compact_all(f.store);
    fixture_reopen(&f, true); /* the old log goes */
    uint64_t before = disk_bytes_under(f.dir);
    ck_assert_ok(dd_store_expire(f.store, SCENE, DD_PERIOD_MONTH, 13));
    fixture_reopen(&f, true);
    uint64_t after = disk_bytes_under(f.dir);
    ck_assert_msg(after < before * 5 / 10, "%llu bytes before, %llu after", (unsigned long long)before,
                  (unsigned long long)after);
    ck_assert_uint_eq(counts(f.store).home, USERS);
    fixture_close(&f);
}
END_TEST

START_TEST(expire_looks_at_kind_scene_and_order_only)
{
    struct fixture f;
    fixture_open(&f);
    static const char *scenes[] = {"a", "home", "homf", "zz", "longer name"};
    struct dd_buf operand = operand_of(1);
    for (int i = 0; i < 5; i++) {
        for (int32_t p = 5; p < 9; p++) {
            struct dd_store_op op = {.scene = dd_slice_str(scenes[i]),
                                     .user = dd_slice_str("u"),
                                     .period = month(p),
                                     .operand = dd_buf_slice(&operand),
                                     .read_number = UINT64_MAX};
            struct dd_store_batch b = {.ops = &op, .n = 1};
            ck_assert_ok(dd_store_write_wait(f.store, &b));
        }
    }
    dd_buf_free(&operand);
    ck_assert_ok(dd_store_expire(f.store, SCENE, DD_PERIOD_DAY, 100));
    ck_assert_ok(dd_store_expire(f.store, SCENE, DD_PERIOD_MONTH, 5));
    ck_assert_ok(dd_store_expire(f.store, dd_slice_str("none"), DD_PERIOD_MONTH, 100));
    ck_assert_uint_eq(counts(f.store).home, 4);
    ck_assert_ok(dd_store_expire(f.store, SCENE, DD_PERIOD_MONTH, 7));
    struct count c = counts(f.store);
    ck_assert_uint_eq(c.home, 2);
    ck_assert_uint_eq(c.other, 16);
    fixture_close(&f);
}
END_TEST

START_TEST(expire_takes_history_and_quarantine_along)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_key key;
    struct dd_buf out = {0};
    char *text = NULL;
    add(f.store, "anna", month(3), 1);
    put_raw(f.store, "ben", month(3), dd_slice_str("rubbish"));
    dd_store_quarantine(f.store, SCENE, dd_slice_str("ben"), month(3));
    ck_assert_ok(dd_key_encode(&key, month(3), SCENE, dd_slice_str("anna")));
    key.bytes[key.len++] = 'x';
    rocksdb_put_cf(f.store->rocks.db, f.store->rocks.write, f.store->rocks.family[DD_FAMILY_HISTORY],
                   (const char *)key.bytes, key.len, "item", 4, &text);
    add(f.store, "anna", month(4), 1); /* passes the writer after the quarantine */
    ck_assert_ok(quarantined(f.store, "ben", month(3), &out));
    ck_assert_ok(dd_store_expire(f.store, SCENE, DD_PERIOD_MONTH, 4));
    ck_assert_err(dd_rocks_get(&f.store->rocks, DD_FAMILY_HISTORY, dd_key_slice(&key), &out), DD_NOT_FOUND);
    ck_assert_err(quarantined(f.store, "ben", month(3), &out), DD_NOT_FOUND);
    ck_assert(has(f.store, "anna", month(4), 1));
    dd_buf_free(&out);
    fixture_close(&f);
}
END_TEST

Suite *suite_expire(void)
{
    Suite *s = suite_create("store expiry");
    TCase *t = tcase_create("expire");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_loop_test(t, expire_frees_the_disk_and_touches_nothing_else, 0, 3);
    tcase_add_test(t, expire_really_shrinks_the_directory);
    tcase_add_test(t, expire_looks_at_kind_scene_and_order_only);
    tcase_add_test(t, expire_takes_history_and_quarantine_along);
    suite_add_tcase(s, t);
    return s;
}
