/* 10,000 sets filled by several threads at once: no shared state, so each ends as it would alone. */
#include "helper.h"

#include <pthread.h>

enum { SETS = 10000, THREADS = 4 };

struct worker {
    unsigned first, sets_n;
    struct dd_buf *sets;
    bool ok;
    pthread_t id;
};

/* No ck_assert off the main thread: the result is a flag. */
static bool add_batch(struct dd_buf *set, const struct dd_filter_policy *p, const uint32_t *fps, size_t n)
{
    struct dd_buf operand = {0}, out = {0};
    bool ok = dd_filter_operand(p, 0, fps, n, &operand) == DD_OK;
    struct dd_slice one = dd_buf_slice(&operand);
    ok = ok && dd_filter_merge(dd_buf_slice(set), &one, 1, &out, NULL) == DD_OK;
    dd_buf_free(&operand);
    dd_buf_free(set);
    *set = out;
    return ok;
}

static bool fill_one(struct dd_buf *set, unsigned number)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)(KINDS_FROM + number % 4));
    struct rng r = {number};
    uint32_t fps[300];
    size_t n = 20 + number % 280;
    for (size_t i = 0; i < n; i++)
        fps[i] = (uint32_t)(rng_next(&r) >> 32);
    bool ok = true;
    for (size_t i = 0; i < n; i += 60)
        ok &= add_batch(set, &p, fps + i, n - i < 60 ? n - i : 60);
    return ok;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    w->ok = true;
    for (unsigned i = w->first; i < w->sets_n; i += THREADS)
        w->ok &= fill_one(&w->sets[i], i);
    return NULL;
}

START_TEST(many_sets_at_once)
{
    struct worker w[THREADS];
    unsigned n = test_is_short() ? SETS / 50 : SETS;
    struct dd_buf *sets = calloc(SETS, sizeof *sets);
    ck_assert_ptr_nonnull(sets);
    for (unsigned i = 0; i < THREADS; i++) {
        w[i] = (struct worker){.first = i, .sets_n = n, .sets = sets};
        ck_assert_int_eq(pthread_create(&w[i].id, NULL, work, &w[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(w[i].id, NULL), 0);
        ck_assert(w[i].ok);
    }
    for (unsigned i = 0; i < n; i++) {
        if (i % 97 == 0) {
            struct dd_buf alone = {0};
            ck_assert(fill_one(&alone, i));
            ck_assert(dd_slice_eq(dd_buf_slice(&alone), dd_buf_slice(&sets[i])));
            dd_buf_free(&alone);
        }
        dd_buf_free(&sets[i]);
    }
    free(sets);
}
END_TEST

Suite *suite_threads(void)
{
    Suite *s = suite_create("filter threads");
    TCase *t = tcase_create("threads");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, many_sets_at_once);
    suite_add_tcase(s, t);
    return s;
}
