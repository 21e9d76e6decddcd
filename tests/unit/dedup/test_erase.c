/* Erasing a user: what is in flight at any step of a flush brings nothing back, others lose nothing. */
#include "hand.h"

#include <stdio.h>
#include <stdlib.h>

static struct world w;
static struct hand h;
static struct dd_admin *admin;
static struct dd_erase_call call;

static void begin(void)
{
    hand_init(&h, &w, DD_FILTER_BLOOM);
    ck_assert_ok(dd_admin_create(w.dedup, w.stats, &admin));
    call = (struct dd_erase_call){0};
}

static void end(void)
{
    world_calls_free();
    dd_admin_destroy(admin);
    hand_free(&h);
}

static void expose_directly(const char *scene, const char *user, int item, int64_t ago_ms)
{
    int64_t ts = ago_ms ? dd_clock_wall(&w.clock).ms - ago_ms : DD_TS_NOW;
    ck_assert_ok(world_exposed(&w, scene, user, &item, 1, ts));
}

static void expect_nothing_left(void)
{
    ck_assert_uint_eq(left_in_store(&w, "alice"), 0);
    ck_assert(!left_in_redis(&w, "alice", false));
    do
        world_flush(&w, true);
    while (w.flush.err == DD_UNAVAILABLE); /* the wheel's connection may still stand in its back-off */
    ck_assert_ok(w.flush.err);
    ck_assert_uint_eq(left_in_store(&w, "alice"), 0);
    ck_assert_msg(!left_in_redis(&w, "alice", true), "an entry is left in a slot");
}

#define MONTH_MS (32LL * 86400000)

static const int ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

/* Deliveries, pending, cached sets and filter sets, in two scenes and two periods. */
static void fill_user(const char *user)
{
    struct world_answer a;
    expose_directly("default", user, 1, 2 * MONTH_MS - 10 * 86400000LL);
    expose_directly("push", user, 2, 0);
    world_filter(&w, "default", user, ten, 10, 2, DD_CLAIM_DELIVERED, false, &a);
    ck_assert_ok(a.err);
    expose_directly("default", user, 3, 0);
}

