#include "base/hash.h"

#include <errno.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t dd_hash_user_seed(const struct dd_secret *secret, struct dd_slice scene, struct dd_slice user)
{
    uint8_t text[2 + 512];
    size_t n = 2;
    size_t scene_len = scene.len < 256 ? scene.len : 256, user_len = user.len < 256 ? user.len : 256;
    dd_put_le16(text, (uint16_t)scene_len);
    if (scene_len) memcpy(text + n, scene.ptr, scene_len);
    n += scene_len;
    if (user_len) memcpy(text + n, user.ptr, user_len);
    n += user_len;
    return XXH3_64bits_withSecret(text, n, secret->bytes, sizeof secret->bytes);
}

uint32_t dd_hash_fingerprint(uint64_t user_seed, struct dd_slice item)
{
    return (uint32_t)(XXH3_64bits_withSeed(item.ptr, item.len, user_seed) >> 32);
}

uint64_t dd_hash64(struct dd_slice bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes.ptr, bytes.len, seed);
}

enum dd_err dd_random(void *out, size_t n)
{
    uint8_t *p = out;
    while (n) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return DD_IO;
        p += got;
        n -= (size_t)got;
    }
    return DD_OK;
}
