#include "hot/deliveries.h"

#include <stdlib.h>

#include "base/hash.h"

#define HEADER 14

static uint32_t hash_of(struct dd_slice id)
{
    return (uint32_t)dd_hash64(id, 0);
}

void dd_deliveries_free(struct dd_deliveries *d)
{
    free(d->data);
    *d = (struct dd_deliveries){0};
}

bool dd_deliveries_next(const struct dd_deliveries *d, uint32_t *at, struct dd_delivery *out)
{
    if (*at >= d->len) return false;
    const uint8_t *p = d->data + *at;
    out->at_ms = (int64_t)dd_get_le64(p);
    out->hash = dd_get_le32(p + 8);
    out->id = dd_slice_of(p + HEADER, dd_get_le16(p + 12));
    *at += HEADER + (uint32_t)out->id.len;
    return true;
}

bool dd_deliveries_are_sound(struct dd_slice bytes, uint32_t count)
{
    size_t at = 0;
    for (; count; count--) {
        if (bytes.len - at < HEADER) return false;
        size_t len = dd_get_le16(bytes.ptr + at + 12);
        if (bytes.len - at - HEADER < len) return false;
        struct dd_slice id = dd_slice_of(bytes.ptr + at + HEADER, len);
        if (dd_get_le32(bytes.ptr + at + 8) != hash_of(id)) return false;
        at += HEADER + len;
    }
    return at == bytes.len;
}

bool dd_deliveries_has(const struct dd_deliveries *d, struct dd_slice id, int64_t newer_than_ms)
{
    uint32_t hash = hash_of(id), at = 0;
    struct dd_delivery e;
    while (dd_deliveries_next(d, &at, &e))
        if (e.hash == hash && e.at_ms > newer_than_ms && dd_slice_eq(e.id, id)) return true;
    return false;
}

static enum dd_err reserve(struct dd_deliveries *d, size_t n)
{
    if (n <= d->cap - d->len) return DD_OK;
    size_t cap = d->cap ? d->cap : 128;
    while (cap - d->len < n)
        cap += cap / 2;
    if (cap > UINT32_MAX) return DD_NO_MEMORY;
    uint8_t *data = realloc(d->data, cap);
    if (!data) return DD_NO_MEMORY;
    d->data = data;
    d->cap = (uint32_t)cap;
    return DD_OK;
}

enum dd_err dd_deliveries_add(struct dd_deliveries *d, struct dd_slice id, int64_t at_ms)
{
    if (id.len > UINT16_MAX) return DD_TOO_LARGE;
    if (reserve(d, HEADER + id.len)) return DD_NO_MEMORY;
    uint8_t *p = d->data + d->len;
    dd_put_le64(p, (uint64_t)at_ms);
    dd_put_le32(p + 8, hash_of(id));
    dd_put_le16(p + 12, (uint16_t)id.len);
    if (id.len) memcpy(p + HEADER, id.ptr, id.len);
    d->len += HEADER + (uint32_t)id.len;
    d->count++;
    return DD_OK;
}

/* Copies the records that stay to the front. The clock may have been stepped, so the order of time is not
 * relied on. */
uint32_t dd_deliveries_drop(struct dd_deliveries *d, int64_t not_newer_than_ms, uint32_t most)
{
    uint32_t at = 0, kept = 0, dropped = 0;
    struct dd_delivery e;
    while (dropped < most) {
        uint32_t begin = at;
        if (!dd_deliveries_next(d, &at, &e)) break;
        if (e.at_ms <= not_newer_than_ms) {
            dropped++;
            continue;
        }
        if (kept != begin) memmove(d->data + kept, d->data + begin, at - begin);
        kept += at - begin;
    }
    if (dropped == 0) return 0;
    memmove(d->data + kept, d->data + at, d->len - at);
    d->len = kept + (d->len - at);
    d->count -= dropped;
    return dropped;
}

bool dd_deliveries_remove(struct dd_deliveries *d, struct dd_slice id)
{
    uint32_t at = 0;
    struct dd_delivery e;
    for (;;) {
        uint32_t begin = at;
        if (!dd_deliveries_next(d, &at, &e)) return false;
        if (!dd_slice_eq(e.id, id)) continue;
        memmove(d->data + begin, d->data + at, d->len - at);
        d->len -= at - begin;
        d->count--;
        return true;
    }
}

uint32_t dd_deliveries_count_newer(const struct dd_deliveries *d, int64_t than_ms)
{
    uint32_t at = 0, n = 0;
    struct dd_delivery e;
    while (dd_deliveries_next(d, &at, &e))
        n += e.at_ms > than_ms;
    return n;
}
