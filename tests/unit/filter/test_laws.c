/* The law of the algebra, for every kind and for any grouping and order of the same exposures: no false
 * negative, a repeat changes nothing, and the result opens and says what it holds. */
#include "helper.h"

static const size_t sizes[] = {1,   2,   15,  16,   17,   60,   127,   128,  129,
                               147, 300, 999, 1000, 1025, 5000, 20000, 50000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Policies that differ in how layers come. */
static struct dd_filter_policy shaped(enum dd_filter_kind kind, unsigned shape)
{
    struct dd_filter_policy p = policy_of(kind);
    if (shape == 1) p.growth = 1, p.capacity = 1000;
    if (shape == 2) p.capacity = 16;
    return p;
}
enum { SHAPES = 3 };

/* Batches of `batch`, each merged at once. */
static void by_batches(struct dd_buf *set, const struct dd_filter_policy *p, const uint32_t *fps, size_t n,
                       size_t batch)
{
    for (size_t i = 0; i < n; i += batch)
        set_add(set, p, 0, fps + i, n - i < batch ? n - i : batch);
}

/* Unites operands [from, to) of 20 by partial merges of partial merges, split at random. */
static void tree(struct rng *r, const struct dd_filter_policy *p, const uint32_t *fps, size_t n,
                 struct dd_buf *out)
{
    if (n <= 20 || (n < 200 && rng_below(r, 4) == 0)) {
        ck_assert_ok(dd_filter_operand(p, 0, fps, n, out));
        return;
    }
    struct dd_buf part[3] = {{0}};
    struct dd_slice slice[3];
    size_t a = rng_below(r, (uint32_t)n), b = a + rng_below(r, (uint32_t)(n - a));
    tree(r, p, fps, a, &part[0]), tree(r, p, fps + a, b - a, &part[1]), tree(r, p, fps + b, n - b, &part[2]);
    for (int i = 0; i < 3; i++)
        slice[i] = dd_buf_slice(&part[i]);
    ck_assert_ok(dd_filter_partial_merge(slice, 3, out, NULL));
    for (int i = 0; i < 3; i++)
        dd_buf_free(&part[i]);
}

/* Base of a third, then the rest as one tree. */
static void by_tree(struct dd_buf *set, struct rng *r, const struct dd_filter_policy *p, const uint32_t *fps,
                    size_t n)
{
    struct dd_buf operand = {0};
    if (n > 2) set_add(set, p, 0, fps, n / 3);
    tree(r, p, fps + (n > 2 ? n / 3 : 0), n - (n > 2 ? n / 3 : 0), &operand);
    struct dd_slice one = dd_buf_slice(&operand);
    set_merge(set, &one, 1);
    dd_buf_free(&operand);
}

/* Everything in one full merge of many operands of different lengths. */
static void at_once(struct dd_buf *set, struct rng *r, const struct dd_filter_policy *p, const uint32_t *fps,
                    size_t n)
{
    struct dd_buf *operand = calloc(n + 1, sizeof *operand);
    struct dd_slice *slice = calloc(n + 1, sizeof *slice);
    size_t made = 0;
    ck_assert(operand && slice);
    for (size_t at = 0; at < n; made++) {
        size_t len = 1 + rng_below(r, 60);
        if (len > n - at) len = n - at;
        ck_assert_ok(dd_filter_operand(p, 0, fps + at, len, &operand[made]));
        slice[made] = dd_buf_slice(&operand[made]);
        at += len;
    }
    set_merge(set, slice, made);
    for (size_t i = 0; i < made; i++)
        dd_buf_free(&operand[i]);
    free(operand);
    free(slice);
}

/* Nothing lost, and the rate that the layers come to as they are filled stays within the period's share: with
 * room for the chance of a fill in layers of 16. */
static void holds_all(const struct dd_buf *set, const struct dd_filter_policy *p, const uint32_t *fps,
                      size_t n, const char *how)
{
    size_t found = set_present(dd_buf_slice(set), fps, n);
    ck_assert_msg(found == n, "%s: %zu of %zu lost", how, n - found, n);
    struct dd_filter_info info = set_info(dd_buf_slice(set));
    ck_assert_uint_le(info.items, n);
    ck_assert_msg(info.items + 3 + n / 200 >= n, "%s: %u items of %zu", how, info.items, n);
    ck_assert(!info.damaged);
    ck_assert_msg(info.fpr <= p->fpr * (p->capacity < 100 ? 2 : 1.15),
                  "%s of %zu: expected rate %g, share %g", how, n, info.fpr, p->fpr);
}

static void check_groupings(struct rng *r, const struct dd_filter_policy *p, size_t n)
{
    uint32_t *fps = random_fps(r, n);
    struct dd_buf set[4] = {{0}};
    by_batches(&set[0], p, fps, n, n <= 300 ? 1 : n <= 5000 ? 20 : 2000);
    by_tree(&set[1], r, p, fps, n);
    at_once(&set[2], r, p, fps, n);
    by_batches(&set[3], p, fps, n, n);
    holds_all(&set[0], p, fps, n, "batches");
    holds_all(&set[1], p, fps, n, "tree");
    holds_all(&set[2], p, fps, n, "operands");
    holds_all(&set[3], p, fps, n, "one operand");
    for (int i = 0; i < 4; i++)
        dd_buf_free(&set[i]);
    free(fps);
}

START_TEST(no_false_negative)
{
    enum dd_filter_kind kind = (enum dd_filter_kind)(KINDS_FROM + _i / SHAPES);
    struct dd_filter_policy p = shaped(kind, (unsigned)_i % SHAPES);
    for (unsigned seed = 1; seed <= 2 * test_scale(); seed++) {
        struct rng r = {seed * 1000 + (unsigned)_i};
        for (size_t i = 0; i < SIZES && (sizes[i] < 2000 || !test_is_short()); i++)
            check_groupings(&r, &p, sizes[i]);
    }
}
END_TEST

/* Added again in any grouping, the same items leave the blob byte for byte as it was. */
START_TEST(repeats_change_nothing)
{
    enum dd_filter_kind kind = (enum dd_filter_kind)(KINDS_FROM + _i / SHAPES);
    if (kind == DD_FILTER_COUNTING) return;
    struct dd_filter_policy p = shaped(kind, (unsigned)_i % SHAPES);
    struct rng r = {(unsigned)_i + 77};
    for (size_t i = 0; i < SIZES && sizes[i] <= 5000; i++) {
        uint32_t *fps = random_fps(&r, sizes[i]);
        struct dd_buf set = {0}, before = {0};
        by_batches(&set, &p, fps, sizes[i], 20);
        dd_buf_add_slice(&before, dd_buf_slice(&set));
        by_batches(&set, &p, fps, sizes[i], 33);
        by_tree(&set, &r, &p, fps, sizes[i]);
        ck_assert(dd_slice_eq(dd_buf_slice(&set), dd_buf_slice(&before)));
        dd_buf_free(&set);
        dd_buf_free(&before);
        free(fps);
    }
}
END_TEST

/* Fingerprints that are anything but uniform: all small, all large, evenly spaced, in two heaps. */
START_TEST(lopsided_fingerprints)
{
    enum { N = 3000 };
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)(KINDS_FROM + _i / 4));
    uint32_t *fps = malloc(N * sizeof *fps);
    struct dd_buf set = {0};
    ck_assert_ptr_nonnull(fps);
    for (uint32_t i = 0; i < N; i++) {
        fps[i] = (uint32_t[]){i, UINT32_MAX - i, i * 1431655, i % 2 ? i * 64 : 0xff000000u + i * 64}[_i % 4];
    }
    by_batches(&set, &p, fps, N, 70);
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, N), N);
    ck_assert_uint_ge(set_info(dd_buf_slice(&set)).layers, 1);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* One item 100,000 times, in batches that hold nothing else. */
