#include "unit.h"

#include "base/period.h"

/* Known dates: start_ms from `date -u -d ... +%s`. */
static const struct {
    enum dd_period_kind kind;
    int64_t at_s;
    const char *text;
    int64_t start_s, end_s;
} known[] = {
    {DD_PERIOD_DAY, 0, "1970-01-01", 0, 86400},
    {DD_PERIOD_MONTH, 0, "1970-01", 0, 2678400},
    {DD_PERIOD_WEEK, 0, "1970-W01", -259200, 345600},
    {DD_PERIOD_QUARTER, 0, "1970-Q1", 0, 7776000},
    {DD_PERIOD_DAY, 1796056391, "2026-11-30", 1795996800, 1796083200},
    {DD_PERIOD_WEEK, 1796056391, "2026-W49", 1795996800, 1796601600},
    {DD_PERIOD_MONTH, 1796056391, "2026-11", 1793491200, 1796083200},
    {DD_PERIOD_QUARTER, 1796056391, "2026-Q4", 1790812800, 1798761600},
    {DD_PERIOD_DAY, 951782400, "2000-02-29", 951782400, 951868800},
    {DD_PERIOD_WEEK, 1609459200, "2020-W53", 1609113600, 1609718400},
    {DD_PERIOD_WEEK, 1735516800, "2025-W01", 1735516800, 1736121600},
    {DD_PERIOD_MONTH, 1796083199, "2026-11", 1793491200, 1796083200},
    {DD_PERIOD_MONTH, 1796083200, "2026-12", 1796083200, 1798761600},
};

START_TEST(known_periods)
{
    struct dd_period p = dd_period_at(known[_i].kind, (struct dd_wall){known[_i].at_s * 1000 + 999}), back;
    char text[DD_PERIOD_TEXT];
    ck_assert_str_eq(dd_period_format(p, text), known[_i].text);
    ck_assert_int_eq(dd_period_start_ms(p), known[_i].start_s * 1000);
    ck_assert_int_eq(dd_period_end_ms(p), known[_i].end_s * 1000);
    ck_assert_ok(dd_period_parse(dd_slice_str(known[_i].text), &back));
    ck_assert(dd_period_eq(p, back));
}
END_TEST

/* Over 140 years: every period begins where the last ended, contains its times, and reads back from its text.
 */
START_TEST(periods_tile_time)
{
    for (int64_t day = 0; day < 365 * 140; day++) {
        struct dd_wall t = {day * 86400000 + 43200000};
        for (int k = DD_PERIOD_DAY; k <= DD_PERIOD_QUARTER; k++) {
            struct dd_period p = dd_period_at((enum dd_period_kind)k, t), back;
            ck_assert(dd_period_start_ms(p) <= t.ms && t.ms < dd_period_end_ms(p));
            struct dd_period next = dd_period_at(p.kind, (struct dd_wall){dd_period_end_ms(p)});
            ck_assert_int_eq(next.ordinal, p.ordinal + 1);
            char text[DD_PERIOD_TEXT];
            ck_assert_ok(dd_period_parse(dd_slice_str(dd_period_format(p, text)), &back));
            ck_assert(dd_period_eq(p, back));
        }
    }
}
END_TEST

static const char *const bad_texts[] = {
    "",         "2026",     "2026-13",    "2026-00",    "2026-1",  "2026-Q0",   "2026-Q5",     "2026-W00",
    "2025-W53", "2026-W54", "2026-02-29", "2026-06-31", "1969-12", "2026-11-3", "2026/11",     "2026-11 ",
    "Forever",  "foreverx", "-026-11",    "2026-11-00", "2026-1a", "2026-Wab",  "2026-11-301", "99999-01"};

START_TEST(bad_text_is_refused)
{
    struct dd_period p;
    ck_assert_err(dd_period_parse(dd_slice_str(bad_texts[_i]), &p), DD_INVALID);
}
END_TEST

START_TEST(forever_never_ends)
{
    struct dd_period p = dd_period_at(DD_PERIOD_FOREVER, (struct dd_wall){1796056391000}), back;
    char text[DD_PERIOD_TEXT];
    ck_assert_int_eq(p.ordinal, 0);
    ck_assert(dd_period_end_ms(p) == INT64_MAX);
    ck_assert_ok(dd_period_parse(dd_slice_str(dd_period_format(p, text)), &back));
    ck_assert(dd_period_eq(p, back));
}
END_TEST

START_TEST(kinds_have_names)
{
    for (int k = DD_PERIOD_DAY; k <= DD_PERIOD_FOREVER; k++) {
        enum dd_period_kind back;
        ck_assert_ok(dd_period_kind_parse(dd_slice_str(dd_period_kind_name((enum dd_period_kind)k)), &back));
        ck_assert_int_eq((int)back, k);
    }
    enum dd_period_kind none;
    ck_assert_err(dd_period_kind_parse(dd_slice_str("year"), &none), DD_INVALID);
}
END_TEST

Suite *suite_period(void);
Suite *suite_period(void)
{
    Suite *s = suite_create("base/period");
    TCase *t = tcase_create("period");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, known_periods, 0, sizeof known / sizeof *known);
    tcase_add_test(t, periods_tile_time);
    tcase_add_loop_test(t, bad_text_is_refused, 0, sizeof bad_texts / sizeof *bad_texts);
    tcase_add_test(t, forever_never_ends);
    tcase_add_test(t, kinds_have_names);
    suite_add_tcase(s, t);
    return s;
}
