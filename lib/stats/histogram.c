/* Log-linear buckets, as in HdrHistogram (Tene): the position of the highest bit chooses the power of two and
 * the next four bits the bucket in it. A bucket is at most 1/16 of its lower edge wide, hence the error
 * of 6.25 %.
 *
 * The count is not kept but summed from the buckets, so that recording is two relaxed additions. A reader
 * sees a state that may lack the last few records; quantiles of a moving histogram mean no more than that. */
#include "stats/histogram.h"

#define HIGHEST_US (((int64_t)1 << 32) - 1)

static unsigned bucket_of(int64_t us)
{
    if (us < 0) us = 0;
    if (us > HIGHEST_US) us = HIGHEST_US;
    if (us < 16) return (unsigned)us;
    unsigned power = 63 - (unsigned)__builtin_clzll((unsigned long long)us);
    return (power - 3) * 16 + (unsigned)(us >> (power - 4) & 15);
}

/* The highest value that falls into a bucket. */
static int64_t upper_edge(unsigned bucket)
{
    if (bucket < 16) return bucket;
    unsigned power = bucket / 16 + 3;
    return ((int64_t)(16 + bucket % 16 + 1) << (power - 4)) - 1;
}

void dd_histogram_record(struct dd_histogram *h, int64_t us)
{
    atomic_fetch_add_explicit(&h->buckets[bucket_of(us)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_us, us > 0 ? (uint64_t)us : 0, memory_order_relaxed);
}

uint64_t dd_histogram_count(const struct dd_histogram *h)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < DD_HISTOGRAM_BUCKETS; i++)
        n += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
    return n;
}

uint64_t dd_histogram_sum_us(const struct dd_histogram *h)
{
    return atomic_load_explicit(&h->sum_us, memory_order_relaxed);
}

int64_t dd_histogram_quantile(const struct dd_histogram *h, double q)
{
    uint64_t count = dd_histogram_count(h), seen = 0;
    if (count == 0) return 0;
    double rank = q * (double)count; /* the smallest value with at least this many at or below it */
    unsigned last = 0;
    for (unsigned i = 0; i < DD_HISTOGRAM_BUCKETS; i++) {
        uint64_t n = atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        if (n == 0) continue;
        last = i;
        seen += n;
        if ((double)seen >= rank) break;
    }
    return upper_edge(last);
}
