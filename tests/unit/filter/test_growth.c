/* How sets grow: the list first, layers by policy and hint, rotate, saturate, a policy that changes on the
 * way. */
#include "helper.h"

#include "filter/internal.h"

/* Sparse users: 4 bytes an item and 32. */
START_TEST(light_users_are_small)
{
    for (unsigned kind = KINDS_FROM; kind <= KINDS_TO; kind++) {
        struct dd_filter_policy p = policy_of((enum dd_filter_kind)kind);
        struct rng r = {kind};
        uint32_t *fps = random_fps(&r, 120);
        for (size_t n = 1; n <= 120; n++) {
            struct dd_buf set = {0};
            set_add(&set, &p, 0, fps, n);
            ck_assert_uint_le(set.len, 4 * n + 32);
            dd_buf_free(&set);
        }
        free(fps);
    }
}
END_TEST

/* A layer begins when it is smaller than the list: the blob never takes more than its list would have. */
START_TEST(promotion_saves_bytes)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {(unsigned)_i};
    uint32_t *fps = random_fps(&r, 4000);
    struct dd_buf set = {0};
    size_t first_dense = 0;
    for (size_t n = 1; n <= 4000; n++) {
        set_add(&set, &p, 0, fps + n - 1, 1);
        if (_i != DD_FILTER_COUNTING) ck_assert_uint_le(set.len, 4 * n + 32);
        if (first_dense == 0 && !set_info(dd_buf_slice(&set)).sparse) first_dense = n;
    }
    ck_assert_uint_ge(first_dense, 32);
    ck_assert_uint_le(first_dense, _i == DD_FILTER_COUNTING ? p.capacity : 200); /* counters are larger */
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* Partial merges keep the list however long it is. */
START_TEST(operands_stay_lists)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {9};
    uint32_t *fps = random_fps(&r, 100000);
    struct dd_buf a = {0}, b = {0}, out = {0};
    ck_assert_ok(dd_filter_operand(&p, 700, fps, 60000, &a));
    ck_assert_ok(dd_filter_operand(&p, 0, fps + 50000, 50000, &b));
    struct dd_slice both[] = {dd_buf_slice(&a), dd_buf_slice(&b)};
    ck_assert_ok(dd_filter_partial_merge(both, 2, &out, NULL));
    struct dd_filter_view v;
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&out)));
    ck_assert(v.operand);
    ck_assert_uint_eq(v.layers, 0);
    ck_assert_uint_ge(v.items, 99990);
    ck_assert_uint_ge(v.hint, 680); /* the hint of the older operand outlives a newer one without */
    ck_assert_uint_le(v.hint, 720);
    ck_assert_uint_eq(set_present(dd_buf_slice(&out), fps, 100000), 100000);
    dd_buf_free(&a), dd_buf_free(&b), dd_buf_free(&out);
    free(fps);
}
END_TEST

static size_t bytes_of(uint32_t hint, uint32_t capacity, const uint32_t *fps, size_t n)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct dd_buf set = {0};
    p.capacity = capacity;
    for (size_t i = 0; i < n; i += 20)
        set_add(&set, &p, hint, fps + i, n - i < 20 ? n - i : 20);
    size_t bytes = set.len;
    dd_buf_free(&set);
    return bytes;
}

/* A period sized from the one before: within 1.2 times the optimum (1.44 log2(1 / fpr) bits an item). */
START_TEST(hints_save_bytes)
{
    struct rng r = {4};
    uint32_t *fps = random_fps(&r, 10000);
    static const size_t sizes[] = {300, 1000, 3000, 10000};
    for (size_t i = 0; i < 4; i++) {
        size_t n = sizes[i], hinted = bytes_of((uint32_t)n, 256, fps, n), plain = bytes_of(0, 256, fps, n);
        double optimum = (double)n * 16.66 / 8;
        ck_assert_uint_lt(hinted, plain);
        ck_assert_msg((double)hinted <= 1.2 * optimum + 48, "%zu items: %zu bytes, optimum %.0f", n, hinted,
                      optimum);
    }
    free(fps);
}
END_TEST

