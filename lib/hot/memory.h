/* Deliveries in process memory: the embedded mode, and what deliveries fall back to while Redis is away.
 * Private to lib/hot.
 *
 * A hash table of users in shards, each with its own lock; per user one packed block (deliveries.h). Bounded
 * in total: past max_bytes whole users are dropped, the least recently claimed first. When deliveries go that
 * had not lapsed, dd_mem_lost_ms says when, so that answers can say that something may be missing.
 *
 * Semantics are those of the Redis tier: add if absent, expired first, trim to recent_max but nothing younger
 * than DD_DELIVERIES_KEEP_MS, and DD_LIMIT beyond DD_DELIVERIES_MAX young ones.
 *
 * Threads: every function from any thread. Locks: one shard at a time, never two. */
#ifndef DD_HOT_MEMORY_H
#define DD_HOT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "hot/deliveries.h"

struct dd_mem;

struct dd_mem_claim {
    struct dd_slice scene, user;
    const struct dd_slice *ids;
    unsigned n;
    int64_t now_ms, ttl_ms;
    unsigned recent_max;
    uint8_t *won; /* of n: 1 recorded now, 0 was there */
};

enum dd_err dd_mem_create(size_t max_bytes, struct dd_mem **out) DD_MUST_USE;
void dd_mem_destroy(struct dd_mem *m);

/* DD_OK; DD_LIMIT, DD_NO_MEMORY, DD_TOO_LARGE: nothing was recorded. */
enum dd_err dd_mem_claim(struct dd_mem *m, const struct dd_mem_claim *c) DD_MUST_USE;
void dd_mem_unclaim(struct dd_mem *m, struct dd_slice scene, struct dd_slice user, const struct dd_slice *ids,
                    unsigned n);

/* found[i] becomes 1 for each id that is a live delivery; others are left alone. Returns how many were found.
 */
unsigned dd_mem_find(struct dd_mem *m, struct dd_slice scene, struct dd_slice user,
                     const struct dd_slice *ids, unsigned n, int64_t newer_than_ms, uint8_t *found);

/* Appends the live deliveries, oldest first: struct dd_hot_recent to `recent`, the ids' bytes to `ids`. Until
 * the caller is done with appending, the pointers in `recent` are offsets into `ids` (which may move): the
 * caller adds its start. */
void dd_mem_fetch(struct dd_mem *m, struct dd_slice scene, struct dd_slice user, int64_t newer_than_ms,
                  struct dd_buf *recent, struct dd_buf *ids);

/* Forgets a user. true: there was something. */
bool dd_mem_erase(struct dd_mem *m, struct dd_slice scene, struct dd_slice user);

/* Frees users whose deliveries have all lapsed, as far as they are the least recently claimed of their shard.
 */
void dd_mem_sweep(struct dd_mem *m, int64_t now_ms);

/* Lock-free: false only while no user is held at all. */
bool dd_mem_may_hold(const struct dd_mem *m);
size_t dd_mem_bytes(const struct dd_mem *m);
uint64_t dd_mem_users(const struct dd_mem *m);
/* When unlapsed deliveries were last dropped for lack of room; INT64_MIN: never. */
int64_t dd_mem_lost_ms(const struct dd_mem *m);

/* One file, checksummed, written beside and renamed. Not concurrent with other calls.
 * DD_IO, DD_NO_MEMORY. */
enum dd_err dd_mem_save(struct dd_mem *m, const char *path) DD_MUST_USE;
/* Adds what the file holds and deletes it in any case. DD_NOT_FOUND, DD_CORRUPT (nothing added), DD_IO. */
enum dd_err dd_mem_load(struct dd_mem *m, const char *path) DD_MUST_USE;

#endif
