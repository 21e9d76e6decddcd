/* /exposed and /filter through real tiers, embedded and with Redis (loop index 0 and 1). */
#include "world.h"

static const int ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static struct world w;
static struct world_answer a;

static void expect_items(const int *items, unsigned n)
{
    ck_assert_ok(a.err);
    ck_assert(!a.partial);
    ck_assert_uint_eq(a.n, n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(a.item[i], items[i]);
}

START_TEST(exposed_items_are_dropped_also_after_restarts)
{
    world_init(&w, _i);
    int seen[] = {3, 7}, left[] = {0, 1, 2, 4, 5, 6, 8, 9};
    ck_assert_ok(world_exposed(&w, "default", "alice", seen, 2, DD_TS_NOW));
    for (int restart = 0; restart < 3; restart++) {
        for (int again = 0; again < 2; again++) { /* the second answer comes from the cache */
            world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, true, &a);
            expect_items(left, 8);
            ck_assert_uint_eq(a.filtered, 2);
            ck_assert_uint_eq(a.reason[3], DD_REASON_PERIOD);
        }
        world_filter(&w, "push", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
        expect_items(ten, 10);
        world_filter(&w, "default", "bob", ten, 10, 0, DD_CLAIM_NONE, false, &a);
        expect_items(ten, 10);
        world_close(&w, restart == 0);
        world_open(&w);
    }
    world_free(&w);
}
END_TEST

START_TEST(an_exposure_after_a_cached_answer_is_seen)
{
    world_init(&w, _i);
    for (int i = 0; i < 10; i++) {
        ck_assert_ok(world_exposed(&w, "default", "alice", &ten[i], 1, DD_TS_NOW));
        world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
        expect_items(ten + i + 1, (unsigned)(9 - i));
    }
    world_free(&w);
}
END_TEST

START_TEST(repeats_collapse_and_limit_counts_what_is_returned)
{
    world_init(&w, _i);
    int asked[] = {5, 5, 6, 5, 7, 6, 8}, all[] = {5, 6, 7, 8};
    world_filter(&w, "default", "alice", asked, 7, 0, DD_CLAIM_NONE, true, &a);
    expect_items(all, 4);
    ck_assert_uint_eq(a.filtered, 3);
    ck_assert_uint_eq(a.reason[1], DD_REASON_REPEAT);
    world_filter(&w, "default", "alice", asked, 7, 2, DD_CLAIM_NONE, false, &a);
    expect_items(all, 2);
    world_free(&w);
}
END_TEST

START_TEST(a_claim_is_a_delivery_until_its_ttl_and_exposed_for_good)
{
    world_init(&w, _i);
    world_filter(&w, "default", "alice", ten, 10, 4, DD_CLAIM_DELIVERED, false, &a);
    expect_items(ten, 4);
    world_filter(&w, "default", "alice", ten, 10, 4, DD_CLAIM_EXPOSED, true, &a);
    expect_items(ten + 4, 4);
    ck_assert_uint_eq(a.reason[0], DD_REASON_DELIVERED);
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, true, &a);
    expect_items(ten + 8, 2);
    ck_assert_uint_eq(a.reason[4], DD_REASON_DELIVERED);
    dd_clock_move(&w.clock, 1800001);
    int left[] = {0, 1, 2, 3, 8, 9};
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, true, &a);
    expect_items(left, 6);
    ck_assert_uint_eq(a.reason[4], DD_REASON_PERIOD);
    world_free(&w);
}
END_TEST

START_TEST(event_times_choose_the_period)
{
    world_init(&w, _i);
    int64_t day = 86400000, now = WORLD_START_MS;
    ck_assert_err(world_exposed(&w, "default", "alice", &ten[0], 1, now + 300001), DD_INVALID);
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[1], 1, now + 299999));
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[2], 1, now - 30 * day));
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[3], 1, now - 60 * day));
    ck_assert_err(world_exposed(&w, "default", "alice", &ten[4], 1, now - 90 * day), DD_EXPIRED);
    int left[] = {0, 4, 5, 6, 7, 8, 9};
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, true, &a);
    expect_items(left, 7);
    ck_assert_uint_eq(a.reason[1], DD_REASON_PERIOD + 0);
    ck_assert_uint_eq(a.reason[2], DD_REASON_PERIOD + 1);
    ck_assert_uint_eq(a.reason[3], DD_REASON_PERIOD + 2);
    dd_clock_move(&w.clock, 10 * day); /* October: July has left the window */
    int later[] = {0, 3, 4, 5, 6, 7, 8, 9};
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    expect_items(later, 8);
    world_free(&w);
}
END_TEST

