/* The merge operator of filter sets, and what it could not read. Private to lib/store.
 *
 * An operator that fails in a compaction makes RocksDB refuse every write until it is reopened. So it never
 * fails for bad input: what it cannot read it leaves out, flags the result as damaged (lib/filter), and keeps
 * the bytes of an unreadable base aside for the writer thread to store (dd_merge_op_take_aside).
 *
 * Threads: RocksDB calls it from any of its threads and from readers at once; everything here is locked or
 * atomic.
 * Ownership: destroy after the database is closed. */
#ifndef DD_STORE_MERGE_OP_H
#define DD_STORE_MERGE_OP_H

#include <rocksdb/c.h>

#include "base/bytes.h"
#include "base/err.h"
#include "stats/stats.h"

/* At most so many unreadable bases wait for the writer, and so many bytes of them; further ones are only
 * counted. */
#define DD_ASIDE_MAX       256
#define DD_ASIDE_BYTES_MAX (16u << 20)

struct dd_merge_op;

struct dd_aside {
    struct dd_aside *next;
    size_t key_len, value_len;
    uint8_t bytes[]; /* key, then value */
};

enum dd_err dd_merge_op_create(struct dd_stats *stats, struct dd_merge_op **out) DD_MUST_USE;
void dd_merge_op_destroy(struct dd_merge_op *m);

/* A new RocksDB operator over m. The options that it is set on own it; m stays the caller's. */
rocksdb_mergeoperator_t *dd_merge_op_rocks(struct dd_merge_op *m);

/* Takes the list of what was kept aside since the last call, oldest first; NULL: nothing. The caller frees
 * each entry. */
struct dd_aside *dd_merge_op_take_aside(struct dd_merge_op *m);

#endif
