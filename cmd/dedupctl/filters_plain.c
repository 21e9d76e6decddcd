/* What teams have before they have filters: exact, and as large as the ids. An id is kept as u16 length and
 * bytes. */
#include <stdlib.h>

#include "base/hash.h"
#include "filters_structure.h"

enum { LENGTH_BYTES = 2 };

static void append(struct dd_buf *b, struct dd_slice id)
{
    uint8_t len[LENGTH_BYTES];
    dd_put_le16(len, (uint16_t)id.len);
    dd_buf_add(b, len, sizeof len);
    dd_buf_add_slice(b, id);
}

static struct dd_slice id_at(const struct dd_buf *b, size_t at)
{
    return dd_slice_of(b->data + at + LENGTH_BYTES, dd_get_le16(b->data + at));
}

/* ---- list ---- */

static enum dd_err list_add(struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        append(&s->blob, ids[i]);
    return dd_buf_ok(&s->blob) ? DD_OK : DD_NO_MEMORY;
}

static bool list_has(const struct dd_structure *s, struct dd_slice id)
{
    for (size_t at = 0; at < s->blob.len;) {
        struct dd_slice kept = id_at(&s->blob, at);
        if (dd_slice_eq(kept, id)) return true;
        at += LENGTH_BYTES + kept.len;
    }
    return false;
}

static size_t list_test(const struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += list_has(s, ids[i]);
    return found;
}

static size_t list_bytes(const struct dd_structure *s)
{
    return s->blob.len;
}

const struct dd_structure_ops dd_form_list = {.add = list_add, .test = list_test, .bytes = list_bytes};

/* ---- hash ---- */

/* The slot that has the id, or the free one where it belongs. */
static uint32_t *find_slot(const struct dd_structure *s, struct dd_slice id)
{
    uint32_t mask = s->slots - 1, i = (uint32_t)dd_hash64(id, s->seed) & mask;
    while (s->slot[i] != 0 && !dd_slice_eq(id_at(&s->blob, s->slot[i] - 1), id))
        i = (i + 1) & mask;
    return &s->slot[i];
}

static enum dd_err grow_table(struct dd_structure *s)
{
    free(s->slot);
    s->slots = s->slots ? 2 * s->slots : 16;
    s->slot = calloc(s->slots, sizeof *s->slot);
    if (!s->slot) return DD_NO_MEMORY;
    for (size_t at = 0; at < s->blob.len; at += LENGTH_BYTES + id_at(&s->blob, at).len)
        *find_slot(s, id_at(&s->blob, at)) = (uint32_t)at + 1;
    return DD_OK;
}

static enum dd_err hash_add(struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s->n + 1 > (size_t)s->slots / 4 * 3) {
            enum dd_err err = grow_table(s);
            if (err != DD_OK) return err;
        }
        uint32_t *slot = find_slot(s, ids[i]);
        if (*slot != 0) continue;
        if (s->blob.len >= UINT32_MAX - ids[i].len) return DD_TOO_LARGE;
        *slot = (uint32_t)s->blob.len + 1;
        append(&s->blob, ids[i]);
        if (!dd_buf_ok(&s->blob)) return DD_NO_MEMORY;
        s->n++;
    }
    return DD_OK;
}

static size_t hash_test(const struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; s->slots > 0 && i < n; i++)
        found += *find_slot(s, ids[i]) != 0;
    return found;
}

static size_t hash_bytes(const struct dd_structure *s)
{
    return s->blob.len + s->slots * sizeof *s->slot;
}

const struct dd_structure_ops dd_form_hash = {.add = hash_add, .test = hash_test, .bytes = hash_bytes};

/* ---- queue ---- */

static enum dd_err queue_add(struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct dd_ring_id *place = &s->ring[(s->head + s->n) % s->spec.capacity];
        uint8_t *copy = realloc(place->bytes, ids[i].len);
        if (!copy) return DD_NO_MEMORY;
        memcpy(copy, ids[i].ptr, ids[i].len);
        *place = (struct dd_ring_id){copy, (uint32_t)ids[i].len};
        if (s->n < s->spec.capacity)
            s->n++;
        else
            s->head = (s->head + 1) % s->spec.capacity;
    }
    return DD_OK;
}

static size_t queue_test(const struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        size_t j = 0;
        while (j < s->n && !dd_slice_eq(dd_slice_of(s->ring[j].bytes, s->ring[j].len), ids[i]))
            j++;
        found += j < s->n;
    }
    return found;
}

/* As it would be stored: length and bytes of each id. */
static size_t queue_bytes(const struct dd_structure *s)
{
    size_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += LENGTH_BYTES + s->ring[i].len;
    return sum;
}

const struct dd_structure_ops dd_form_queue = {.add = queue_add, .test = queue_test, .bytes = queue_bytes};
