#include <stdio.h>
#include <stdlib.h>

#include "world.h"

#define KEY "dd:{home/u}:d"

static struct world w;
static struct claimed got;
static struct fetched seen;

static void open_world(void)
{
    w = (struct world){0};
    server_start(&w.server);
    world_open(&w, 2);
    wait_for(&w, world_is_up(&w));
}

static void close_world(void)
{
    world_close(&w);
}

/* n members "o<i>", scored age_ms ago. */
static void seed(unsigned from, unsigned n, int64_t age_ms)
{
    char first[16], last[16], score[32];
    snprintf(first, sizeof first, "%u", from);
    snprintf(last, sizeof last, "%u", from + n - 1);
    snprintf(score, sizeof score, "%lld", (long long)(dd_clock_wall(&w.clock).ms - age_ms));
    ask(&w.server, "EVAL",
        "for i=ARGV[1],ARGV[2] do redis.call('ZADD',KEYS[1],ARGV[3],'o'..string.format('%d',i)) end", "1",
        KEY, first, last, score, NULL);
}

static int card(void)
{
    return atoi(ask(&w.server, "ZCARD", KEY, NULL));
}

START_TEST(an_id_is_won_once)
{
    claim(&w, 0, "u", 1, 3, &got);
    ck_assert_uint_eq(got.total, 3);
    ck_assert(!got.c.in_memory && got.c.err == DD_OK);
    claim(&w, 1, "u", 2, 3, &got);
    ck_assert(got.total == 1 && got.won[2] == 1);
    claim(&w, 0, "v", 1, 3, &got);
    ck_assert_uint_eq(got.total, 3);
    int64_t ttl = atoll(ask(&w.server, "PTTL", KEY, NULL));
    ck_assert(ttl > 590000 && ttl <= 600000);
}
END_TEST

START_TEST(fifty_at_once_never_share)
{
    static struct claimed many[50];
    uint8_t owner[500] = {0};
    unsigned total = 0;
    for (unsigned i = 0; i < 50; i++)
        claim_start(&w, i % 2, "u", (i * 7) % 491, 10, &many[i]);
    for (unsigned i = 0; i < 50; i++) {
        wait_for(&w, many[i].done);
        ck_assert(many[i].c.err == DD_OK && !many[i].c.in_memory);
        for (unsigned k = 0; k < 10; k++)
            owner[(i * 7) % 491 + k] += many[i].won[k];
        total += many[i].total;
    }
    for (unsigned i = 0; i < 500; i++)
        ck_assert_uint_le(owner[i], 1);
    ck_assert_uint_eq((unsigned)card(), total);
}
END_TEST

START_TEST(ids_of_any_bytes)
{
    struct dd_slice ids[3] = {dd_slice_of("a\0b", 3), dd_slice_of("a\r\n", 3), dd_slice_str("")};
    uint8_t won[3];
    claim_start(&w, 0, "u", 1, 3, &got);
    wait_for(&w, got.done);
    got.done = 0;
    got.c.ids = ids;
    got.c.won = won;
    memset(won, 7, 3);
    ck_assert_err(dd_hot_claim(w.hl[0], &got.c), DD_PENDING);
    wait_for(&w, got.done);
    ck_assert(won[0] == 1 && won[1] == 1 && won[2] == 1);
    fetch(&w, 0, "u", &seen);
    ck_assert_uint_eq(seen.f.recent_n, 6);
}
END_TEST

START_TEST(lapsed_ones_can_be_won_again)
{
    seed(1, 3, 600001);
    seed(4, 1, 500000);
    struct dd_slice ids[2] = {dd_slice_str("o1"), dd_slice_str("o4")};
    claim_start(&w, 0, "u", 1, 2, &got);
    wait_for(&w, got.done);
    got.done = 0;
    got.c.ids = ids;
    ck_assert_err(dd_hot_claim(w.hl[0], &got.c), DD_PENDING);
    wait_for(&w, got.done);
    ck_assert(got.won[0] == 1 && got.won[1] == 0);
    ck_assert_int_eq(card(), 4);
}
END_TEST

START_TEST(the_oldest_are_trimmed)
{
    seed(0, 90, 500000);
    seed(90, 30, 400000);
    claim(&w, 0, "u", 1, 10, &got);
    ck_assert_uint_eq(got.total, 10);
    /* 130 are there; the first one to stay is the 31st, of the 90 with one score: all of that score stay */
    wait_for(&w, card() == 130);
    ask(&w.server, "DEL", KEY, NULL);
    for (unsigned i = 0; i < 120; i++)
        seed(i, 1, 500000 - i);
    claim(&w, 0, "u", 1, 10, &got);
    wait_for(&w, card() == 100);
    ck_assert_str_eq(ask(&w.server, "ZRANGE", KEY, "0", "0", NULL), "o30");
}
END_TEST

START_TEST(nothing_young_is_trimmed)
{
    for (unsigned i = 0; i < 50; i++)
        seed(i, 1, 70000 - i);
    for (unsigned i = 50; i < 150; i++)
        seed(i, 1, 50000 - i);
    claim(&w, 0, "u", 1, 10, &got);
    wait_for(&w, card() == 110);
    ck_assert_str_eq(ask(&w.server, "ZRANGE", KEY, "0", "0", NULL), "o50");
}
END_TEST

