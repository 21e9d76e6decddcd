/* Forgetting against an exact model: what is forgotten is gone, what is not stays, but for those that a layer
 * could not tell apart, at most at rate fpr. */
#include "helper.h"

enum { ITEMS = 20000 };

static void forget(struct dd_buf *set, const uint32_t *fps, size_t n, size_t *removed)
{
    struct dd_buf out = {0};
    ck_assert_ok(dd_filter_forget(dd_buf_slice(set), fps, n, &out, removed));
    dd_buf_free(set);
    *set = out;
}

/* Forgets every third in batches of 50; adds again; several layers. */
START_TEST(forgets_what_it_is_told)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {(unsigned)_i};
    uint32_t *fps = random_fps(&r, ITEMS);
    struct dd_buf set = {0};
    size_t gone = 0, n = ITEMS / 3 / 50 * 50;
    set_add(&set, &p, 0, fps, ITEMS / 2);
    set_add(&set, &p, 0, fps + ITEMS / 2, ITEMS / 2);
    ck_assert_uint_ge(set_info(dd_buf_slice(&set)).layers, 1);
    for (size_t i = 0; i < n; i += 50) {
        size_t removed;
        forget(&set, fps + i, 50, &removed);
        ck_assert_uint_le(removed, 50);
        gone += removed;
    }
    ck_assert_uint_ge(gone + 20, n); /* a few share a fingerprint prefix with one that went before */
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, n) <= 20, 1);
    size_t left = ITEMS - n, kept = set_present(dd_buf_slice(&set), fps + n, left);
    ck_assert_msg(kept + 12 >= left, "%zu of %zu lost", left - kept,
                  left); /* 13,000 at 3e-4: 4 expected at most */
    struct dd_filter_info info = set_info(dd_buf_slice(&set));
    ck_assert_uint_le(info.items, left + 10);
    set_add(&set, &p, 0, fps, n);
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, n), n);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

START_TEST(everything_can_go)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {(unsigned)_i + 50};
    uint32_t *fps = random_fps(&r, 2000);
    struct dd_buf set = {0};
    size_t removed;
    set_add(&set, &p, 0, fps, 2000);
    forget(&set, fps, 2000, &removed);
    ck_assert_uint_eq(removed, 2000);
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, 2000), 0);
    forget(&set, fps, 2000, &removed);
    ck_assert_uint_eq(removed, 0);
    set_add(&set, &p, 0, fps, 2000);
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, 2000), 2000);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* Bloom: the list can, layers cannot. */
START_TEST(bloom_layers_cannot)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct rng r = {1};
    uint32_t *fps = random_fps(&r, 1000), unknown = 3;
    struct dd_buf set = {0}, out = {0};
    size_t removed = 99;
    set_add(&set, &p, 0, fps, 100);
    forget(&set, fps, 10, &removed);
    ck_assert_uint_eq(removed, 10);
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, 100), 90);
    forget(&set, &unknown, 1, &removed);
    ck_assert_uint_eq(removed, 0);
    set_add(&set, &p, 0, fps, 1000);
    ck_assert_err(dd_filter_forget(dd_buf_slice(&set), fps, 10, &out, &removed), DD_UNSUPPORTED);
    ck_assert_uint_eq(out.len, 0);
    /* what no layer holds can be forgotten: nothing changes */
    while (set_present(dd_buf_slice(&set), &unknown, 1))
        unknown++;
    ck_assert_ok(dd_filter_forget(dd_buf_slice(&set), &unknown, 1, &out, &removed));
    ck_assert_uint_eq(removed, 0);
    ck_assert_uint_eq(set_present(dd_buf_slice(&out), fps, 1000), 1000);
    dd_buf_reset(&out);
    ck_assert_err(dd_filter_forget(dd_slice_of(set.data, set.len - 1), fps, 10, &out, &removed), DD_CORRUPT);
    ck_assert_ok(dd_filter_forget(dd_slice_of(NULL, 0), fps, 10, &out, &removed));
    ck_assert_uint_eq(removed, 0);
    ck_assert_uint_eq(out.len, 0);
    dd_buf_free(&set), dd_buf_free(&out);
    free(fps);
}
END_TEST

/* A counter at 15 may stand for more: the item stays. Below that it goes with all its additions. */
START_TEST(counting_keeps_the_saturated)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_COUNTING);
    struct rng r = {2};
    uint32_t *fps = random_fps(&r, 1000);
    struct dd_buf set = {0};
    size_t removed;
    set_add(&set, &p, 0, fps, 1000);
    for (int i = 0; i < 20; i++)
        set_add(&set, &p, 0, fps, 300);
    for (int i = 0; i < 5; i++)
        set_add(&set, &p, 0, fps + 300, 100);
    uint32_t items = set_info(dd_buf_slice(&set)).items;
    forget(&set, fps, 300, &removed);
    ck_assert_uint_eq(removed, 0);
    ck_assert_uint_eq(set_info(dd_buf_slice(&set)).items, items);
    forget(&set, fps + 300, 600, &removed);
    ck_assert_uint_ge(removed, 590); /* all but those whose counters are all shared with the saturated */
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, 300), 300);
    ck_assert_uint_ge(set_present(dd_buf_slice(&set), fps + 900, 100), 99);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* Where layers confuse many items, forgetting all of them still leaves none. */
START_TEST(confused_items_go_together)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {(unsigned)_i + 9};
    uint32_t *fps = random_fps(&r, 20000);
    struct dd_buf set = {0};
    size_t removed;
    p.fpr = 0.05;
    set_add(&set, &p, 0, fps, 20000);
    ck_assert_uint_lt(set_info(dd_buf_slice(&set)).items, 19990);
    forget(&set, fps, 20000, &removed);
    ck_assert_uint_ge(removed, 19990); /* chance repeats some */
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, 20000), 0);
    ck_assert_uint_eq(set_info(dd_buf_slice(&set)).items, 0);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

Suite *suite_forget(void)
{
    Suite *s = suite_create("filter forget");
    TCase *t = tcase_create("forget");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, forgets_what_it_is_told, DD_FILTER_COUNTING, DD_FILTER_COMPACT + 1);
    tcase_add_loop_test(t, everything_can_go, DD_FILTER_COUNTING, DD_FILTER_COMPACT + 1);
    tcase_add_test(t, bloom_layers_cannot);
    tcase_add_test(t, counting_keeps_the_saturated);
    tcase_add_loop_test(t, confused_items_go_together, DD_FILTER_CUCKOO, DD_FILTER_COMPACT + 1);
    suite_add_tcase(s, t);
    return s;
}
