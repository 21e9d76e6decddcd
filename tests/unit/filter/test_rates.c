/* False positives against the promise: three periods, each with a third of 0.001, filled to n items, asked
 * for items that were never added. Prints a line for each with its 99.9 % interval (Wilson). */
#include "helper.h"

#include <stdio.h>

#include "filter/internal.h"

#define SCENE_FPR 0.001

static const size_t sizes[] = {129, 300, 1000, 3000, 20000};
enum { SIZES = sizeof sizes / sizeof *sizes, KINDS = KINDS_TO - KINDS_FROM + 1 };

static const struct shape {
    const char *name;
    uint8_t growth;
    uint32_t capacity;
    double hint; /* of n; 0: none. 1 / 0.95 fills a layer of bloom or cuckoo to its end */
} shapes[] = {{"growth 2", 2, 256, 0}, {"growth 1", 1, 500, 0}, {"hinted", 2, 256, 1 / 0.95}};

static void fill_period(struct dd_buf *set, const struct dd_filter_policy *p, const struct shape *shape,
                        struct rng *r, size_t n)
{
    uint32_t *fps = random_fps(r, n);
    size_t batch = n < 2000 ? 20 : n / 50;
    for (size_t i = 0; i < n; i += batch) {
        set_add(set, p, (uint32_t)(shape->hint * (double)n), fps + i, n - i < batch ? n - i : batch);
    }
    free(fps);
}

/* One window of three periods asked for `asked` new items: how many are dropped. */
static size_t window_false(const struct dd_filter_policy *p, const struct shape *shape, struct rng *r,
                           size_t n, size_t asked)
{
    struct dd_buf set[3] = {{0}};
    uint32_t *fps = random_fps(r, asked);
    uint8_t *seen = calloc(asked, 1);
    size_t found = 0;
    ck_assert_ptr_nonnull(seen);
    for (int i = 0; i < 3; i++) {
        struct dd_filter_view v;
        fill_period(&set[i], p, shape, r, n);
        ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&set[i])));
        found += dd_filter_view_test(&v, fps, asked, seen, (uint8_t)(i + 1));
        dd_buf_free(&set[i]);
    }
    free(fps);
    free(seen);
    return found;
}

START_TEST(promise_over_the_window)
{
    const struct shape *shape = &shapes[_i % 3];
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)(KINDS_FROM + _i / 3));
    p.fpr = SCENE_FPR / 3, p.growth = shape->growth, p.capacity = shape->capacity;
    for (size_t i = 0; i < (test_is_short() ? 2 : SIZES); i++) {
        struct rng r = {(uint64_t)_i * 100 + i};
        double hits = 0, asked = 0, low, high;
        for (unsigned round = 0; round < (test_is_short() ? 1 : 4) * test_scale(); round++, asked += 50000) {
            hits += (double)window_false(&p, shape, &r, sizes[i], 50000);
        }
        wilson(hits, asked, &low, &high);
        if (getenv("DD_TEST_PRINT")) {
            printf("%-8s %-8s n=%-6zu measured %.6f  interval %.6f .. %.6f  promise %.6f\n",
                   dd_filter_kind_name(p.kind), shape->name, sizes[i], hits / asked, low, high, SCENE_FPR);
        }
        ck_assert_msg(low <= SCENE_FPR, "%s %s n=%zu: %.6f, at least %.6f", dd_filter_kind_name(p.kind),
                      shape->name, sizes[i], hits / asked, low);
    }
}
END_TEST

/* Probes are as good as independent ones: full layers at rates where the difference would show, many sets, at
 * most 1.03 times what the layer was planned for. */
START_TEST(probes_are_independent)
{
    static const uint32_t capacities[] = {129, 1000, 5000};
    uint32_t n = capacities[_i];
    double rate = 0.01, hits = 0, asked = 0, low, high;
    for (unsigned round = 0; round < (test_is_short() ? 5 : 20000 / n + 20) * test_scale(); round++) {
        struct rng r = {round * 31 + (unsigned)_i};
        struct dd_buf body = {0};
        struct dd_filter_want want = {.capacity = n, .rate = rate};
        struct dd_filter_layer l = {.kind = DD_FILTER_BLOOM, .seed = (uint8_t)round};
        uint32_t *fps = random_fps(&r, n), *other = random_fps(&r, 40000);
        uint8_t *seen = calloc(40000, 1);
        dd_filter_bloom_ops.plan(&l, &want);
        l.bytes_len = (uint32_t)dd_filter_bloom_ops.body_bytes(&l);
        uint8_t *bytes = dd_buf_extend(&body, l.bytes_len);
        ck_assert(bytes && seen);
        memset(bytes, 0, l.bytes_len);
        ck_assert_uint_eq(dd_filter_bloom_ops.add(&l, &body, fps, n, true), n);
        l.bytes = bytes;
        hits += (double)dd_filter_bloom_ops.test(&l, other, 40000, seen, 1);
        asked += 40000;
        dd_buf_free(&body);
        free(fps), free(other), free(seen);
    }
    wilson(hits, asked, &low, &high);
    if (getenv("DD_TEST_PRINT")) printf("probes n=%u: %.4f of the budget\n", n, hits / asked / rate);
    ck_assert_msg(low <= 1.03 * rate, "n=%u: %.5f, at least %.5f of %.5f", n, hits / asked, low, rate);
    ck_assert_msg(high >= 0.9 * rate, "n=%u: %.5f is better than can be: the test asks nothing", n,
                  hits / asked);
}
END_TEST

/* What info expects is what is measured. */
START_TEST(info_expects_what_is_measured)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)(KINDS_FROM + _i));
    double expected = 0, hits = 0, asked = 0, low, high;
    p.fpr = 0.05, p.capacity = 1000;
    for (unsigned round = 0; round < 5; round++) {
        struct rng r = {round + 1000 * (unsigned)_i};
        struct dd_buf set = {0};
        fill_period(&set, &p, &shapes[0], &r, 1700);
        expected += set_info(dd_buf_slice(&set)).fpr / 5;
        hits += (double)set_false(dd_buf_slice(&set), &r, 40000);
        asked += 40000;
        dd_buf_free(&set);
    }
    wilson(hits, asked, &low, &high);
    ck_assert_msg(low <= expected && expected <= high, "%s: expected %.5f, measured %.5f .. %.5f",
                  dd_filter_kind_name(p.kind), expected, low, high);
}
END_TEST

Suite *suite_rates(void)
{
    Suite *s = suite_create("filter rates");
    TCase *t = tcase_create("rates");
    tcase_set_timeout(t, 120 * test_scale());
    tcase_add_loop_test(t, promise_over_the_window, 0, KINDS * 3);
    tcase_add_loop_test(t, probes_are_independent, 0, 3);
    tcase_add_loop_test(t, info_expects_what_is_measured, 0, KINDS);
    suite_add_tcase(s, t);
    return s;
}
