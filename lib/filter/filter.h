/* Filter sets: everything remembered of one (scene, user, period), as one versioned, checksummed blob of bytes.
 * Pure: no I/O, no clock, no file-level state.
 *
 * One algebra: a batch of exposures is itself a filter set (a sparse one, here called an operand). Staging, the store's
 * merge operator, migration and rebuild are all merges. The law, for any grouping and order of the same exposures:
 * no false negative, and the false-positive rate stays within the policy's share.
 *
 * Only fingerprints (base/hash.h) enter. Byte layout: proto/storage.md, "Filter set".
 *
 * Two faces:
 *   view     reads a blob in place: verify once, test many. No allocation.
 *   builder  a mutable set: decode, add, merge, encode.
 *
 * Trust: a blob may be random, truncated, flipped or hostile; opening verifies lengths, counts and the checksum
 * before a byte is used, and allocates nothing beyond a small multiple of the blob.
 *
 * Threads: no shared state; one view or builder belongs to one thread at a time.
 * Ownership: a view borrows the blob. */
#ifndef DD_FILTER_FILTER_H
#define DD_FILTER_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum dd_filter_kind { DD_FILTER_BLOOM = 1, DD_FILTER_COUNTING, DD_FILTER_CUCKOO, DD_FILTER_COMPACT };

enum dd_filter_on_full { DD_ON_FULL_GROW = 0, DD_ON_FULL_ROTATE, DD_ON_FULL_SATURATE };

/* What new layers are made by. Carried in the header of every blob, so that a merge needs no other context. */
struct dd_filter_policy {
    enum dd_filter_kind kind;
    enum dd_filter_on_full on_full;
    double fpr;                /* the share of one period: the scene's fpr / window; 1e-7 .. 0.05 */
    uint32_t capacity;         /* items of the first dense layer: 16 .. 1,000,000 */
    uint32_t cap;              /* the most items of a period the promise covers: capacity .. 16,000,000 */
    uint8_t growth;            /* 1 or 2: capacity of the next layer over that of the last */
    uint8_t max_layers;        /* 0: as many as needed; else with rotate or saturate */
    uint8_t fingerprint_bits;  /* cuckoo and compact: 0 = derived from fpr */
};

/* DD_OK, or DD_INVALID with a sentence in why (field, value, allowed range). */
enum dd_err dd_filter_policy_check(const struct dd_filter_policy *p, char *why, size_t why_size) DD_MUST_USE;

const char *dd_filter_kind_name(enum dd_filter_kind kind);
enum dd_err dd_filter_kind_parse(struct dd_slice text, enum dd_filter_kind *out) DD_MUST_USE;

/* ---- reading a blob in place ---- */

#define DD_FILTER_LAYERS_MAX 64

struct dd_filter_view {
    struct dd_slice blob;
    struct dd_filter_policy policy;
    uint32_t items;  /* additions that were not already present (exact for sparse; within fpr for layers) */
    uint16_t layers; /* 0: sparse */
    bool damaged;    /* a merge met an operand or base that it could not read and left it out */
    struct dd_filter_layer_view {
        const uint8_t *bytes;
        uint32_t bytes_len, capacity, count;
        uint64_t bits;
        uint8_t k;
    } layer[DD_FILTER_LAYERS_MAX];
    const uint8_t *sparse; /* sorted u32 little-endian, `items` of them */
};

/* DD_OK or DD_CORRUPT. A blob of length 0 is the empty set. */
enum dd_err dd_filter_view_open(struct dd_filter_view *v, struct dd_slice blob) DD_MUST_USE;

/* Sets seen[i] = mark for every fps[i] that the set contains and whose seen[i] is still 0. mark is not 0.
 * Returns how many were set. */
size_t dd_filter_view_test(const struct dd_filter_view *v, const uint32_t *fps, size_t n, uint8_t *seen, uint8_t mark);

/* How often the fingerprint was added: counting sets 0..15 (15: at least), other kinds 0 or 1. */
unsigned dd_filter_view_count(const struct dd_filter_view *v, uint32_t fp);

struct dd_filter_info {
    enum dd_filter_kind kind;
    bool sparse, damaged;
    uint32_t items, capacity; /* capacity: of all layers */
    uint16_t layers;
    size_t bytes;
    double fill; /* of the newest layer: share of set bits, or load */
    double fpr;  /* expected now, over all layers, fingerprint collisions included */
};

void dd_filter_view_info(const struct dd_filter_view *v, struct dd_filter_info *out);

/* ---- building ---- */

/* Encodes a batch as an operand: fingerprints in any order, with repeats (kept only by counting). n may be 0.
 * hint: items that the period may reach (the user's previous period), 0 unknown; becomes the capacity of the first
 * dense layer when the merge creates it. The blob is appended to out. DD_NO_MEMORY, or DD_INVALID policy. */
enum dd_err dd_filter_operand(const struct dd_filter_policy *p, uint32_t hint, const uint32_t *fps, size_t n,
                              struct dd_buf *out) DD_MUST_USE;

struct dd_filter_merge_report {
    uint32_t skipped;  /* operands that could not be read */
    bool base_damaged; /* the base could not be read: the result holds the operands only, flagged damaged */
};

/* base (length 0: none) plus operands, oldest first, promoted as the newest readable policy says. The result is appended to out.
 * Never refuses for bad input: what cannot be read is left out, counted and flagged. DD_NO_MEMORY only. */
enum dd_err dd_filter_merge(struct dd_slice base, const struct dd_slice *operands, size_t n, struct dd_buf *out,
                            struct dd_filter_merge_report *report) DD_MUST_USE;

/* Unites operands without a base; the result is again an operand (fingerprints, never layers, unless an input had some). Appended to out. */
enum dd_err dd_filter_partial_merge(const struct dd_slice *operands, size_t n, struct dd_buf *out,
                                    struct dd_filter_merge_report *report) DD_MUST_USE;

/* A copy of the set without the fingerprints. DD_UNSUPPORTED: Bloom layers cannot forget. *removed: how many were present. */
enum dd_err dd_filter_forget(struct dd_slice base, const uint32_t *fps, size_t n, struct dd_buf *out, size_t *removed)
    DD_MUST_USE;

#endif
