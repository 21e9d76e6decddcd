/* The value of a cached filter set: one field of the hash dd:{scene/user}:c:<store>. Private to lib/hot.
 *
 *    0  version         u8, 1
 *    1  incarnation     u64le  whose numbers these are
 *    9  number          u64le  of the last commit before the set was read
 *   17  filled_ms       u64le  when it was put
 *   25  blob            to the end; empty: nothing was stored
 *
 * Decoding trusts nothing: what is short or of another version is "not present", which costs a read of the
 * store. The blob carries its own checksum.
 *
 * Threads: pure functions. Ownership: the decoded blob points into the value. */
#ifndef DD_HOT_VALUE_H
#define DD_HOT_VALUE_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

#define DD_HOT_VALUE_HEADER 25

struct dd_hot_value {
    uint64_t incarnation, number;
    int64_t filled_ms;
    struct dd_slice blob;
};

/* Writes the header; the blob follows it. */
void dd_hot_value_header(const struct dd_hot_value *v, uint8_t out[DD_HOT_VALUE_HEADER]);
/* DD_CORRUPT: shorter than a header, of another version, or with a time before 1970. */
enum dd_err dd_hot_value_decode(struct dd_slice bytes, struct dd_hot_value *out) DD_MUST_USE;

#endif
