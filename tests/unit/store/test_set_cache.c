/* Sets that are kept from earlier reads. */
#include "fixture.h"

#include "loop/loop.h"
#include "store/set_cache.h"

#define P month(10)

static struct dd_slice key_of(unsigned i, char out[32])
{
    snprintf(out, 32, "key %u", i);
    return dd_slice_str(out);
}

/* What was read twice is kept. */
static void put(struct dd_set_cache *c, unsigned i, struct dd_slice blob, uint64_t number)
{
    char name[32];
    struct dd_slice key = key_of(i, name);
    for (int reads = 0; reads < 2; reads++)
        dd_set_cache_put(c, key, dd_hash64(key, 0), blob, number);
}

static struct dd_set_entry *get(struct dd_set_cache *c, unsigned i, uint64_t cell)
{
    char name[32];
    struct dd_slice key = key_of(i, name);
    return dd_set_cache_get(c, key, dd_hash64(key, 0), cell);
}

static bool is_kept(struct dd_set_cache *c, unsigned i, uint64_t cell)
{
    struct dd_set_entry *e = get(c, i, cell);
    if (e) dd_set_entry_release(e);
    return e != NULL;
}

START_TEST(kept_while_the_cell_allows)
{
    struct dd_set_cache *c;
    struct dd_buf one = operand_of(1), two = operand_of(2);
    char name[32];
    struct dd_slice key = key_of(1, name);
    ck_assert_ok(dd_set_cache_create(1 << 20, &c));
    dd_set_cache_put(c, key, dd_hash64(key, 0), dd_buf_slice(&one), 5);
    ck_assert_msg(!is_kept(c, 1, 0), "read once, kept already");
    put(c, 1, dd_buf_slice(&one), 5);
    ck_assert(is_kept(c, 1, 5) && !is_kept(c, 1, 6) && !is_kept(c, 2, 0));
    put(c, 1, dd_buf_slice(&two), 7);
    put(c, 1, dd_buf_slice(&one), 6); /* a late reader */
    struct dd_set_entry *e = get(c, 1, 7);
    ck_assert_ptr_nonnull(e);
    ck_assert(dd_slice_eq(e->blob, dd_buf_slice(&two)));
    dd_set_entry_release(e);
    put(c, 3, dd_slice_of(NULL, 0), 1);
    ck_assert_msg(is_kept(c, 3, 1), "an empty set is knowledge too");
    dd_set_cache_destroy(c);
    dd_buf_free(&one);
    dd_buf_free(&two);
}
END_TEST

START_TEST(unsound_sets_are_not_kept)
{
    struct dd_set_cache *c;
    struct dd_buf one = operand_of(1), merged = {0};
    ck_assert_ok(dd_set_cache_create(1 << 20, &c));
    one.data[one.len - 1] ^= 1;
    put(c, 1, dd_buf_slice(&one), 5);
    ck_assert(!is_kept(c, 1, 0));
    struct dd_slice bad = dd_buf_slice(&one);
    ck_assert_ok(dd_filter_merge(bad, NULL, 0, &merged, NULL)); /* flagged damaged */
    put(c, 2, dd_buf_slice(&merged), 5);
    ck_assert(!is_kept(c, 2, 0));
    dd_set_cache_destroy(c);
    dd_buf_free(&one);
    dd_buf_free(&merged);
}
END_TEST

