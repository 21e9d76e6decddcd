#include "fixture.h"

START_TEST(marks_strip_what_was_read_before)
{
    struct dd_erase_marks *m;
    ck_assert_ok(dd_marks_create(&m));
    ck_assert_int_eq(dd_marks_judge(m, 77, 0), DD_MARK_KEEP);
    dd_marks_add(m, 77, 10);
    ck_assert_int_eq(dd_marks_judge(m, 77, 9), DD_MARK_STRIP);
    ck_assert_int_eq(dd_marks_judge(m, 77, 10), DD_MARK_KEEP);
    ck_assert_int_eq(dd_marks_judge(m, 77, UINT64_MAX), DD_MARK_KEEP);
    ck_assert_int_eq(dd_marks_judge(m, 78, 9), DD_MARK_KEEP);
    dd_marks_add(m, 77, 20); /* erased again */
    ck_assert_int_eq(dd_marks_judge(m, 77, 19), DD_MARK_STRIP);
    dd_marks_destroy(m);
}
END_TEST

/* Marks of one bucket differ by multiples of the number of buckets. */
START_TEST(marks_that_had_to_go_ask_to_read_again)
{
    struct dd_erase_marks *m;
    ck_assert_ok(dd_marks_create(&m));
    for (uint64_t i = 0; i <= DD_MARK_WAYS; i++)
        dd_marks_add(m, 5 + i * DD_MARK_BUCKETS, 10 + i);
    /* The oldest (number 10) went: nothing read before 10 may pass, whoever it belongs to, nor be dropped. */
    ck_assert_int_eq(dd_marks_judge(m, 5, 9), DD_MARK_READ_AGAIN);
    ck_assert_int_eq(dd_marks_judge(m, 999, 9), DD_MARK_READ_AGAIN);
    ck_assert_int_eq(dd_marks_judge(m, 999, 10), DD_MARK_KEEP);
    ck_assert_int_eq(dd_marks_judge(m, 5, 10), DD_MARK_KEEP);
    ck_assert_int_eq(dd_marks_judge(m, 5 + DD_MARK_BUCKETS, 10), DD_MARK_STRIP);
    ck_assert_int_eq(dd_marks_judge(m, 999, UINT64_MAX), DD_MARK_KEEP);
    dd_marks_destroy(m);
}
END_TEST

Suite *suite_marks(void)
{
    Suite *s = suite_create("store erase marks");
    TCase *t = tcase_create("marks");
    tcase_add_test(t, marks_strip_what_was_read_before);
    tcase_add_test(t, marks_that_had_to_go_ask_to_read_again);
    suite_add_tcase(s, t);
    return s;
}