START_TEST(hints_survive_the_header)
{
    for (uint32_t h = 1; h < 900000; h += 1 + h / 3) {
        uint32_t kept = dd_filter_hint_of(dd_filter_hint_code(h));
        ck_assert_uint_eq(dd_filter_hint_of(dd_filter_hint_code(kept)), kept);
        if (h >= 16) ck_assert_double_eq_tol((double)kept / h, 1, 0.035);
    }
    ck_assert_uint_eq(dd_filter_hint_code(0), 0);
    ck_assert_uint_eq(dd_filter_hint_of(dd_filter_hint_code(UINT32_MAX)), dd_filter_hint_of(255));
}
END_TEST

/* Shares of all layers that may ever come never sum to more than the budget. */
START_TEST(shares_sum_to_the_budget)
{
    for (int shape = 0; shape < 8; shape++) {
        struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
        double sum = 0, budget = p.fpr - p.cap / 4294967296.0;
        p.growth = shape & 1 ? 1 : 2;
        p.tightening = shape & 4 ? 80 : 0;
        if (shape & 2) p.on_full = DD_ON_FULL_SATURATE, p.max_layers = 4;
        for (unsigned j = 0; j < (shape & 2 ? 4u : 10000u); j++)
            sum += dd_filter_layer_rate(&p, j);
        ck_assert_double_le(sum, budget * (1 + 1e-12));
        ck_assert_double_ge(sum, budget * 0.999);
    }
}
END_TEST

/* growth 1: a chain of equal blocks. growth 2: the set doubles. */
START_TEST(layers_follow_growth)
{
    struct rng r = {6};
    uint32_t *fps = random_fps(&r, 20000);
    for (uint8_t growth = 1; growth <= 2; growth++) {
        struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
        struct dd_filter_view v;
        struct dd_buf set = {0};
        p.capacity = 1000, p.growth = growth;
        for (size_t i = 0; i < 20000; i += 100)
            set_add(&set, &p, 0, fps + i, 100);
        ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&set)));
        uint32_t expected = 1000, total = 0;
        for (unsigned i = 0; i < v.layers; i++) {
            ck_assert_uint_eq(v.layer[i].capacity, expected);
            total += expected;
            if (growth == 2) expected = total;
        }
        ck_assert_uint_ge(v.layers, growth == 1 ? 18 : 4);
        ck_assert_uint_le(v.layers, growth == 1 ? 20 : 6);
        dd_buf_free(&set);
    }
    free(fps);
}
END_TEST

/* rotate keeps the newest blocks: at least (N - 1) * capacity items, and bounded bytes. */
START_TEST(rotate_keeps_the_newest)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)(KINDS_FROM + _i / 2));
    unsigned blocks = _i % 2 ? 5 : 2;
    struct rng r = {(unsigned)_i};
    size_t most = 0;
    uint32_t *fps = random_fps(&r, 20000);
    struct dd_buf set = {0};
    p.capacity = 1000, p.growth = 1, p.on_full = DD_ON_FULL_ROTATE, p.max_layers = (uint8_t)blocks;
    for (size_t n = 20; n <= 20000; n += 20) {
        set_add(&set, &p, 5000, fps + n - 20, 20);
        struct dd_filter_info info = set_info(dd_buf_slice(&set));
        ck_assert_uint_le(info.layers, blocks);
        size_t keep = (blocks - 1) * (size_t)p.capacity, kept = n < keep ? n : keep;
        /* A few may have been taken for items of a block that has left. */
        ck_assert_uint_ge(set_present(dd_buf_slice(&set), fps + n - kept, kept) + 3, kept);
        if (n == 10000) most = set.len;
        if (n > 10000) ck_assert_uint_le(set.len, most * 2 + 6000);
    }
    ck_assert_uint_lt(set_present(dd_buf_slice(&set), fps, 2000), 20); /* the oldest are forgotten */
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* In one merge of many operands too, the newest win. */
START_TEST(rotate_follows_operand_order)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct rng r = {11};
    uint32_t *fps = random_fps(&r, 5000);
    struct dd_buf operand[50] = {{0}}, set = {0};
    struct dd_slice slice[50];
    p.capacity = 1000, p.growth = 1, p.on_full = DD_ON_FULL_ROTATE, p.max_layers = 2;
    for (int i = 0; i < 50; i++) {
        ck_assert_ok(dd_filter_operand(&p, 0, fps + 100 * i, 100, &operand[i]));
        slice[i] = dd_buf_slice(&operand[i]);
    }
    set_merge(&set, slice, 50);
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps + 4000, 1000), 1000);
    ck_assert_uint_lt(set_present(dd_buf_slice(&set), fps, 3000), 10);
    for (int i = 0; i < 50; i++)
        dd_buf_free(&operand[i]);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* saturate: bytes stop growing. Bloom and counting keep everything at a rising rate, which info tells; cuckoo
 * stops remembering. Compact keeps everything and grows in bytes, but not in layers. */