START_TEST(a_clock_stepped_back_over_a_period_end_hides_nothing)
{
    world_init(&w, _i);
    int64_t day = 86400000;
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[0], 1, WORLD_START_MS - 60 * day)); /* July */
    dd_clock_move(&w.clock, 10 * day);
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[1], 1, DD_TS_NOW)); /* October */
    dd_clock_move(&w.clock, -10 * day);
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[2], 1, DD_TS_NOW));
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    expect_items(ten + 3, 7);
    struct dd_dedup_status s;
    dd_dedup_get_status(w.dedup, &s);
    ck_assert_int_eq(s.clock_behind_ms, 10 * day);
    for (int clean = 0; clean < 2; clean++) { /* nor does a restart with the clock put right */
        world_close(&w, clean);
        dd_clock_init_manual(&w.clock, WORLD_START_MS);
        world_open(&w);
        world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
        expect_items(ten + 3, 7);
        dd_dedup_get_status(w.dedup, &s);
        ck_assert_int_gt(s.clock_behind_ms, 0);
    }
    world_free(&w);
}
END_TEST

START_TEST(a_heavy_user_meets_the_cap_and_nobody_else_does)
{
    world_init(&w, false);
    world_close(&w, true);
    w.scene[0].policy.cap = 1000;
    world_open(&w);
    unsigned refused = 0;
    int accepted_last = -1;
    for (int i = 0; i < 2000; i += 10) {
        int batch[10];
        for (int k = 0; k < 10; k++)
            batch[k] = i + k;
        enum dd_err err = world_exposed(&w, "default", "heavy", batch, 10, DD_TS_NOW);
        ck_assert(err == DD_OK || err == DD_LIMIT);
        if (err == DD_OK) accepted_last = i;
        refused += err == DD_LIMIT;
    }
    ck_assert_uint_gt(refused, 0);
    ck_assert_int_ge(accepted_last, 800);
    ck_assert_int_le(accepted_last, 1000 + 1000 / 8 + 10);
    ck_assert_ok(world_exposed(&w, "default", "other", ten, 10, DD_TS_NOW));
    world_free(&w);
}
END_TEST

/* The exposure is refused at once, inside the call that asks for it: the request must still end once. */
START_TEST(a_claim_as_exposed_at_the_cap_is_refused_and_ends_once)
{
    world_init(&w, _i);
    world_close(&w, true);
    w.scene[0].policy.cap = 100;
    w.scene[0].policy.capacity = 100;
    world_open(&w);
    int many[100];
    for (int i = 0; i < 100; i++)
        many[i] = 1000 + i;
    ck_assert_ok(world_exposed(&w, "default", "heavy", many, 100, DD_TS_NOW));
    for (int i = 0; i < 20; i++) {
        world_filter(&w, "default", "heavy", ten, 10, 2, DD_CLAIM_EXPOSED, false, &a);
        ck_assert_err(a.err, DD_LIMIT);
        ck_assert_uint_eq(dd_dedup_loop_inflight(w.dl), 0);
    }
    world_filter(&w, "default", "heavy", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_uint_eq(a.n, 10); /* what was claimed was taken back */
    world_free(&w);
}
END_TEST

Suite *suite_calls(void);
Suite *suite_calls(void)
{
    Suite *s = suite_create("dedup/calls");
    TCase *t = tcase_create("calls");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, exposed_items_are_dropped_also_after_restarts, 0, 2);
    tcase_add_loop_test(t, an_exposure_after_a_cached_answer_is_seen, 0, 2);
    tcase_add_loop_test(t, repeats_collapse_and_limit_counts_what_is_returned, 0, 2);
    tcase_add_loop_test(t, a_claim_is_a_delivery_until_its_ttl_and_exposed_for_good, 0, 2);
    tcase_add_loop_test(t, event_times_choose_the_period, 0, 2);
    tcase_add_loop_test(t, a_clock_stepped_back_over_a_period_end_hides_nothing, 0, 2);
    tcase_add_loop_test(t, a_claim_as_exposed_at_the_cap_is_refused_and_ends_once, 0, 2);
    tcase_add_test(t, a_heavy_user_meets_the_cap_and_nobody_else_does);
    suite_add_tcase(s, t);
    return s;
}
