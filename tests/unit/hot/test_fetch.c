#include <stdio.h>
#include <stdlib.h>

#include "world.h"

#define USER  "dd:{home/u}:"
#define STORE "00aa11bb22cc33dd"

static struct world w;
static struct fetched got;

static void open_world(void)
{
    w = (struct world){0};
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, world_is_up(&w));
}

static void close_world(void)
{
    world_close(&w);
}

static void ck_assert_empty(const struct fetched *f)
{
    ck_assert_str_eq(f->recent, "");
    ck_assert_str_eq(f->pending[0], "");
    ck_assert_str_eq(f->pending[1], "");
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(f->cached[i], "-");
}

START_TEST(an_unknown_user_has_nothing)
{
    fetch(&w, 0, "u", &got);
    ck_assert(got.complete && got.intact);
    ck_assert_empty(&got);
}
END_TEST

static void put(int back, uint64_t number, const char *blob)
{
    int64_t now = dd_clock_wall(&w.clock).ms;
    dd_hot_cache_put(w.hl[0], dd_slice_str("home"), dd_slice_str("u"), month(back), 7, number, now, 60000,
                     dd_slice_str(blob));
}

START_TEST(all_parts_arrive_in_one_round_trip)
{
    ask(&w.server, "SADD", USER "p:" STORE ":2026-11", "-5", "7", "2147483647", "-2147483648", NULL);
    ask(&w.server, "SADD", USER "p:" STORE ":2026-10", "1", NULL);
    ask(&w.server, "SADD", USER "p:" STORE ":2026-09", "99", NULL);
    struct claimed c;
    claim(&w, 0, "u", 1, 3, &c);
    put(0, 41, "newest");
    put(2, 40, "");
    fetch(&w, 0, "u", &got);
    ck_assert(got.complete && got.intact);
    ck_assert_str_eq(got.pending[0], "-2147483648 -5 7 2147483647");
    ck_assert_str_eq(got.pending[1], "1");
    ck_assert_str_eq(got.recent, "i1 i2 i3");
    ck_assert_str_eq(got.cached[0], "7/41/newest");
    ck_assert_str_eq(got.cached[1], "-");
    ck_assert_str_eq(got.cached[2], "7/40/");
    fetch(&w, 0, "other", &got);
    ck_assert_empty(&got);
}
END_TEST

START_TEST(lapsed_deliveries_are_left_out)
{
    char old[32], young[32];
    int64_t now = dd_clock_wall(&w.clock).ms;
    snprintf(old, sizeof old, "%lld", (long long)(now - 600000 - 1000));
    snprintf(young, sizeof young, "%lld", (long long)(now - 590000));
    ask(&w.server, "ZADD", USER "d", old, "old", young, "young", "1.5", "odd", "inf", "odd2", NULL);
    fetch(&w, 0, "u", &got);
    ck_assert_str_eq(got.recent, "young");
}
END_TEST

START_TEST(a_big_user_is_read_whole)
{
    ask(&w.server, "EVAL", "for i=1,30000 do redis.call('SADD',KEYS[1],i-15000) end", "1",
        USER "p:" STORE ":2026-11", NULL);
    fetch(&w, 0, "u", &got);
    ck_assert(got.complete);
    ck_assert_str_eq(got.pending[0], "30000");
}
END_TEST

static const struct {
    const char *key;
    bool complete, intact;
} wrong[] = {
    {USER "p:" STORE ":2026-11", false, true},
    {USER "p:" STORE ":2026-10", false, true},
    {USER "d", false, false},
    {USER "c:" STORE, true, true},
};

START_TEST(a_key_of_another_type_hurts_its_part_only)
{
    struct claimed c;
    claim(&w, 0, "u", 1, 1, &c);
    put(1, 3, "blob");
    ask(&w.server, "SADD", USER "p:" STORE ":2026-11", "11", NULL);
    ask(&w.server, "SADD", USER "p:" STORE ":2026-10", "10", NULL);
    fetch(&w, 0, "u", &got);
    ask(&w.server, "SET", wrong[_i].key, "a string", NULL);
    fetch(&w, 0, "u", &got);
    ck_assert(got.complete == wrong[_i].complete && got.intact == wrong[_i].intact);
    ck_assert_str_eq(got.pending[0], _i == 0 ? "" : "11");
    ck_assert_str_eq(got.pending[1], _i == 1 ? "" : "10");
    ck_assert_str_eq(got.recent, _i == 2 ? "" : "i1");
    ck_assert_str_eq(got.cached[1], _i == 3 ? "-" : "7/3/blob");
    ck_assert_uint_eq(counted(&w, "dedupd_hot_wrong_type_total"), 1);
    fetch(&w, 0, "other", &got);
    ck_assert(got.complete && got.intact);
}
END_TEST

START_TEST(what_cannot_be_read_is_not_there)
{
    ask(&w.server, "HSET", USER "c:" STORE, "2026-11", "short", "2026-10", "\2234567890123456789012345678",
        NULL);
    ask(&w.server, "SADD", USER "p:" STORE ":2026-11", "x", "5", "2147483648", "-", "1 2",
        "99999999999999999999", NULL);
    fetch(&w, 0, "u", &got);
    ck_assert(got.complete);
    ck_assert_str_eq(got.cached[0], "-");
    ck_assert_str_eq(got.cached[1], "-");
    ck_assert_str_eq(got.pending[0], "5");
    ck_assert_uint_eq(counted(&w, "dedupd_hot_bad_values_total"), 2);
    ck_assert_uint_eq(counted(&w, "dedupd_hot_bad_members_total"), 5);
}
END_TEST

