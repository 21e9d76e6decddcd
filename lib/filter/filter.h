/* Filter sets: everything remembered of one (scene, user, period), as one versioned, checksummed blob of
 * bytes. Pure: no I/O, no clock, no file-level state.
 *
 * One algebra: a batch of exposures is itself a filter set (a sparse one, here called an operand). Staging,
 * the store's merge operator, migration and rebuild are all merges. The law, for any grouping and order of
 * the same exposures: no false negative, and the false-positive rate stays within the policy's share.
 *
 * Only fingerprints (base/hash.h) enter. Byte layout: proto/storage.md, "Filter set".
 *
 * A set is a list of layers (Bloom bits, counters, buckets, coded fingerprints) and, after them, a sorted
 * list of 32-bit fingerprints. A light user has the list only ("sparse"); when the list would take more bytes
 * than a layer, a full merge turns it into one. The list after full layers is what makes growth cheap: a new
 * layer is not paid for until it is more than half used.
 *
 *   view   reads a blob in place: verify once, test many. No allocation.
 *   merge  takes blobs, gives a blob; so do partial_merge and forget.
 *
 * Trust: a blob may be random, truncated, flipped or hostile; opening verifies lengths, counts and the
 * checksum before a byte is used, and allocates nothing beyond a small multiple of the blob.
 *
 * Threads: no shared state; one view or builder belongs to one thread at a time.
 * Ownership: a view borrows the blob; functions with an `out` append to the caller's buffer. */
#ifndef DD_FILTER_FILTER_H
#define DD_FILTER_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum dd_filter_kind { DD_FILTER_BLOOM = 1, DD_FILTER_COUNTING, DD_FILTER_CUCKOO, DD_FILTER_COMPACT };

enum dd_filter_on_full { DD_ON_FULL_GROW = 0, DD_ON_FULL_ROTATE, DD_ON_FULL_SATURATE };

/* What new layers are made by. Carried in the header of every blob, so that a merge needs no other context; a
 * changed policy governs new layers and never misreads old ones, which say themselves what they are. */
struct dd_filter_policy {
    enum dd_filter_kind kind;
    enum dd_filter_on_full on_full;
    double fpr;        /* the share of one period: the scene's fpr / window; 1e-7 .. 0.05 (kept as a float) */
    uint32_t capacity; /* items of the first layer: 16 .. 1,000,000 */
    uint32_t cap;      /* the most items of a period the promise covers: capacity .. 16,000,000 */
    uint8_t growth;    /* 2: each new layer doubles the capacity of the set; 1: layers are all alike */
    uint8_t max_layers; /* 0 with grow; else 1 .. 64 (rotate: from 2), the list counting as one with rotate */
    uint8_t
        fingerprint_bits; /* cuckoo 4 .. 32, compact 16 .. 32: at least so many; 0: as many as fpr needs */
    uint8_t tightening; /* growth 2: error share of a layer over that of the one before, in percent, 10 .. 95;
                           0: DD_FILTER_TIGHTENING */
};

/* Measured over users whose items are log-normal (median 60, months that vary by 35 %): 1.46 times the bytes
 * of one Bloom filter of just the right size, with hints; 1.49 with 50, 1.58 with 80. Most users never leave
 * the first layer, and pay for what is kept back for later ones. */
#define DD_FILTER_TIGHTENING 30

/* bloom, grow, growth 2, fpr 0.001 / 3, capacity 256, cap 200,000. Without hints that population takes 1.61
 * times the optimum with capacity 256 (1.59 with 128 and more layers, 1.70 with 512, 1.83 with 1,024). */
struct dd_filter_policy dd_filter_policy_default(void);

/* DD_OK, or DD_INVALID with a sentence in why (field, value, allowed range). */
enum dd_err dd_filter_policy_check(const struct dd_filter_policy *p, char *why, size_t why_size) DD_MUST_USE;

/* The highest cap that goes with this fpr of a period: equal 32-bit fingerprints take at most half of it. */
uint32_t dd_filter_cap_most(double fpr);

const char *dd_filter_kind_name(enum dd_filter_kind kind);
enum dd_err dd_filter_kind_parse(struct dd_slice text, enum dd_filter_kind *out) DD_MUST_USE;

/* ---- reading a blob in place ---- */

/* Fixed blocks (growth 1) begin to double at the 64th, so that this is never reached by adding. */
#define DD_FILTER_LAYERS_MAX 128

/* One layer. units and k mean: bloom bits and probes; counting counters and probes; cuckoo buckets and tag
 * bits; compact 0 and fingerprint bits. */
struct dd_filter_layer {
    const uint8_t *bytes;
    uint32_t bytes_len, capacity, count, units;
    uint8_t kind, k, seed, low; /* seed: varies the probes by layer; low: compact, low bits of an entry */
};