START_TEST(a_thousand_young_ones_are_the_limit)
{
    seed(0, 995, 1000);
    claim(&w, 0, "u", 1, 6, &got);
    ck_assert_err(got.c.err, DD_LIMIT);
    ck_assert_uint_eq(got.total, 0);
    wait_for(&w, card() == 995);
    claim(&w, 0, "u", 1, 5, &got);
    ck_assert_err(got.c.err, DD_OK);
    ck_assert_uint_eq(got.total, 5);
    claim(&w, 0, "u", 1, 5, &got);
    ck_assert_err(got.c.err, DD_OK);
    ck_assert_uint_eq(got.total, 0);
}
END_TEST

START_TEST(old_ones_do_not_count_for_the_limit)
{
    for (unsigned i = 0; i < 10; i++)
        seed(i * 100, 100, 100000 - i);
    claim(&w, 0, "u", 1, 1000, &got);
    ck_assert_err(got.c.err, DD_OK);
    ck_assert_uint_eq(got.total, 1000);
    wait_for(&w, card() == 1000);
}
END_TEST

START_TEST(unclaimed_ids_are_free_again)
{
    claim(&w, 0, "u", 1, 3, &got);
    dd_hot_unclaim(w.hl[0], dd_slice_str("home"), dd_slice_str("u"), got.ids, 2);
    claim(&w, 0, "u", 1, 3, &got);
    ck_assert(got.won[0] == 1 && got.won[1] == 1 && got.won[2] == 0);
}
END_TEST

START_TEST(a_key_of_another_type_is_claimed_in_memory)
{
    ask(&w.server, "SET", KEY, "x", NULL);
    claim(&w, 0, "u", 1, 3, &got);
    ck_assert(got.c.in_memory && got.c.err == DD_OK && got.total == 3);
    claim(&w, 1, "u", 1, 4, &got);
    ck_assert(got.c.in_memory && got.total == 1 && got.won[3] == 1);
    claim(&w, 1, "v", 1, 4, &got);
    ck_assert(!got.c.in_memory && got.total == 4);
}
END_TEST

START_TEST(a_full_redis_is_claimed_in_memory)
{
    claim(&w, 0, "u", 1, 1, &got);
    ask(&w.server, "CONFIG", "SET", "maxmemory", "1", NULL);
    claim(&w, 0, "u", 1, 3, &got);
    ck_assert(got.c.in_memory && got.c.err == DD_OK);
    fetch(&w, 0, "u", &seen);
    ck_assert(seen.complete);
    ask(&w.server, "CONFIG", "SET", "maxmemory", "0", NULL);
    claim(&w, 0, "u", 1, 4, &got);
    ck_assert(!got.c.in_memory && got.won[1] == 0 && got.won[2] == 0 && got.won[3] == 1);
}
END_TEST

START_TEST(bad_counts_are_refused)
{
    claim(&w, 0, "u", 1, 1, &got);
    got.c.n = 0;
    ck_assert_err(dd_hot_claim(w.hl[0], &got.c), DD_INVALID);
    got.c.n = 1001;
    ck_assert_err(dd_hot_claim(w.hl[0], &got.c), DD_INVALID);
}
END_TEST

START_TEST(embedded_claims_are_not_a_fall_back)
{
    struct world e = {0};
    world_open(&e, 1);
    ck_assert(dd_hot_is_embedded(e.hot) && world_is_up(&e));
    claim(&e, 0, "u", 1, 3, &got);
    ck_assert(!got.c.in_memory && got.total == 3);
    fetch(&e, 0, "u", &seen);
    ck_assert(seen.complete && seen.intact);
    ck_assert_str_eq(seen.recent, "i1 i2 i3");
    dd_hot_unclaim(e.hl[0], dd_slice_str("home"), dd_slice_str("u"), got.ids, 1);
    fetch(&e, 0, "u", &seen);
    ck_assert_str_eq(seen.recent, "i2 i3");
    dd_hot_cache_put(e.hl[0], dd_slice_str("home"), dd_slice_str("u"), month(0), 1, 1, 1, 1,
                     dd_slice_str("x"));
    world_close(&e);
}
END_TEST

Suite *suite_claim(void);
Suite *suite_claim(void)
{
    Suite *s = suite_create("hot claim");
    TCase *t = tcase_create("claim");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, open_world, close_world);
    tcase_add_test(t, an_id_is_won_once);
    tcase_add_test(t, fifty_at_once_never_share);
    tcase_add_test(t, ids_of_any_bytes);
    tcase_add_test(t, lapsed_ones_can_be_won_again);
    tcase_add_test(t, the_oldest_are_trimmed);
    tcase_add_test(t, nothing_young_is_trimmed);
    tcase_add_test(t, a_thousand_young_ones_are_the_limit);
    tcase_add_test(t, old_ones_do_not_count_for_the_limit);
    tcase_add_test(t, unclaimed_ids_are_free_again);
    tcase_add_test(t, a_key_of_another_type_is_claimed_in_memory);
    tcase_add_test(t, a_full_redis_is_claimed_in_memory);
    tcase_add_test(t, bad_counts_are_refused);
    tcase_add_test(t, embedded_claims_are_not_a_fall_back);
    suite_add_tcase(s, t);
    return s;
}
