/* The orders that carry the promise of no repeat, each with its interleaving forced: cached sets and commits
 * (direct), and the wheel's steps done by hand between the steps of a reader. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#include "dedup/internal.h"
#include "hot/staging.h"

static const int ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static struct world w;
static struct world_answer a;

static void redis(const char *before, const char *key, const char *after)
{
    char command[600];
    snprintf(command, sizeof command, "%s '%s' %s", before, key, after);
    ck_assert_msg(world_redis_cli(&w, command) == 0, "redis-cli %s", command);
}

static const char *cache_key(void)
{
    static char key[200];
    snprintf(key, sizeof key, "dd:{default/alice}:c:%s", dd_store_id(w.store));
    return key;
}

static uint64_t counter(const char *name)
{
    return dd_counter_get(dd_stats_counter(w.stats, name, ""));
}

static void ask(void)
{
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_ok(a.err);
    ck_assert(!a.partial);
}

static bool offered(int item)
{
    for (unsigned i = 0; i < a.n; i++)
        if (a.item[i] == item) return true;
    return false;
}

static struct dd_period this_month(void)
{
    return dd_period_at(DD_PERIOD_MONTH, dd_clock_wall(&w.clock));
}

START_TEST(a_fill_that_read_before_a_commit_is_judged_stale)
{
    world_init(&w, true);
    uint64_t before = dd_change_number(dd_store_change(w.store));
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[3], 1, DD_TS_NOW));
    dd_hot_cache_put(w.dl->hot, dd_slice_str("default"), dd_slice_str("alice"), this_month(),
                     dd_change_incarnation(dd_store_change(w.store)), before, dd_clock_wall(&w.clock).ms,
                     1800000, dd_slice_of(NULL, 0));
    ask();
    ck_assert(!offered(3));
    world_free(&w);
}
END_TEST

START_TEST(a_cached_set_restored_from_an_old_snapshot_is_judged_stale)
{
    world_init(&w, true);
    ask(); /* fills the cache with empty sets */
    redis("COPY", cache_key(), "old");
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[3], 1, DD_TS_NOW));
    ask();
    ck_assert(!offered(3));
    redis("COPY old", cache_key(), "REPLACE");
    ask();
    ck_assert(!offered(3));
    world_free(&w);
}
END_TEST

START_TEST(an_evicted_cache_is_read_again)
{
    world_init(&w, true);
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[3], 1, DD_TS_NOW));
    ask();
    redis("DEL", cache_key(), "");
    ask();
    ck_assert(!offered(3));
    world_free(&w);
}
END_TEST

START_TEST(cached_sets_survive_a_clean_restart_only)
{
    const char *hit = "dedupd_dedup_cache_total{result=\"hit\"}";
    world_init(&w, true);
    ck_assert_ok(world_exposed(&w, "default", "alice", &ten[3], 1, DD_TS_NOW));
    ask();
    world_close(&w, true);
    world_open(&w);
    ask();
    ck_assert_uint_eq(counter(hit), 3);
    ck_assert(!offered(3));
    world_close(&w, false);
    world_open(&w);
    ask();
    ck_assert_uint_eq(counter(hit), 0);
    ck_assert(!offered(3));
    world_free(&w);
}
END_TEST

/* A reader's reply is on its way when a commit comes: the cell is looked up after the reply. */
START_TEST(a_reply_that_lags_behind_a_commit_is_judged_stale)
{
    world_init(&w, true);
    ask();
    struct dd_filter_policy policy = w.scene[0].policy;
    struct dd_buf operand = {0};
    uint64_t seed = dd_hash_user_seed(dd_store_secret(w.store), dd_slice_str("default"),
                                      dd_slice_str("alice"));
    uint32_t fp = dd_hash_fingerprint(seed, dd_slice_str("i3"));
    ck_assert_ok(dd_filter_operand(&policy, 0, &fp, 1, &operand));
    struct dd_store_op op = {.kind = DD_STORE_MERGE,
                             .scene = dd_slice_str("default"),
                             .user = dd_slice_str("alice"),
                             .period = this_month(),
                             .operand = dd_buf_slice(&operand),
                             .read_number = UINT64_MAX};
    struct dd_store_batch batch = {.ops = &op, .n = 1};
    struct world_call call;
    world_filter_start(&w, "default", "alice", ten, 10, &call); /* the request is sent */
    ck_assert_ok(dd_store_write_wait(w.store, &batch));         /* and now the commit */
    world_filter_end(&w, &call, &a);
    ck_assert_ok(a.err);
    ck_assert(!offered(3));
    dd_buf_free(&operand);
    world_free(&w);
}
END_TEST

