/* Counters, gauges and latency histograms, and the one registry that /metrics and /stats read.
 *
 * A module registers its metrics once, when it is created, and keeps the pointers; counting is one relaxed
 * atomic operation. Names follow Prometheus: `dedupd_<module>_<what>_<unit or total>`, labels inside the name
 * as `name{key="value"}`. Registering a name a second time returns the first metric.
 *
 * Histograms hold microseconds in log-linear buckets (16 per power of two: at most 6.25 % error), 1 us to
 * 2^32 us.
 *
 * Ownership: the registry owns every metric until dd_stats_destroy.
 * Threads: registering takes a lock; counting and rendering may run on any thread at any time. */
#ifndef DD_STATS_STATS_H
#define DD_STATS_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

struct dd_stats;

struct dd_counter {
    _Atomic uint64_t value;
};

struct dd_gauge {
    _Atomic int64_t value;
};

struct dd_histogram;

enum dd_err dd_stats_create(struct dd_stats **out) DD_MUST_USE;
void dd_stats_destroy(struct dd_stats *s);

/* Never NULL: when memory runs out a shared spare metric is returned, which nobody reads. help: one line of
 * text. */
struct dd_counter *dd_stats_counter(struct dd_stats *s, const char *name, const char *help);
struct dd_gauge *dd_stats_gauge(struct dd_stats *s, const char *name, const char *help);
struct dd_histogram *dd_stats_histogram(struct dd_stats *s, const char *name, const char *help);

static inline void dd_count(struct dd_counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

static inline uint64_t dd_counter_get(const struct dd_counter *c)
{
    return atomic_load_explicit(&c->value, memory_order_relaxed);
}

static inline void dd_gauge_set(struct dd_gauge *g, int64_t v)
{
    atomic_store_explicit(&g->value, v, memory_order_relaxed);
}

static inline void dd_gauge_add(struct dd_gauge *g, int64_t v)
{
    atomic_fetch_add_explicit(&g->value, v, memory_order_relaxed);
}

static inline int64_t dd_gauge_get(const struct dd_gauge *g)
{
    return atomic_load_explicit(&g->value, memory_order_relaxed);
}

void dd_histogram_record(struct dd_histogram *h, int64_t us);
uint64_t dd_histogram_count(const struct dd_histogram *h);
/* The q-quantile (0..1) in microseconds, upper edge of its bucket; 0 when empty. */
int64_t dd_histogram_quantile(const struct dd_histogram *h, double q);

/* The Prometheus text format (exposition format 0.0.4); histograms as summaries with quantiles 0.5 0.9 0.99
 * 0.999, in seconds. */
void dd_stats_prometheus(struct dd_stats *s, struct dd_buf *out);

/* Calls each for every metric, in the order of registration; exactly one of c, g, h is not NULL. */
typedef void (*dd_stats_visit)(void *arg, const char *name, const struct dd_counter *c,
                               const struct dd_gauge *g, const struct dd_histogram *h);
void dd_stats_each(struct dd_stats *s, dd_stats_visit visit, void *arg);

#endif
