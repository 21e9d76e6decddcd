/* Counting layers: `units` counters of 4 bits, two a byte (even index in the low half), `k` probes an item
 * (Fan, Cao, Almeida and Broder, "Summary Cache", 1998). A counter at 15 stays there for good.
 *
 * A count read here is never below the truth, and above it only where every counter of the item is shared,
 * which is as rare as a false positive. Increments touch all counters and not only the lowest: raising only
 * the lowest reads more exactly but loses other items on delete.
 *
 * The counters take 4 times the bits of a Bloom layer, more than the list does as long as items repeat fewer
 * than three times or so. They are here for those who want their behaviour (bounded size under saturate and
 * rotate, adding in place). So the list is left when it fills a layer at once: measured over a
 * population, 7.5 bytes an item where leaving it at half took 9.2, and 6.0 where it took 9.9 with hints. */
#include "filter/internal.h"

#include "filter/probe.h"

#include <math.h>

static uint64_t body_bytes(const struct dd_filter_layer *l)
{
    return l->k < DD_PROBE_FIRST || l->k > 64 || l->units < 8 ? 0 : ((uint64_t)l->units + 1) / 2;
}

static void plan(struct dd_filter_layer *l, const struct dd_filter_want *want)
{
    l->capacity = want->capacity;
    dd_filter_bloom_size(want->capacity, want->rate, &l->k, &l->units);
}

static uint32_t list_limit(const struct dd_filter_layer *l)
{
    uint64_t by_bytes = body_bytes(l) / 4 + 1;
    return (uint32_t)(l->capacity < by_bytes ? l->capacity : by_bytes);
}

static inline unsigned get(const uint8_t *body, uint32_t i)
{
    return body[i / 2] >> (i % 2 * 4) & 15;
}

static inline unsigned used(const uint8_t *body, uint32_t i)
{
    return get(body, i) > 0;
}

static inline void put(uint8_t *body, uint32_t i, unsigned value)
{
    unsigned shift = i % 2 * 4;
    body[i / 2] = (uint8_t)((body[i / 2] & ~(15u << shift)) | value << shift);
}

static unsigned lowest(const struct dd_filter_layer *l, const uint8_t *body, uint32_t fp)
{
    unsigned low = DD_FILTER_COPIES;
    for (struct dd_probe p = dd_probe_start(l, fp); p.i < l->k && low > 0; dd_probe_next(&p, l, fp)) {
        unsigned c = get(body, p.at);
        if (c < low) low = c;
    }
    return low;
}

static void change(const struct dd_filter_layer *l, uint8_t *body, uint32_t fp, int by)
{
    for (struct dd_probe p = dd_probe_start(l, fp); p.i < l->k; dd_probe_next(&p, l, fp)) {
        int c = (int)get(body, p.at), next = c + by;
        if (c == (int)DD_FILTER_COPIES) continue;
        put(body, p.at, next < 0 ? 0 : next > 15 ? 15 : (unsigned)next);
    }
}

static bool contains(const struct dd_filter_layer *l, uint32_t fp)
{
    return lowest(l, l->bytes, fp) > 0;
}

static size_t test(const struct dd_filter_layer *l, const uint32_t *fps, size_t n, uint8_t *seen,
                   uint8_t mark)
{
    return dd_probe_test(l, fps, n, seen, mark, used, contains);
}

static unsigned count(const struct dd_filter_layer *l, uint32_t fp)
{
    return lowest(l, l->bytes, fp);
}

static size_t add(struct dd_filter_layer *l, struct dd_buf *out, const uint32_t *fps, size_t n, bool beyond)
{
    uint8_t *body = dd_filter_body(l, out);
    size_t i = 0;
    while (i < n && (beyond || l->count < l->capacity)) {
        size_t next = i + 1;
        while (next < n && fps[next] == fps[i])
            next++;
        change(l, body, fps[i], (int)(next - i < DD_FILTER_COPIES ? next - i : DD_FILTER_COPIES));
        l->count++;
        i = next;
    }
    return i;
}

static size_t forget(struct dd_filter_layer *l, struct dd_buf *out, const uint32_t *fps, size_t n)
{
    uint8_t *body = dd_filter_body(l, out);
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned c = lowest(l, body, fps[i]);
        if (c == 0 || c == DD_FILTER_COPIES) continue;
        change(l, body, fps[i], -(int)c);
        removed++;
    }
    l->count -= removed < l->count ? (uint32_t)removed : l->count;
    return removed;
}

static bool again(const struct dd_filter_layer *l, uint8_t *body, uint32_t fp)
{
    if (lowest(l, body, fp) == 0) return false;
    change(l, body, fp, 1);
    return true;
}

static double fill(const struct dd_filter_layer *l)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < l->units; i++)
        used += get(l->bytes, i) > 0;
    return (double)used / l->units;
}

static double rate(const struct dd_filter_layer *l)
{
    return pow(fill(l), l->k);
}

const struct dd_filter_ops dd_filter_counting_ops = {
    .body_bytes = body_bytes,
    .plan = plan,
    .list_limit = list_limit,
    .test = test,
    .count = count,
    .add = add,
    .remove = forget,
    .again = again,
    .fill = fill,
    .rate = rate,
};