/* ---- the wheel's steps by hand ---- */

static struct dd_hot_staging *staging;
static struct dd_hot_user *users;
static unsigned users_n;
static struct dd_hot_slot slot;
static struct dd_hot_walk walk;

static void wheel_init(void)
{
    world_init(&w, true);
    world_close(&w, true);
    w.wheel_options.stage = true;
    w.wheel_options.paused = true;
    world_open(&w);
    world_wait_staging(&w);
    ck_assert_ok(dd_hot_staging_open(w.hot, &staging));
}

static void wheel_free(void)
{
    dd_hot_staging_close(staging);
    world_free(&w);
}

static void expose_staged(int item)
{
    ck_assert_ok(world_exposed(&w, "default", "alice", &item, 1, DD_TS_NOW));
    ck_assert_int_eq(w.last_durability, DD_DURABLE_STAGED);
}

static void wheel_walk(void)
{
    const struct dd_hot_slot *slots;
    unsigned n;
    ck_assert_ok(dd_hot_staging_slots(staging, &slots, &n));
    ck_assert_uint_ge(n, 1);
    slot = slots[0];
    walk = (struct dd_hot_walk){.slot = slot};
    users_n = 0;
    while (!walk.ended && !users_n)
        ck_assert_ok(dd_hot_staging_walk(staging, &walk, 100, &users, &users_n));
    ck_assert_uint_eq(users_n, 1);
}

static void wheel_read(void)
{
    ck_assert_ok(dd_hot_staging_read(staging, users, users_n));
}

static void wheel_commit(void)
{
    struct dd_buf operand = {0};
    ck_assert_ok(dd_filter_operand(&w.scene[0].policy, 0, users[0].fps, users[0].n, &operand));
    struct dd_store_op op = {.kind = DD_STORE_MERGE,
                             .scene = users[0].scene,
                             .user = users[0].user,
                             .period = users[0].period,
                             .operand = dd_buf_slice(&operand),
                             .read_number = UINT64_MAX};
    struct dd_store_batch batch = {.ops = &op, .n = 1, .sync = true};
    ck_assert_ok(dd_store_write_wait(w.store, &batch));
    dd_buf_free(&operand);
}

static void wheel_remove(void)
{
    ck_assert_ok(dd_hot_staging_remove(staging, users, users_n));
}

static void wheel_unlist(void)
{
    ck_assert_ok(dd_hot_staging_unlist(staging, slot, users, users_n));
}

/* Asks after every step; `seen` must be dropped each time. */
START_TEST(a_reader_at_any_step_of_a_flush_sees_the_item)
{
    void (*const steps[])(void) = {wheel_walk, wheel_read, wheel_commit, wheel_remove, wheel_unlist};
    wheel_init();
    expose_staged(3);
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        ask();
        ck_assert_msg(!offered(3), "offered before step %u", i);
        steps[i]();
        ask(); /* twice: the second answer comes from the cache that the first one filled */
        ck_assert_msg(!offered(3), "offered after step %u", i);
        ask();
        ck_assert_msg(!offered(3), "offered from cache after step %u", i);
    }
    wheel_free();
}
END_TEST

