#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"

START_TEST(errors_have_unique_names)
{
    for (int i = DD_OK; i <= DD_SHUTDOWN; i++)
        for (int j = DD_OK; j < i; j++)
            ck_assert_str_ne(dd_err_name((enum dd_err)i), dd_err_name((enum dd_err)j));
    ck_assert_str_eq(dd_err_name((enum dd_err)9999), "unknown");
    ck_assert_str_eq(dd_err_name((enum dd_err) - 1), "unknown");
}
END_TEST

START_TEST(slices_compare_bytewise)
{
    ck_assert_int_lt(dd_slice_cmp(dd_slice_str("a"), dd_slice_str("ab")), 0);
    ck_assert_int_gt(dd_slice_cmp(dd_slice_str("b"), dd_slice_str("ab")), 0);
    ck_assert_int_eq(dd_slice_cmp(dd_slice_of("a\0b", 3), dd_slice_of("a\0b", 3)), 0);
    ck_assert(!dd_slice_eq(dd_slice_of("a\0b", 3), dd_slice_of("a\0c", 3)));
    ck_assert(dd_slice_eq(dd_slice_of(NULL, 0), dd_slice_str("")));
}
END_TEST

START_TEST(a_buffer_grows_and_prints)
{
    struct dd_buf b = {0};
    dd_buf_add_i64(&b, INT64_MIN);
    dd_buf_add_u8(&b, ' ');
    dd_buf_add_i64(&b, INT64_MAX);
    dd_buf_addf(&b, " %s %d", "x", 7);
    for (int i = 0; i < 1000; i++)
        dd_buf_add_str(&b, "0123456789");
    ck_assert(dd_buf_ok(&b));
    const char *head = "-9223372036854775808 9223372036854775807 x 7012";
    ck_assert_mem_eq(b.data, head, strlen(head));
    ck_assert_uint_eq(b.len, strlen(head) - 3 + 10000);
    dd_buf_free(&b);
}
END_TEST

START_TEST(a_buffer_that_cannot_grow_is_failed_and_unchanged)
{
    struct dd_buf b = {0};
    dd_buf_add_str(&b, "kept");
    ck_assert(!dd_buf_reserve(&b, SIZE_MAX - 100));
    ck_assert(!dd_buf_ok(&b));
    dd_buf_add_str(&b, "more");
    ck_assert_uint_eq(b.len, 4);
    dd_buf_reset(&b);
    dd_buf_add_str(&b, "again");
    ck_assert(dd_buf_ok(&b));
    dd_buf_free(&b);
}
END_TEST

START_TEST(an_arena_gives_aligned_zeroed_memory_and_keeps_its_first_block)
{
    struct dd_arena a = {0};
    void *first = dd_arena_alloc(&a, 10);
    for (size_t n = 0; n < 40000; n += 997) {
        uint8_t *p = dd_arena_calloc(&a, n, 1);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(p[i], 0);
        memset(p, 0xff, n);
    }
    ck_assert_ptr_null(dd_arena_calloc(&a, SIZE_MAX / 2, 4));
    ck_assert_ptr_null(dd_arena_alloc(&a, SIZE_MAX - 8));
    dd_arena_reset(&a);
    ck_assert_ptr_eq(dd_arena_alloc(&a, 10), first);
    struct dd_slice copy = dd_arena_copy(&a, dd_slice_str("hello"));
    ck_assert(dd_slice_eq(copy, dd_slice_str("hello")));
    ck_assert_uint_eq(dd_arena_copy(&a, dd_slice_of(NULL, 0)).len, 0);
    dd_arena_free(&a);
}
END_TEST

