#include "helper.h"

#include <math.h>

#include "filter/internal.h"
#include "filter/probe.h"

uint64_t rng_next(struct rng *r)
{
    r->state += DD_FILTER_GOLDEN;
    return dd_mix64(r->state ^ 0x5851f42d4c957f2dULL);
}

uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}

uint32_t *random_fps(struct rng *r, size_t n)
{
    uint32_t *fps = malloc(n * sizeof *fps + 1);
    ck_assert_ptr_nonnull(fps);
    for (size_t i = 0; i < n; i++)
        fps[i] = (uint32_t)(rng_next(r) >> 32);
    return fps;
}

unsigned test_scale(void)
{
    const char *text = getenv("DD_TEST_LONG");
    long scale = text ? strtol(text, NULL, 10) : 1;
    return scale < 1 ? 1 : (unsigned)scale;
}

/* valgrind loads its own library into what it runs. */
bool test_is_short(void)
{
    const char *text = getenv("DD_TEST_LONG"), *preload = getenv("LD_PRELOAD");
    return (text && strcmp(text, "0") == 0) || (preload && strstr(preload, "vgpreload"));
}

struct dd_filter_policy policy_of(enum dd_filter_kind kind)
{
    struct dd_filter_policy p = dd_filter_policy_default();
    p.kind = kind;
    return p;
}

void set_merge(struct dd_buf *set, const struct dd_slice *operands, size_t n)
{
    struct dd_buf out = {0};
    struct dd_filter_merge_report report;
    ck_assert_ok(dd_filter_merge(dd_buf_slice(set), operands, n, &out, &report));
    ck_assert_uint_eq(report.skipped, 0);
    ck_assert(!report.base_damaged);
    dd_buf_free(set);
    *set = out;
}

void set_add(struct dd_buf *set, const struct dd_filter_policy *p, uint32_t hint, const uint32_t *fps,
             size_t n)
{
    struct dd_buf operand = {0};
    ck_assert_ok(dd_filter_operand(p, hint, fps, n, &operand));
    struct dd_slice one = dd_buf_slice(&operand);
    set_merge(set, &one, 1);
    dd_buf_free(&operand);
}

size_t set_present(struct dd_slice set, const uint32_t *fps, size_t n)
{
    struct dd_filter_view v;
    ck_assert_ok(dd_filter_view_open(&v, set));
    uint8_t *seen = calloc(n + 1, 1);
    ck_assert_ptr_nonnull(seen);
    size_t found = dd_filter_view_test(&v, fps, n, seen, 7), marked = 0;
    for (size_t i = 0; i < n; i++)
        marked += seen[i] == 7;
    ck_assert_uint_eq(found, marked);
    free(seen);
    return found;
}

size_t set_false(struct dd_slice set, struct rng *r, size_t n)
{
    uint32_t *fps = random_fps(r, n);
    size_t found = set_present(set, fps, n);
    free(fps);
    return found;
}

struct dd_filter_info set_info(struct dd_slice set)
{
    struct dd_filter_view v;
    struct dd_filter_info info;
    ck_assert_ok(dd_filter_view_open(&v, set));
    dd_filter_view_info(&v, &info);
    return info;
}

void fix_checksum(uint8_t *blob, size_t len)
{
    if (len >= DD_FILTER_TRAILER) {
        dd_put_le64(blob + len - DD_FILTER_TRAILER, dd_filter_checksum(blob, len - DD_FILTER_TRAILER));
    }
}

void wilson(double hits, double n, double *low, double *high)
{
    double z = 3.29, p = hits / n, d = 1 + z * z / n;
    double middle = (p + z * z / (2 * n)) / d;
    double half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d;
    *low = middle - half, *high = middle + half;
}
