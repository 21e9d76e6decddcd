/* Sorted lists against qsort and linear search. */
#include "helper.h"

#include "filter/internal.h"

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Values that repeat, cluster and reach both ends. */
static uint32_t awkward(struct rng *r)
{
    switch (rng_below(r, 4)) {
    case 0:
        return rng_below(r, 10);
    case 1:
        return UINT32_MAX - rng_below(r, 10);
    case 2:
        return 0x80000000u + rng_below(r, 100);
    default:
        return (uint32_t)rng_next(r);
    }
}

static uint32_t *awkward_list(struct rng *r, size_t n)
{
    uint32_t *v = malloc((2 * n + 1) * sizeof *v);
    ck_assert_ptr_nonnull(v);
    for (size_t i = 0; i < n; i++)
        v[i] = awkward(r);
    return v;
}

START_TEST(sort_like_qsort)
{
    struct rng r = {1};
    for (size_t n = 0; n < 400; n += 1 + n / 9) {
        uint32_t *v = awkward_list(&r, n), *w = malloc((n + 1) * sizeof *w);
        ck_assert_ptr_nonnull(w);
        memcpy(w, v, n * sizeof *w);
        dd_list_sort(v, n, v + n);
        qsort(w, n, sizeof *w, ascending);
        ck_assert(memcmp(v, w, n * sizeof *w) == 0);
        free(v), free(w);
    }
}
END_TEST

START_TEST(merge_many_runs)
{
    struct rng r = {2};
    for (size_t runs = 1; runs < 40; runs++) {
        size_t starts[41] = {0}, n = runs * 13;
        uint32_t *v = awkward_list(&r, n), *w = malloc(n * sizeof *w);
        ck_assert_ptr_nonnull(w);
        for (size_t i = 1; i < runs; i++)
            starts[i] = starts[i - 1] + rng_below(&r, 20) % (n - starts[i - 1] + 1);
        starts[runs] = n;
        for (size_t i = 0; i < runs; i++)
            qsort(v + starts[i], starts[i + 1] - starts[i], sizeof *v, ascending);
        memcpy(w, v, n * sizeof *w);
        qsort(w, n, sizeof *w, ascending);
        dd_list_merge_runs(v, starts, runs, v + n);
        ck_assert(memcmp(v, w, n * sizeof *w) == 0);
        free(v), free(w);
    }
}
END_TEST

START_TEST(copies_are_limited)
{
    uint32_t v[] = {1, 1, 1, 2, 3, 3, 3, 3, 9}, w[9], a[] = {1, 1, 4}, b[] = {1, 3, 4, 4}, out[7];
    memcpy(w, v, sizeof w);
    ck_assert_uint_eq(dd_list_limit_copies(w, 9, 1), 4);
    ck_assert(w[0] == 1 && w[1] == 2 && w[2] == 3 && w[3] == 9);
    memcpy(w, v, sizeof w);
    ck_assert_uint_eq(dd_list_limit_copies(w, 9, 3), 8);
    ck_assert_uint_eq(dd_list_distinct(v, 9), 4);
    ck_assert_uint_eq(dd_list_distinct(v, 0), 0);
    ck_assert_uint_eq(dd_list_union(a, 3, b, 4, out, 2), 5);
    ck_assert(out[0] == 1 && out[1] == 1 && out[2] == 3 && out[3] == 4 && out[4] == 4);
}
END_TEST

/* Every search against counting; also that a search in an unsorted list stays inside it. */
START_TEST(search_like_a_scan)
{
    struct rng r = {3};
    for (size_t n = 0; n < 300; n += 1 + n / 7) {
        uint32_t *v = awkward_list(&r, n);
        dd_list_sort(v, n, v + n);
        for (int i = 0; i < 300; i++) {
            uint32_t x = n > 0 && i % 2 ? v[rng_below(&r, (uint32_t)n)] : awkward(&r);
            unsigned copies = 0;
            uint8_t seen = 0;
            for (size_t j = 0; j < n; j++)
                copies += v[j] == x;
            if (copies > DD_FILTER_COPIES) copies = DD_FILTER_COPIES;
            ck_assert_uint_eq(dd_list_count((uint8_t *)v, (uint32_t)n, x), copies);
            ck_assert_uint_eq(dd_list_test((uint8_t *)v, (uint32_t)n, &x, 1, &seen, 9), copies > 0);
            ck_assert_uint_eq(seen, copies > 0 ? 9 : 0);
        }
        for (size_t j = 0; j < n; j++)
            v[j] = awkward(&r);
        for (int i = 0; i < 100; i++)
            (void)dd_list_count((uint8_t *)v, (uint32_t)n, awkward(&r));
        free(v);
    }
}
END_TEST

/* A repeat and a descent at each place of lists of every length. */
START_TEST(check_at_every_place)
{
    uint32_t v[41], distinct;
    for (uint32_t n = 0; n <= 41; n++) {
        for (uint32_t i = 0; i < n; i++)
            v[i] = 0x7ffffff0u + i; /* across the sign of 32 bits */
        ck_assert(dd_list_check((uint8_t *)v, n, false, &distinct));
        ck_assert_uint_eq(distinct, n);
        for (uint32_t at = 1; at < n; at++) {
            uint32_t was = v[at];
            v[at] = v[at - 1];
            ck_assert(!dd_list_check((uint8_t *)v, n, false, &distinct));
            ck_assert(dd_list_check((uint8_t *)v, n, true, &distinct));
            ck_assert_uint_eq(distinct, n - 1);
            v[at] = v[at - 1] - 1;
            ck_assert(!dd_list_check((uint8_t *)v, n, true, &distinct));
            v[at] = was;
        }
    }
}
END_TEST

Suite *suite_list(void)
{
    Suite *s = suite_create("filter list");
    TCase *t = tcase_create("list");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, sort_like_qsort);
    tcase_add_test(t, merge_many_runs);
    tcase_add_test(t, copies_are_limited);
    tcase_add_test(t, search_like_a_scan);
    tcase_add_test(t, check_at_every_place);
    suite_add_tcase(s, t);
    return s;
}
