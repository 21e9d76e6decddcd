/* Replacing and erasing, and what is read before an erase. */
#include "fixture.h"

#define P month(100)

static enum dd_err replace_with(void *arg, struct dd_slice current, struct dd_buf *out)
{
    (void)current;
    struct dd_buf b = operand_of(*(uint32_t *)arg);
    dd_buf_add_slice(out, dd_buf_slice(&b));
    dd_buf_free(&b);
    return DD_OK;
}

static enum dd_err delete_it(void *arg, struct dd_slice current, struct dd_buf *out)
{
    (void)arg, (void)out;
    return current.len > 0 ? DD_OK : DD_NOT_FOUND;
}

static enum dd_err refuse(void *arg, struct dd_slice current, struct dd_buf *out)
{
    (void)arg, (void)current;
    dd_buf_add_str(out, "garbage");
    return DD_UNSUPPORTED;
}

START_TEST(update_replaces_deletes_or_leaves)
{
    struct fixture f;
    fixture_open(&f);
    uint32_t two = 2;
    add(f.store, "anna", P, 1);
    add(f.store, "ben", P, 1);
    ck_assert_err(update_set(f.store, "anna", P, refuse, NULL, NULL), DD_UNSUPPORTED);
    ck_assert(has(f.store, "anna", P, 1));
    ck_assert_ok(update_set(f.store, "anna", P, replace_with, &two, NULL));
    ck_assert(has(f.store, "anna", P, 2) && !has(f.store, "anna", P, 1));
    ck_assert_ok(update_set(f.store, "anna", P, delete_it, NULL, NULL));
    ck_assert(!has(f.store, "anna", P, 2));
    ck_assert_err(update_set(f.store, "anna", P, delete_it, NULL, NULL), DD_NOT_FOUND);
    ck_assert(has(f.store, "ben", P, 1));
    fixture_close(&f);
}
END_TEST

/* What an update sees: everything before it, also in its own group, and what follows builds on it. */
static enum dd_err expect_and_replace(void *arg, struct dd_slice current, struct dd_buf *out)
{
    uint32_t *fps = arg; /* [0] must be there, [1] must not, [2] replaces all */
    struct dd_filter_view v;
    uint8_t seen[2] = {0};
    if (dd_filter_view_open(&v, current) != DD_OK) return DD_CORRUPT;
    dd_filter_view_test(&v, fps, 2, seen, 1);
    if (!seen[0] || seen[1]) return DD_INVALID;
    return replace_with(&fps[2], current, out);
}

static struct dd_store_op op_of(enum dd_store_op_kind kind, const struct dd_buf *operand, uint32_t *fps)
{
    return (struct dd_store_op){.kind = kind,
                                .scene = SCENE,
                                .user = dd_slice_str("anna"),
                                .period = P,
                                .operand = operand ? dd_buf_slice(operand) : dd_slice_of(NULL, 0),
                                .update = expect_and_replace,
                                .update_arg = fps,
                                .read_number = UINT64_MAX};
}

START_TEST(update_ops_of_one_batch_compose_in_order)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_buf one = operand_of(1), three = operand_of(3), five = operand_of(5);
    uint32_t first[] = {1, 3, 2}, second[] = {3, 1, 4};
    struct dd_store_op ops[] = {
        op_of(DD_STORE_MERGE, &one, NULL),   op_of(DD_STORE_UPDATE, NULL, first),  /* {1} -> {2} */
        op_of(DD_STORE_MERGE, &three, NULL), op_of(DD_STORE_UPDATE, NULL, second), /* {2,3} -> {4} */
        op_of(DD_STORE_MERGE, &five, NULL),  op_of(DD_STORE_ERASE, NULL, NULL),    /* {} */
        op_of(DD_STORE_MERGE, &five, NULL),                                        /* {5} */
    };
    struct dd_store_batch b = {.ops = ops, .n = sizeof ops / sizeof *ops, .sync = true};
    ck_assert_ok(dd_store_write_wait(f.store, &b));
    for (unsigned i = 0; i < b.n; i++)
        ck_assert_ok(ops[i].result);
    ck_assert_uint_eq(b.number, 1);
    for (uint32_t fp = 1; fp <= 5; fp++)
        ck_assert_int_eq(has(f.store, "anna", P, fp), fp == 5);
    fixture_reopen(&f, false);
    ck_assert(has(f.store, "anna", P, 5) && !has(f.store, "anna", P, 4));
    dd_buf_free(&one);
    dd_buf_free(&three);
    dd_buf_free(&five);
    fixture_close(&f);
}
END_TEST

START_TEST(update_bad_names_spoil_only_their_own_op)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_buf one = operand_of(1);
    struct dd_store_op ops[] = {op_of(DD_STORE_MERGE, &one, NULL), op_of(DD_STORE_MERGE, &one, NULL)};
    ops[0].user = dd_slice_of("", 0);
    struct dd_store_batch b = {.ops = ops, .n = 2};
    ck_assert_ok(dd_store_write_wait(f.store, &b));
    ck_assert_err(ops[0].result, DD_INVALID);
    ck_assert_ok(ops[1].result);
    ck_assert(has(f.store, "anna", P, 1));
    dd_buf_free(&one);
    fixture_close(&f);
}
END_TEST