START_TEST(saturate)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {(unsigned)_i};
    uint32_t *fps = random_fps(&r, 6000);
    struct dd_buf set = {0};
    p.capacity = 1000, p.on_full = DD_ON_FULL_SATURATE, p.max_layers = 1;
    for (size_t i = 0; i < 1000; i += 20)
        set_add(&set, &p, 0, fps + i, 20);
    struct dd_filter_info full = set_info(dd_buf_slice(&set));
    ck_assert_double_le(full.fpr, p.fpr);
    for (size_t i = 1000; i < 6000; i += 20)
        set_add(&set, &p, 0, fps + i, 20);
    struct dd_filter_info after = set_info(dd_buf_slice(&set));
    size_t present = set_present(dd_buf_slice(&set), fps, 6000);
    ck_assert_uint_eq(after.layers, 1);
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, 1000), 1000);
    if (_i == DD_FILTER_CUCKOO)
        ck_assert_uint_lt(present, 1500);
    else
        ck_assert_uint_eq(present, 6000);
    if (_i != DD_FILTER_COMPACT) ck_assert_uint_eq(after.bytes, full.bytes);
    if (_i == DD_FILTER_BLOOM || _i == DD_FILTER_COUNTING) {
        double measured = (double)set_false(dd_buf_slice(&set), &r, 20000) / 20000;
        ck_assert_double_ge(after.fpr, 0.3);
        ck_assert_double_eq_tol(measured, after.fpr, 0.03);
    }
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* A scene changes its kind in mid-period: old layers stay readable, new ones follow the new policy. */
START_TEST(policy_changes_on_the_way)
{
    struct dd_filter_policy from = policy_of((enum dd_filter_kind)(KINDS_FROM + _i / 4));
    struct dd_filter_policy to = policy_of((enum dd_filter_kind)(KINDS_FROM + _i % 4));
    struct rng r = {(unsigned)_i};
    uint32_t *fps = random_fps(&r, 6000);
    struct dd_buf set = {0};
    struct dd_filter_view v;
    to.capacity = 512, to.fpr = 0.01;
    set_add(&set, &from, 0, fps, 2950);
    for (size_t i = 2950; i < 6000; i += 50)
        set_add(&set, &to, 0, fps + i, 50);
    ck_assert_uint_eq(set_present(dd_buf_slice(&set), fps, 6000), 6000);
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&set)));
    ck_assert_uint_eq(v.layer[0].kind, from.kind);
    ck_assert_uint_eq(v.layer[v.layers - 1].kind, to.kind);
    ck_assert_uint_eq(v.policy.kind, to.kind);
    ck_assert_double_le(set_info(dd_buf_slice(&set)).fpr, from.fpr + to.fpr);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* The first merge of many items makes one layer of the right size. */
