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
 * mispredicted every other time, at some 20 cycles. Tests therefore sieve a run of candidates without a
 * branch: all by the two probes of the first hash, the quarter that is left by the two of the second, and
 * look closer at the sixteenth that is left then. (Four probes of all at once took 90 instructions a
 * candidate, this 51.) No layer has fewer than four probes. */
enum { DD_PROBE_RUN = 64, DD_PROBE_FIRST = 4 };

/* Whether the unit at that place is used (a bit is set, a counter is not 0): 0 or 1. */
typedef unsigned dd_probe_used(const uint8_t *bytes, uint32_t at);
/* Whether all k units of fp are used. */
typedef bool dd_probe_all(const struct dd_filter_layer *l, uint32_t fp);

/* Keeps in left, which has n entries, the numbers of those that pass the two probes of hash `round`; returns
 * how many. Round 0 takes the numbers 0 .. n - 1. */
__attribute__((always_inline)) static inline size_t dd_probe_sieve(const struct dd_filter_layer *l,
                                                                   const uint32_t *fps, uint8_t *left,
                                                                   size_t n, unsigned round,
                                                                   dd_probe_used *used)
{
    size_t kept = 0;
    for (size_t j = 0; j < n; j++) {
        uint8_t i = round ? left[j] : (uint8_t)j;
        uint64_t hash = dd_probe_hash(l, fps[i], round);
        left[kept] = i;
        kept += used(l->bytes, dd_probe_upper(hash, l->units)) &
                used(l->bytes, dd_probe_lower(hash, l->units));
    }
    return kept;
}

/* dd_filter_ops.test for both kinds. */
__attribute__((always_inline)) static inline size_t dd_probe_test(const struct dd_filter_layer *l,
                                                                  const uint32_t *fps, size_t n,
                                                                  uint8_t *seen, uint8_t mark,
                                                                  dd_probe_used *used, dd_probe_all *all)
{
    size_t found = 0;
    uint8_t left[DD_PROBE_RUN];
    for (size_t from = 0; from < n; from += DD_PROBE_RUN) {
        size_t kept = n - from < DD_PROBE_RUN ? n - from : DD_PROBE_RUN;
        for (unsigned round = 0; round < DD_PROBE_FIRST / 2; round++)
            kept = dd_probe_sieve(l, fps + from, left, kept, round, used);
        for (size_t j = 0; j < kept; j++) {
            size_t i = from + left[j];
            if (seen[i] != 0 || !all(l, fps[i])) continue;
            seen[i] = mark;
            found++;
        }
    }
    return found;
}

#endif
