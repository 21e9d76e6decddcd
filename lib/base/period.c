/* Calendar arithmetic on days since 1970-01-01, after Howard Hinnant, "chrono-Compatible Low-Level Date
 * Algorithms" (days_from_civil, civil_from_days): eras of 400 years, years that begin in March. */
#include "base/period.h"

#include <stdio.h>
#include <stdlib.h>

#define DAY_MS  86400000LL
#define MAX_DAY 2932896 /* 9999-12-31 */

static int64_t days_from_civil(int64_t y, unsigned m, unsigned d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    unsigned yoe = (unsigned)(y - era * 400);
    unsigned doy = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
    unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + (int64_t)doe - 719468;
}

static void civil_from_days(int64_t z, int *year, unsigned *month, unsigned *day)
{
    z += 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    unsigned doe = (unsigned)(z - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    *day = doy - (153 * mp + 2) / 5 + 1;
    *month = mp < 10 ? mp + 3 : mp - 9;
    *year = (int)((int64_t)yoe + era * 400 + (*month <= 2));
}

static int64_t first_day(struct dd_period p)
{
    switch (p.kind) {
    case DD_PERIOD_DAY:
        return p.ordinal;
    case DD_PERIOD_WEEK:
        return (int64_t)p.ordinal * 7 - 3; /* 1970-01-01 was a Thursday: its week began on day -3 */
    case DD_PERIOD_MONTH:
        return days_from_civil(p.ordinal / 12, (unsigned)(p.ordinal % 12) + 1, 1);
    default:
        return days_from_civil(p.ordinal / 4, (unsigned)(p.ordinal % 4) * 3 + 1, 1);
    }
}

struct dd_period dd_period_at(enum dd_period_kind kind, struct dd_wall t)
{
    int64_t day = t.ms < 0 ? 0 : t.ms / DAY_MS;
    if (day > MAX_DAY) day = MAX_DAY;
    int year;
    unsigned month, mday;
    civil_from_days(day, &year, &month, &mday);
    int32_t ordinal = 0;
    if (kind == DD_PERIOD_DAY) ordinal = (int32_t)day;
    if (kind == DD_PERIOD_WEEK) ordinal = (int32_t)((day + 3) / 7);
    if (kind == DD_PERIOD_MONTH) ordinal = year * 12 + (int)month - 1;
    if (kind == DD_PERIOD_QUARTER) ordinal = year * 4 + (int)(month - 1) / 3;
    return (struct dd_period){kind, ordinal};
}

int64_t dd_period_start_ms(struct dd_period p)
{
    return p.kind == DD_PERIOD_FOREVER ? INT64_MIN : first_day(p) * DAY_MS;
}

int64_t dd_period_end_ms(struct dd_period p)
{
    if (p.kind == DD_PERIOD_FOREVER) return INT64_MAX;
    return first_day((struct dd_period){p.kind, p.ordinal + 1}) * DAY_MS;
}

const char *dd_period_format(struct dd_period p, char out[DD_PERIOD_TEXT])
{
    int y;
    unsigned m, d;
    if (p.kind == DD_PERIOD_FOREVER) return memcpy(out, "forever", 8);
    /* An ISO week belongs to the year of its Thursday. */
    civil_from_days(first_day(p) + (p.kind == DD_PERIOD_WEEK ? 3 : 0), &y, &m, &d);
    if (p.kind == DD_PERIOD_DAY) snprintf(out, DD_PERIOD_TEXT, "%04d-%02u-%02u", y % 10000, m, d);
    if (p.kind == DD_PERIOD_MONTH) snprintf(out, DD_PERIOD_TEXT, "%04d-%02u", y % 10000, m);
    if (p.kind == DD_PERIOD_QUARTER)
        snprintf(out, DD_PERIOD_TEXT, "%04d-Q%u", y % 10000, ((m - 1) / 3 + 1) % 10);
    if (p.kind == DD_PERIOD_WEEK) {
        int64_t week = (first_day(p) + 3 - days_from_civil(y, 1, 1)) / 7 + 1;
        snprintf(out, DD_PERIOD_TEXT, "%04d-W%02d", y % 10000, (int)week % 100);
    }
    return out;
}

/* Two digits or -1. */
static int two(const uint8_t *p)
{
    return p[0] >= '0' && p[0] <= '9' && p[1] >= '0' && p[1] <= '9' ? (p[0] - '0') * 10 + p[1] - '0' : -1;
}

static struct dd_period parse_candidate(struct dd_slice t, int year)
{
    const uint8_t *p = t.ptr;
    if (t.len == 7 && p[5] == 'Q') return (struct dd_period){DD_PERIOD_QUARTER, year * 4 + p[6] - '1'};
    if (t.len == 7) return (struct dd_period){DD_PERIOD_MONTH, year * 12 + two(p + 5) - 1};
    if (t.len == 8 && p[5] == 'W') {
        int64_t jan4 = days_from_civil(year, 1, 4); /* always in ISO week 1 */
        return (struct dd_period){DD_PERIOD_WEEK, (int32_t)((jan4 + 3) / 7 + two(p + 6) - 1)};
    }
    if (t.len == 10) {
        int m = two(p + 5), d = two(p + 8);
        if (m >= 1 && m <= 12 && d >= 1 && d <= 31)
            return (struct dd_period){DD_PERIOD_DAY,
                                      (int32_t)days_from_civil(year, (unsigned)m, (unsigned)d)};
    }
    return (struct dd_period){DD_PERIOD_FOREVER, -1};
}

enum dd_err dd_period_parse(struct dd_slice t, struct dd_period *out)
{
    if (dd_slice_eq(t, dd_slice_str("forever"))) {
        *out = (struct dd_period){DD_PERIOD_FOREVER, 0};
        return DD_OK;
    }
    if (t.len < 7 || two(t.ptr) < 0 || two(t.ptr + 2) < 0) return DD_INVALID;
    int year = two(t.ptr) * 100 + two(t.ptr + 2);
    if (year < 1970) return DD_INVALID;
    struct dd_period p = parse_candidate(t, year);
    if (p.ordinal < 0) return DD_INVALID;
    /* The text must be exactly what this period prints: that rejects month 13, 31 June, week 53 of a short
     * year. */
    char text[DD_PERIOD_TEXT];
    if (!dd_slice_eq(t, dd_slice_str(dd_period_format(p, text)))) return DD_INVALID;
    *out = p;
    return DD_OK;
}

static const char *const kind_names[] = {[DD_PERIOD_DAY] = "day",
                                         [DD_PERIOD_WEEK] = "week",
                                         [DD_PERIOD_MONTH] = "month",
                                         [DD_PERIOD_QUARTER] = "quarter",
                                         [DD_PERIOD_FOREVER] = "forever"};

const char *dd_period_kind_name(enum dd_period_kind kind)
{
    return kind >= DD_PERIOD_DAY && kind <= DD_PERIOD_FOREVER ? kind_names[kind] : "unknown";
}

enum dd_err dd_period_kind_parse(struct dd_slice text, enum dd_period_kind *out)
{
    for (int k = DD_PERIOD_DAY; k <= DD_PERIOD_FOREVER; k++) {
        if (!dd_slice_eq(text, dd_slice_str(kind_names[k]))) continue;
        *out = (enum dd_period_kind)k;
        return DD_OK;
    }
    return DD_INVALID;
}