START_TEST(one_item_for_ever)
{
    for (unsigned kind = KINDS_FROM; kind <= KINDS_TO; kind++) {
        struct dd_filter_policy p = policy_of((enum dd_filter_kind)kind);
        struct dd_buf set = {0};
        struct rng r = {kind};
        uint32_t *fps = random_fps(&r, 1000), same[100];
        set_add(&set, &p, 0, fps, 1000);
        for (int i = 0; i < 100; i++)
            same[i] = fps[500];
        set_add(&set, &p, 0, same, 100);
        struct dd_filter_info before = set_info(dd_buf_slice(&set));
        for (int i = 0; i < (test_is_short() ? 50 : 1000); i++)
            set_add(&set, &p, 0, same, 100);
        struct dd_filter_info after = set_info(dd_buf_slice(&set));
        ck_assert_uint_eq(after.items, before.items);
        ck_assert_uint_eq(after.bytes, before.bytes);
        ck_assert_uint_eq(after.layers, before.layers);
        dd_buf_free(&set);
        free(fps);
    }
}
END_TEST

/* The bits of two dense sets together: layers are appended, nothing is lost, the expected rate is the sum. */
START_TEST(dense_with_dense)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {(unsigned)_i};
    uint32_t *a = random_fps(&r, 3000), *b = random_fps(&r, 2000);
    struct dd_buf one = {0}, two = {0}, sum = {0}, partial = {0};
    set_add(&one, &p, 0, a, 3000);
    set_add(&two, &p, 0, b, 2000);
    double expected = set_info(dd_buf_slice(&one)).fpr + set_info(dd_buf_slice(&two)).fpr;
    struct dd_slice both[2] = {dd_buf_slice(&one), dd_buf_slice(&two)};
    ck_assert_ok(dd_filter_merge(both[0], &both[1], 1, &sum, NULL));
    ck_assert_ok(dd_filter_partial_merge(both, 2, &partial, NULL));
    ck_assert_uint_eq(set_present(dd_buf_slice(&sum), a, 3000), 3000);
    ck_assert_uint_eq(set_present(dd_buf_slice(&sum), b, 2000), 2000);
    ck_assert_uint_eq(set_present(dd_buf_slice(&partial), a, 3000), 3000);
    ck_assert_uint_eq(set_present(dd_buf_slice(&partial), b, 2000), 2000);
    ck_assert_double_le(set_info(dd_buf_slice(&sum)).fpr, expected * 1.1);
    dd_buf_free(&one), dd_buf_free(&two), dd_buf_free(&sum), dd_buf_free(&partial);
    free(a), free(b);
}
END_TEST

