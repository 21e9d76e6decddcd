/* Keys of filter sets: pure encoding, private to lib/store.
 *
 *   0  period kind       u8
 *   1  period ordinal    u32 big-endian, so that bytewise order is the order of time
 *   5  length of scene   u8, 1..255
 *   6  scene
 *      length of user    u8, 1..255
 *      user              to the end
 *
 * So all users of one period of one scene are one contiguous range, and no key is a prefix of another.
 * Threads: pure functions.
 * Ownership: decoded slices point into the key. */
#ifndef DD_STORE_KEYS_H
#define DD_STORE_KEYS_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/period.h"

#define DD_KEY_MAX (1 + 4 + 1 + 255 + 1 + 255)

struct dd_key {
    size_t len;
    uint8_t bytes[DD_KEY_MAX];
};

static inline struct dd_slice dd_key_slice(const struct dd_key *k)
{
    return dd_slice_of(k->bytes, k->len);
}

/* DD_INVALID: a length outside 1..255, an unknown kind or a negative ordinal. */
enum dd_err dd_key_encode(struct dd_key *k, struct dd_period period, struct dd_slice scene,
                          struct dd_slice user) DD_MUST_USE;
/* DD_CORRUPT: not what dd_key_encode writes. */
enum dd_err dd_key_decode(struct dd_slice key, struct dd_period *period, struct dd_slice *scene,
                          struct dd_slice *user) DD_MUST_USE;

/* The same of a key that begins with that of a set; what follows it is not looked at. */
enum dd_err dd_key_decode_head(struct dd_slice key, struct dd_period *period, struct dd_slice *scene,
                               struct dd_slice *user) DD_MUST_USE;

/* The range [start, end) of every user of a scene's period. DD_INVALID as above. */
enum dd_err dd_key_range(struct dd_period period, struct dd_slice scene, struct dd_key *start,
                         struct dd_key *end) DD_MUST_USE;

#endif
