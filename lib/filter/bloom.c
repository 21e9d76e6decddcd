/* Bloom layers: `units` bits, `k` probes an item. Any number of bits (no rounding to a power of two).
 *
 * Classic, not blocked: a set of a user is a few kilobytes and in the first-level cache after its checksum
 * was read, a negative stops after about two probes, and the classic form takes the fewest bits. */
#include "filter/internal.h"

#include "filter/probe.h"

#include <math.h>

static uint64_t body_bytes(const struct dd_filter_layer *l)
{
    return l->k < DD_PROBE_FIRST || l->k > 64 || l->units < 8 ? 0 : ((uint64_t)l->units + 7) / 8;
}

static void plan(struct dd_filter_layer *l, const struct dd_filter_want *want)
{
    l->capacity = want->capacity;
    dd_filter_bloom_size(want->capacity, want->rate, &l->k, &l->units);
}

static uint32_t list_limit(const struct dd_filter_layer *l)
{
    return (uint32_t)((body_bytes(l) + DD_FILTER_LAYER_HEADER) / 4 + 1);
}

static inline unsigned bit_at(const uint8_t *bytes, uint32_t at)
{
    return bytes[at / 8] >> at % 8 & 1;
}

static bool contains(const struct dd_filter_layer *l, uint32_t fp)
{
    for (struct dd_probe p = dd_probe_start(l, fp); p.i < l->k; dd_probe_next(&p, l, fp)) {
        if (!bit_at(l->bytes, p.at)) return false;
    }
    return true;
}

static size_t test(const struct dd_filter_layer *l, const uint32_t *fps, size_t n, uint8_t *seen,
                   uint8_t mark)
{
    return dd_probe_test(l, fps, n, seen, mark, bit_at, contains);
}

static unsigned count(const struct dd_filter_layer *l, uint32_t fp)
{
    return contains(l, fp);
}

/* true: at least one bit was not set before. */
static bool set_bits(const struct dd_filter_layer *l, uint8_t *body, uint32_t fp)
{
    unsigned missing = 0;
    for (struct dd_probe p = dd_probe_start(l, fp); p.i < l->k; dd_probe_next(&p, l, fp)) {
        missing |= bit_at(body, p.at) ^ 1;
        body[p.at / 8] |= (uint8_t)(1u << p.at % 8);
    }
    return missing;
}

static size_t add(struct dd_filter_layer *l, struct dd_buf *out, const uint32_t *fps, size_t n, bool beyond)
{
    uint8_t *body = dd_filter_body(l, out);
    size_t i = 0;
    for (; i < n && (beyond || l->count < l->capacity); i++)
        l->count += set_bits(l, body, fps[i]);
    return i;
}

static double fill(const struct dd_filter_layer *l)
{
    uint64_t set = 0;
    uint32_t i = 0;
    for (; i + 8 <= l->bytes_len; i += 8)
        set += (unsigned)__builtin_popcountll(dd_get_le64(l->bytes + i));
    for (; i < l->bytes_len; i++)
        set += (unsigned)__builtin_popcount(l->bytes[i]);
    return (double)set / l->units;
}

static double rate(const struct dd_filter_layer *l)
{
    return pow(fill(l), l->k);
}

const struct dd_filter_ops dd_filter_bloom_ops = {
    .body_bytes = body_bytes,
    .plan = plan,
    .list_limit = list_limit,
    .test = test,
    .count = count,
    .add = add,
    .fill = fill,
    .rate = rate,
};
