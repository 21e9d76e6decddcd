/* Forgetting items: what is in flight at any step of a flush does not bring them back, and what it carries
 * besides is not lost. */
#include "hand.h"

static struct world w;
static struct hand h;
static struct dd_admin *admin;

static const int ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static void begin(enum dd_filter_kind kind)
{
    hand_init(&h, &w, kind);
    ck_assert_ok(dd_admin_create(w.dedup, w.stats, &admin));
}

static void end(void)
{
    world_calls_free();
    dd_admin_destroy(admin);
    hand_free(&h);
}

static bool offered(int item)
{
    struct world_answer a;
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_ok(a.err);
    ck_assert(!a.partial);
    for (unsigned i = 0; i < a.n; i++)
        if (a.item[i] == item) return true;
    return false;
}

static unsigned forget(int item)
{
    unsigned forgotten;
    ck_assert_ok(world_forget(&w, admin, "alice", &item, 1, &forgotten));
    return forgotten;
}

static void walk(struct hand *hand)
{
    ck_assert_ok(hand_walk(hand));
}

static void commit(struct hand *hand)
{
    enum dd_err err = hand_commit(hand);
    ck_assert(err == DD_OK || err == DD_BUSY);
}

/* Steps of a flush as the wheel does them: a user that was told to read again is left for the next time. */
static void flush(unsigned from, unsigned to)
{
    static void (*const steps[])(struct hand *) = {walk, hand_read, commit, hand_remove, hand_unlist};
    for (unsigned i = from; i < to; i++) {
        bool nothing = i == 2 && h.users[0].n == 0;
        bool left = i > 2 && h.users[0].n && h.op.result == DD_BUSY;
        if (!nothing && !left) steps[i](&h);
    }
}

/* Alice has 3 and 4 staged; 3 is forgotten between two steps, each in turn. */
START_TEST(a_forget_at_any_step_of_a_flush_takes_one_item)
{
    begin(DD_FILTER_BLOOM);
    for (unsigned at = 0; at <= 5; at++) {
        hand_stage(&h, 3);
        hand_stage(&h, 4);
        flush(0, at);
        ck_assert_uint_eq(forget(3), 1);
        ck_assert_msg(offered(3) && !offered(4), "forgotten before step %u", at);
        flush(at, 5);
        if (at == 2) ck_assert_err(h.op.result, DD_BUSY);
        ck_assert_msg(offered(3), "forgotten before step %u, and brought back", at);
        ck_assert_msg(!offered(4), "forgotten before step %u, and 4 was lost", at);
        world_flush(&w, true);
        ck_assert_ok(w.flush.err);
        ck_assert_msg(offered(3) && !offered(4), "after another flush (step %u)", at);
        forget(4);
        ck_assert(offered(4));
    }
    end();
}
END_TEST

START_TEST(an_exposure_after_it_counts)
{
    begin(DD_FILTER_BLOOM);
    hand_stage(&h, 3);
    walk(&h);
    hand_read(&h);
    forget(3);
    hand_stage(&h, 3);
    flush(2, 5);
    ck_assert(!offered(3));
    world_flush(&w, true);
    ck_assert(!offered(3));
    end();
}
END_TEST

static void on_done(void *arg)
{
    *(bool *)arg = true;
}

/* The writer is held while a forget and then a page of the wheel, which cannot have read after it, wait for
 * it: the page is told to read again, and the flush is whole all the same. */
START_TEST(a_flush_reads_again_at_once)
{
    struct world_gate gate;
    bool flushed = false;
    unsigned forgotten;
    begin(DD_FILTER_BLOOM);
    hand_stage(&h, 3);
    hand_stage(&h, 4);
    world_gate_shut(&w, &gate);
    struct world_forgetting f;
    world_forget_start(&w, admin, "alice", &ten[3], 1, &f);
    world_wait_queued(&w, 1);
    struct dd_wheel_flush flush_call = {.all = true, .loop = w.loop, .done = on_done, .arg = &flushed};
    ck_assert_err(dd_wheel_flush(w.wheel, &flush_call), DD_PENDING);
    world_wait_queued(&w, 2);
    world_gate_open(&gate);
    ck_assert_ok(world_forget_end(&w, &f, &forgotten));
    ck_assert_uint_eq(forgotten, 1);
    while (!flushed)
        world_turn(&w);
    ck_assert_ok(flush_call.err);
    ck_assert(offered(3) && !offered(4));
    ck_assert(!left_in_redis(&w, "p:", true));
    end();
}
END_TEST

