/* Sets as they were read last, so that a hot user's need no look-up in RocksDB (three of them are a quarter
 * of what a /filter costs). Private to lib/store.
 *
 * Nothing is ever invalidated: an entry carries the number that its reader loaded before it read the store,
 * and is good if and only if that number is at least the user's cell of the change table, looked up by
 * whoever gets it (store/change.h). Only sound sets enter (also empty ones): a corrupt or damaged set is
 * repaired without raising a cell. A set enters when it is read a second time, so that users who come once
 * displace nobody.
 *
 * Bounded by bytes, everything counted; the least recently used go first. Threads: any; a lock for each of 16
 * parts, held for a look-up or an exchange of pointers. Ownership: an entry that was got stays until it is
 * released. */
#ifndef DD_STORE_SET_CACHE_H
#define DD_STORE_SET_CACHE_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

struct dd_set_cache;

struct dd_set_entry {
    struct dd_slice blob;
    uint64_t number;
    /* the cache's */
    _Atomic unsigned refs;
    uint64_t hash;
    size_t bytes;
    struct dd_slice key;
    struct dd_set_entry *chain, *newer, *older;
};

/* bytes: the bound, 0: nothing is kept. DD_NO_MEMORY. */
enum dd_err dd_set_cache_create(uint64_t bytes, struct dd_set_cache **out) DD_MUST_USE;
/* NULL is allowed. No entry may be held. */
void dd_set_cache_destroy(struct dd_set_cache *c);

/* The entry of a key, held, or NULL: there is none whose number is at least cell. hash: of the key. */
struct dd_set_entry *dd_set_cache_get(struct dd_set_cache *c, struct dd_slice key, uint64_t hash,
                                      uint64_t cell);
void dd_set_entry_release(struct dd_set_entry *e);

/* Offers what was read with that number. Copies; an entry with a higher number stays. */
void dd_set_cache_put(struct dd_set_cache *c, struct dd_slice key, uint64_t hash, struct dd_slice blob,
                      uint64_t number);

#endif
