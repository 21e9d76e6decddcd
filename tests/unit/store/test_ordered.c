/* Sets whose layers are limited: what they keep depends on the order of the operands, which files,
 * compactions and reopening must not lose. */
#include "base/hash.h"
#include "fixture.h"

#define P month(100)

enum { ITEMS = 1200, BATCH = 4, FLUSH = 200, BLOCK = 64, BLOCKS = 5 };

static struct dd_filter_policy policy_of(enum dd_filter_kind kind, enum dd_filter_on_full on_full)
{
    struct dd_filter_policy p = dd_filter_policy_default();
    p.kind = kind;
    p.on_full = on_full;
    p.growth = 1;
    p.capacity = BLOCK;
    p.max_layers = BLOCKS;
    return p;
}

static uint32_t item(uint32_t i)
{
    return (uint32_t)dd_mix64(i + 1);
}

static void merge_batch(struct dd_store *s, const struct dd_filter_policy *p, uint32_t from)
{
    uint32_t fps[BATCH];
    struct dd_buf operand = {0};
    for (uint32_t i = 0; i < BATCH; i++)
        fps[i] = item(from + i);
    ck_assert_ok(dd_filter_operand(p, 0, fps, BATCH, &operand));
    struct dd_store_op op = {.kind = DD_STORE_MERGE,
                             .scene = SCENE,
                             .user = dd_slice_str("alice"),
                             .period = P,
                             .operand = dd_buf_slice(&operand),
                             .read_number = UINT64_MAX};
    struct dd_store_batch batch = {.ops = &op, .n = 1};
    ck_assert_ok(dd_store_write_wait(s, &batch));
    dd_buf_free(&operand);
}

static uint32_t missing(struct dd_store *s, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++)
        n += !has(s, "alice", P, item(i));
    return n;
}

/* In files of 50 operands each, none of them beside the set that it belongs to. */
static void fill(struct fixture *f, const struct dd_filter_policy *p)
{
    fixture_open(f);
    for (uint32_t i = 0; i < ITEMS; i += BATCH) {
        merge_batch(f->store, p, i);
        if ((i + BATCH) % FLUSH == 0) flush_memtable(f->store);
    }
}

static void again(struct fixture *f, int step)
{
    if (step == 1) fixture_reopen(f, false);
    if (step == 2) compact_all(f->store);
    if (step == 3) fixture_reopen(f, true);
}

START_TEST(ordered_rotate_keeps_the_newest)
{
    struct fixture f;
    struct dd_filter_policy p = policy_of((enum dd_filter_kind)_i, DD_ON_FULL_ROTATE);
    fill(&f, &p);
    for (int step = 0; step < 4; step++) {
        again(&f, step);
        ck_assert_uint_le(missing(f.store, ITEMS - (BLOCKS - 1) * BLOCK + BATCH, ITEMS), 1);
        ck_assert_uint_ge(missing(f.store, 0, ITEMS - BLOCKS * BLOCK - BATCH), ITEMS - BLOCKS * BLOCK - 10);
    }
    fixture_close(&f);
}
END_TEST

/* Cuckoo keeps what came while there was room. */
START_TEST(ordered_saturate_keeps_the_first)
{
    struct fixture f;
    struct dd_filter_policy p = policy_of(DD_FILTER_CUCKOO, DD_ON_FULL_SATURATE);
    fill(&f, &p);
    for (int step = 0; step < 4; step++) {
        again(&f, step);
        ck_assert_uint_eq(missing(f.store, 0, BLOCKS * BLOCK - BATCH), 0);
        ck_assert_uint_ge(missing(f.store, 0, ITEMS), ITEMS / 2);
    }
    fixture_close(&f);
}
END_TEST

Suite *suite_ordered(void)
{
    Suite *s = suite_create("store/ordered");
    TCase *t = tcase_create("ordered");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_loop_test(t, ordered_rotate_keeps_the_newest, DD_FILTER_BLOOM, DD_FILTER_COMPACT + 1);
    tcase_add_test(t, ordered_saturate_keeps_the_first);
    suite_add_tcase(s, t);
    return s;
}
