/* The bytes of a blob. All integers little-endian.
 *
 *   offset bytes
 *        0   2   magic "DF"
 *        2   1   format version, 1
 *        3   1   kind (bits 0-2), operand (3), damaged (4), growth 2 (5), on_full (6-7)
 *        4   1   tightening, percent
 *        5   1   max_layers
 *        6   1   fingerprint_bits
 *        7   1   layers
 *        8   4   items
 *       12   4   fpr, IEEE 754 single
 *       16   4   cap
 *       20   3   capacity
 *       23   1   hint, 16 * 2^((code - 1) / 16) items; 0: none
 *       24       layers, oldest first, each:
 *                  0   1   kind
 *                  1   1   k
 *                  2   1   seed
 *                  3   1   low
 *                  4   4   capacity
 *                  8   4   count
 *                 12   4   units
 *                 16       body; its length follows from the fields before
 *                list of sorted 32-bit fingerprints; its length is what remains
 *     len-8  8   XXH3-64 of everything before
 *
 * 32 bytes beside the body, so that a light user costs 4 bytes an item and 32. The checksum stands last so
 * that it is computed over one run of bytes, and so that an 8-byte load from any byte of a body stays inside
 * the blob. */
#include "filter/internal.h"

#include <xxhash.h>

enum { VERSION = 1, FLAG_OPERAND = 8, FLAG_DAMAGED = 16, FLAG_DOUBLES = 32 };

static uint32_t get_le24(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

static void policy_get(struct dd_filter_policy *p, const uint8_t *at)
{
    float fpr;
    memcpy(&fpr, at + 12, sizeof fpr);
    *p = (struct dd_filter_policy){
        .kind = (enum dd_filter_kind)(at[3] & 7),
        .on_full = (enum dd_filter_on_full)(at[3] >> 6),
        .fpr = (double)fpr,
        .capacity = get_le24(at + 20),
        .cap = dd_get_le32(at + 16),
        .growth = at[3] & FLAG_DOUBLES ? 2 : 1,
        .max_layers = at[5],
        .fingerprint_bits = at[6],
        .tightening = at[4],
    };
}

enum dd_err dd_filter_header_get(struct dd_filter_view *v, struct dd_slice blob)
{
    if (blob.len < DD_FILTER_HEADER + DD_FILTER_TRAILER) return DD_CORRUPT;
    const uint8_t *at = blob.ptr;
    if (at[0] != 'D' || at[1] != 'F' || at[2] != VERSION) return DD_CORRUPT;
    if (at[7] > DD_FILTER_LAYERS_MAX) return DD_CORRUPT;
    v->blob = blob;
    policy_get(&v->policy, at);
    v->hint = dd_filter_hint_of(at[23]);
    v->items = dd_get_le32(at + 8);
    v->layers = at[7];
    v->operand = at[3] & FLAG_OPERAND;
    v->damaged = at[3] & FLAG_DAMAGED;
    return dd_filter_policy_valid(&v->policy) ? DD_OK : DD_CORRUPT;
}

void dd_filter_header_put(const struct dd_filter_view *v, uint8_t *at)
{
    const struct dd_filter_policy *p = &v->policy;
    float fpr = (float)p->fpr;
    at[0] = 'D', at[1] = 'F', at[2] = VERSION;
    at[3] = (uint8_t)((unsigned)p->kind | (v->operand ? FLAG_OPERAND : 0) | (v->damaged ? FLAG_DAMAGED : 0) |
                      (p->growth == 2 ? FLAG_DOUBLES : 0) | (unsigned)p->on_full << 6);
    at[4] = p->tightening, at[5] = p->max_layers, at[6] = p->fingerprint_bits;
    at[7] = (uint8_t)v->layers;
    dd_put_le32(at + 8, v->items);
    memcpy(at + 12, &fpr, sizeof fpr);
    dd_put_le32(at + 16, p->cap);
    dd_put_le32(at + 20, p->capacity | (uint32_t)dd_filter_hint_code(v->hint) << 24);
}

void dd_filter_layer_get(struct dd_filter_layer *l, const uint8_t *at)
{
    *l = (struct dd_filter_layer){
        .kind = at[0],
        .k = at[1],
        .seed = at[2],
        .low = at[3],
        .capacity = dd_get_le32(at + 4),
        .count = dd_get_le32(at + 8),
        .units = dd_get_le32(at + 12),
    };
}

void dd_filter_layer_put(const struct dd_filter_layer *l, uint8_t *at)
{
    at[0] = l->kind, at[1] = l->k, at[2] = l->seed, at[3] = l->low;
    dd_put_le32(at + 4, l->capacity);
    dd_put_le32(at + 8, l->count);
    dd_put_le32(at + 12, l->units);
}

uint64_t dd_filter_checksum(const uint8_t *bytes, size_t len)
{
    return XXH3_64bits(bytes, len);
}