/* A reader's request is on its way over each step of the flush. */
START_TEST(a_reader_across_any_step_of_a_flush_sees_the_item)
{
    void (*const steps[])(void) = {wheel_read, wheel_commit, wheel_remove, wheel_unlist};
    wheel_init();
    for (unsigned at = 0; at < sizeof steps / sizeof *steps; at++) {
        int item = (int)at;
        expose_staged(item);
        wheel_walk();
        for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
            struct world_call call;
            if (i == at) world_filter_start(&w, "default", "alice", ten, 10, &call);
            steps[i]();
            if (i != at) continue;
            world_filter_end(&w, &call, &a);
            ck_assert_ok(a.err);
            ck_assert_msg(!offered(item), "offered across step %u", i);
        }
    }
    wheel_free();
}
END_TEST

START_TEST(what_is_staged_during_a_flush_stays)
{
    wheel_init();
    expose_staged(3);
    wheel_walk();
    wheel_read();
    expose_staged(4);
    wheel_commit();
    wheel_remove();
    wheel_unlist();
    ask();
    ck_assert(!offered(3) && !offered(4));
    wheel_free();
}
END_TEST

START_TEST(a_flush_done_twice_changes_nothing)
{
    wheel_init();
    expose_staged(3);
    for (int i = 0; i < 2; i++) {
        wheel_walk();
        wheel_read();
        wheel_commit();
        wheel_commit();
        if (i == 0) continue; /* "crashed" before the removal */
        wheel_remove();
        wheel_unlist();
    }
    ask();
    ck_assert(!offered(3));
    ck_assert_uint_eq(a.n, 9);
    wheel_free();
}
END_TEST

START_TEST(a_fill_between_commit_and_removal_stays_right_after_it)
{
    wheel_init();
    ask();
    redis("COPY", cache_key(), "old"); /* a set without the item, with its number */
    expose_staged(3);
    wheel_walk();
    wheel_read();
    wheel_commit();
    wheel_remove();
    wheel_unlist();
    redis("COPY old", cache_key(), "REPLACE");
    ask();
    ck_assert(!offered(3));
    wheel_free();
}
END_TEST

START_TEST(flush_all_of_the_open_slot_moves_staging_to_a_new_one)
{
    wheel_init();
    struct dd_hot_slot first = dd_wheel_open_slot(w.wheel);
    for (int i = 0; i < 10; i++) {
        expose_staged(i);
        world_flush(&w, true);
        ck_assert_ok(w.flush.err);
        ck_assert(!dd_wheel_is_open(w.wheel, first));
        ask();
        ck_assert_uint_eq(a.n, (unsigned)(9 - i));
    }
    ck_assert_uint_ge(w.flush.users, 1);
    wheel_free();
}
END_TEST

/* The process stands still between Redis's acknowledgement and its own until the slot is sealed and emptied.
 */
START_TEST(an_acknowledgement_that_comes_after_its_slot_was_sealed_is_staged_again)
{
    wheel_init();
    struct dd_hot_slot old = dd_wheel_open_slot(w.wheel);
    struct world_call call;
    world_exposed_start(&w, "default", "alice", &ten[5], 1, &call);
    dd_loop_turn(w.loop, 0); /* sent, into the slot `old` */
    char key[200];
    snprintf(key, sizeof key, "dd:{default/alice}:p:%s:2026-09", dd_store_id(w.store));
    char probe[300];
    snprintf(probe, sizeof probe,
             "EVAL \"if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end return "
             "redis.error_reply('no')\" 1 '%s'",
             key);
    while (world_redis_cli(&w, probe) != 0) {
    }
    ck_assert(!call.done);
    dd_clock_move(&w.clock, 2 * 3600 * 1000);
    dd_wheel_reload(w.wheel, false, 0);
    world_wait_flushed(&w, 1);
    ck_assert(!dd_wheel_is_open(w.wheel, old));
    dd_wheel_reload(w.wheel, true, 0);
    ck_assert_ok(world_exposed_end(&w, &call));
    const struct dd_hot_slot *slots;
    unsigned n;
    ck_assert_ok(dd_hot_staging_slots(staging, &slots, &n));
    bool open = false;
    for (unsigned i = 0; i < n; i++)
        open = open || dd_wheel_is_open(w.wheel, slots[i]);
    ck_assert_msg(open, "nothing was staged into an open slot");
    ask();
    ck_assert(!offered(5));
    world_flush(&w, true);
    ask();
    ck_assert(!offered(5));
    wheel_free();
}
END_TEST

