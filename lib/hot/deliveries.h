/* The deliveries of one user in process memory: one packed block, oldest first. Private to lib/hot.
 *
 *    0  at_ms  i64le   when it was handed out
 *    8  hash   u32le   of the id, so that a search compares few ids
 *   12  len    u16le   of the id
 *   14  id
 *
 * A user has about a hundred of them and they are read whole: a scan of one block costs less than any index,
 * and the block takes 14 bytes an id beyond the id itself.
 *
 * Threads: no shared state; the caller locks. Ownership: the block belongs to the struct until
 * dd_deliveries_free. */
#ifndef DD_HOT_DELIVERIES_H
#define DD_HOT_DELIVERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* Nothing younger is trimmed: what was just handed out is on a screen and not yet reported. */
#define DD_DELIVERIES_KEEP_MS 60000
/* Young deliveries that one user may have; a claim beyond is DD_LIMIT. */
#define DD_DELIVERIES_MAX 1000

struct dd_deliveries {
    uint8_t *data;
    uint32_t len, cap, count;
};

struct dd_delivery {
    int64_t at_ms;
    uint32_t hash;
    struct dd_slice id;
};

/* A zeroed struct is empty. */
void dd_deliveries_free(struct dd_deliveries *d);

/* Iterates: *at begins at 0; false at the end. */
bool dd_deliveries_next(const struct dd_deliveries *d, uint32_t *at, struct dd_delivery *out);

/* Whether bytes that were read from elsewhere are a sound block of `count` records. */
bool dd_deliveries_are_sound(struct dd_slice bytes, uint32_t count);

bool dd_deliveries_has(const struct dd_deliveries *d, struct dd_slice id, int64_t newer_than_ms);

/* Appends; the caller made sure that it is absent. DD_NO_MEMORY: unchanged. DD_TOO_LARGE: id over 65,535
 * bytes. */
enum dd_err dd_deliveries_add(struct dd_deliveries *d, struct dd_slice id, int64_t at_ms) DD_MUST_USE;

/* Drops, from the front on, up to `most` records that are not newer than the given time; returns how many. */
uint32_t dd_deliveries_drop(struct dd_deliveries *d, int64_t not_newer_than_ms, uint32_t most);

bool dd_deliveries_remove(struct dd_deliveries *d, struct dd_slice id);

uint32_t dd_deliveries_count_newer(const struct dd_deliveries *d, int64_t than_ms);

#endif
