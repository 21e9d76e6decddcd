/* Blobs that are random, cut, flipped or made to deceive. Every blob lies in a heap block of exactly its
 * length, so that a sanitizer sees the first byte past it, and mutated ones get a right checksum, so that the
 * checks behind it are reached. An input that opens is then used for everything. */
#include "helper.h"

#include "filter/internal.h"

/* One of several good blobs, by number. */
static void good_blob(unsigned number, struct dd_buf *out)
{
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)(KINDS_FROM + number % 4));
    struct rng r = {number};
    size_t n = (size_t[]){0, 5, 100, 300, 1200}[number / 4 % 5];
    uint32_t *fps = random_fps(&r, n);
    if (number / 20 % 2)
        ck_assert_ok(dd_filter_operand(&p, 500, fps, n, out));
    else
        set_add(out, &p, 0, fps, n);
    free(fps);
}
enum { GOOD_BLOBS = 40 };

static void use_merges(struct dd_slice blob, const uint32_t *fps, size_t n)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_COMPACT);
    struct dd_buf operand = {0}, out = {0};
    struct dd_filter_merge_report report;
    size_t removed;
    ck_assert_ok(dd_filter_operand(&p, 0, fps, n, &operand));
    struct dd_slice two[] = {blob, dd_buf_slice(&operand)}, swapped[] = {two[1], blob};
    ck_assert_ok(dd_filter_merge(blob, &two[1], 1, &out, &report));
    ck_assert_uint_eq(set_present(dd_buf_slice(&out), fps, n), n);
    dd_buf_reset(&out);
    ck_assert_ok(dd_filter_merge(two[1], &blob, 1, &out, &report));
    ck_assert_uint_le(out.len, 40 * (blob.len + operand.len) + 4096);
    dd_buf_reset(&out);
    ck_assert_ok(dd_filter_partial_merge(two, 2, &out, &report));
    dd_buf_reset(&out);
    ck_assert_ok(dd_filter_partial_merge(swapped, 2, &out, &report));
    dd_buf_reset(&out);
    (void)!dd_filter_forget(blob, fps, n, &out, &removed);
    dd_buf_free(&operand);
    dd_buf_free(&out);
}

/* Opens a copy and uses whatever opens; returns whether it opened. */
static bool try_blob(const uint8_t *bytes, size_t len)
{
    struct rng r = {len + (len ? bytes[len / 2] : 0)};
    struct dd_filter_view v;
    struct dd_filter_info info;
    uint32_t fps[64];
    uint8_t seen[64] = {0}, *copy = malloc(len + !len);
    ck_assert_ptr_nonnull(copy);
    if (len > 0) memcpy(copy, bytes, len);
    for (int i = 0; i < 64; i++)
        fps[i] = i ? (uint32_t)(rng_next(&r) >> 32) : UINT32_MAX;
    bool opened = dd_filter_view_open(&v, dd_slice_of(copy, len)) == DD_OK;
    if (opened) {
        dd_filter_view_test(&v, fps, 64, seen, 1);
        for (int i = 0; i < 64; i++)
            (void)dd_filter_view_count(&v, fps[i]);
        dd_filter_view_info(&v, &info);
        use_merges(dd_slice_of(copy, len), fps, 64);
    }
    free(copy);
    return opened;
}

START_TEST(cut_anywhere)
{
    struct dd_buf blob = {0};
    good_blob((unsigned)_i, &blob);
    ck_assert(try_blob(blob.data, blob.len));
    for (size_t len = 1; len < blob.len; len += 1 + len / 60)
        ck_assert(!try_blob(blob.data, len));
    for (size_t len = 1; len < blob.len; len += 1 + len / 20) {
        struct dd_buf cut = {0};
        dd_buf_add(&cut, blob.data, len);
        fix_checksum(cut.data, len);
        (void)try_blob(cut.data, len);
        dd_buf_free(&cut);
    }
    dd_buf_add_u8(&blob, 0);
    ck_assert(!try_blob(blob.data, blob.len));
    dd_buf_free(&blob);
}
END_TEST

