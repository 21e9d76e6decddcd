#include "filters_number.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/hash.h"

/* P(X <= k) for X binomial(n, p), summed downwards from k until the terms no longer matter. Right for p at or
 * above k / n, where the terms fall in that direction. */
static double lower_tail(double k, double n, double p)
{
    double log_term = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p);
    double term = 1, sum = 0;
    for (double i = k; i >= 0 && term > sum * 1e-15; i--) {
        sum += term;
        term *= i / (n - i + 1) * (1 - p) / p;
    }
    return exp(log_term) * sum;
}

/* The p at which P(X <= k) is 2.5 %; k < n. */
static double upper_limit(double k, double n)
{
    double low = k / n, high = 1;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (middle > 0 && middle < 1 && lower_tail(k, n, middle) > 0.025)
            low = middle;
        else
            high = middle;
    }
    return high;
}

struct dd_interval dd_interval_of(uint64_t hits, uint64_t trials)
{
    double k = (double)hits, n = (double)trials;
    struct dd_interval i = {0, 1};
    if (hits < trials) i.high = upper_limit(k, n);
    if (hits > 0) i.low = 1 - upper_limit(n - k, n); /* the misses' upper limit */
    return i;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double dd_median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, ascending);
    return (v[n / 2] + v[(n - 1) / 2]) / 2;
}

double dd_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

uint64_t dd_random_at(uint64_t seed, uint64_t a, uint64_t b)
{
    return dd_mix64(dd_mix64(dd_mix64(seed + 0x9e3779b97f4a7c15ULL) + a) + b);
}

double dd_uniform_at(uint64_t seed, uint64_t a, uint64_t b)
{
    return ((double)(dd_random_at(seed, a, b) >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller, 1958. */
double dd_normal_at(uint64_t seed, uint64_t a, uint64_t b)
{
    double radius = sqrt(-2 * log(dd_uniform_at(seed, a, b)));
    return radius * cos(2 * M_PI * dd_uniform_at(seed ^ UINT64_MAX, a, b));
}
