/* The register of which process holds which store. */
#include "hot/staging.h"
#include "world.h"

#define STORE "00aa11bb22cc33dd"

static struct world w;
static struct dd_hot_staging *staging;

static void open_world(void)
{
    w = (struct world){0};
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, world_is_up(&w));
    ck_assert_ok(dd_hot_staging_open(w.hot, &staging));
}

static void close_world(void)
{
    dd_hot_staging_close(staging);
    world_close(&w);
}

static const struct dd_hot_boot first = {"b001", "machine-1 8:1:77", "127.0.0.1:8081", 60000};
static const struct dd_hot_boot again = {"b002", "machine-1 8:1:77", "127.0.0.1:8081", 60000};
static const struct dd_hot_boot copy = {"b003", "machine-1 8:1:99", "", 60000};

START_TEST(a_copy_is_refused_and_the_same_store_takes_over)
{
    struct dd_hot_holder other;
    ck_assert_ok(dd_hot_boot_register(staging, &first, &other));
    ck_assert_ok(dd_hot_boot_beat(staging, &first, &other));
    ck_assert_err(dd_hot_boot_register(staging, &copy, &other), DD_LOCKED);
    ck_assert_str_eq(other.boot_id, "b001");
    ck_assert_str_eq(other.place, "machine-1 8:1:77");
    ck_assert_str_eq(other.admin, "127.0.0.1:8081");
    ck_assert_int_gt(other.seen_ms, 1700000000000);
    ck_assert_ok(dd_hot_boot_register(staging, &again, &other));
    ck_assert_err(dd_hot_boot_beat(staging, &first, &other), DD_LOCKED);
    ck_assert_str_eq(other.boot_id, "b002");
    ck_assert_ok(dd_hot_boot_leave(staging, &first));
    ck_assert_ok(dd_hot_boot_beat(staging, &again, &other));
    ck_assert_err(dd_hot_boot_register(staging, &copy, &other), DD_LOCKED);
    ck_assert_ok(dd_hot_boot_leave(staging, &again));
    ck_assert_ok(dd_hot_boot_register(staging, &copy, &other));
    ck_assert_err(dd_hot_boot_beat(staging, &again, &other), DD_LOCKED);
}
END_TEST

START_TEST(a_silent_holder_is_replaced)
{
    struct dd_hot_holder other;
    struct dd_hot_boot hasty = copy;
    hasty.alive_ms = 1;
    ck_assert_ok(dd_hot_boot_register(staging, &first, &other));
    wait_for(&w, dd_hot_boot_register(staging, &hasty, &other) == DD_OK);
    ck_assert_err(dd_hot_boot_beat(staging, &first, &other), DD_LOCKED);
    /* a flushed register is taken again by whoever beats first */
    ask(&w.server, "FLUSHALL", NULL);
    ck_assert_ok(dd_hot_boot_beat(staging, &hasty, &other));
    ck_assert_err(dd_hot_boot_beat(staging, &first, &other), DD_LOCKED);
}
END_TEST

START_TEST(holders_are_listed)
{
    struct dd_hot_holder other;
    const struct dd_hot_holder *all;
    unsigned n;
    ck_assert_ok(dd_hot_boot_list(staging, &all, &n));
    ck_assert_uint_eq(n, 0);
    ck_assert_ok(dd_hot_boot_register(staging, &first, &other));
    ck_assert_ok(dd_hot_witness_put(w.hot, 1, 2));
    ask(&w.server, "HSET", "dd:n", "otherstore", "bx\t5\t%20\ta%3Ab", "junk", "\t\t%", NULL);
    ck_assert_ok(dd_hot_boot_list(staging, &all, &n));
    ck_assert_uint_eq(n, 3);
    unsigned ours = 3;
    for (unsigned i = 0; i < n; i++)
        if (strcmp(all[i].store_id, STORE) == 0) ours = i;
    ck_assert_uint_lt(ours, 3);
    ck_assert_str_eq(all[ours].boot_id, "b001");
    ck_assert_str_eq(all[ours].admin, "127.0.0.1:8081");
    struct dd_hot_boot bad = first;
    bad.place = "";
    ck_assert_err(dd_hot_boot_register(staging, &bad, &other), DD_INVALID);
}
END_TEST

Suite *suite_boot(void);
Suite *suite_boot(void)
{
    Suite *s = suite_create("hot boot");
    TCase *t = tcase_create("boot");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, open_world, close_world);
    tcase_add_test(t, a_copy_is_refused_and_the_same_store_takes_over);
    tcase_add_test(t, a_silent_holder_is_replaced);
    tcase_add_test(t, holders_are_listed);
    suite_add_tcase(s, t);
    return s;
}
