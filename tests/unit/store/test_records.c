/* Records beside the sets: written with them, given to an update, erased and expired with them; scans. */
#include "fixture.h"
#include "store/history.h"

#define P month(100)

static struct fixture f;

static struct dd_store_op record_op(const char *user, struct dd_period p, const char *suffix,
                                    const char *value)
{
    return (struct dd_store_op){.kind = DD_STORE_RECORD,
                                .scene = SCENE,
                                .user = dd_slice_str(user),
                                .period = p,
                                .suffix = dd_slice_str(suffix),
                                .operand = dd_slice_str(value),
                                .read_number = UINT64_MAX};
}

static struct dd_store_op put_op(enum dd_store_family family, const char *key, const char *value)
{
    return (struct dd_store_op){
        .kind = DD_STORE_PUT, .family = family, .suffix = dd_slice_str(key), .operand = dd_slice_str(value)};
}

static struct dd_store_op write_op(struct dd_store_op op)
{
    struct dd_store_batch b = {.ops = &op, .n = 1};
    ck_assert_ok(dd_store_write_wait(f.store, &b));
    return op;
}

static void record(const char *user, struct dd_period p, const char *suffix, const char *value)
{
    ck_assert_ok(write_op(record_op(user, p, suffix, value)).result);
}

/* Keys and values as "key=value ", keys from the byte `skip` on. */
struct text {
    struct dd_buf buf;
    unsigned left;
};

static bool add_text(void *arg, struct dd_slice key, struct dd_slice value)
{
    struct text *t = arg;
    dd_buf_add_slice(&t->buf, key);
    dd_buf_add_u8(&t->buf, '=');
    dd_buf_add_slice(&t->buf, value);
    dd_buf_add_u8(&t->buf, ' ');
    return --t->left > 0;
}

static void expect(struct text *t, const char *expected)
{
    dd_buf_add_u8(&t->buf, 0);
    ck_assert_str_eq((const char *)t->buf.data, expected);
    dd_buf_free(&t->buf);
}

static void expect_records(const char *user, struct dd_period p, const char *expected)
{
    struct text t = {.left = 1000};
    ck_assert_ok(dd_store_each_record(f.store, SCENE, dd_slice_str(user), p, add_text, &t));
    expect(&t, expected);
}

static void expect_scan(struct dd_store_scan scan, unsigned most, const char *expected)
{
    struct text t = {.left = most};
    ck_assert_ok(dd_store_scan(f.store, &scan, add_text, &t));
    expect(&t, expected);
}

START_TEST(written_replaced_and_deleted)
{
    fixture_open(&f);
    record("anna", P, "b", "2");
    record("anna", P, "a", "1");
    record("ann", P, "a", "x"); /* a name that is a prefix of the other */
    record("anna", month(101), "a", "y");
    expect_records("anna", P, "a=1 b=2 ");
    record("anna", P, "a", "3");
    record("anna", P, "b", "");
    expect_records("anna", P, "a=3 ");
    fixture_reopen(&f, true);
    expect_records("anna", P, "a=3 ");
    expect_records("ann", P, "a=x ");
    ck_assert_err(write_op(record_op("anna", P, "", "v")).result, DD_INVALID);
    ck_assert_err(write_op(record_op("", P, "a", "v")).result, DD_INVALID);
    fixture_close(&f);
}
END_TEST

START_TEST(they_leave_sets_and_cells_alone)
{
    fixture_open(&f);
    uint64_t user = dd_hash_user_seed(dd_store_secret(f.store), SCENE, dd_slice_str("anna"));
    add(f.store, "anna", P, 1);
    uint64_t cell = dd_change_cell(dd_store_change(f.store), P, user);
    record("anna", P, "a", "1");
    ck_assert_uint_eq(dd_change_cell(dd_store_change(f.store), P, user), cell);
    ck_assert(has(f.store, "anna", P, 1));
    fixture_close(&f);
}
END_TEST

/* ---- erase ---- */

START_TEST(erased_with_their_set)
{
    struct dd_store_op ops[3];
    fixture_open(&f);
    record("anna", P, "a", "1");
    record("ben", P, "a", "1");
    uint64_t before = dd_change_number(dd_store_change(f.store));
    ops[0] = record_op("anna", P, "b", "2"); /* in the same commit, before the erase and behind it */
    ops[1] = (struct dd_store_op){
        .kind = DD_STORE_ERASE, .scene = SCENE, .user = dd_slice_str("anna"), .period = P};
    ops[2] = record_op("anna", P, "c", "3");
    struct dd_store_batch b = {.ops = ops, .n = 3};
    ck_assert_ok(dd_store_write_wait(f.store, &b));
    ck_assert_uint_eq(ops[1].records, 2);
    expect_records("anna", P, "c=3 ");
    expect_records("ben", P, "a=1 ");
    struct dd_store_op late = record_op("anna", P, "d", "4");
    late.read_number = before;
    ck_assert(write_op(late).stripped);
    expect_records("anna", P, "c=3 ");
    fixture_close(&f);
}
END_TEST

START_TEST(expired_with_their_period)
{
    fixture_open(&f);
    add(f.store, "anna", month(99), 1);
    record("anna", month(99), "a", "1");
    record("ben", month(98), "a", "1"); /* of a set that is not stored */
    record("anna", P, "a", "1");
    ck_assert_ok(dd_store_expire(f.store, SCENE, DD_PERIOD_MONTH, 100));
    expect_records("anna", month(99), "");
    expect_records("ben", month(98), "");
    expect_records("anna", P, "a=1 ");
    fixture_close(&f);
}
END_TEST

