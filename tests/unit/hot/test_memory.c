#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hot/hot.h"
#include "hot/memory.h"
#include "unit.h"

#define NOW 1796000000000
#define TTL 600000

static struct dd_mem *mem;

static void make(void)
{
    ck_assert_ok(dd_mem_create(64 << 20, &mem));
}

static void drop(void)
{
    dd_mem_destroy(mem);
}

static struct dd_slice text(const char *s)
{
    return dd_slice_str(s);
}

/* Claims the items first..first+n-1 ("i7") and returns how many were won. */
static unsigned claim_at(const char *user, unsigned first, unsigned n, int64_t now, unsigned recent_max,
                         enum dd_err expected)
{
    static _Thread_local char names[1100][16];
    struct dd_slice ids[1100];
    uint8_t won[1100];
    for (unsigned i = 0; i < n; i++)
        ids[i] = dd_slice_of(names[i], (size_t)snprintf(names[i], sizeof names[i], "i%u", first + i));
    memset(won, 7, sizeof won);
    struct dd_mem_claim c = {text("home"), text(user), ids, n, now, TTL, recent_max, won};
    ck_assert_err(dd_mem_claim(mem, &c), expected);
    unsigned total = 0;
    for (unsigned i = 0; i < n; i++) {
        ck_assert(won[i] <= 1);
        total += won[i];
    }
    return total;
}

/* The live deliveries as "i1@5 i2@6" (seconds after NOW). */
static const char *listed(const char *user, int64_t now)
{
    static char out[40000];
    struct dd_buf recent = {0}, ids = {0};
    dd_mem_fetch(mem, text("home"), text(user), now - TTL, &recent, &ids);
    size_t len = 0;
    out[0] = 0;
    for (size_t at = 0; at < recent.len; at += sizeof(struct dd_hot_recent)) {
        struct dd_hot_recent r;
        memcpy(&r, recent.data + at, sizeof r);
        len += (size_t)snprintf(out + len, sizeof out - len, "%s%.*s@%d", len ? " " : "", (int)r.id.len,
                                (char *)ids.data + (uintptr_t)r.id.ptr, (int)((r.at_ms - NOW) / 1000));
    }
    dd_buf_free(&recent);
    dd_buf_free(&ids);
    return out;
}

START_TEST(an_id_is_won_once)
{
    ck_assert_uint_eq(claim_at("u", 1, 3, NOW, 100, DD_OK), 3);
    ck_assert_uint_eq(claim_at("u", 2, 3, NOW + 1000, 100, DD_OK), 1);
    ck_assert_uint_eq(claim_at("v", 1, 3, NOW, 100, DD_OK), 3);
    ck_assert_str_eq(listed("u", NOW), "i1@0 i2@0 i3@0 i4@1");
}
END_TEST

START_TEST(scene_and_user_do_not_run_together)
{
    struct dd_slice id = text("x");
    uint8_t won;
    struct dd_mem_claim a = {text("ab"), text("c"), &id, 1, NOW, TTL, 100, &won};
    struct dd_mem_claim b = {text("a"), text("bc"), &id, 1, NOW, TTL, 100, &won};
    ck_assert_ok(dd_mem_claim(mem, &a));
    ck_assert_ok(dd_mem_claim(mem, &b));
    ck_assert_uint_eq(won, 1);
}
END_TEST

START_TEST(a_delivery_lapses)
{
    claim_at("u", 1, 1, NOW, 100, DD_OK);
    ck_assert_uint_eq(claim_at("u", 1, 1, NOW + TTL - 1, 100, DD_OK), 0);
    ck_assert_str_eq(listed("u", NOW + TTL), "");
    ck_assert_uint_eq(claim_at("u", 1, 1, NOW + TTL, 100, DD_OK), 1);
}
END_TEST

START_TEST(the_oldest_are_trimmed_but_nothing_young)
{
    claim_at("u", 1, 5, NOW, 5, DD_OK);
    claim_at("u", 6, 3, NOW + 59000, 5, DD_OK);
    ck_assert_str_eq(listed("u", NOW), "i1@0 i2@0 i3@0 i4@0 i5@0 i6@59 i7@59 i8@59");
    claim_at("u", 9, 1, NOW + 60000, 5, DD_OK);
    ck_assert_str_eq(listed("u", NOW), "i5@0 i6@59 i7@59 i8@59 i9@60");
    claim_at("u", 10, 3, NOW + 61000, 5, DD_OK);
    ck_assert_str_eq(listed("u", NOW), "i6@59 i7@59 i8@59 i9@60 i10@61 i11@61 i12@61");
}
END_TEST

