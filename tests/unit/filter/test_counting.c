/* Counting sets against exact counts: never below, rarely above; operands are multisets that add. */
#include "helper.h"

#include "filter/internal.h"

enum { ITEMS = 3000, ROUNDS = 6 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Adds each item as often as times says (0 .. 17), in shuffled batches by the grouping asked for. */
static void add_multiset(struct dd_buf *set, const struct dd_filter_policy *p, struct rng *r,
                         const uint32_t *fps, const unsigned *times, size_t batch)
{
    size_t total = 0, made = 0;
    for (size_t i = 0; i < ITEMS; i++)
        total += times[i];
    uint32_t *all = malloc(total * sizeof *all);
    ck_assert_ptr_nonnull(all);
    for (size_t i = 0; i < ITEMS; i++) {
        for (unsigned t = 0; t < times[i]; t++)
            all[made++] = fps[i];
    }
    for (size_t i = total; i-- > 1;) {
        size_t j = rng_below(r, (uint32_t)i + 1);
        uint32_t swap = all[i];
        all[i] = all[j], all[j] = swap;
    }
    for (size_t i = 0; i < total; i += batch)
        set_add(set, p, 0, all + i, total - i < batch ? total - i : batch);
    free(all);
}

START_TEST(counts_like_the_model)
{
    static const size_t batches[] = {20, 333, 100000};
    struct dd_filter_policy p = policy_of(DD_FILTER_COUNTING);
    struct rng r = {(unsigned)_i + 1};
    uint32_t *fps = random_fps(&r, ITEMS);
    unsigned times[ITEMS], above = 0;
    struct dd_buf set = {0};
    struct dd_filter_view v;
    for (int i = 0; i < ITEMS; i++)
        times[i] = rng_below(&r, 4) ? 1 + rng_below(&r, 3) : rng_below(&r, 18);
    add_multiset(&set, &p, &r, fps, times, batches[_i]);
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&set)));
    ck_assert_uint_gt(v.layers, 0);
    for (int i = 0; i < ITEMS; i++) {
        unsigned got = dd_filter_view_count(&v, fps[i]), true_count = least(times[i], 15);
        ck_assert_msg(got >= true_count, "item %d: %u of %u", i, got, true_count);
        above += got > true_count;
    }
    ck_assert_uint_le(above, 12); /* 3,000 at about 3e-4, twice over for items that two layers know */
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* The list counts exactly, up to 15, and partial merges add. */
START_TEST(lists_count_exactly)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_COUNTING);
    uint32_t a[] = {7, 7, 9}, b[] = {9, 7, 5}, many[40];
    struct dd_buf one = {0}, two = {0}, three = {0}, sum = {0}, set = {0};
    for (int i = 0; i < 40; i++)
        many[i] = 1234;
    ck_assert_ok(dd_filter_operand(&p, 0, a, 3, &one));
    ck_assert_ok(dd_filter_operand(&p, 0, b, 3, &two));
    ck_assert_ok(dd_filter_operand(&p, 0, many, 40, &three));
    struct dd_slice ops[] = {dd_buf_slice(&one), dd_buf_slice(&two), dd_buf_slice(&three)};
    ck_assert_ok(dd_filter_partial_merge(ops, 3, &sum, NULL));
    struct dd_slice united = dd_buf_slice(&sum);
    set_merge(&set, &united, 1);
    set_merge(&set, ops, 1);
    struct dd_filter_view v;
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&set)));
    ck_assert_uint_eq(dd_filter_view_count(&v, 7), 5);
    ck_assert_uint_eq(dd_filter_view_count(&v, 9), 3);
    ck_assert_uint_eq(dd_filter_view_count(&v, 5), 1);
    ck_assert_uint_eq(dd_filter_view_count(&v, 1234), 15);
    ck_assert_uint_eq(dd_filter_view_count(&v, 8), 0);
    ck_assert_uint_eq(v.items, 4);
    dd_buf_free(&one), dd_buf_free(&two), dd_buf_free(&three), dd_buf_free(&sum), dd_buf_free(&set);
}
END_TEST

/* Added twice, an item counts 2 (or, rarely, more) in counting sets and 1 in the others. */
START_TEST(others_do_not_count)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {3};
    unsigned expected = _i == DD_FILTER_COUNTING ? 2 : 1, above = 0;
    uint32_t *fps = random_fps(&r, 1000);
    struct dd_buf set = {0};
    struct dd_filter_view v;
    set_add(&set, &p, 0, fps, 1000);
    set_add(&set, &p, 0, fps, 1000);
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&set)));
    for (int i = 0; i < 1000; i++) {
        unsigned count = dd_filter_view_count(&v, fps[i]);
        ck_assert_uint_ge(count, expected);
        above += count > expected;
    }
    ck_assert_uint_le(above, _i == DD_FILTER_COUNTING ? 4 : 0);
    ck_assert_uint_eq(dd_filter_view_count(&v, 1), 0);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

Suite *suite_counting(void)
{
    Suite *s = suite_create("filter counting");
    TCase *t = tcase_create("counting");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, counts_like_the_model, 0, 3);
    tcase_add_test(t, lists_count_exactly);
    tcase_add_loop_test(t, others_do_not_count, KINDS_FROM, KINDS_TO + 1);
    suite_add_tcase(s, t);
    return s;
}
