/* One structure under one workload. */
#ifndef DD_CTL_FILTERS_MEASURE_H
#define DD_CTL_FILTERS_MEASURE_H

#include "filters.h"
#include "filters_number.h"
#include "filters_structure.h"
#include "filters_workload.h"

/* Items of one batch, as a flush brings them; ids of one test, as a request brings them. */
enum { DD_MEASURE_BATCH = 20, DD_MEASURE_CANDIDATES = DD_STRUCTURE_TEST_MAX };

struct dd_measured {
    double bytes;              /* of one user, the mean over all */
    uint64_t hits, trials;     /* of items never added */
    uint64_t forgotten, asked; /* of items added */
    double add_ns;             /* an item, all of a user's in one batch */
    double growth_ns;          /* an item, from nothing in batches of 20 */
    double test_ns;            /* a candidate never added, 100 at a time */
    double merge_us;           /* a batch of 20 new items into the whole */
};

/* Every user grows in batches and is measured; costs are medians over a few users. DD_NO_MEMORY,
 * DD_TOO_LARGE. */
enum dd_err dd_measure(const struct dd_structure_spec *spec, const struct dd_workload *w,
                       const struct dd_filters_args *a, struct dd_measured *out) DD_MUST_USE;

/* Bytes of one user, the mean over all, and nothing else. */
enum dd_err dd_measure_bytes(const struct dd_structure_spec *spec, const struct dd_workload *w,
                             const struct dd_filters_args *a, double *out) DD_MUST_USE;

/* Different items of all users. */
enum dd_err dd_measure_distinct(const struct dd_workload *w, uint64_t *out) DD_MUST_USE;

/* What it promises not to exceed: for sets their policy's rate, else 0. */
double dd_measure_promise(const struct dd_structure_spec *spec);

/* ---- what is compared (filters_specs.c) ---- */

struct dd_structure_spec dd_spec_kind(const struct dd_filters_args *a, enum dd_filter_kind kind);
struct dd_structure_spec dd_spec_list(void);
struct dd_structure_spec dd_spec_hash(void);
struct dd_structure_spec dd_spec_queue(uint32_t capacity);
/* Blocks that rotate, each at rate `fpr` when full. */
struct dd_structure_spec dd_spec_blocks(const char *name, unsigned blocks, uint32_t capacity, double fpr);

#endif
