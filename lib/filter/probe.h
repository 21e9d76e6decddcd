/* The probes of Bloom and counting layers: places among `units`, chosen anew for each probe of each layer.
 *
 * Probes 2i and 2i + 1 are the upper and the lower half of mix(fp + (64 seed + i + 1) * golden), reduced to
 * the range by multiplication: SplitMix64 with the fingerprint as its start, so any probe can be had without
 * the ones before it. Plain double hashing from a 32-bit fingerprint was measured at 2.8 times the budget at
 * 129 items and 1.3 times at 1,000; this at 0.99. */
#ifndef DD_FILTER_PROBE_H
#define DD_FILTER_PROBE_H

#include "base/hash.h"
#include "filter/filter.h"

#define DD_FILTER_GOLDEN 0x9e3779b97f4a7c15ULL

static inline uint64_t dd_probe_hash(const struct dd_filter_layer *l, uint32_t fp, unsigned i)
{
    return dd_mix64(fp + (64ULL * l->seed + i + 1) * DD_FILTER_GOLDEN);
}

static inline uint32_t dd_probe_upper(uint64_t hash, uint32_t units)
{
    return (uint32_t)((hash >> 32) * units >> 32);
}

static inline uint32_t dd_probe_lower(uint64_t hash, uint32_t units)
{
    return (uint32_t)((hash & 0xffffffffu) * units >> 32);
}

/* All probes in order: for (p = start; p.i < k; next(&p)) ... p.at */
struct dd_probe {
    uint64_t hash;
    uint32_t at;
    unsigned i;
};

static inline struct dd_probe dd_probe_start(const struct dd_filter_layer *l, uint32_t fp)
{
    uint64_t hash = dd_probe_hash(l, fp, 0);
    return (struct dd_probe){hash, dd_probe_upper(hash, l->units), 0};
}

static inline void dd_probe_next(struct dd_probe *p, const struct dd_filter_layer *l, uint32_t fp)
{
    p->i++;
    if (p->i % 2 == 0) p->hash = dd_probe_hash(l, fp, p->i / 2);
    p->at = p->i % 2 == 0 ? dd_probe_upper(p->hash, l->units) : dd_probe_lower(p->hash, l->units);
}

/* A candidate that was never added passes a probe with even odds, so that a branch after each would be
 * mispredicted every other time, at some 20 cycles. Tests therefore take the first four probes of a run of
 * candidates without a branch and look closer at the sixteenth that is left. No layer has fewer than four
 * probes. */
enum { DD_PROBE_RUN = 64, DD_PROBE_FIRST = 4 };

/* The first four places of fp. */
static inline void dd_probe_first(const struct dd_filter_layer *l, uint32_t fp, uint32_t at[DD_PROBE_FIRST])
{
    uint64_t a = dd_probe_hash(l, fp, 0), b = dd_probe_hash(l, fp, 1);
    at[0] = dd_probe_upper(a, l->units), at[1] = dd_probe_lower(a, l->units);
    at[2] = dd_probe_upper(b, l->units), at[3] = dd_probe_lower(b, l->units);
}

#endif
