/* What the files of lib/filter share: the parts of a blob, one table of operations per kind, sorted lists,
 * the error budget, and the set under construction. Not for other modules. */
#ifndef DD_FILTER_INTERNAL_H
#define DD_FILTER_INTERNAL_H

#include "base/hash.h"
#include "filter/filter.h"

/* Bytes of the fixed parts; drawn in header.c. */
enum { DD_FILTER_HEADER = 24, DD_FILTER_LAYER_HEADER = 16, DD_FILTER_TRAILER = 8 };

/* The most items of one layer, and copies of one fingerprint that a counting set tells apart (4-bit
 * counters). */
#define DD_FILTER_ITEMS_MAX 16000000u
#define DD_FILTER_COPIES    15u

/* ---- kinds ---- */

/* A layer to be made: for how many items, at which false-positive rate when full. roomy: capacity is a guess.
 * exact: it takes no more than capacity, even if it could. */
struct dd_filter_want {
    uint32_t capacity;
    double rate;
    uint8_t fingerprint_bits;
    bool roomy, exact;
};

struct dd_filter_ops {
    /* Length of the body by the layer's own fields; 0: the fields make no sense. */
    uint64_t (*body_bytes)(const struct dd_filter_layer *l);
    /* Is the body what it must be? NULL: any body is. */
    bool (*check)(const struct dd_filter_layer *l);
    /* Sets capacity, units, k, low of an empty layer; its body begins as body_bytes zero bytes. */
    void (*plan)(struct dd_filter_layer *l, const struct dd_filter_want *want);
    /* From how many list entries on the (empty) layer is preferred. */
    uint32_t (*list_limit)(const struct dd_filter_layer *l);
    size_t (*test)(const struct dd_filter_layer *l, const uint32_t *fps, size_t n, uint8_t *seen,
                   uint8_t mark);
    unsigned (*count)(const struct dd_filter_layer *l, uint32_t fp);
    /* Adds sorted fingerprints, in order, until the layer is full (beyond: also past that); repeats are next
     * to each other and taken together. The body is the end of out and may change its length. Returns how
     * many were taken. */
    size_t (*add)(struct dd_filter_layer *l, struct dd_buf *out, const uint32_t *fps, size_t n, bool beyond);
    /* Removes those present; the body is the end of out. Returns how many. NULL: the kind cannot. */
    size_t (*remove)(struct dd_filter_layer *l, struct dd_buf *out, const uint32_t *fps, size_t n);
    /* Counts one more of a fingerprint that the layer has; false: it has not. NULL: the kind does not count.
     */
    bool (*again)(const struct dd_filter_layer *l, uint8_t *body, uint32_t fp);
    double (*fill)(const struct dd_filter_layer *l);
    double (*rate)(const struct dd_filter_layer *l); /* expected false-positive rate as filled now */
};

extern const struct dd_filter_ops dd_filter_bloom_ops, dd_filter_counting_ops, dd_filter_cuckoo_ops,
    dd_filter_compact_ops;

/* NULL: no such kind. */
const struct dd_filter_ops *dd_filter_ops_of(unsigned kind);

/* Keeps 8 zero bytes reserved behind out, which bits.h may load. false: no memory. */
static inline bool dd_filter_room_after(struct dd_buf *out)
{
    if (!dd_buf_reserve(out, DD_FILTER_TRAILER)) return false;
    dd_put_le64(out->data + out->len, 0);
    return true;
}

/* The body of a layer that ends out. */
static inline uint8_t *dd_filter_body(const struct dd_filter_layer *l, const struct dd_buf *out)
{
    return out->data + out->len - l->bytes_len;
}

/* ---- error budget and growth (share.c) ---- */

