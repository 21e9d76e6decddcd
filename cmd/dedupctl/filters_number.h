/* Numbers for measurements: the interval of a rate, medians, CPU time, and random numbers that a seed
 * repeats.
 *
 * Threads: pure functions; a random source belongs to one thread at a time. */
#ifndef DD_CTL_FILTERS_NUMBER_H
#define DD_CTL_FILTERS_NUMBER_H

#include <stddef.h>
#include <stdint.h>

struct dd_interval {
    double low, high;
};

/* Clopper and Pearson's interval ("The use of confidence or fiducial limits", 1934) of 95 % for a rate of
 * which `hits` in `trials` were seen: exact, if anything too wide. trials 0: 0 to 1. */
struct dd_interval dd_interval_of(uint64_t hits, uint64_t trials);

/* Sorts v and returns its median; n is not 0. */
double dd_median(double *v, size_t n);

/* CPU time of the calling thread: what other processes do meanwhile does not count, though a shared cache
 * does. */
double dd_cpu_ns(void);

/* A number that depends on nothing but the three: for workloads that are not kept but made again. */
uint64_t dd_random_at(uint64_t seed, uint64_t a, uint64_t b);
/* From the open interval 0 to 1, and from the standard normal distribution. */
double dd_uniform_at(uint64_t seed, uint64_t a, uint64_t b);
double dd_normal_at(uint64_t seed, uint64_t a, uint64_t b);

#endif
