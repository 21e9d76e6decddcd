/* The tally: which users may be near the cap of a period, without knowing any of them.
 *
 * A set's item count is known only when the set is read, and a write does not read. So exposures are tallied
 * by (scene, user, period) hash in a fixed table of counters; once a counter reaches an eighth of the cap,
 * the next exposure reads the set, compares its count with the cap, and starts the counter anew. One read per
 * cap/8 items bounds the overshoot to about an eighth; users that share a counter cost each other a read,
 * never a refusal.
 *
 * Threads: any, lock-free. */
#ifndef DD_DEDUP_TALLY_H
#define DD_DEDUP_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct dd_tally;

enum dd_err dd_tally_create(struct dd_tally **out) DD_MUST_USE;
void dd_tally_destroy(struct dd_tally *t);

/* true: n more items of this hash may pass cap; the set must be looked at, then dd_tally_restart. */
bool dd_tally_is_due(struct dd_tally *t, uint64_t hash, uint32_t n, uint32_t cap);
void dd_tally_add(struct dd_tally *t, uint64_t hash, uint32_t n);
void dd_tally_restart(struct dd_tally *t, uint64_t hash);

#endif