START_TEST(any_flipped_bit_is_seen)
{
    struct dd_buf blob = {0};
    good_blob((unsigned)_i, &blob);
    for (size_t bit = 0; bit < 8 * blob.len; bit += 1 + bit / 300) {
        blob.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        ck_assert(!try_blob(blob.data, blob.len));
        blob.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    dd_buf_free(&blob);
}
END_TEST

static void mutate(struct rng *r, uint8_t *bytes, size_t len)
{
    static const uint32_t telling[] = {0, 1, 2, 127, 128, 255, 0x7fffffff, 0x80000000, 0xffffffff, 16000000};
    size_t near = rng_below(r, 2) && len > 64 ? 64 : len, at = rng_below(r, (uint32_t)near);
    if (rng_below(r, 2) || at + 4 > len) {
        bytes[at] ^= (uint8_t)(1u << rng_below(r, 8));
    } else {
        dd_put_le32(bytes + at, telling[rng_below(r, sizeof telling / sizeof *telling)]);
    }
}

/* The checksum is right: what protects is the check of each field. */
START_TEST(mutated_with_right_checksum)
{
    struct dd_buf blob = {0}, copy = {0};
    struct rng r = {(unsigned)_i};
    good_blob((unsigned)_i, &blob);
    unsigned opened = 0, rounds = (test_is_short() ? 10 : 300) * test_scale();
    for (unsigned i = 0; i < rounds; i++) {
        dd_buf_reset(&copy);
        dd_buf_add_slice(&copy, dd_buf_slice(&blob));
        for (unsigned m = 1 + rng_below(&r, 3); m > 0; m--)
            mutate(&r, copy.data, copy.len);
        fix_checksum(copy.data, copy.len);
        opened += try_blob(copy.data, copy.len);
    }
    if (!test_is_short()) ck_assert_uint_gt(opened, 0); /* else nothing behind the checks was reached */
    dd_buf_free(&blob);
    dd_buf_free(&copy);
}
END_TEST

START_TEST(random_bytes)
{
    struct rng r = {(unsigned)_i};
    for (unsigned i = 0; i < (test_is_short() ? 100 : 2000) * test_scale(); i++) {
        uint8_t bytes[300];
        size_t len = rng_below(&r, sizeof bytes);
        for (size_t j = 0; j < len; j++)
            bytes[j] = (uint8_t)rng_next(&r);
        ck_assert(len == 0 || !try_blob(bytes, len));
        if (len < 64) continue;
        memcpy(bytes, "DF\1", 3);
        bytes[7] &= 3;
        fix_checksum(bytes, len);
        (void)try_blob(bytes, len);
    }
}
END_TEST

/* Fields set one at a time in a good blob with a layer: each must be refused. */
static const struct lie {
    const char *what;
    unsigned at, bytes;
    uint32_t value;
    int kind; /* 0: any */
} lies[] = {
    {"magic", 0, 1, 'd', 0},
    {"version", 2, 1, 2, 0},
    {"kind 0", 3, 1, 0x20, 0},
    {"kind 7", 3, 1, 0x27, 0},
    {"on_full 3", 3, 1, 0xe1, 0},
    {"tightening", 4, 1, 200, 0},
    {"max_layers with grow", 5, 1, 4, 0},
    {"no layers", 7, 1, 0, 0},
    {"more layers than bytes", 7, 1, 100, 0},
    {"too many layers", 7, 1, 255, 0},
    {"items", 8, 4, 0xffffffff, 0},
    {"fpr 0", 12, 4, 0, 0},
    {"fpr NaN", 12, 4, 0x7fc00000, 0},
    {"fpr -1", 12, 4, 0xbf800000, 0},
    {"fpr 2^63", 12, 4, 0x5f000000, 0},
    {"cap 0", 16, 4, 0, 0},
    {"cap", 16, 4, 0xffffffff, 0},
    {"capacity", 20, 3, 0, 0},
    {"layer kind 0", 24, 1, 0, 0},
    {"layer kind 9", 24, 1, 9, 0},
    {"k 0", 25, 1, 0, 0},
    {"k 3", 25, 1, 3, 0},
    {"k 255", 25, 1, 255, 0},
    {"layer capacity 0", 28, 4, 0, 0},
    {"layer capacity", 28, 4, 0xffffffff, 0},
    {"layer count", 32, 4, 0xffffffff, 0},
    {"units 0", 36, 4, 0, DD_FILTER_BLOOM},
    {"units 0", 36, 4, 0, DD_FILTER_COUNTING},
    {"units 0", 36, 4, 0, DD_FILTER_CUCKOO},
    {"units 1", 36, 4, 1, DD_FILTER_COMPACT},
    {"units", 36, 4, 0xffffffff, 0},
    {"low above k", 27, 1, 40, DD_FILTER_COMPACT},
    {"low 0", 27, 1, 0, DD_FILTER_COMPACT},
};

START_TEST(lies_are_refused)
{
    const struct lie *lie = &lies[_i];
    for (unsigned kind = KINDS_FROM; kind <= KINDS_TO; kind++) {
        struct dd_buf blob = {0};
        if (lie->kind != 0 && lie->kind != (int)kind) continue;
        good_blob(12 + kind - KINDS_FROM, &blob); /* 300 items: layers */
        ck_assert_uint_gt(blob.data[7], 0);
        memcpy(blob.data + lie->at, &lie->value, lie->bytes);
        fix_checksum(blob.data, blob.len);
        ck_assert_msg(!try_blob(blob.data, blob.len), "%s, kind %u", lie->what, kind);
        dd_buf_free(&blob);
    }
}
END_TEST

/* A list that is not ascending, or repeats where the kind does not count. */
START_TEST(lists_must_ascend)
{
    uint32_t sorted[] = {10, 20, 30}, lists[][3] = {{10, 30, 20}, {20, 20, 30}, {30, 20, 10}};
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct dd_buf blob = {0};
    ck_assert_ok(dd_filter_operand(&p, 0, sorted, 3, &blob));
    ck_assert(try_blob(blob.data, blob.len));
    for (int i = 0; i < 6; i++) {
        memcpy(blob.data + DD_FILTER_HEADER, lists[i % 3], sizeof *lists);
        dd_put_le32(blob.data + 8, i < 3 ? 3 : 2); /* items: as said, or as there are different ones */
        fix_checksum(blob.data, blob.len);
        ck_assert(!try_blob(blob.data, blob.len));
    }
    dd_buf_free(&blob);
}
END_TEST

/* A blob of n real layers of 8 bits, nothing wrong with it but their number. */
static void layered_blob(unsigned n, struct dd_buf *out)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct dd_filter_layer l = {.kind = DD_FILTER_BLOOM, .k = 4, .units = 8, .capacity = 1};
    struct dd_buf operand = {0};
    ck_assert_ok(dd_filter_operand(&p, 0, NULL, 0, &operand));
    dd_buf_add(out, operand.data, DD_FILTER_HEADER);
    out->data[7] = (uint8_t)n;
    for (unsigned i = 0; i < n; i++) {
        uint8_t bytes[DD_FILTER_LAYER_HEADER + 1] = {0};
        dd_filter_layer_put(&l, bytes);
        dd_buf_add(out, bytes, sizeof bytes);
    }
    dd_buf_add(out, "checksum", 8);
    fix_checksum(out->data, out->len);
    dd_buf_free(&operand);
}

