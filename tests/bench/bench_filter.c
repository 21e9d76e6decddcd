/* Filter sets side by side: one row a kind and size.
 *
 *   bench_filter [items ...]      default: 50 300 1000 10000
 *
 * Three periods of `items` each, at a scene's 0.001, as /filter meets them; sizes with the hint of a like
 * period and without. Times are CPU of this thread, the median of several runs.
 *
 *   bytes, bits/item, ratio  of one period's set; ratio to log2(1 / fpr) bits, fpr being the period's share
 *   open                     ns for opening one set (checksum included)
 *   test                     ns for one candidate against one set, 100 candidates at a time
 *   window                   us for 100 candidates against the three sets, opening included
 *   merge                    us for merging an operand of 20 new items into one set */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "filter/filter.h"

enum { PERIODS = 3, CANDIDATES = 100, BATCH = 20, RUNS = 9 };

struct subject {
    struct dd_filter_policy policy;
    uint32_t hint, items;
    struct dd_buf set[PERIODS], operand;
    uint32_t *candidates; /* many times CANDIDATES, none of them in a set */
};

static uint64_t random_state = 1;

static uint32_t random_fp(void)
{
    random_state += 0x9e3779b97f4a7c15ULL;
    return (uint32_t)(dd_mix64(random_state) >> 32);
}

static void must(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "bench_filter: %s failed\n", what);
    exit(1);
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median over runs of the time of one call. */
static double median_ns(void (*call)(struct subject *), struct subject *s, unsigned calls)
{
    double ns[RUNS];
    for (int run = 0; run < RUNS; run++) {
        double start = cpu_ns();
        for (unsigned i = 0; i < calls; i++)
            call(s);
        ns[run] = (cpu_ns() - start) / calls;
    }
    qsort(ns, RUNS, sizeof *ns, ascending);
    return ns[RUNS / 2];
}

static void merge_into(const struct dd_buf *base, struct dd_slice operand, struct dd_buf *out)
{
    dd_buf_reset(out);
    must(dd_filter_merge(dd_buf_slice(base), &operand, 1, out, NULL) == DD_OK, "merge");
}

static void random_operand(struct subject *s, size_t n, struct dd_buf *out)
{
    uint32_t *fps = malloc(n * sizeof *fps);
    must(fps, "malloc");
    for (size_t i = 0; i < n; i++)
        fps[i] = random_fp();
    dd_buf_reset(out);
    must(dd_filter_operand(&s->policy, s->hint, fps, n, out) == DD_OK, "operand");
    free(fps);
}

static void fill(struct subject *s, struct dd_buf *set)
{
    struct dd_buf operand = {0}, out = {0};
    for (uint32_t i = 0; i < s->items; i += BATCH) {
        random_operand(s, s->items - i < BATCH ? s->items - i : BATCH, &operand);
        merge_into(set, dd_buf_slice(&operand), &out);
        struct dd_buf swap = *set;
        *set = out, out = swap;
    }
    dd_buf_free(&operand);
    dd_buf_free(&out);
}

static void prepare(struct subject *s)
{
    for (int i = 0; i < PERIODS; i++)
        fill(s, &s->set[i]);
    random_operand(s, BATCH, &s->operand);
    s->candidates = malloc(64 * CANDIDATES * sizeof *s->candidates);
    must(s->candidates, "malloc");
    for (int i = 0; i < 64 * CANDIDATES; i++)
        s->candidates[i] = random_fp();
}

static void release(struct subject *s)
{
    for (int i = 0; i < PERIODS; i++)
        dd_buf_free(&s->set[i]);
    dd_buf_free(&s->operand);
    free(s->candidates);
}

static void call_open(struct subject *s)
{
    struct dd_filter_view v;
    must(dd_filter_view_open(&v, dd_buf_slice(&s->set[0])) == DD_OK, "open");
}

/* Different candidates each time, or the branch predictor learns them. */
static void call_window(struct subject *s)
{
    static unsigned turn;
    const uint32_t *candidates = s->candidates + turn++ % 64 * CANDIDATES;
    struct dd_filter_view v;
    uint8_t seen[CANDIDATES] = {0};
    for (int i = 0; i < PERIODS; i++) {
        must(dd_filter_view_open(&v, dd_buf_slice(&s->set[i])) == DD_OK, "open");
        dd_filter_view_test(&v, candidates, CANDIDATES, seen, 1);
    }
}

static void call_merge(struct subject *s)
{
    static struct dd_buf out;
    merge_into(&s->set[0], dd_buf_slice(&s->operand), &out);
}

static void row(enum dd_filter_kind kind, uint32_t items, bool hinted)
{
    struct subject s = {.policy = dd_filter_policy_default(), .items = items};
    struct dd_filter_view v;
    struct dd_filter_info info;
    s.policy.kind = kind;
    if (hinted) s.hint = (uint32_t)(items / 0.85);
    prepare(&s);
    must(dd_filter_view_open(&v, dd_buf_slice(&s.set[0])) == DD_OK, "open");
    dd_filter_view_info(&v, &info);
    double bits = 8.0 * (double)info.bytes / items, limit = log2(1 / s.policy.fpr);
    double open = median_ns(call_open, &s, 2000), window = median_ns(call_window, &s, 300);
    double merge = median_ns(call_merge, &s, 300);
    printf("%-8s %7u %5s %8zu %6u %9.2f %6.2f %8.0f %7.1f %8.2f %8.2f\n", dd_filter_kind_name(kind), items,
           hinted ? "yes" : "no", info.bytes, info.layers, bits, bits / limit, open,
           (window - PERIODS * open) / (PERIODS * CANDIDATES), window / 1000, merge / 1000);
    release(&s);
}

static void rows(uint32_t items)
{
    for (unsigned kind = DD_FILTER_BLOOM; kind <= DD_FILTER_COMPACT; kind++) {
        row((enum dd_filter_kind)kind, items, false);
        row((enum dd_filter_kind)kind, items, true);
    }
}

int main(int argc, char **argv)
{
    static const uint32_t usual[] = {50, 300, 1000, 10000};
    printf("%-8s %7s %5s %8s %6s %9s %6s %8s %7s %8s %8s\n", "kind", "items", "hint", "bytes", "layers",
           "bits/item", "ratio", "open ns", "test ns", "win us", "merge us");
    for (int i = 1; i < argc; i++)
        rows((uint32_t)strtoul(argv[i], NULL, 10));
    for (size_t i = 0; argc == 1 && i < sizeof usual / sizeof *usual; i++)
        rows(usual[i]);
    return 0;
}
