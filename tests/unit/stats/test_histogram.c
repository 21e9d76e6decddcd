/* Histograms against a sorted array: the quantile is at least the true one and at most 6.25 % above it. */
#include <stdio.h>
#include <stdlib.h>

#include "stats/stats.h"
#include "suites.h"

static struct dd_stats *stats;
static struct dd_histogram *h;

static void setup(void)
{
    ck_assert_ok(dd_stats_create(&stats));
    h = dd_stats_histogram(stats, "dedupd_test_seconds", "A test.");
}

static void teardown(void)
{
    dd_stats_destroy(stats);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(empty_is_zero)
{
    ck_assert_uint_eq(dd_histogram_count(h), 0);
    ck_assert_int_eq(dd_histogram_quantile(h, 0.5), 0);
}
END_TEST

START_TEST(one_value_at_every_scale)
{
    for (unsigned power = 0; power < 32; power++) {
        for (int64_t near = -1; near <= 1; near++) {
            int64_t us = ((int64_t)1 << power) + near;
            char name[64];
            snprintf(name, sizeof name, "dedupd_test_%lld", (long long)us);
            struct dd_histogram *one = dd_stats_histogram(stats, name, "A test.");
            dd_histogram_record(one, us);
            int64_t q = dd_histogram_quantile(one, 1.0);
            ck_assert_int_ge(q, us);
            ck_assert_int_le(q, us + us / 16);
        }
    }
}
END_TEST

START_TEST(out_of_range_is_clamped)
{
    dd_histogram_record(h, -5);
    ck_assert_int_eq(dd_histogram_quantile(h, 1.0), 0);
    dd_histogram_record(h, INT64_MAX);
    ck_assert_int_eq(dd_histogram_quantile(h, 1.0), ((int64_t)1 << 32) - 1);
    ck_assert_uint_eq(dd_histogram_count(h), 2);
}
END_TEST

START_TEST(quantiles_match_a_sorted_array)
{
    enum { N = 20000 };
    static int64_t values[N];
    unsigned seed = 3;
    for (int i = 0; i < N; i++) {
        values[i] = rand_r(&seed) % (1 << (rand_r(&seed) % 28 + 1));
        dd_histogram_record(h, values[i]);
    }
    qsort(values, N, sizeof *values, by_value);
    static const double qs[] = {0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0};
    for (size_t i = 0; i < sizeof qs / sizeof *qs; i++) {
        int64_t truth = values[(int)(qs[i] * N + 0.5) - 1], got = dd_histogram_quantile(h, qs[i]);
        ck_assert_int_ge(got, truth);
        ck_assert_int_le(got, truth + truth / 16);
    }
    ck_assert_uint_eq(dd_histogram_count(h), N);
}
END_TEST

Suite *suite_histogram(void)
{
    Suite *s = suite_create("histogram");
    TCase *t = tcase_create("histogram");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, empty_is_zero);
    tcase_add_test(t, one_value_at_every_scale);
    tcase_add_test(t, out_of_range_is_clamped);
    tcase_add_test(t, quantiles_match_a_sorted_array);
    suite_add_tcase(s, t);
    return s;
}