/* ---- updates ---- */

struct seen {
    struct text text;
    bool had; /* update() ran after the records */
};

static void take_record(void *arg, struct dd_slice suffix, struct dd_slice value)
{
    struct seen *s = arg;
    ck_assert(!s->had);
    add_text(&s->text, suffix, value);
}

static enum dd_err take_set(void *arg, struct dd_slice current, struct dd_buf *out)
{
    struct seen *s = arg;
    (void)out;
    s->had = true;
    return current.len ? DD_UNSUPPORTED : DD_NOT_FOUND;
}

START_TEST(an_update_is_given_all_before_it)
{
    struct dd_store_op ops[3];
    struct seen s = {.text.left = 100};
    fixture_open(&f);
    record("anna", P, "a", "1");
    record("annab", P, "x", "1");
    ops[0] = record_op("anna", P, "b", "2");
    ops[1] = (struct dd_store_op){.kind = DD_STORE_UPDATE,
                                  .scene = SCENE,
                                  .user = dd_slice_str("anna"),
                                  .period = P,
                                  .update = take_set,
                                  .record = take_record,
                                  .update_arg = &s,
                                  .read_number = UINT64_MAX};
    ops[2] = record_op("anna", P, "c", "3");
    struct dd_store_batch b = {.ops = ops, .n = 3};
    ck_assert_ok(dd_store_write_wait(f.store, &b));
    ck_assert(s.had);
    ck_assert_err(ops[1].result, DD_NOT_FOUND);
    ck_assert_uint_eq(ops[1].records, 2);
    expect(&s.text, "a=1 b=2 ");
    expect_records("anna", P, "a=1 b=2 c=3 ");
    fixture_close(&f);
}
END_TEST

/* ---- scans ---- */

START_TEST(scans_in_both_directions)
{
    static const char *const keys[] = {"ta1", "ta2", "ta3", "tb1", "t"};
    fixture_open(&f);
    for (unsigned i = 0; i < 5; i++)
        write_op(put_op(DD_STORE_HISTORY, keys[i], "v"));
    write_op(put_op(DD_STORE_META, "ta9", "m"));
    struct dd_store_scan scan = {.family = DD_STORE_HISTORY, .prefix = dd_slice_str("ta")};
    expect_scan(scan, 100, "ta1=v ta2=v ta3=v ");
    expect_scan(scan, 2, "ta1=v ta2=v ");
    scan.from = dd_slice_str("ta1");
    expect_scan(scan, 100, "ta2=v ta3=v ");
    scan.from = dd_slice_str("ta11");
    expect_scan(scan, 100, "ta2=v ta3=v ");
    scan.reverse = true;
    scan.from = dd_slice_str("ta3");
    expect_scan(scan, 100, "ta2=v ta1=v ");
    scan.from = dd_slice_str("ta2x");
    expect_scan(scan, 100, "ta2=v ta1=v ");
    scan.from = dd_slice_of(NULL, 0);
    expect_scan(scan, 100, "ta3=v ta2=v ta1=v ");
    scan.prefix = dd_slice_str("u");
    expect_scan(scan, 100, "");
    write_op(put_op(DD_STORE_HISTORY, "ta2", ""));
    scan.prefix = dd_slice_str("ta");
    expect_scan(scan, 100, "ta3=v ta1=v ");
    scan = (struct dd_store_scan){.family = DD_STORE_META, .prefix = dd_slice_str("ta")};
    expect_scan(scan, 100, "ta9=m ");
    fixture_close(&f);
}
END_TEST

static bool add_name(void *arg, struct dd_slice scene, struct dd_slice user, struct dd_period period)
{
    struct text *t = arg;
    ck_assert(dd_slice_eq(scene, SCENE));
    dd_buf_add_slice(&t->buf, user);
    dd_buf_addf(&t->buf, "/%d ", (int)period.ordinal);
    return --t->left > 0;
}

START_TEST(every_set_that_has_records)
{
    struct text all = {.left = 100}, some = {.left = 2};
    fixture_open(&f);
    add(f.store, "none", P, 1);
    record("b", P, "1", "v");
    record("b", P, "2", "v");
    record("b", P, "\xff\xff\xff", "v");
    record("a", month(101), "1", "v");
    record("\xff", P, "1", "v");
    write_op(put_op(DD_STORE_HISTORY, "tb1", "not of a set"));
    ck_assert_ok(dd_store_each_recorded(f.store, add_name, &all));
    expect(&all, "b/100 \xff/100 a/101 ");
    ck_assert_ok(dd_store_each_recorded(f.store, add_name, &some));
    expect(&some, "b/100 \xff/100 ");
    fixture_close(&f);
}
END_TEST

Suite *suite_records(void)
{
    Suite *s = suite_create("store/records");
    TCase *t = tcase_create("records");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, written_replaced_and_deleted);
    tcase_add_test(t, they_leave_sets_and_cells_alone);
    tcase_add_test(t, erased_with_their_set);
    tcase_add_test(t, expired_with_their_period);
    tcase_add_test(t, an_update_is_given_all_before_it);
    tcase_add_test(t, scans_in_both_directions);
    tcase_add_test(t, every_set_that_has_records);
    suite_add_tcase(s, t);
    return s;
}
