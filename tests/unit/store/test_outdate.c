/* Updates that outdate what was read elsewhere, and the periods of a scene. */
#include "fixture.h"

#define P month(100)

static enum dd_err leave(void *arg, struct dd_slice current, struct dd_buf *out)
{
    (void)arg, (void)current, (void)out;
    return DD_NOT_FOUND;
}

static void outdate(struct dd_store *s, const char *user)
{
    struct dd_store_op op = {.kind = DD_STORE_UPDATE,
                             .scene = SCENE,
                             .user = dd_slice_str(user),
                             .period = P,
                             .update = leave,
                             .outdates = true,
                             .read_number = UINT64_MAX};
    struct dd_store_batch batch = {.ops = &op, .n = 1};
    ck_assert_ok(dd_store_write_wait(s, &batch));
    ck_assert_err(op.result, DD_NOT_FOUND);
}

START_TEST(what_was_read_before_is_to_be_read_again)
{
    struct fixture f;
    struct dd_store_op op;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    uint64_t before = dd_change_number(dd_store_change(f.store));
    outdate(f.store, "anna");
    ck_assert_err(try_add(f.store, "anna", P, 2, before, &op), DD_BUSY);
    ck_assert(!op.stripped);
    ck_assert(!has(f.store, "anna", P, 2));
    ck_assert_ok(try_add(f.store, "ben", P, 2, before, &op));
    ck_assert_ok(try_add(f.store, "anna", P, 3, UINT64_MAX, &op));
    ck_assert(has(f.store, "anna", P, 1) && has(f.store, "anna", P, 3));
    fixture_close(&f);
}
END_TEST

/* The update wrote nothing, but a read after it must count as younger, or it would be repeated for ever. */
START_TEST(a_read_after_it_is_taken)
{
    struct fixture f;
    struct dd_store_op op;
    fixture_open(&f);
    outdate(f.store, "anna");
    ck_assert_ok(try_add(f.store, "anna", P, 2, dd_change_number(dd_store_change(f.store)), &op));
    ck_assert(has(f.store, "anna", P, 2));
    fixture_close(&f);
}
END_TEST

START_TEST(an_erase_after_it_strips)
{
    struct fixture f;
    struct dd_store_op op;
    fixture_open(&f);
    uint64_t before = dd_change_number(dd_store_change(f.store));
    outdate(f.store, "anna");
    ck_assert_ok(erase_set(f.store, "anna", P));
    ck_assert_ok(try_add(f.store, "anna", P, 2, before, &op));
    ck_assert(op.stripped);
    ck_assert(!has(f.store, "anna", P, 2));
    fixture_close(&f);
}
END_TEST

static enum dd_err note_period(void *arg, struct dd_period period)
{
    int32_t **next = arg;
    *(*next)++ = period.ordinal;
    return DD_OK;
}

START_TEST(each_period_of_a_scene)
{
    struct fixture f;
    int32_t found[4] = {0}, *next = found;
    fixture_open(&f);
    add(f.store, "anna", month(7), 1);
    add(f.store, "ben", month(7), 1);
    add(f.store, "ben", month(900), 1);
    ck_assert_ok(dd_store_each_period(f.store, SCENE, DD_PERIOD_MONTH, note_period, &next));
    ck_assert_int_eq(next - found, 2);
    ck_assert_int_eq(found[0], 7);
    ck_assert_int_eq(found[1], 900);
    ck_assert_ok(dd_store_each_period(f.store, dd_slice_str("other"), DD_PERIOD_MONTH, note_period, &next));
    ck_assert_int_eq(next - found, 2);
    fixture_close(&f);
}
END_TEST

Suite *suite_outdate(void)
{
    Suite *s = suite_create("store/outdate");
    TCase *t = tcase_create("outdate");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, what_was_read_before_is_to_be_read_again);
    tcase_add_test(t, a_read_after_it_is_taken);
    tcase_add_test(t, an_erase_after_it_strips);
    tcase_add_test(t, each_period_of_a_scene);
    suite_add_tcase(s, t);
    return s;
}