START_TEST(no_view_of_too_many_layers)
{
    struct dd_buf most = {0}, more = {0};
    layered_blob(DD_FILTER_LAYERS_MAX, &most);
    layered_blob(DD_FILTER_LAYERS_MAX + 1, &more);
    ck_assert(try_blob(most.data, most.len));
    ck_assert(!try_blob(more.data, more.len));
    dd_buf_free(&most), dd_buf_free(&more);
}
END_TEST

/* 129 layers are not made, whatever is merged: the operand is left out and counted. */
START_TEST(layers_are_bounded)
{
    struct dd_filter_policy p = policy_of(DD_FILTER_BLOOM);
    struct dd_buf set = {0}, sum = {0};
    struct rng r = {8};
    uint32_t *fps = random_fps(&r, 40 * 200);
    struct dd_slice ops[40];
    struct dd_filter_merge_report report;
    p.capacity = 16;
    set_add(&set, &p, 0, fps, 100);
    for (size_t i = 100; i < 8000; i += 20)
        set_add(&set, &p, 0, fps + i, 20);
    unsigned layers = set_info(dd_buf_slice(&set)).layers, fit = DD_FILTER_LAYERS_MAX / layers;
    ck_assert_uint_gt(layers, 3);
    for (int i = 0; i < 40; i++)
        ops[i] = dd_buf_slice(&set);
    ck_assert_ok(dd_filter_merge(ops[0], ops + 1, 39, &sum, &report));
    ck_assert_uint_eq(report.skipped, 40 - fit);
    ck_assert(set_info(dd_buf_slice(&sum)).damaged);
    ck_assert_uint_eq(set_present(dd_buf_slice(&sum), fps, 8000), 8000);
    dd_buf_free(&set), dd_buf_free(&sum);
    free(fps);
}
END_TEST

Suite *suite_hostile(void)
{
    Suite *s = suite_create("filter hostile");
    TCase *t = tcase_create("hostile");
    tcase_set_timeout(t, 120 * test_scale());
    tcase_add_loop_test(t, cut_anywhere, 0, GOOD_BLOBS);
    tcase_add_loop_test(t, any_flipped_bit_is_seen, 0, GOOD_BLOBS);
    tcase_add_loop_test(t, mutated_with_right_checksum, 0, GOOD_BLOBS);
    tcase_add_loop_test(t, random_bytes, 0, 2);
    tcase_add_loop_test(t, lies_are_refused, 0, sizeof lies / sizeof *lies);
    tcase_add_test(t, lists_must_ascend);
    tcase_add_test(t, no_view_of_too_many_layers);
    tcase_add_test(t, layers_are_bounded);
    suite_add_tcase(s, t);
    return s;
}