START_TEST(bounded_and_held_ones_stay)
{
    struct dd_set_cache *c;
    struct dd_buf b = operand_of(1);
    ck_assert_ok(dd_set_cache_create(64 << 10, &c));
    put(c, 0, dd_buf_slice(&b), 5);
    struct dd_set_entry *held = get(c, 0, 0);
    ck_assert_ptr_nonnull(held);
    for (unsigned i = 1; i < 5000; i++)
        put(c, i, dd_buf_slice(&b), 5);
    unsigned kept = 0;
    for (unsigned i = 1; i < 5000; i++)
        kept += is_kept(c, i, 0);
    ck_assert_uint_gt(kept, 50);
    ck_assert_uint_lt(kept, (64 << 10) / (unsigned)sizeof(struct dd_set_entry));
    ck_assert(is_kept(c, 4999, 0) && !is_kept(c, 0, 0));
    ck_assert(dd_slice_eq(held->blob, dd_buf_slice(&b)));
    dd_set_entry_release(held);
    dd_set_cache_destroy(c);
    ck_assert_ok(dd_set_cache_create(0, &c));
    put(c, 1, dd_buf_slice(&b), 5);
    ck_assert(!is_kept(c, 1, 0));
    dd_set_cache_destroy(c);
    dd_buf_free(&b);
}
END_TEST

/* ---- in a store ---- */

static uint64_t read_one(struct dd_store *s, struct dd_loop *loop, uint32_t fp, bool expected)
{
    struct dd_filter_view v;
    uint8_t seen = 0;
    struct dd_store_read r = {
        .scene = SCENE, .user = dd_slice_str("anna"), .periods = {P}, .n = 1, .loop = loop};
    ck_assert_err(dd_store_read(s, &r), DD_OK);
    ck_assert_ok(dd_filter_view_open(&v, r.set[0].blob));
    dd_filter_view_test(&v, &fp, 1, &seen, 1);
    ck_assert_int_eq(seen, expected);
    uint64_t number = r.set[0].number;
    ck_assert_uint_eq(r.number, number);
    dd_store_read_release(&r);
    return number;
}

START_TEST(a_store_keeps_and_forgets)
{
    struct fixture f;
    struct dd_loop *loop;
    fixture_open(&f);
    ck_assert_ok(dd_loop_create(&loop));
    for (uint32_t round = 1; round <= 5; round++) {
        add(f.store, "anna", P, round);
        for (int reads = 0; reads < 4; reads++)
            ck_assert_uint_eq(read_one(f.store, loop, round, true), round);
    }
    ck_assert_uint_ge(dd_counter_get(f.store->reads_kept), 10);
    ck_assert_ok(erase_set(f.store, "anna", P));
    read_one(f.store, loop, 1, false);
    dd_loop_destroy(loop);
    fixture_close(&f);
}
END_TEST

/* Between a commit's publishing its number and its raising the cell a kept set is still taken: rightly, since
 * the commit is not acknowledged. But it lacks the commit, so the read must not claim its number. */
START_TEST(a_kept_set_does_not_take_a_later_number)
{
    struct fixture f;
    struct dd_loop *loop;
    fixture_open(&f);
    ck_assert_ok(dd_loop_create(&loop));
    add(f.store, "anna", P, 1);
    for (int reads = 0; reads < 3; reads++)
        read_one(f.store, loop, 1, true);
    uint64_t kept = dd_counter_get(f.store->reads_kept);
    dd_change_publish_number(f.store->change, 2);
    ck_assert_uint_eq(read_one(f.store, loop, 1, true), 1);
    ck_assert_uint_eq(dd_counter_get(f.store->reads_kept), kept + 1);
    dd_change_raise(f.store->change, P,
                    dd_hash_user_seed(dd_store_secret(f.store), SCENE, dd_slice_str("anna")), 2);
    ck_assert_uint_eq(read_one(f.store, loop, 1, true), 2);
    ck_assert_uint_eq(dd_counter_get(f.store->reads_kept), kept + 1);
    dd_loop_destroy(loop);
    fixture_close(&f);
}
END_TEST

Suite *suite_set_cache(void)
{
    Suite *s = suite_create("store set cache");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, kept_while_the_cell_allows);
    tcase_add_test(t, unsound_sets_are_not_kept);
    tcase_add_test(t, bounded_and_held_ones_stay);
    tcase_add_test(t, a_store_keeps_and_forgets);
    tcase_add_test(t, a_kept_set_does_not_take_a_later_number);
    suite_add_tcase(s, t);
    return s;
}