START_TEST(many_items_at_once)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {(unsigned)_i};
    uint32_t *fps = random_fps(&r, 20000);
    struct dd_buf set = {0};
    set_add(&set, &p, 0, fps, 20000);
    ck_assert_uint_eq(set_info(dd_buf_slice(&set)).layers, 1);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* Large batches fill layers no further than they were made for. */
START_TEST(layers_are_not_overfilled)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i);
    struct rng r = {(unsigned)_i};
    uint32_t *fps = random_fps(&r, 30000);
    struct dd_buf set = {0};
    struct dd_filter_view v;
    set_add(&set, &p, 0, fps, 300);
    for (size_t i = 300; i < 30000; i += 2970)
        set_add(&set, &p, 0, fps + i, 2970);
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&set)));
    ck_assert_uint_ge(v.layers, 2);
    for (unsigned i = 0; i < v.layers; i++)
        ck_assert_uint_le(v.layer[i].count, v.layer[i].capacity);
    ck_assert_double_le(set_info(dd_buf_slice(&set)).fpr, p.fpr);
    dd_buf_free(&set);
    free(fps);
}
END_TEST

/* A counting list that repeats items becomes a set when the scene stops counting. */
START_TEST(repeats_end_with_counting)
{
    struct dd_filter_policy counting = policy_of(DD_FILTER_COUNTING), p = policy_of((enum dd_filter_kind)_i);
    static const uint32_t twice[] = {5, 5, 9, 9, 9}, more[] = {9, 11};
    struct dd_buf set = {0}, a = {0}, b = {0}, partial = {0};
    set_add(&set, &counting, 0, twice, 5);
    set_add(&set, &p, 0, more, 1);
    ck_assert_uint_eq(set_info(dd_buf_slice(&set)).items, 2);
    set_add(&set, &p, 0, more, 2);
    ck_assert_uint_eq(set_info(dd_buf_slice(&set)).items, 3);
    ck_assert_ok(dd_filter_operand(&counting, 0, twice, 5, &a));
    ck_assert_ok(dd_filter_operand(&p, 0, more, 2, &b));
    struct dd_slice both[] = {dd_buf_slice(&a), dd_buf_slice(&b)};
    ck_assert_ok(dd_filter_partial_merge(both, 2, &partial, NULL));
    ck_assert_uint_eq(set_info(dd_buf_slice(&partial)).items, 3);
    dd_buf_free(&set), dd_buf_free(&a), dd_buf_free(&b), dd_buf_free(&partial);
}
END_TEST

Suite *suite_growth(void)
{
    Suite *s = suite_create("filter growth");
    TCase *t = tcase_create("growth");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, light_users_are_small);
    tcase_add_loop_test(t, promotion_saves_bytes, KINDS_FROM, KINDS_TO + 1);
    tcase_add_loop_test(t, operands_stay_lists, KINDS_FROM, KINDS_TO + 1);
    tcase_add_test(t, hints_save_bytes);
    tcase_add_test(t, hints_survive_the_header);
    tcase_add_test(t, shares_sum_to_the_budget);
    tcase_add_test(t, layers_follow_growth);
    tcase_add_loop_test(t, rotate_keeps_the_newest, 0, 2 * (KINDS_TO - KINDS_FROM + 1));
    tcase_add_test(t, rotate_follows_operand_order);
    tcase_add_loop_test(t, saturate, KINDS_FROM, KINDS_TO + 1);
    tcase_add_loop_test(t, policy_changes_on_the_way, 0, 16);
    tcase_add_loop_test(t, many_items_at_once, KINDS_FROM, KINDS_TO + 1);
    tcase_add_loop_test(t, layers_are_not_overfilled, KINDS_FROM, KINDS_TO + 1);
    tcase_add_loop_test(t, repeats_end_with_counting, KINDS_FROM, KINDS_TO + 1);
    suite_add_tcase(s, t);
    return s;
}