START_TEST(everything_goes_and_others_keep_theirs)
{
    struct world_answer a;
    begin();
    fill_user("alice");
    fill_user("bob");
    world_flush(&w, true);
    expose_directly("default", "alice", 4, 0);
    ck_assert(left_in_redis(&w, "alice", false));
    ck_assert_ok(world_erase(&w, admin, "", "alice", &call));
    ck_assert_uint_eq(call.scenes, 2);
    ck_assert_uint_ge(call.sets, 3);
    ck_assert_uint_ge(call.keys, 2);
    expect_nothing_left();
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_uint_eq(a.n, 10);
    world_filter(&w, "default", "bob", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_uint_eq(a.n, 6); /* exposed 1 and 3, delivered two others */
    end();
}
END_TEST

START_TEST(it_may_be_repeated)
{
    begin();
    fill_user("alice");
    ck_assert_ok(world_erase(&w, admin, "", "alice", &call));
    ck_assert_ok(world_erase(&w, admin, "", "alice", &call));
    ck_assert_uint_eq(call.sets, 0);
    ck_assert_uint_eq(call.keys, 0);
    ck_assert_ok(world_erase(&w, admin, "", "nobody", &call));
    end();
}
END_TEST

START_TEST(one_scene_or_one_period)
{
    struct world_answer a;
    begin();
    fill_user("alice");
    world_flush(&w, true);
    ck_assert_err(world_erase(&w, admin, "nowhere", "alice", &call), DD_NOT_FOUND);
    ck_assert_ok(world_erase(&w, admin, "push", "alice", &call));
    ck_assert_uint_eq(call.sets, 1);
    world_filter(&w, "push", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_uint_eq(a.n, 10);

    call = (struct dd_erase_call){.one_period = true, .period = {DD_PERIOD_DAY, 20000}};
    ck_assert_err(world_erase(&w, admin, "default", "alice", &call), DD_INVALID);
    call.period = world_period(&w);
    ck_assert_ok(world_erase(&w, admin, "default", "alice", &call));
    ck_assert_uint_eq(call.sets, 1);
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_uint_eq(a.n, 9); /* 1 stands in an older period */
    end();
}
END_TEST

/* ---- a flush in flight ---- */

static void commit(struct hand *hand)
{
    ck_assert_ok(hand_commit(hand));
}

static void walk(struct hand *hand)
{
    ck_assert_ok(hand_walk(hand));
}

typedef void (*step)(struct hand *hand);
static const step steps[] = {walk, hand_read, commit, hand_remove, hand_unlist};
#define STEPS (sizeof steps / sizeof *steps)

/* The erase falls between two steps, each in turn. */
START_TEST(an_erase_at_any_step_of_a_flush_leaves_nothing)
{
    begin();
    for (unsigned at = 0; at <= STEPS; at++) {
        hand_stage(&h, 3);
        hand_stage(&h, 4);
        for (unsigned i = 0; i <= STEPS; i++) {
            if (i == at) ck_assert_ok(world_erase(&w, admin, "", "alice", &call));
            if (i == STEPS) break;
            if (i == 2 && h.users[0].n == 0) continue; /* as the wheel: nothing to commit */
            steps[i](&h);
        }
        ck_assert_msg(at != 2 || h.op.stripped, "read before the erase, committed after it");
        ck_assert_uint_eq(left_in_store(&w, "alice"), 0);
        ck_assert_msg(!left_in_redis(&w, "alice", false), "erased before step %u", at);
        expect_nothing_left();
    }
    end();
}
END_TEST

/* A filter reads the sets, the user is erased, and then its fill would arrive. */
START_TEST(a_fill_in_flight_leaves_nothing)
{
    struct world_answer a;
    begin();
    expose_directly("default", "alice", 3, 60LL * 86400000);
    for (int i = 0; i < 20; i++) {
        struct world_call filter;
        world_filter_start(&w, "default", "alice", ten, 10, &filter);
        for (int turn = 0; turn < i % 5; turn++)
            dd_loop_turn(w.loop, 0);
        ck_assert_ok(world_erase(&w, admin, "", "alice", &call));
        world_filter_end(&w, &filter, &a);
        ck_assert_uint_eq(left_in_store(&w, "alice"), 0);
        /* the fill itself has no answer: the next round trip of the same connection comes after it */
        world_filter(&w, "default", "somebody", ten, 10, 0, DD_CLAIM_NONE, false, &a);
        ck_assert_msg(!left_in_redis(&w, "alice", false), "after %d turns", i % 5);
        expose_directly("default", "alice", 3, 60LL * 86400000);
    }
    end();
}
END_TEST

/* ---- between the steps of an erase ---- */

static void on_done(void *arg)
{
    *(bool *)arg = true;
}

static void start_erase(struct dd_dedup_loop *dl, struct dd_arena *arena, bool *done)
{
    *done = false;
    call = (struct dd_erase_call){
        .user = dd_slice_str("alice"), .arena = arena, .done = on_done, .arg = done};
    dd_user_erase(admin, dl, &call);
}

/* The loop is not turned, so the erase stands still after its commit; a wheel that reads only then finds
 * nothing to bring back. */
START_TEST(a_flush_between_the_commit_and_the_second_cleaning_leaves_nothing)
{
    struct dd_arena arena = {0};
    bool done;
    begin();
    hand_stage(&h, 3);
    uint64_t before = dd_change_number(dd_store_change(w.store));
    start_erase(w.dl, &arena, &done);
    while (dd_change_number(dd_store_change(w.store)) < before + 2) { /* two scenes, one commit each */
    }
    walk(&h);
    hand_read(&h);
    if (h.users[0].n) commit(&h);
    hand_remove(&h);
    hand_unlist(&h);
    while (!done)
        world_turn(&w);
    ck_assert_ok(call.err);
    expect_nothing_left();
    dd_arena_free(&arena);
    end();
}
END_TEST

static uint64_t counter(const char *name)
{
    return dd_counter_get(dd_stats_counter(w.stats, name, ""));
}

/* A read of the disk is under way on one loop while the user is erased on another; its fill comes too late
 * for any cleaning. */
START_TEST(a_fill_of_a_read_before_the_erase_is_not_sent)
{
    struct dd_arena arena = {0};
    struct world_call filter;
    struct world_answer a;
    struct dd_loop *loop;
    struct dd_dedup_loop *dl;
    bool done;
    begin();
    expose_directly("default", "alice", 3, 60LL * 86400000);
    dd_admin_destroy(admin);
    dd_hot_staging_close(h.staging);
    world_close(&w, true); /* nothing is in memory afterwards */
    world_open(&w);
    ck_assert_ok(dd_hot_staging_open(w.hot, &h.staging));
    ck_assert_ok(dd_admin_create(w.dedup, w.stats, &admin));
    ck_assert_ok(dd_loop_create(&loop));
    ck_assert_ok(dd_dedup_loop_create(w.dedup, loop, &dl));

    world_filter_start(&w, "default", "alice", ten, 10, &filter);
    while (!counter("dedupd_store_reads_total{from=\"pool\"}"))
        dd_loop_turn(w.loop, 1);
    ck_assert(!filter.done);
    start_erase(dl, &arena, &done);
    while (!done) /* the other loop does not answer the barrier: its patience ends */
        dd_loop_turn(loop, 10);
    ck_assert_err(call.err, DD_UNAVAILABLE); /* a fill may be on its way: to be repeated */
    world_filter_end(&w, &filter, &a);
    world_filter(&w, "default", "somebody", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert(!left_in_redis(&w, "alice", false));

    for (int i = 0; i < 20; i++) /* the leg that comes back late is freed */
        dd_loop_turn(loop, 10);
    dd_dedup_loop_destroy(dl);
    dd_loop_destroy(loop);
    dd_arena_free(&arena);
    end();
}
END_TEST

START_TEST(exposures_after_it_are_kept)
{
    struct world_answer a;
    begin();
    hand_stage(&h, 3);
    walk(&h);
    hand_read(&h);
    ck_assert_ok(world_erase(&w, admin, "", "alice", &call));
    hand_stage(&h, 5);
    commit(&h);
    ck_assert(h.op.stripped);
    hand_remove(&h);
    hand_unlist(&h);
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_uint_eq(a.n, 9);
    end();
}
END_TEST

/* The page's number is older than an erase, and what is pending was exposed after it: the operand is stripped
 * and the user read again, once the erase is known. The writer is held, so that both wait for it. */
START_TEST(what_is_pending_after_an_erase_is_flushed_by_an_older_page)
{
    struct world_answer a;
    struct world_gate gate;
    bool erased = false, flushed = false;
    begin();
    hand_stage(&h, 5);
    world_gate_shut(&w, &gate);
    struct dd_store_op op = {.kind = DD_STORE_ERASE,
                             .scene = dd_slice_str("default"),
                             .user = dd_slice_str("alice"),
                             .period = world_period(&w)};
    struct dd_store_batch batch = {.ops = &op, .n = 1, .loop = w.loop, .done = on_done, .arg = &erased};
    ck_assert_err(dd_store_write(w.store, &batch), DD_PENDING);
    struct dd_wheel_flush flush = {.all = true, .loop = w.loop, .done = on_done, .arg = &flushed};
    ck_assert_err(dd_wheel_flush(w.wheel, &flush), DD_PENDING);
    world_wait_queued(&w, 2);
    world_gate_open(&gate);
    while (!flushed || !erased)
        world_turn(&w);
    ck_assert_ok(flush.err);
    ck_assert(counter("dedupd_wheel_stripped_total") >= 1);
    ck_assert(!left_in_redis(&w, "p:", true));
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_uint_eq(a.n, 9);
    end();
}
END_TEST

START_TEST(without_redis_nothing_is_touched)
{
    struct world_answer a;
    begin();
    fill_user("alice");
    world_flush(&w, true);
    unsigned before = left_in_store(&w, "alice");
    world_redis_kill(&w);
    ck_assert_err(world_erase(&w, admin, "", "alice", &call), DD_UNAVAILABLE);
    ck_assert_uint_eq(left_in_store(&w, "alice"), before);
    world_redis_start(&w);
    world_wait_hot(&w, true);
    do
        world_turn(&w);
    while (world_erase(&w, admin, "", "alice", &call) == DD_UNAVAILABLE);
    ck_assert_ok(call.err);
    expect_nothing_left();
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_uint_eq(a.n, 10);
    end();
}
END_TEST

START_TEST(embedded_too)
{
    struct world_answer a;
    world_init(&w, false);
    ck_assert_ok(dd_admin_create(w.dedup, w.stats, &admin));
    call = (struct dd_erase_call){0};
    expose_directly("default", "alice", 3, 0);
    world_filter(&w, "default", "alice", ten, 10, 2, DD_CLAIM_DELIVERED, false, &a);
    ck_assert_ok(world_erase(&w, admin, "", "alice", &call));
    ck_assert_uint_eq(call.sets, 1);
    ck_assert_uint_eq(call.keys, 1);
    ck_assert_uint_eq(left_in_store(&w, "alice"), 0);
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_uint_eq(a.n, 10);
    world_calls_free();
    dd_admin_destroy(admin);
    world_free(&w);
}
END_TEST

Suite *suite_erase(void);
Suite *suite_erase(void)
{
    Suite *s = suite_create("dedup/erase");
    TCase *t = tcase_create("erase");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, everything_goes_and_others_keep_theirs);
    tcase_add_test(t, it_may_be_repeated);
    tcase_add_test(t, one_scene_or_one_period);
    tcase_add_test(t, an_erase_at_any_step_of_a_flush_leaves_nothing);
    tcase_add_test(t, a_fill_in_flight_leaves_nothing);
    tcase_add_test(t, a_flush_between_the_commit_and_the_second_cleaning_leaves_nothing);
    tcase_add_test(t, a_fill_of_a_read_before_the_erase_is_not_sent);
    tcase_add_test(t, exposures_after_it_are_kept);
    tcase_add_test(t, what_is_pending_after_an_erase_is_flushed_by_an_older_page);
    tcase_add_test(t, without_redis_nothing_is_touched);
    tcase_add_test(t, embedded_too);
    suite_add_tcase(s, t);
    return s;
}
