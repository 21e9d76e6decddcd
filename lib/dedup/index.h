/* The index of one request's items: fingerprints, a hash table to find them again, and what is known of each.
 *
 * Everything that may drop a candidate (a delivery, a pending fingerprint, a filter set) is a mark() here.
 * The table is open addressing over the arena; it lives as long as the request.
 *
 * Threads: belongs to the request. Ownership: borrows items and arena. */
#ifndef DD_DEDUP_INDEX_H
#define DD_DEDUP_INDEX_H

#include "dedup/dedup.h"

struct dd_index {
    struct dd_item *items;
    uint32_t n, mask;
    uint32_t *slot;  /* item number + 1; 0: free */
    uint32_t *fps;   /* per item, contiguous for the filter sets */
    uint8_t *reason; /* per item, DD_REASON_*; the smallest wins */
    uint64_t seed;   /* of the user */
    /* After dd_index_allow, per item: how often it was seen so far, and the smallest of those reasons. */
    uint16_t *times;
    uint8_t *first;
    unsigned max_seen;
};

/* Fingerprints every item (also into items[i].fp) and marks repeats. DD_NO_MEMORY. */
enum dd_err dd_index_build(struct dd_index *ix, struct dd_item *items, unsigned n, uint64_t seed,
                           struct dd_arena *arena) DD_MUST_USE;

/* From here on fingerprints and sets drop an item only when it was seen more than max_seen times, counted
 * over all of them (each is to be marked once); its reason is then the smallest of theirs. DD_NO_MEMORY. */
enum dd_err dd_index_allow(struct dd_index *ix, unsigned max_seen, struct dd_arena *arena) DD_MUST_USE;

/* Marks the item with this id. Returns how many were newly dropped (0 or 1). */
unsigned dd_index_mark_id(struct dd_index *ix, struct dd_slice id, uint8_t reason);
/* Marks every item with this fingerprint, as seen once. */
unsigned dd_index_mark_fp(struct dd_index *ix, uint32_t fp, uint8_t reason);
/* Marks every item that the set contains. exact: also items that have a larger reason (explain). scratch: n
 * bytes, only when exact. */
unsigned dd_index_mark_set(struct dd_index *ix, const struct dd_filter_view *set, uint8_t reason, bool exact,
                           uint8_t *scratch);

#endif