START_TEST(the_period_clock_never_goes_back)
{
    struct dd_clock c;
    dd_clock_init_manual(&c, 1000);
    ck_assert_int_eq(dd_clock_behind_ms(&c), 0); /* also before it was first asked */
    ck_assert_int_eq(dd_clock_period_now(&c).ms, 1000);
    dd_clock_move(&c, -400);
    ck_assert_int_eq(dd_clock_wall(&c).ms, 600);
    ck_assert_int_eq(dd_clock_period_now(&c).ms, 1000);
    ck_assert_int_eq(dd_clock_behind_ms(&c), 400);
    dd_clock_move(&c, 500);
    ck_assert_int_eq(dd_clock_period_now(&c).ms, 1100);
    ck_assert_int_eq(dd_clock_behind_ms(&c), 0);
    dd_clock_observe(&c, 1500);
    dd_clock_observe(&c, 1200);
    ck_assert_int_eq(dd_clock_period_now(&c).ms, 1500);
    ck_assert_int_eq(dd_clock_behind_ms(&c), 400);
    dd_clock_set_offset(&c, 10000);
    ck_assert_int_eq(dd_clock_wall(&c).ms, 11100);
}
END_TEST

/* Vectors fix the hashing: a change would lose every fingerprint ever stored. Those without a
 * secret were checked against another implementation (python3-xxhash). */
START_TEST(hashing_is_fixed)
{
    struct dd_secret secret;
    for (int i = 0; i < DD_SECRET_BYTES; i++)
        secret.bytes[i] = (uint8_t)(i * 7 + 1);
    uint64_t seed = dd_hash_user_seed(&secret, dd_slice_str("default"), dd_slice_str("alice"));
    ck_assert_uint_eq(dd_hash64(dd_slice_str("hello"), 42), 0xbafa072f07db7937ULL);
    ck_assert_uint_eq(seed, 0x6ca0b9b359e8c17eULL);
    ck_assert_uint_eq(dd_hash_fingerprint(seed, dd_slice_str("42")), 0x3754bf27u);
}
END_TEST

START_TEST(scene_and_user_do_not_run_into_each_other)
{
    struct dd_secret secret = {{1}};
    ck_assert_uint_ne(dd_hash_user_seed(&secret, dd_slice_str("a"), dd_slice_str("bc")),
                      dd_hash_user_seed(&secret, dd_slice_str("ab"), dd_slice_str("c")));
}
END_TEST

START_TEST(random_bytes_differ)
{
    uint64_t a, b;
    ck_assert_ok(dd_random(&a, sizeof a));
    ck_assert_ok(dd_random(&b, sizeof b));
    ck_assert_uint_ne(a, b);
}
END_TEST

/* Runs with standard error in a pipe. */
START_TEST(a_log_line_cannot_be_forged_and_is_cut)
{
    int fd[2], saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(fd), 0);
    dup2(fd[1], STDERR_FILENO);
    char longer[3000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    dd_log_set_level(DD_LOG_INFO);
    dd_debug("test.hidden", "%s", "");
    dd_info("test.line", "user=%s", "a\nb\x1b[0m");
    dd_warn("test.long", "%s", longer);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd[1]);
    char got[4096];
    ssize_t n = read(fd[0], got, sizeof got - 1);
    close(fd[0]);
    ck_assert_int_gt(n, 0);
    got[n] = 0;
    ck_assert_ptr_nonnull(strstr(got, "Z info test.line user=a?b?[0m\n"));
    ck_assert_ptr_null(strstr(got, "test.hidden"));
    ck_assert_int_le(n, 1001 + 80);
    ck_assert_int_eq(got[n - 1], '\n');
}
END_TEST

Suite *suite_base(void);
Suite *suite_base(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, errors_have_unique_names);
    tcase_add_test(t, slices_compare_bytewise);
    tcase_add_test(t, a_buffer_grows_and_prints);
    tcase_add_test(t, a_buffer_that_cannot_grow_is_failed_and_unchanged);
    tcase_add_test(t, an_arena_gives_aligned_zeroed_memory_and_keeps_its_first_block);
    tcase_add_test(t, the_period_clock_never_goes_back);
    tcase_add_test(t, hashing_is_fixed);
    tcase_add_test(t, scene_and_user_do_not_run_into_each_other);
    tcase_add_test(t, random_bytes_differ);
    tcase_add_test(t, a_log_line_cannot_be_forged_and_is_cut);
    suite_add_tcase(s, t);
    return s;
}