struct dd_filter_view {
    struct dd_slice blob;
    struct dd_filter_policy policy;
    uint32_t hint;     /* items the period may reach, 0 unknown (kept to within 3 %) */
    uint32_t items;    /* additions that were not already present (exact for sparse; within fpr for layers) */
    uint32_t sparse_n; /* entries of the list; more than its items only where counting repeats one */
    uint16_t layers;   /* 0: sparse */
    bool operand;      /* made by dd_filter_operand or dd_filter_partial_merge */
    bool damaged;      /* a merge met an operand or base that it could not read and left it out */
    const uint8_t *sparse;                              /* sorted u32 little-endian */
    struct dd_filter_layer layer[DD_FILTER_LAYERS_MAX]; /* oldest first; only the first `layers` are set */
};

/* DD_OK or DD_CORRUPT. A blob of length 0 is the empty set. */
enum dd_err dd_filter_view_open(struct dd_filter_view *v, struct dd_slice blob) DD_MUST_USE;
/* The same for bytes that dd_filter_view_open found good and that nobody could change since: bounds are
 * checked, the checksum and the order of the list are not. */
enum dd_err dd_filter_view_reopen(struct dd_filter_view *v, struct dd_slice blob) DD_MUST_USE;

/* Sets seen[i] = mark for every fps[i] that the set contains and whose seen[i] is still 0. mark is not 0.
 * Returns how many were set. */
size_t dd_filter_view_test(const struct dd_filter_view *v, const uint32_t *fps, size_t n, uint8_t *seen,
                           uint8_t mark);

/* How often the fingerprint was added: counting sets 0..15 (15: at least), other kinds 0 or 1. */
unsigned dd_filter_view_count(const struct dd_filter_view *v, uint32_t fp);

struct dd_filter_info {
    enum dd_filter_kind kind;
    bool sparse, damaged;
    uint32_t items, capacity; /* capacity: of all layers; sparse: of the first layer to come */
    uint16_t layers;
    size_t bytes;
    double fill; /* of the newest layer: share of set bits or counters, or load; sparse 0 */
    double fpr; /* expected now: the sum over all layers as they are filled, and equal fingerprints. Above the
                   policy's share after `saturate`, or after dense sets were merged with dense sets */
};

void dd_filter_view_info(const struct dd_filter_view *v, struct dd_filter_info *out);

/* ---- building ---- */

/* Encodes a batch as an operand: fingerprints in any order, with repeats (kept only by counting, at most 15
 * of one). n may be 0. hint: items that the period may reach (the user's previous period), 0 unknown; sizes
 * the first layer when a merge creates it (ignored with max_layers: fixed layouts mean what they say). The
 * blob is appended to out. DD_NO_MEMORY, or DD_INVALID policy. */
enum dd_err dd_filter_operand(const struct dd_filter_policy *p, uint32_t hint, const uint32_t *fps, size_t n,
                              struct dd_buf *out) DD_MUST_USE;

struct dd_filter_merge_report {
    uint32_t skipped;  /* operands that could not be read */
    bool base_damaged; /* the base could not be read: the result holds the operands only, flagged damaged */
};

/* base (length 0: none) plus operands, oldest first, promoted as the newest readable policy says. The result
 * is appended to out. Never refuses for bad input: what cannot be read is left out, counted and flagged. An
 * item already present costs nothing and grows nothing (counting apart, where each addition counts: up to
 * 15).
 *
 * Layers of operands (a dense set merged with a dense set) are appended whole: no false negative, but the
 * expected false-positive rate becomes the sum of both. A set that would pass DD_FILTER_LAYERS_MAX leaves the
 * operand out.
 *
 * rotate keeps the newest max_layers blocks (the list is the newest one): at least (max_layers - 1) *
 * capacity of the newest items, in the order of the operands (inside one operand there is none). A repeat
 * does not renew an item; one that an older block takes for its own (at rate fpr) leaves with that block.
 * saturate: after the last layer is full bloom, counting and compact take further items at a rising
 * false-positive rate; cuckoo does not remember what finds no place; it is the oldest operands that keep
 * theirs.
 *
 * report may be NULL. DD_NO_MEMORY only; out is then as before. */
enum dd_err dd_filter_merge(struct dd_slice base, const struct dd_slice *operands, size_t n,
                            struct dd_buf *out, struct dd_filter_merge_report *report) DD_MUST_USE;

/* Unites operands without a base; the result is again an operand (fingerprints, never layers, unless an input
 * had some). Appended to out; report and errors as above. */
enum dd_err dd_filter_partial_merge(const struct dd_slice *operands, size_t n, struct dd_buf *out,
                                    struct dd_filter_merge_report *report) DD_MUST_USE;

/* true: these operands are better not united, because their order matters (rotate: which items are newest;
 * saturate: which came first) and more than a quarter of a block would lose it. */
bool dd_filter_keep_apart(const struct dd_slice *operands, size_t n);

/* A copy of the set without the fingerprints, appended to out. *removed: how many were present and are gone.
 * DD_UNSUPPORTED: one of them stands in a Bloom layer (or seems to), which cannot forget. DD_CORRUPT.
 * DD_NO_MEMORY.
 * An item with an equal fingerprint, or that a layer could not tell from a forgotten one, goes with it (at
 * most at rate fpr). A counting item at 15 stays: how many additions stand behind it is not known. */
enum dd_err dd_filter_forget(struct dd_slice base, const uint32_t *fps, size_t n, struct dd_buf *out,
                             size_t *removed) DD_MUST_USE;

#endif