/* The rate that layer number j (from 0) may reach when full. */
double dd_filter_layer_rate(const struct dd_filter_policy *p, unsigned j);
/* Capacity of the next layer of a set that has these layers. */
uint32_t dd_filter_next_capacity(const struct dd_filter_view *v);
/* Probes and places of a Bloom layer of `capacity` items at `rate` (share.c). */
void dd_filter_bloom_size(uint32_t capacity, double rate, uint8_t *k, uint32_t *places);
uint8_t dd_filter_hint_code(uint32_t hint);
uint32_t dd_filter_hint_of(uint8_t code);
bool dd_filter_policy_valid(const struct dd_filter_policy *p);

/* ---- header (header.c) ---- */

/* Header without checking body or checksum. DD_CORRUPT: not a blob of this version, or a policy out of range.
 */
enum dd_err dd_filter_header_get(struct dd_filter_view *v, struct dd_slice blob);
void dd_filter_header_put(const struct dd_filter_view *v, uint8_t *at);
void dd_filter_layer_get(struct dd_filter_layer *l, const uint8_t *at);
void dd_filter_layer_put(const struct dd_filter_layer *l, uint8_t *at);
uint64_t dd_filter_checksum(const uint8_t *bytes, size_t len);

/* ---- sorted lists of fingerprints (list.c) ---- */

/* Sorts n values; scratch holds n more. */
void dd_list_sort(uint32_t *v, size_t n, uint32_t *scratch);
/* Merges adjacent sorted runs, run i being v[starts[i]] up to v[starts[i + 1]], into one; starts has runs + 1
 * values and is overwritten. Repeats stay. */
void dd_list_merge_runs(uint32_t *v, size_t *starts, size_t runs, uint32_t *scratch);
/* Keeps at most `copies` of each value of a sorted list. Returns the new length. */
size_t dd_list_limit_copies(uint32_t *v, size_t n, unsigned copies);
/* a and b united into out (na + nb places), at most `copies` of each. */
size_t dd_list_union(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, uint32_t *out,
                     unsigned copies);
size_t dd_list_distinct(const uint32_t *v, size_t n);
/* How many entries of an encoded list equal fp. */
unsigned dd_list_count(const uint8_t *list, uint32_t n, uint32_t fp);
size_t dd_list_test(const uint8_t *list, uint32_t n, const uint32_t *fps, size_t count, uint8_t *seen,
                    uint8_t mark);
/* Is the encoded list ascending (strictly unless repeats)? *distinct: different values. */
bool dd_list_check(const uint8_t *list, uint32_t n, bool repeats, uint32_t *distinct);

/* ---- a set under construction (set.c) ---- */

/* Layers live in out from `start` on, each behind the room for its header; the list lives in `tail` until
 * finish. */
struct dd_filter_set {
    struct dd_filter_view v;
    size_t at[DD_FILTER_LAYERS_MAX]; /* offset in out of each layer's body */
    struct dd_buf *out;
    size_t start;
    uint32_t *tail, *spare; /* tail_room values each */
    size_t tail_n, tail_room;
    uint8_t *seen; /* tail_room values */
};

/* Begins an empty set at the end of out; room: the most list entries that it will meet. */
enum dd_err dd_filter_set_init(struct dd_filter_set *s, struct dd_buf *out, size_t room);
void dd_filter_set_free(struct dd_filter_set *s);
/* Takes over policy, hint and flags, and appends copies of the layers. false: too many layers. */
bool dd_filter_set_take(struct dd_filter_set *s, const struct dd_filter_view *v);
/* Adds a sorted batch (it is overwritten): what is present is dropped (or counted), the rest goes to the
 * newest layer and the list, and the list is promoted as the policy says. */
void dd_filter_set_absorb(struct dd_filter_set *s, uint32_t *fps, size_t n);
/* Points the view of the set at the places where layers and list are now. */
void dd_filter_set_relocate(struct dd_filter_set *s);
/* Writes list, headers and checksum. DD_NO_MEMORY: out is as it was before init. */
enum dd_err dd_filter_set_finish(struct dd_filter_set *s);

#endif
