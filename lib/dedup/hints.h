/* When the wheel should look up how many items a user's period before had: the hint that sizes the first
 * dense layer of a period (filter.h). A look-up reads the store, from the disk for most users, so it is made
 * once for each user and period, and only for those of whom enough was flushed that a layer can save
 * anything: 48 items, or a quarter of a smaller capacity. Below that a list is at most some 60 bytes longer.
 *
 * What was flushed is counted in half a byte for each hash of (user, period), in eighths of that. 8 MB of
 * counts, of which only the pages in use take memory, are begun anew with each period. Users that share a
 * count are looked up early or not at all, and a restart forgets the counts; that costs a read or some bytes
 * and nothing else.
 *
 * Threads: one at a time (the wheel's). */
#ifndef DD_DEDUP_HINTS_H
#define DD_DEDUP_HINTS_H

#include "base/period.h"
#include "filter/filter.h"

struct dd_hints {
    uint8_t *counts;
    int32_t newest[DD_PERIOD_FOREVER]; /* ordinal of the newest period seen, by kind */
    uint64_t turns;
};

enum dd_err dd_hints_init(struct dd_hints *h) DD_MUST_USE;
void dd_hints_free(struct dd_hints *h);

/* n items of a user (dd_hash_user_seed) are flushed. true: look the hint up now. */
bool dd_hints_due(struct dd_hints *h, const struct dd_filter_policy *p, uint64_t seed,
                  struct dd_period period, unsigned n);

#endif
