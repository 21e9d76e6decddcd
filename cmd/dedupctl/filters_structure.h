/* One user's memory of what was seen, in any of the forms that are compared. All begin with ids: what hashing
 * costs, those pay that hash.
 *
 *   set     a filter set (lib/filter), through the same operands and merges as in the store
 *   list    ids one after the other, scanned from the beginning; nobody looks for repeats when adding
 *   hash    an exact hash table of ids (open addressing, at most 3/4 full)
 *   queue   the newest `capacity` ids in a ring, scanned
 *
 * Bytes: what must be kept of the user, with the structure's own tables, without what malloc adds.
 * Threads: one structure, one thread. */
#ifndef DD_CTL_FILTERS_STRUCTURE_H
#define DD_CTL_FILTERS_STRUCTURE_H

#include "base/bytes.h"
#include "base/err.h"
#include "filter/filter.h"

enum dd_structure_form { DD_FORM_SET, DD_FORM_LIST, DD_FORM_HASH, DD_FORM_QUEUE };

struct dd_structure_spec {
    const char *name;
    enum dd_structure_form form;
    uint32_t capacity;              /* queue: ids */
    struct dd_filter_policy policy; /* set */
    uint32_t hint; /* set: items that the period may reach; 0: not known; UINT32_MAX: those it will reach */
    bool forgets;  /* by design: it keeps the newest only */
};

struct dd_structure;

/* seed: of the user, for fingerprints. */
enum dd_err dd_structure_create(const struct dd_structure_spec *spec, uint64_t seed,
                                struct dd_structure **out) DD_MUST_USE;
void dd_structure_destroy(struct dd_structure *s);

/* A batch, oldest first. */
enum dd_err dd_structure_add(struct dd_structure *s, const struct dd_slice *ids, size_t n) DD_MUST_USE;
/* How many of at most DD_STRUCTURE_TEST_MAX ids it takes for seen. A set is opened and verified first, as for
 * every request. */
#define DD_STRUCTURE_TEST_MAX 100
size_t dd_structure_test(const struct dd_structure *s, const struct dd_slice *ids, size_t n);
size_t dd_structure_bytes(const struct dd_structure *s);

/* Most fingerprints a set adds at once; larger batches are cut. */
#define DD_STRUCTURE_BATCH_MAX 65536

/* ---- the forms (filters_set.c, filters_plain.c) ---- */

struct dd_structure_ops {
    enum dd_err (*add)(struct dd_structure *s, const struct dd_slice *ids, size_t n);
    size_t (*test)(const struct dd_structure *s, const struct dd_slice *ids, size_t n);
    size_t (*bytes)(const struct dd_structure *s);
};

struct dd_structure {
    const struct dd_structure_ops *ops;
    struct dd_structure_spec spec;
    uint64_t seed;
    struct dd_buf blob, operand, merged; /* set: as stored; list, hash, queue: ids */
    size_t n, head;                      /* hash, queue: ids; where the oldest is */
    uint32_t *slot, slots;               /* hash: offset of an id in blob, plus one; 0: free */
    struct dd_ring_id {
        uint8_t *bytes;
        uint32_t len;
    } * ring; /* queue */
};

extern const struct dd_structure_ops dd_form_set, dd_form_list, dd_form_hash, dd_form_queue;

#endif
