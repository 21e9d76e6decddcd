/* Trace: what is queued when a trace stops is not written, the queue is bounded, others are not recorded. */
#include <stdio.h>

#include "dedup/trace_impl.h"
#include "world.h"

static struct world w;
static struct dd_trace *trace;

static const struct dd_slice none;

static void begin(void)
{
    world_init(&w, false);
    ck_assert_ok(dd_trace_create(w.store, &w.clock, w.stats, &trace));
}

static void end(void)
{
    dd_trace_destroy(trace);
    world_free(&w);
}

static void start(const char *user, unsigned days)
{
    struct dd_trace_state state;
    ck_assert_ok(dd_trace_start(trace, dd_slice_str(user), none, days, &state));
    ck_assert(state.active);
    ck_assert_uint_eq(state.days, days);
}

static void note(const char *user, const char *item)
{
    struct dd_item it = {.id = dd_slice_str(item)};
    dd_trace_items(trace, dd_slice_str("default"), dd_slice_str(user), DD_TRACE_EXPOSED, DD_TRACE_BY_REQUEST,
                   dd_clock_wall(&w.clock).ms, &it, NULL, 1);
}

static bool count(void *arg, const struct dd_trace_entry *e)
{
    (void)e;
    ++*(unsigned *)arg;
    return true;
}

static unsigned entries(const char *user)
{
    unsigned n = 0;
    dd_trace_settle(trace);
    enum dd_err err = dd_trace_show(trace, dd_slice_str(user), none, none, count, &n);
    ck_assert(err == DD_OK || err == DD_NOT_FOUND);
    return n;
}

static uint64_t counter(const struct dd_counter *c)
{
    return dd_counter_get(c);
}

/* The thread is kept from writing while the user is stopped, and started again. */
START_TEST(what_was_queued_before_a_stop_is_not_written)
{
    uint64_t removed;
    begin();
    start("alice", 7);
    note("alice", "a");
    ck_assert_uint_eq(entries("alice"), 1);
    pthread_mutex_lock(&trace->writing);
    note("alice", "b");
    note("alice", "c");
    ck_assert_ok(dd_trace_remove(trace, dd_slice_str("alice"), none, INT64_MAX, UINT64_MAX, &removed));
    ck_assert_uint_eq(removed, 1);
    ck_assert_ok(dd_trace_forget(trace, dd_slice_str("alice")));
    pthread_mutex_unlock(&trace->writing);
    start("alice", 7);
    ck_assert_uint_eq(entries("alice"), 0);
    ck_assert_uint_eq(counter(trace->dropped), 2);
    end();
}
END_TEST

START_TEST(the_queue_is_bounded)
{
    struct dd_item item[100];
    static uint8_t bytes[256];
    begin();
    start("alice", 7);
    for (int i = 0; i < 100; i++)
        item[i].id = dd_slice_of(bytes, sizeof bytes);
    pthread_mutex_lock(&trace->writing);
    for (int i = 0; i < 1000; i++)
        dd_trace_items(trace, dd_slice_str("default"), dd_slice_str("alice"), DD_TRACE_EXPOSED,
                       DD_TRACE_BY_REQUEST, 1, item, NULL, 100);
    ck_assert_uint_le(trace->queued_bytes, 4 << 20);
    ck_assert_uint_gt(counter(trace->dropped), 80000);
    pthread_mutex_unlock(&trace->writing);
    dd_trace_settle(trace);
    ck_assert_uint_eq(counter(trace->dropped) + counter(trace->recorded), 100000);
    ck_assert_uint_eq(entries("alice"), DD_TRACE_ENTRIES_MAX);
    end();
}
END_TEST

/* A user of the same cell is looked up, and is not recorded. */
START_TEST(a_neighbour_of_the_cell_is_not_recorded)
{
    char name[16];
    unsigned cell, i = 0;
    begin();
    start("alice", 7);
    cell = dd_trace_cell_of(trace, dd_slice_str("alice"));
    do
        snprintf(name, sizeof name, "n%u", i++);
    while (dd_trace_cell_of(trace, dd_slice_str(name)) != cell);
    note(name, "a");
    note("alicee", "a");
    note("alic", "a");
    ck_assert(!dd_trace_is_on(trace, dd_slice_str("default"), dd_slice_str(name)));
    ck_assert(dd_trace_is_on(trace, dd_slice_str("default"), dd_slice_str("alice")));
    ck_assert(!dd_trace_is_on(NULL, dd_slice_str("default"), dd_slice_str("alice")));
    dd_trace_settle(trace);
    ck_assert_uint_eq(counter(trace->recorded), 0);
    ck_assert_uint_eq(entries("alice"), 0);
    end();
}
END_TEST

START_TEST(it_is_taken_up_again)
{
    struct dd_trace_state state;
    begin();
    start("alice", 3);
    note("alice", "a");
    dd_trace_destroy(trace); /* writes it */
    ck_assert_ok(dd_trace_create(w.store, &w.clock, w.stats, &trace));
    ck_assert_ok(dd_trace_get(trace, dd_slice_str("alice"), &state));
    ck_assert_uint_eq(state.entries, 1);
    ck_assert_uint_eq(state.days, 3);
    note("alice", "b");
    ck_assert_uint_eq(entries("alice"), 2);
    dd_clock_move(&w.clock, 3LL * 86400000);
    note("alice", "c");
    ck_assert_ok(dd_trace_get(trace, dd_slice_str("alice"), &state));
    ck_assert(!state.active);
    ck_assert_uint_eq(state.entries, 2);
    end();
}
END_TEST

START_TEST(so_many_users_and_no_more)
{
    struct dd_trace_state state;
    char name[16];
    begin();
    for (unsigned i = 0; i < DD_TRACE_USERS_MAX; i++) {
        snprintf(name, sizeof name, "u%u", i);
        start(name, 7);
    }
    ck_assert_err(dd_trace_start(trace, dd_slice_str("more"), none, 7, &state), DD_LIMIT);
    start("u7", 8); /* one of them may be renewed */
    uint64_t removed;
    ck_assert_ok(dd_trace_stop(trace, dd_slice_str("u3"), none, &removed));
    start("more", 7);
    note("u3", "a");
    note("u999", "a");
    dd_trace_settle(trace);
    ck_assert_uint_eq(counter(trace->recorded), 1);
    end();
}
END_TEST

Suite *suite_trace(void);
Suite *suite_trace(void)
{
    Suite *s = suite_create("dedup/trace");
    TCase *t = tcase_create("trace");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, what_was_queued_before_a_stop_is_not_written);
    tcase_add_test(t, the_queue_is_bounded);
    tcase_add_test(t, a_neighbour_of_the_cell_is_not_recorded);
    tcase_add_test(t, it_is_taken_up_again);
    tcase_add_test(t, so_many_users_and_no_more);
    suite_add_tcase(s, t);
    return s;
}
