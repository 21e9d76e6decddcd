/* Periods: calendar slices in UTC that a filter set covers.
 *
 *   kind     ordinal                                  text
 *   day      days since 1970-01-01                    2026-11-30
 *   week     ISO weeks (Monday first) since the week  2026-W49
 *            of 1970-01-01
 *   month    year * 12 + month - 1                    2026-11
 *   quarter  year * 4 + quarter - 1                   2026-Q4
 *   forever  0                                        forever
 *
 * Years 1970 to 9999. Consecutive periods of a kind have consecutive ordinals, so a window of n periods that
 * ends at ordinal o is o, o-1, ..., o-n+1. Threads: pure functions. */
#ifndef DD_BASE_PERIOD_H
#define DD_BASE_PERIOD_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"

enum dd_period_kind {
    DD_PERIOD_DAY = 1,
    DD_PERIOD_WEEK,
    DD_PERIOD_MONTH,
    DD_PERIOD_QUARTER,
    DD_PERIOD_FOREVER
};

/* The most periods that a window may have. */
#define DD_WINDOW_MAX 64

/* Longest text of a period, with NUL. */
#define DD_PERIOD_TEXT 16

struct dd_period {
    enum dd_period_kind kind;
    int32_t ordinal;
};

static inline int dd_period_eq(struct dd_period a, struct dd_period b)
{
    return a.kind == b.kind && a.ordinal == b.ordinal;
}

/* The period that contains a time. Times before 1970 count as 1970-01-01, after 9999 as 9999-12-31. */
struct dd_period dd_period_at(enum dd_period_kind kind, struct dd_wall t);

/* First millisecond of the period, and the first after it. forever: INT64_MIN and INT64_MAX. */
int64_t dd_period_start_ms(struct dd_period p);
int64_t dd_period_end_ms(struct dd_period p);

/* Writes the text, NUL-terminated, and returns out. */
const char *dd_period_format(struct dd_period p, char out[DD_PERIOD_TEXT]);

/* Reads exactly what dd_period_format writes. DD_INVALID otherwise. */
enum dd_err dd_period_parse(struct dd_slice text, struct dd_period *out) DD_MUST_USE;

/* "day", "week", "month", "quarter", "forever", and back (DD_INVALID). */
const char *dd_period_kind_name(enum dd_period_kind kind);
enum dd_err dd_period_kind_parse(struct dd_slice text, enum dd_period_kind *out) DD_MUST_USE;

#endif