START_TEST(a_thousand_young_ones_are_the_limit)
{
    ck_assert_uint_eq(claim_at("u", 0, 995, NOW, 100, DD_OK), 995);
    ck_assert_uint_eq(claim_at("u", 995, 6, NOW, 100, DD_LIMIT), 0);
    ck_assert_uint_eq(claim_at("u", 990, 10, NOW, 100, DD_OK), 5);
    ck_assert_uint_eq(claim_at("u", 2000, 1, NOW + 59999, 100, DD_LIMIT), 0);
    ck_assert_uint_eq(claim_at("u", 2000, 1000, NOW + 60000, 100, DD_OK), 1000);
    ck_assert(dd_mem_lost_ms(mem) == INT64_MIN);
}
END_TEST

START_TEST(unclaimed_ids_are_free_again)
{
    claim_at("u", 1, 2, NOW, 100, DD_OK);
    struct dd_slice ids[2] = {text("i1"), text("i9")};
    dd_mem_unclaim(mem, text("home"), text("u"), ids, 2);
    ck_assert_str_eq(listed("u", NOW), "i2@0");
    ck_assert_uint_eq(claim_at("u", 1, 2, NOW, 100, DD_OK), 1);
    ids[1] = text("i2");
    dd_mem_unclaim(mem, text("home"), text("u"), ids, 2);
    ck_assert(!dd_mem_may_hold(mem));
}
END_TEST

START_TEST(find_sees_live_ones)
{
    claim_at("u", 1, 2, NOW, 100, DD_OK);
    struct dd_slice ids[3] = {text("i1"), text("i2"), text("i3")};
    uint8_t found[3] = {0};
    ck_assert_uint_eq(dd_mem_find(mem, text("home"), text("u"), ids, 3, NOW - 1, found), 2);
    ck_assert(found[0] && found[1] && !found[2]);
    ck_assert_uint_eq(dd_mem_find(mem, text("home"), text("u"), ids, 3, NOW, found), 0);
    ck_assert(dd_mem_erase(mem, text("home"), text("u")));
    ck_assert(!dd_mem_erase(mem, text("home"), text("u")));
}
END_TEST

START_TEST(lapsed_users_are_swept)
{
    char user[16];
    for (int i = 0; i < 500; i++) {
        snprintf(user, sizeof user, "u%d", i);
        claim_at(user, 1, 3, NOW, 100, DD_OK);
    }
    ck_assert_uint_eq(dd_mem_users(mem), 500);
    dd_mem_sweep(mem, NOW + TTL - 1);
    ck_assert_uint_eq(dd_mem_users(mem), 500);
    dd_mem_sweep(mem, NOW + TTL);
    ck_assert_uint_eq(dd_mem_users(mem), 0);
    ck_assert(!dd_mem_may_hold(mem));
    ck_assert(dd_mem_lost_ms(mem) == INT64_MIN);
}
END_TEST

START_TEST(the_bound_holds_and_losses_are_told)
{
    dd_mem_destroy(mem);
    ck_assert_ok(dd_mem_create(300000, &mem));
    char user[16];
    for (int i = 0; i < 200; i++) {
        snprintf(user, sizeof user, "u%d", i);
        claim_at(user, 1, 10, NOW + i, 100, DD_OK);
    }
    ck_assert_uint_eq(dd_mem_users(mem), 200);
    ck_assert(dd_mem_lost_ms(mem) == INT64_MIN);
    for (int i = 200; i < 5000; i++) {
        snprintf(user, sizeof user, "u%d", i);
        claim_at(user, 1, 10, NOW + i, 100, DD_OK);
        ck_assert_uint_le(dd_mem_bytes(mem), 300000);
    }
    ck_assert_int_gt(dd_mem_lost_ms(mem), NOW);
    ck_assert_uint_gt(dd_mem_users(mem), 300);
    ck_assert_str_eq(listed("u0", NOW), "");
    ck_assert_str_ne(listed("u4999", NOW), "");
}
END_TEST

START_TEST(lapsed_ones_go_without_a_loss)
{
    dd_mem_destroy(mem);
    ck_assert_ok(dd_mem_create(100000, &mem));
    char user[16];
    for (int i = 0; i < 3000; i++) {
        snprintf(user, sizeof user, "u%d", i);
        claim_at(user, 1, 10, NOW + i * (int64_t)TTL / 20, 100, DD_OK);
    }
    ck_assert(dd_mem_lost_ms(mem) == INT64_MIN);
}
END_TEST

static _Atomic unsigned won_total;

static void *claim_many(void *arg)
{
    (void)arg;
    unsigned won = 0;
    for (unsigned round = 0; round < 300; round++)
        won += claim_at("shared", round * 2, 5, NOW, 2000, DD_OK);
    atomic_fetch_add(&won_total, won);
    return NULL;
}