START_TEST(erase_strips_what_was_read_before_it)
{
    struct fixture f;
    fixture_open(&f);
    const struct dd_change *c = dd_store_change(f.store);
    add(f.store, "anna", P, 1);
    add(f.store, "anna", month(101), 1);
    uint64_t read_before = dd_change_number(c);
    ck_assert_ok(erase_set(f.store, "anna", P));
    ck_assert(!has(f.store, "anna", P, 1));
    ck_assert(has(f.store, "anna", month(101), 1));
    uint64_t user = dd_hash_user_seed(dd_store_secret(f.store), SCENE, dd_slice_str("anna"));
    ck_assert_uint_eq(dd_change_cell(c, P, user), dd_change_number(c)); /* cached sets are stale */

    struct dd_store_op out;
    ck_assert_ok(try_add(f.store, "anna", P, 2, read_before, &out)); /* the flush in flight */
    ck_assert(out.stripped);
    ck_assert(!has(f.store, "anna", P, 2));
    uint32_t nine = 9;
    struct dd_store_op rebuild = {0};
    rebuild = op_of(DD_STORE_UPDATE, NULL, NULL);
    rebuild.update = replace_with;
    rebuild.update_arg = &nine;
    rebuild.read_number = read_before;
    struct dd_store_batch b = {.ops = &rebuild, .n = 1};
    ck_assert_ok(dd_store_write_wait(f.store, &b));
    ck_assert(rebuild.stripped);

    /* Others, other periods, and what was read after the erase pass. */
    ck_assert_ok(try_add(f.store, "ben", P, 3, read_before, &out));
    ck_assert(!out.stripped && has(f.store, "ben", P, 3));
    ck_assert_ok(try_add(f.store, "anna", month(101), 3, read_before, &out));
    ck_assert(!out.stripped && has(f.store, "anna", month(101), 3));
    ck_assert_ok(try_add(f.store, "anna", P, 4, dd_change_number(c), &out));
    ck_assert(!out.stripped && has(f.store, "anna", P, 4));
    ck_assert_ok(try_add(f.store, "anna", P, 5, UINT64_MAX, &out));
    ck_assert(!out.stripped && has(f.store, "anna", P, 5));
    fixture_close(&f);
}
END_TEST

/* Erase and merge in one group, the merge read before: whatever their order, nothing is left. */
START_TEST(erase_in_the_same_commit_strips_too)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_buf one = operand_of(1);
    for (int erase_first = 0; erase_first < 2; erase_first++) {
        struct dd_store_op ops[] = {op_of(DD_STORE_MERGE, &one, NULL), op_of(DD_STORE_MERGE, &one, NULL)};
        for (int i = 0; i < 2; i++)
            ops[i].read_number = dd_change_number(dd_store_change(f.store));
        ops[!erase_first].kind = DD_STORE_ERASE;
        struct dd_store_batch b = {.ops = ops, .n = 2};
        ck_assert_ok(dd_store_write_wait(f.store, &b));
        ck_assert(!has(f.store, "anna", P, 1));
    }
    dd_buf_free(&one);
    fixture_close(&f);
}
END_TEST

START_TEST(erase_of_very_many_asks_others_to_read_again)
{
    struct fixture f;
    fixture_open(&f);
    uint64_t read_before = dd_change_number(dd_store_change(f.store));
    ck_assert_ok(erase_set(f.store, "anna", P));
    f.store->marks->floor = dd_change_number(dd_store_change(f.store)); /* as if its mark had to go */
    ck_assert_err(try_add(f.store, "ben", P, 3, read_before, NULL), DD_BUSY);
    ck_assert(!has(f.store, "ben", P, 3));
    ck_assert_ok(try_add(f.store, "ben", P, 3, dd_change_number(dd_store_change(f.store)), NULL));
    ck_assert(has(f.store, "ben", P, 3));
    fixture_close(&f);
}
END_TEST

START_TEST(merge_of_a_thousand_operands)
{
    struct fixture f;
    fixture_open(&f);
    for (uint32_t i = 0; i < 1000; i++)
        add(f.store, "anna", P, i * 7919);
    for (int round = 0; round < 3; round++) { /* in memory, in a file, compacted */
        for (uint32_t i = 0; i < 1000; i++)
            if (i % 50 == 0) ck_assert(has(f.store, "anna", P, i * 7919));
        if (round == 0) flush_memtable(f.store);
        if (round == 1) compact_all(f.store);
    }
    struct dd_buf b = {0};
    struct dd_filter_view v;
    ck_assert_ok(blob_of(f.store, "anna", P, &b));
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(&b)));
    uint32_t missing = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        uint8_t seen = 0;
        uint32_t fp = i * 7919;
        dd_filter_view_test(&v, &fp, 1, &seen, 1);
        missing += !seen;
    }
    ck_assert_uint_eq(missing, 0);
    ck_assert(!v.damaged);
    ck_assert_uint_eq(dd_counter_get(dd_stats_counter(f.stats, "dedupd_store_operands_skipped_total", "")),
                      0);
    dd_buf_free(&b);
    fixture_close(&f);
}
END_TEST

Suite *suite_update(void)
{
    Suite *s = suite_create("store update and erase");
    TCase *t = tcase_create("update");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, update_replaces_deletes_or_leaves);
    tcase_add_test(t, update_ops_of_one_batch_compose_in_order);
    tcase_add_test(t, update_bad_names_spoil_only_their_own_op);
    tcase_add_test(t, erase_strips_what_was_read_before_it);
    tcase_add_test(t, erase_in_the_same_commit_strips_too);
    tcase_add_test(t, erase_of_very_many_asks_others_to_read_again);
    tcase_add_test(t, merge_of_a_thousand_operands);
    suite_add_tcase(s, t);
    return s;
}
