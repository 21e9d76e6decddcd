/* Hashing: how a user and an item become a 32-bit fingerprint. The only place that includes xxhash outside
 * lib/filter.
 *
 *   seed of a user = XXH3-64(u16le(length of scene) scene user, 192-byte secret of the store)
 *   fingerprint    = upper 32 bits of XXH3-64(item, seed of the user)
 *
 * The seed differs by user so that two items whose fingerprints collide for one user do not collide for
 * everybody, and so that an outsider, who does not know the secret, cannot craft such pairs.
 *
 * Threads: pure functions, except dd_random, which reads the kernel's generator (any thread). */
#ifndef DD_BASE_HASH_H
#define DD_BASE_HASH_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

#define DD_SECRET_BYTES 192

struct dd_secret {
    uint8_t bytes[DD_SECRET_BYTES];
};

uint64_t dd_hash_user_seed(const struct dd_secret *secret, struct dd_slice scene, struct dd_slice user);
uint32_t dd_hash_fingerprint(uint64_t user_seed, struct dd_slice item);

/* XXH3-64 with a seed, for tables and checksums. */
uint64_t dd_hash64(struct dd_slice bytes, uint64_t seed);

/* A bijective mixer of 64 bits (the finaliser of SplitMix64, Steele, Lea and Flood 2014). */
static inline uint64_t dd_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

/* Fills out from getrandom(2). DD_IO when the kernel has none to give. */
enum dd_err dd_random(void *out, size_t n) DD_MUST_USE;

#endif