START_TEST(eight_threads_never_win_one_id_twice)
{
    pthread_t t[8];
    atomic_store(&won_total, 0);
    for (int i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, claim_many, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_eq(won_total, 299 * 2 + 5);
}
END_TEST

static void *claim_others(void *arg)
{
    char user[32];
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(user, sizeof user, "%s-%u", (char *)arg, i % 500);
        claim_at(user, i, 3, NOW + i, 10, DD_OK);
        dd_mem_sweep(mem, NOW);
        (void)dd_mem_bytes(mem);
    }
    return NULL;
}

START_TEST(eviction_under_eight_threads)
{
    dd_mem_destroy(mem);
    ck_assert_ok(dd_mem_create(200000, &mem));
    pthread_t t[8];
    char names[8][4];
    for (int i = 0; i < 8; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        pthread_create(&t[i], NULL, claim_others, names[i]);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_le(dd_mem_bytes(mem), 200000);
}
END_TEST

static char *dir;
static char path[600];

static void fill_and_save(void)
{
    dir = unit_mkdir();
    snprintf(path, sizeof path, "%s/recent", dir);
    claim_at("u", 1, 3, NOW, 100, DD_OK);
    claim_at("v", 7, 1, NOW + 5000, 100, DD_OK);
    ck_assert_ok(dd_mem_save(mem, path));
    dd_mem_destroy(mem);
    make();
}

START_TEST(saved_deliveries_come_back_once)
{
    fill_and_save();
    ck_assert_ok(dd_mem_load(mem, path));
    ck_assert_str_eq(listed("u", NOW), "i1@0 i2@0 i3@0");
    ck_assert_str_eq(listed("v", NOW), "i7@5");
    ck_assert_uint_eq(claim_at("u", 3, 2, NOW, 100, DD_OK), 1);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_err(dd_mem_load(mem, path), DD_NOT_FOUND);
    ck_assert_err(dd_mem_save(mem, "/nonexistent/recent"), DD_IO);
    unit_rmdir(dir);
}
END_TEST

START_TEST(an_empty_tier_is_saved_too)
{
    dir = unit_mkdir();
    snprintf(path, sizeof path, "%s/recent", dir);
    ck_assert_ok(dd_mem_save(mem, path));
    ck_assert_ok(dd_mem_load(mem, path));
    ck_assert(!dd_mem_may_hold(mem));
    unit_rmdir(dir);
}
END_TEST

static size_t read_file(uint8_t *out, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, out, size);
    close(fd);
    ck_assert_int_gt(n, 0);
    return (size_t)n;
}

static void write_file(const uint8_t *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

START_TEST(damaged_files_are_refused_whole)
{
    fill_and_save();
    uint8_t good[4096], bad[4096];
    size_t n = read_file(good, sizeof good);
    for (size_t i = 0; i < n; i++) {
        memcpy(bad, good, n);
        bad[i] ^= 0x41;
        write_file(bad, n);
        ck_assert_err(dd_mem_load(mem, path), DD_CORRUPT);
        write_file(good, i);
        ck_assert_err(dd_mem_load(mem, path), DD_CORRUPT);
        ck_assert(!dd_mem_may_hold(mem));
    }
    write_file(good, n);
    ck_assert_ok(dd_mem_load(mem, path));
    unit_rmdir(dir);
}
END_TEST

Suite *suite_memory(void);
Suite *suite_memory(void)
{
    Suite *s = suite_create("hot memory");
    TCase *t = tcase_create("memory");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, make, drop);
    tcase_add_test(t, an_id_is_won_once);
    tcase_add_test(t, scene_and_user_do_not_run_together);
    tcase_add_test(t, a_delivery_lapses);
    tcase_add_test(t, the_oldest_are_trimmed_but_nothing_young);
    tcase_add_test(t, a_thousand_young_ones_are_the_limit);
    tcase_add_test(t, unclaimed_ids_are_free_again);
    tcase_add_test(t, find_sees_live_ones);
    tcase_add_test(t, lapsed_users_are_swept);
    tcase_add_test(t, the_bound_holds_and_losses_are_told);
    tcase_add_test(t, lapsed_ones_go_without_a_loss);
    tcase_add_test(t, eight_threads_never_win_one_id_twice);
    tcase_add_test(t, eviction_under_eight_threads);
    tcase_add_test(t, saved_deliveries_come_back_once);
    tcase_add_test(t, an_empty_tier_is_saved_too);
    tcase_add_test(t, damaged_files_are_refused_whole);
    suite_add_tcase(s, t);
    return s;
}
