/* What was staged is remembered over a restart: a Redis that is not configured any more, one that was
 * emptied, a clock that was ahead (dedup/staged.h). */
#include "hand.h"

static const int ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static struct world w;
static struct hand h;
static struct world_answer a;

static void ask(void)
{
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_ok(a.err);
}

static bool offered(int item)
{
    for (unsigned i = 0; i < a.n; i++)
        if (a.item[i] == item) return true;
    return false;
}

/* A run that staged an item and ended, cleanly or not. */
static void stage_and_close(int item, int64_t ahead_ms, bool clean)
{
    hand_init(&h, &w, DD_FILTER_BLOOM);
    dd_clock_move(&w.clock, ahead_ms);
    hand_stage(&h, item);
    dd_hot_staging_close(h.staging);
    world_close(&w, clean);
}

START_TEST(what_is_staged_and_cannot_be_seen_is_said)
{
    stage_and_close(3, 0, true);
    w.without_redis = true;
    world_open(&w);
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_ok(a.err);
    ck_assert(a.partial);
    world_close(&w, true);
    w.without_redis = false;
    world_open(&w);
    world_wait_staging(&w);
    ask();
    ck_assert(!a.partial);
    ck_assert(!offered(3));
    world_flush(&w, true);
    world_close(&w, true); /* with nothing left: the mark goes */
    w.without_redis = true;
    world_open(&w);
    ask();
    ck_assert(!a.partial);
    ck_assert(!offered(3));
    world_free(&w);
}
END_TEST

START_TEST(a_redis_emptied_between_two_runs_is_noticed)
{
    stage_and_close(3, 0, _i);
    ck_assert_int_eq(world_redis_cli(&w, "FLUSHALL"), 0);
    world_open(&w);
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert(a.partial);
    struct dd_hot_durability d;
    dd_hot_get_durability(w.hot, &d);
    ck_assert_uint_eq(d.losses, 1);
    world_free(&w);
}
END_TEST

START_TEST(what_was_staged_by_a_clock_that_was_ahead_is_seen_after_a_restart)
{
    stage_and_close(3, 40LL * 86400000, _i);
    dd_clock_init_manual(&w.clock, WORLD_START_MS);
    world_open(&w);
    ask();
    ck_assert(!a.partial);
    ck_assert(!offered(3));
    world_wait_staging(&w);
    hand_stage(&h, 4);
    world_flush(&w, true);
    ask();
    ck_assert(!a.partial);
    ck_assert(!offered(3) && !offered(4));
    world_free(&w);
}
END_TEST

Suite *suite_staged(void);
Suite *suite_staged(void)
{
    Suite *s = suite_create("dedup/staged");
    TCase *t = tcase_create("staged");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, what_is_staged_and_cannot_be_seen_is_said);
    tcase_add_loop_test(t, a_redis_emptied_between_two_runs_is_noticed, 0, 2);
    tcase_add_loop_test(t, what_was_staged_by_a_clock_that_was_ahead_is_seen_after_a_restart, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