START_TEST(every_place_forgets)
{
    struct world_answer a;
    begin(DD_FILTER_BLOOM);
    int64_t months_ago = dd_clock_wall(&w.clock).ms - 50LL * 86400000;
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[1], 1, months_ago));
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[2], 1, months_ago));
    hand_stage(&h, 2);
    world_filter(&w, "default", "alice", &ten[5], 2, 2, DD_CLAIM_DELIVERED, false, &a);
    ck_assert_uint_eq(a.n, 2);
    const int gone[] = {1, 2, 5, 9};
    unsigned forgotten;
    ck_assert(!offered(1) && !offered(2) && !offered(5) && !offered(6));
    ck_assert_ok(world_forget(&w, admin, "alice", gone, 4, &forgotten));
    ck_assert_uint_eq(forgotten, 3);
    ck_assert(offered(1) && offered(2) && offered(5) && !offered(6));
    ck_assert_ok(world_forget(&w, admin, "alice", gone, 4, &forgotten));
    ck_assert_uint_eq(forgotten, 0);
    end();
}
END_TEST

/* Dense sets of each kind: those that can, do; Bloom layers refuse and nothing changes. */
START_TEST(dense_sets_of_each_kind)
{
    enum dd_filter_kind kind = (enum dd_filter_kind)_i;
    static int items[2000];
    begin(kind);
    for (int i = 0; i < 2000; i++)
        items[i] = i;
    ck_assert_ok(world_exposed(&w, "default", "alice", items, 2000, DD_TS_NOW));
    world_flush(&w, true);
    if (kind != DD_FILTER_COUNTING) hand_stage(&h, 3);
    if (kind == DD_FILTER_BLOOM) {
        ck_assert_err(world_forget(&w, admin, "alice", &ten[3], 1, NULL), DD_UNSUPPORTED);
        ck_assert(!offered(3));
        world_flush(&w, true);
        ck_assert(!offered(3));
    } else {
        ck_assert_uint_eq(forget(3), 1);
        ck_assert(offered(3) && !offered(4));
        world_flush(&w, true);
        ck_assert(offered(3) && !offered(4));
    }
    end();
}
END_TEST

START_TEST(what_was_never_seen_in_a_dense_set)
{
    static int items[2000];
    begin(DD_FILTER_BLOOM);
    for (int i = 0; i < 2000; i++)
        items[i] = 100 + i;
    ck_assert_ok(world_exposed(&w, "default", "alice", items, 2000, DD_TS_NOW));
    ck_assert_uint_eq(forget(3), 0);
    ck_assert(offered(3));
    end();
}
END_TEST

START_TEST(without_redis_nothing_is_touched)
{
    begin(DD_FILTER_BLOOM);
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[3], 1, DD_TS_NOW));
    world_flush(&w, true);
    world_redis_kill(&w);
    world_wait_hot(&w, false);
    ck_assert_err(world_forget(&w, admin, "alice", &ten[3], 1, NULL), DD_UNAVAILABLE);
    world_redis_start(&w);
    world_wait_hot(&w, true);
    ck_assert(!offered(3));
    end();
}
END_TEST

START_TEST(embedded_too)
{
    struct world_answer a;
    world_init(&w, false);
    ck_assert_ok(dd_admin_create(w.dedup, w.stats, &admin));
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[3], 2, DD_TS_NOW));
    world_filter(&w, "default", "alice", &ten[5], 1, 1, DD_CLAIM_DELIVERED, false, &a);
    ck_assert_uint_eq(forget(3), 1);
    ck_assert_uint_eq(forget(5), 1);
    ck_assert(offered(3) && offered(5) && !offered(4));
    world_calls_free();
    dd_admin_destroy(admin);
    world_free(&w);
}
END_TEST

Suite *suite_forget(void);
Suite *suite_forget(void)
{
    Suite *s = suite_create("dedup/forget");
    TCase *t = tcase_create("forget");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_forget_at_any_step_of_a_flush_takes_one_item);
    tcase_add_test(t, an_exposure_after_it_counts);
    tcase_add_test(t, a_flush_reads_again_at_once);
    tcase_add_test(t, every_place_forgets);
    tcase_add_loop_test(t, dense_sets_of_each_kind, DD_FILTER_BLOOM, DD_FILTER_COMPACT + 1);
    tcase_add_test(t, what_was_never_seen_in_a_dense_set);
    tcase_add_test(t, without_redis_nothing_is_touched);
    tcase_add_test(t, embedded_too);
    suite_add_tcase(s, t);
    return s;
}
