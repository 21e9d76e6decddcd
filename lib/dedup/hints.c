#include "dedup/hints.h"

#include <stdlib.h>

#include "base/hash.h"

#define COUNTS (1u << 24) /* two a byte */
#define ITEMS  48         /* after so many a hint is due, */
#define DUE    8          /* in steps */
#define GIVEN  15

static enum dd_err clear(struct dd_hints *h)
{
    free(h->counts);
    h->counts = calloc(COUNTS / 2, 1);
    return h->counts ? DD_OK : DD_NO_MEMORY;
}

enum dd_err dd_hints_init(struct dd_hints *h)
{
    *h = (struct dd_hints){0};
    for (unsigned kind = 0; kind < DD_PERIOD_FOREVER; kind++)
        h->newest[kind] = INT32_MIN;
    return clear(h);
}

void dd_hints_free(struct dd_hints *h)
{
    free(h->counts);
    h->counts = NULL;
}

static void note_period(struct dd_hints *h, struct dd_period p)
{
    int32_t *newest = &h->newest[p.kind];
    if (p.ordinal <= *newest) return;
    bool first = *newest == INT32_MIN;
    *newest = p.ordinal;
    if (!first && clear(h) != DD_OK) return; /* no counts until the next period: no hints */
}

/* Whole steps, rounded at random, so that many small flushes count as much as one large. */
static unsigned steps_of(struct dd_hints *h, uint32_t capacity, unsigned n)
{
    uint32_t items = capacity / 4 < ITEMS ? capacity / 4 : ITEMS;
    uint32_t step = items / DUE > 1 ? items / DUE : 1;
    uint64_t steps = (n + dd_mix64(h->turns++) % step) / step;
    return steps < DUE ? (unsigned)steps : DUE;
}

bool dd_hints_due(struct dd_hints *h, const struct dd_filter_policy *p, uint64_t seed,
                  struct dd_period period, unsigned n)
{
    if (period.kind >= DD_PERIOD_FOREVER || p->max_layers > 0) return false;
    note_period(h, period);
    if (!h->counts) return false;
    uint32_t at = (uint32_t)(dd_mix64(seed + (uint32_t)period.ordinal) % COUNTS);
    unsigned shift = at % 2 * 4, count = h->counts[at / 2] >> shift & 15;
    if (count == GIVEN) return false;
    count += steps_of(h, p->capacity, n);
    bool due = count >= DUE;
    if (due) count = GIVEN;
    h->counts[at / 2] = (uint8_t)((h->counts[at / 2] & ~(15u << shift)) | count << shift);
    return due;
}