START_TEST(nothing_wanted_is_answered_at_once)
{
    struct dd_hot_fetch f = {.scene = dd_slice_str("home"), .user = dd_slice_str("u")};
    ck_assert_ok(dd_hot_fetch(w.hl[0], &f));
    ck_assert(f.complete);
    dd_hot_fetch_release(&f);
}
END_TEST

START_TEST(many_at_once_do_not_mix)
{
    static struct fetched many[200];
    char user[16], key[64], fp[16];
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof key, "dd:{home/u%d}:p:" STORE ":2026-11", i);
        snprintf(fp, sizeof fp, "%d", i);
        ask(&w.server, "SADD", key, fp, NULL);
    }
    for (int i = 0; i < 200; i++) {
        snprintf(user, sizeof user, "u%d", i);
        fetch_start(&w, 0, user, &many[i]);
    }
    for (int i = 0; i < 200; i++) {
        wait_for(&w, many[i].done);
        snprintf(fp, sizeof fp, "%d", i);
        ck_assert_str_eq(many[i].pending[0], fp);
        ck_assert_uint_eq(many[i].done, 1);
    }
}
END_TEST

START_TEST(cached_sets_lapse_with_jitter)
{
    int64_t lives[40], lowest = INT64_MAX, highest = 0;
    for (int i = 0; i < 40; i++) {
        put(0, 1, "x");
        fetch(&w, 0, "u", &got);
        lives[i] = atoll(ask(&w.server, "PTTL", USER "c:" STORE, NULL));
        if (lives[i] < lowest) lowest = lives[i];
        if (lives[i] > highest) highest = lives[i];
    }
    ck_assert_int_gt(lowest, 53000);
    ck_assert_int_le(highest, 60000);
    ck_assert_int_gt(highest - lowest, 1000);
}
END_TEST

static void put_at(int back, int64_t filled_ms)
{
    dd_hot_cache_put(w.hl[0], dd_slice_str("home"), dd_slice_str("u"), month(back), 7, 1, filled_ms, 60000,
                     dd_slice_str("x"));
}

START_TEST(a_set_that_left_the_window_is_taken_out)
{
    int64_t now = dd_clock_wall(&w.clock).ms;
    put_at(2, now - 3 * 3600000);
    put_at(3, now - 1000); /* in use by requests with a longer window */
    fetch(&w, 0, "u", &got);
    fetch(&w, 0, "u", &got);
    ck_assert_str_eq(ask(&w.server, "HKEYS", USER "c:" STORE, NULL), "2026-09 2026-08");
    put_at(3, now - 3 * 3600000);
    fetch(&w, 0, "u", &got);
    fetch(&w, 0, "u", &got);
    ck_assert_str_eq(ask(&w.server, "HKEYS", USER "c:" STORE, NULL), "2026-09");
    ck_assert_str_eq(got.cached[2], "7/1/x");
}
END_TEST

START_TEST(the_witness_is_kept)
{
    uint64_t incarnation, number;
    ck_assert_err(dd_hot_witness_get(w.hot, &incarnation, &number), DD_NOT_FOUND);
    ck_assert_ok(dd_hot_witness_put(w.hot, UINT64_MAX, 12345));
    ck_assert_ok(dd_hot_witness_get(w.hot, &incarnation, &number));
    ck_assert(incarnation == UINT64_MAX && number == 12345);
    ask(&w.server, "HSET", "dd:n", STORE ":stop", "12 x", NULL);
    ck_assert_err(dd_hot_witness_get(w.hot, &incarnation, &number), DD_NOT_FOUND);
    server_kill(&w.server);
    ck_assert_err(dd_hot_witness_get(w.hot, &incarnation, &number), DD_UNAVAILABLE);
    ck_assert_err(dd_hot_witness_put(w.hot, 1, 2), DD_UNAVAILABLE);
}
END_TEST

Suite *suite_fetch(void);
Suite *suite_fetch(void)
{
    Suite *s = suite_create("hot fetch");
    TCase *t = tcase_create("fetch");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, open_world, close_world);
    tcase_add_test(t, an_unknown_user_has_nothing);
    tcase_add_test(t, all_parts_arrive_in_one_round_trip);
    tcase_add_test(t, lapsed_deliveries_are_left_out);
    tcase_add_test(t, a_big_user_is_read_whole);
    tcase_add_loop_test(t, a_key_of_another_type_hurts_its_part_only, 0, 4);
    tcase_add_test(t, what_cannot_be_read_is_not_there);
    tcase_add_test(t, nothing_wanted_is_answered_at_once);
    tcase_add_test(t, many_at_once_do_not_mix);
    tcase_add_test(t, cached_sets_lapse_with_jitter);
    tcase_add_test(t, a_set_that_left_the_window_is_taken_out);
    tcase_add_test(t, the_witness_is_kept);
    suite_add_tcase(s, t);
    return s;
}
