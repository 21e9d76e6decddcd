#include "store/keys.h"

#define SCENE_AT 6

static bool length_ok(struct dd_slice s)
{
    return s.len >= 1 && s.len <= 255;
}

static bool kind_ok(unsigned kind)
{
    return kind >= DD_PERIOD_DAY && kind <= DD_PERIOD_FOREVER;
}

static void put_bytes(struct dd_key *k, struct dd_slice s)
{
    k->bytes[k->len++] = (uint8_t)s.len;
    memcpy(k->bytes + k->len, s.ptr, s.len);
    k->len += s.len;
}

static enum dd_err put_prefix(struct dd_key *k, struct dd_period period, struct dd_slice scene)
{
    if (!kind_ok(period.kind) || period.ordinal < 0 || !length_ok(scene)) return DD_INVALID;
    k->bytes[0] = (uint8_t)period.kind;
    dd_put_be32(k->bytes + 1, (uint32_t)period.ordinal);
    k->len = SCENE_AT - 1;
    put_bytes(k, scene);
    return DD_OK;
}

enum dd_err dd_key_encode(struct dd_key *k, struct dd_period period, struct dd_slice scene,
                          struct dd_slice user)
{
    if (!length_ok(user)) return DD_INVALID;
    enum dd_err err = put_prefix(k, period, scene);
    if (err == DD_OK) put_bytes(k, user);
    return err;
}

enum dd_err dd_key_decode_head(struct dd_slice key, struct dd_period *period, struct dd_slice *scene,
                               struct dd_slice *user)
{
    if (key.len < SCENE_AT || !kind_ok(key.ptr[0])) return DD_CORRUPT;
    uint32_t ordinal = dd_get_be32(key.ptr + 1);
    size_t scene_len = key.ptr[SCENE_AT - 1], user_at = SCENE_AT + scene_len + 1;
    if (ordinal > INT32_MAX || scene_len == 0 || user_at >= key.len) return DD_CORRUPT;
    size_t user_len = key.ptr[user_at - 1];
    if (user_len == 0 || user_len > key.len - user_at) return DD_CORRUPT;
    *period = (struct dd_period){(enum dd_period_kind)key.ptr[0], (int32_t)ordinal};
    *scene = dd_slice_of(key.ptr + SCENE_AT, scene_len);
    *user = dd_slice_of(key.ptr + user_at, user_len);
    return DD_OK;
}

enum dd_err dd_key_decode(struct dd_slice key, struct dd_period *period, struct dd_slice *scene,
                          struct dd_slice *user)
{
    enum dd_err err = dd_key_decode_head(key, period, scene, user);
    if (err == DD_OK && user->ptr + user->len != key.ptr + key.len) err = DD_CORRUPT;
    return err;
}

/* The smallest key above every key that begins with k. The first byte is a kind, so the carry ends before it.
 */
static void make_successor(struct dd_key *k)
{
    while (k->bytes[k->len - 1] == 0xff)
        k->len--;
    k->bytes[k->len - 1]++;
}

enum dd_err dd_key_range(struct dd_period period, struct dd_slice scene, struct dd_key *start,
                         struct dd_key *end)
{
    enum dd_err err = put_prefix(start, period, scene);
    if (err != DD_OK) return err;
    *end = *start;
    make_successor(end);
    return DD_OK;
}
