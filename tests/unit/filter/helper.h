/* What the filter tests share: a random generator, sets built in several ways, and the exact interval of a
 * rate. */
#ifndef DD_TESTS_FILTER_HELPER_H
#define DD_TESTS_FILTER_HELPER_H

#include <stdlib.h>

#include "filter/filter.h"
#include "unit.h"

struct rng {
    uint64_t state;
};

uint64_t rng_next(struct rng *r);
/* 0 .. n - 1 */
uint32_t rng_below(struct rng *r, uint32_t n);

/* n random fingerprints, repeats as chance has it. The caller frees. */
uint32_t *random_fps(struct rng *r, size_t n);

/* Rounds of thorough runs are multiplied by DD_TEST_LONG (default 1). 0, or valgrind (30 times slower): the
 * small sizes of each test only. */
unsigned test_scale(void);
bool test_is_short(void);

/* A policy of the kind with everything else at its default. */
struct dd_filter_policy policy_of(enum dd_filter_kind kind);
#define KINDS_FROM DD_FILTER_BLOOM
#define KINDS_TO   DD_FILTER_COMPACT

/* set := merge(set, operand(fps)) */
void set_add(struct dd_buf *set, const struct dd_filter_policy *p, uint32_t hint, const uint32_t *fps,
             size_t n);
/* set := merge(set, operands) */
void set_merge(struct dd_buf *set, const struct dd_slice *operands, size_t n);

/* How many of fps the set reports as present. */
size_t set_present(struct dd_slice set, const uint32_t *fps, size_t n);
/* How many of n fingerprints of another stream the set reports as present. */
size_t set_false(struct dd_slice set, struct rng *r, size_t n);
struct dd_filter_info set_info(struct dd_slice set);

/* Recomputes the checksum of a blob that was changed by hand. */
void fix_checksum(uint8_t *blob, size_t len);

/* Wilson's interval of hits / n at z = 3.29 (99.9 %). */
void wilson(double hits, double n, double *low, double *high);

Suite *suite_policy(void);
Suite *suite_list(void);
Suite *suite_vectors(void);
Suite *suite_laws(void);
Suite *suite_growth(void);
Suite *suite_rates(void);
Suite *suite_hostile(void);
Suite *suite_counting(void);
Suite *suite_forget(void);
Suite *suite_threads(void);

#endif
