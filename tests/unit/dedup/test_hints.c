/* When a hint is looked up, and that the wheel sends it with what it flushes. */
#include "dedup/hints.h"
#include "hand.h"

static const struct dd_period may = {DD_PERIOD_MONTH, 1000}, june = {DD_PERIOD_MONTH, 1001},
                              monday = {DD_PERIOD_DAY, 20000};
static struct dd_hints hints;
static struct dd_filter_policy policy;

static void begin(void)
{
    policy = dd_filter_policy_default();
    ck_assert_ok(dd_hints_init(&hints));
}

static void end(void)
{
    dd_hints_free(&hints);
}

static bool due(uint64_t seed, struct dd_period p, unsigned n)
{
    return dd_hints_due(&hints, &policy, seed, p, n);
}

/* Flushes of n items until it is due; how many items that took. */
static unsigned until_due(uint64_t seed, struct dd_period p, unsigned n)
{
    for (unsigned items = n; items < 1000; items += n)
        if (due(seed, p, n)) return items;
    return 1000;
}

START_TEST(many_small_flushes_count_as_one_large)
{
    ck_assert(due(1, may, 48));
    ck_assert(!due(1, may, 1000));
    ck_assert(!due(2, may, 20));
    ck_assert(!due(2, may, 10));
    ck_assert(due(2, may, 30));
    unsigned total = 0;
    for (uint64_t user = 10; user < 110; user++)
        total += until_due(user, may, 1);
    ck_assert_msg(total > 100 * 38 && total < 100 * 58, "%u items for 100 users", total);
}
END_TEST

START_TEST(a_small_capacity_is_due_early)
{
    policy.capacity = 16;
    ck_assert(!due(1, may, 0));
    ck_assert_uint_le(until_due(1, may, 1), 8);
}
END_TEST

START_TEST(each_period_is_counted_anew)
{
    ck_assert(due(1, may, 100));
    ck_assert(!due(1, may, 100));
    ck_assert(due(1, june, 100));
    ck_assert(!due(1, june, 100));
    ck_assert(due(1, monday, 100)); /* the first of its kind clears nothing */
    ck_assert(!due(1, june, 100));
}
END_TEST

START_TEST(who_has_no_use_for_it_is_not_looked_up)
{
    ck_assert(!due(1, (struct dd_period){DD_PERIOD_FOREVER, 0}, 1000));
    policy.max_layers = 2;
    ck_assert(!due(1, may, 1000));
}
END_TEST

/* ---- in the wheel ---- */

static struct world w;

static void expose(int first, unsigned n)
{
    int items[100];
    for (unsigned i = 0; i < n; i++)
        items[i] = first + (int)i;
    ck_assert_ok(world_exposed(&w, "default", "alice", items, n, DD_TS_NOW));
}

static uint32_t stored_hint(void)
{
    struct dd_store_read r = {.scene = dd_slice_str("default"),
                              .user = dd_slice_str("alice"),
                              .n = 1,
                              .periods = {world_period(&w)}};
    struct dd_filter_view view;
    ck_assert_ok(dd_store_read_wait(w.store, &r));
    ck_assert_ok(r.set[0].err);
    ck_assert_ok(dd_filter_view_open(&view, r.set[0].blob));
    uint32_t hint = view.hint;
    dd_store_read_release(&r);
    return hint;
}

START_TEST(the_wheel_sends_what_the_period_before_had)
{
    struct hand h;
    hand_init(&h, &w, DD_FILTER_BLOOM);
    for (int i = 0; i < 6; i++)
        expose(i * 100, 100);
    world_flush(&w, true);
    dd_clock_move(&w.clock, 31LL * 86400000);
    expose(10000, 20);
    world_flush(&w, true);
    ck_assert_uint_eq(stored_hint(), 0);
    expose(10100, 60);
    world_flush(&w, true);
    ck_assert_uint_ge(stored_hint(), 600 * 97 / 100);
    ck_assert_uint_le(stored_hint(), 600 * 103 / 100);
    expose(10200, 20);
    world_flush(&w, true);
    ck_assert_uint_ge(stored_hint(), 600 * 97 / 100); /* the set keeps it */
    hand_free(&h);
}
END_TEST

Suite *suite_hints(void);

Suite *suite_hints(void)
{
    Suite *s = suite_create("dedup/hints");
    TCase *t = tcase_create("hints");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, many_small_flushes_count_as_one_large);
    tcase_add_test(t, a_small_capacity_is_due_early);
    tcase_add_test(t, each_period_is_counted_anew);
    tcase_add_test(t, who_has_no_use_for_it_is_not_looked_up);
    suite_add_tcase(s, t);
    TCase *wheel = tcase_create("wheel");
    tcase_set_timeout(wheel, 60);
    tcase_add_test(wheel, the_wheel_sends_what_the_period_before_had);
    suite_add_tcase(s, wheel);
    return s;
}