/* What cannot be read is left out, counted and flagged, and the flag stays. */
START_TEST(unreadable_inputs)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct rng r = {5};
    uint32_t *fps = random_fps(&r, 60);
    struct dd_buf base = {0}, good = {0}, out = {0}, partial = {0}, again = {0};
    struct dd_filter_merge_report report;
    set_add(&base, &p, 0, fps, 40);
    ck_assert_ok(dd_filter_operand(&p, 0, fps + 40, 20, &good));
    struct dd_slice ops[3] = {dd_slice_str("garbage that is longer than a header and a trailer"),
                              dd_buf_slice(&good), dd_slice_of(good.data, good.len - 1)};
    ck_assert_ok(dd_filter_merge(dd_buf_slice(&base), ops, 3, &out, &report));
    ck_assert_uint_eq(report.skipped, 2);
    ck_assert(!report.base_damaged);
    ck_assert_uint_eq(set_present(dd_buf_slice(&out), fps, 60), 60);
    ck_assert(set_info(dd_buf_slice(&out)).damaged);
    set_merge(&out, &ops[1], 1);
    ck_assert(set_info(dd_buf_slice(&out)).damaged);

    ck_assert_ok(dd_filter_partial_merge(ops, 3, &partial, &report));
    ck_assert_uint_eq(report.skipped, 2);
    ck_assert(set_info(dd_buf_slice(&partial)).damaged);
    ck_assert_uint_eq(set_present(dd_buf_slice(&partial), fps + 40, 20), 20);
    struct dd_slice tainted[2] = {dd_buf_slice(&good),
                                  dd_buf_slice(&partial)}; /* whatever it is united with */
    ck_assert_ok(dd_filter_partial_merge(tainted, 2, &again, &report));
    ck_assert(set_info(dd_buf_slice(&again)).damaged);
    set_merge(&again, tainted, 1);
    ck_assert(set_info(dd_buf_slice(&again)).damaged);
    ck_assert_uint_eq(set_present(dd_buf_slice(&again), fps + 40, 20), 20);
    dd_buf_reset(&again);

    ck_assert_ok(dd_filter_merge(ops[0], &ops[1], 1, &again, &report));
    ck_assert(report.base_damaged);
    ck_assert_uint_eq(report.skipped, 0);
    ck_assert_uint_eq(set_present(dd_buf_slice(&again), fps + 40, 20), 20);
    dd_buf_reset(&again);
    ck_assert_ok(dd_filter_merge(ops[0], ops, 1, &again, &report));
    ck_assert(set_info(dd_buf_slice(&again)).damaged); /* nothing readable at all: still a set, and flagged */
    dd_buf_free(&base), dd_buf_free(&good), dd_buf_free(&out), dd_buf_free(&partial), dd_buf_free(&again);
    free(fps);
}
END_TEST

START_TEST(nothing_of_nothing)
{
    struct dd_buf out = {0};
    struct dd_slice none[2] = {{0}};
    dd_buf_add_str(&out, "kept");
    ck_assert_ok(dd_filter_merge(none[0], none, 2, &out, NULL));
    ck_assert_ok(dd_filter_partial_merge(none, 0, &out, NULL));
    ck_assert_uint_eq(out.len, 4);
    ck_assert_uint_eq(set_info(none[0]).items, 0);
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    ck_assert_ok(dd_filter_operand(&p, 0, NULL, 0, &out));
    ck_assert_uint_eq(set_info(dd_slice_of(out.data + 4, out.len - 4)).items, 0);
    ck_assert_uint_eq(out.len, 4 + 32);
    dd_buf_free(&out);
}
END_TEST

Suite *suite_laws(void)
{
    Suite *s = suite_create("filter laws");
    TCase *t = tcase_create("laws");
    tcase_set_timeout(t, 120 * test_scale());
    tcase_add_loop_test(t, no_false_negative, 0, (KINDS_TO - KINDS_FROM + 1) * SHAPES);
    tcase_add_loop_test(t, repeats_change_nothing, 0, (KINDS_TO - KINDS_FROM + 1) * SHAPES);
    tcase_add_loop_test(t, lopsided_fingerprints, 0, 4 * (KINDS_TO - KINDS_FROM + 1));
    tcase_add_test(t, one_item_for_ever);
    tcase_add_loop_test(t, dense_with_dense, KINDS_FROM, KINDS_TO + 1);
    tcase_add_test(t, unreadable_inputs);
    tcase_add_test(t, nothing_of_nothing);
    suite_add_tcase(s, t);
    return s;
}
