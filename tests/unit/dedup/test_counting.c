/* Scenes that count, embedded and with Redis (loop index 0 and 1): how often an item was seen, over restarts,
 * flushes and periods, and "drop only what was seen more than K times". */
#include "world.h"

Suite *suite_counting(void);

static const int three[] = {0, 1, 2};
static struct world w;
static struct world_answer a;

static void start(bool with_redis)
{
    world_init(&w, with_redis);
    world_close(&w, true);
    w.scene[1].policy.kind = DD_FILTER_COUNTING; /* "push" */
    world_open(&w);
}

static void see(int item, unsigned times)
{
    int items[64];
    for (unsigned i = 0; i < times; i++)
        items[i] = item;
    ck_assert_ok(world_exposed(&w, "push", "alice", items, times, DD_TS_NOW));
}

static void ask(unsigned max_seen, bool explain)
{
    w.max_seen = max_seen;
    world_filter(&w, "push", "alice", three, 3, 0, DD_CLAIM_NONE, explain, &a);
    ck_assert_ok(a.err);
    ck_assert(!a.partial);
}

/* The items offered, as bits. */
static unsigned offered(unsigned max_seen)
{
    unsigned bits = 0;
    ask(max_seen, false);
    for (unsigned i = 0; i < a.n; i++)
        bits |= 1u << a.item[i];
    ck_assert_uint_eq(a.filtered, 3 - a.n);
    return bits;
}

START_TEST(what_was_seen_more_often_is_dropped)
{
    start(_i);
    for (unsigned seen = 0; seen <= DD_MAX_SEEN + 2; seen++) {
        for (unsigned k = 1; k <= DD_MAX_SEEN; k++)
            ck_assert_uint_eq(offered(k), seen > k ? 6 : 7);
        ck_assert_uint_eq(offered(0), seen > 0 ? 6 : 7);
        if (seen % 4 == 3) {
            world_close(&w, seen % 8 == 3);
            world_open(&w);
        }
        see(0, 1);
        ck_assert_int_eq(w.last_durability, DD_DURABLE_WAL); /* never staged */
    }
    world_free(&w);
}
END_TEST

START_TEST(an_item_counts_as_often_as_it_stands_in_an_event)
{
    start(_i);
    int items[] = {1, 0, 1, 1, 2, 0};
    ck_assert_ok(world_exposed(&w, "push", "alice", items, 6, DD_TS_NOW));
    ck_assert_uint_eq(offered(1), 4);
    ck_assert_uint_eq(offered(2), 5);
    ck_assert_uint_eq(offered(3), 7);
    see(2, 40); /* a counter ends at 15, which is more than any K */
    ck_assert_uint_eq(offered(DD_MAX_SEEN), 3);
    world_free(&w);
}
END_TEST

START_TEST(counts_add_up_over_the_window)
{
    start(_i);
    see(0, 2);
    dd_clock_move(&w.clock, 31LL * 86400000); /* October */
    see(0, 3), see(1, 4);
    ck_assert_uint_eq(offered(4), 6);
    ck_assert_uint_eq(offered(5), 7);
    ask(4, true);
    ck_assert_uint_eq(a.reason[0], DD_REASON_PERIOD); /* the newest of those in which it was seen */
    ck_assert_uint_eq(a.reason[1], DD_REASON_UNSEEN);
    dd_clock_move(&w.clock, 61LL * 86400000); /* December: September has left the window */
    ck_assert_uint_eq(offered(2), 4);
    ck_assert_uint_eq(offered(3), 5);
    world_free(&w);
}
END_TEST

START_TEST(deliveries_and_repeats_drop_as_ever)
{
    start(_i);
    int asked[] = {0, 1, 0, 2};
    w.max_seen = 3;
    world_filter(&w, "push", "alice", asked, 4, 1, DD_CLAIM_EXPOSED, true, &a);
    ck_assert_ok(a.err);
    ck_assert_uint_eq(a.n, 1);
    ck_assert_uint_eq(a.reason[2], DD_REASON_REPEAT);
    ask(3, true);
    ck_assert_uint_eq(a.reason[0], DD_REASON_DELIVERED);
    dd_clock_move(&w.clock, w.scene[1].recent_ttl_ms + 1);
    ck_assert_uint_eq(offered(1), 7); /* the claim was one exposure */
    ck_assert_uint_eq(offered(0), 6);
    world_free(&w);
}
END_TEST

/* What is staged when a scene begins to count, and layers of another kind, are one time each. */
START_TEST(exposures_from_before_the_scene_counted_are_one_each)
{
    world_init(&w, _i);
    see(0, 1), see(0, 1), see(1, 1);
    world_close(&w, true);
    w.scene[1].policy.kind = DD_FILTER_COUNTING;
    world_open(&w);
    ck_assert_uint_eq(offered(0), 4);
    ck_assert_uint_eq(offered(1), 7);
    see(0, 1);
    ck_assert_uint_eq(offered(1), 6);
    ck_assert_uint_eq(offered(2), 7);
    world_free(&w);
}
END_TEST

/* Many items with counts of 1 to 15 through layers of counters, against a table of true counts: never read
 * too low, too high at most as often as the promise lets a new item be dropped. */
START_TEST(counts_of_a_large_set_are_never_too_low)
{
    enum { ITEMS = 3000, ASKED = 1000 };
    static int items[ITEMS];
    unsigned too_high = 0;
    start(_i);
    for (unsigned round = 1; round <= 5; round++) { /* item i is seen i % 5 + 1 times */
        unsigned n = 0;
        for (int i = 0; i < ITEMS; i++)
            if (i % 5 + 1 >= (int)round) items[n++] = i;
        ck_assert_ok(world_exposed(&w, "push", "alice", items, n, DD_TS_NOW));
    }
    for (unsigned k = 1; k <= 5; k++) {
        for (int from = 0; from < ITEMS; from += ASKED) {
            for (int i = 0; i < ASKED; i++)
                items[i] = from + i;
            w.max_seen = k;
            world_filter(&w, "push", "alice", items, ASKED, 0, DD_CLAIM_NONE, true, &a);
            ck_assert_ok(a.err);
            for (unsigned i = 0; i < ASKED; i++) {
                bool dropped = a.reason[i] != DD_REASON_UNSEEN, due = (from + i) % 5 + 1 > k;
                ck_assert(dropped || !due);
                too_high += dropped && !due;
            }
        }
    }
    ck_assert_uint_le(too_high, 60); /* of 9,000 where a counter of its own is the lowest */
    world_free(&w);
}
END_TEST

Suite *suite_counting(void)
{
    Suite *s = suite_create("dedup/counting");
    TCase *t = tcase_create("counting");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, what_was_seen_more_often_is_dropped, 0, 2);
    tcase_add_loop_test(t, an_item_counts_as_often_as_it_stands_in_an_event, 0, 2);
    tcase_add_loop_test(t, counts_add_up_over_the_window, 0, 2);
    tcase_add_loop_test(t, deliveries_and_repeats_drop_as_ever, 0, 2);
    tcase_add_loop_test(t, exposures_from_before_the_scene_counted_are_one_each, 0, 2);
    tcase_add_loop_test(t, counts_of_a_large_set_are_never_too_low, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
