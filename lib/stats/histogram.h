/* The layout of a histogram: private to lib/stats. */
#ifndef DD_STATS_HISTOGRAM_H
#define DD_STATS_HISTOGRAM_H

#include "stats/stats.h"

/* 0..15 each, then 16 buckets for every power of two from 2^4 to 2^31. */
#define DD_HISTOGRAM_BUCKETS (16 + 28 * 16)

struct dd_histogram {
    _Atomic uint64_t sum_us;
    _Atomic uint64_t buckets[DD_HISTOGRAM_BUCKETS];
};

uint64_t dd_histogram_sum_us(const struct dd_histogram *h);

#endif