START_TEST(pending_of_days_ago_is_read_while_the_wheel_is_paused)
{
    world_init(&w, true);
    world_close(&w, true);
    w.scene[0].period = DD_PERIOD_DAY;
    w.scene[0].window = 7;
    strcpy(w.scene[0].name, "default");
    w.wheel_options.stage = true;
    w.wheel_options.paused = true;
    world_wipe(&w); /* the period of a live scene cannot change: a new store */
    world_open(&w);
    world_wait_staging(&w);
    for (int day = 0; day < 5; day++) {
        expose_staged(day);
        dd_clock_move(&w.clock, 86400000);
    }
    ask();
    ck_assert_uint_eq(a.n, 5);
    world_close(&w, false);
    world_open(&w); /* before the slots have been listed everything is read */
    ask();
    ck_assert_uint_eq(a.n, 5);
    world_wait_staging(&w);
    ask();
    ck_assert_uint_eq(a.n, 5);
    world_flush(&w, true);
    ask();
    ck_assert_uint_eq(a.n, 5);
    world_free(&w);
}
END_TEST

START_TEST(a_slot_of_another_length_is_not_stranded)
{
    wheel_init();
    expose_staged(3);
    dd_hot_staging_close(staging);
    world_close(&w, false);
    w.wheel_options.slot_s = 60;
    w.wheel_options.paused = false;
    world_open(&w);
    world_wait_staging(&w);
    dd_clock_move(&w.clock, 120000);
    world_wait_no_slots(&w);
    ask();
    ck_assert(!offered(3));
    world_free(&w);
}
END_TEST

/* A clock that jumps four months ahead and comes back: what was staged before is in its own month. */
START_TEST(a_jump_of_the_clock_loses_nothing_that_is_staged)
{
    wheel_init();
    expose_staged(3);
    dd_clock_move(&w.clock, 124LL * 86400000);
    world_flush(&w, true);
    ck_assert_ok(w.flush.err);
    dd_hot_staging_close(staging);
    world_close(&w, true);
    dd_clock_move(&w.clock, -124LL * 86400000);
    world_open(&w);
    world_wait_staging(&w);
    ck_assert_ok(dd_hot_staging_open(w.hot, &staging));
    ask();
    ck_assert(!offered(3));
    wheel_free();
}
END_TEST

Suite *suite_orders(void);
Suite *suite_orders(void)
{
    Suite *s = suite_create("dedup/orders");
    TCase *t = tcase_create("orders");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_fill_that_read_before_a_commit_is_judged_stale);
    tcase_add_test(t, a_cached_set_restored_from_an_old_snapshot_is_judged_stale);
    tcase_add_test(t, an_evicted_cache_is_read_again);
    tcase_add_test(t, cached_sets_survive_a_clean_restart_only);
    tcase_add_test(t, a_reply_that_lags_behind_a_commit_is_judged_stale);
    tcase_add_test(t, a_reader_at_any_step_of_a_flush_sees_the_item);
    tcase_add_test(t, a_reader_across_any_step_of_a_flush_sees_the_item);
    tcase_add_test(t, what_is_staged_during_a_flush_stays);
    tcase_add_test(t, a_flush_done_twice_changes_nothing);
    tcase_add_test(t, a_fill_between_commit_and_removal_stays_right_after_it);
    tcase_add_test(t, flush_all_of_the_open_slot_moves_staging_to_a_new_one);
    tcase_add_test(t, an_acknowledgement_that_comes_after_its_slot_was_sealed_is_staged_again);
    tcase_add_test(t, pending_of_days_ago_is_read_while_the_wheel_is_paused);
    tcase_add_test(t, a_slot_of_another_length_is_not_stranded);
    tcase_add_test(t, a_jump_of_the_clock_loses_nothing_that_is_staged);
    suite_add_tcase(s, t);
    return s;
}
