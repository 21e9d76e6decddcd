/* Reading a blob in place. Nothing is trusted before its length, its counts and the checksum have been
 * verified: the order is header, checksum, layers one after the other, list. */
#include "filter/internal.h"

const struct dd_filter_ops *dd_filter_ops_of(unsigned kind)
{
    static const struct dd_filter_ops *const table[] = {
        [DD_FILTER_BLOOM] = &dd_filter_bloom_ops,
        [DD_FILTER_COUNTING] = &dd_filter_counting_ops,
        [DD_FILTER_CUCKOO] = &dd_filter_cuckoo_ops,
        [DD_FILTER_COMPACT] = &dd_filter_compact_ops,
    };
    return kind < sizeof table / sizeof *table ? table[kind] : NULL;
}

static void view_empty(struct dd_filter_view *v, struct dd_slice blob)
{
    v->blob = blob;
    v->policy = dd_filter_policy_default();
    v->hint = v->items = v->sparse_n = 0;
    v->layers = 0;
    v->operand = v->damaged = false;
    v->sparse = NULL;
}

/* Reads one layer of at most `room` bytes. Returns the bytes it takes, 0: corrupt. */
static size_t open_layer(struct dd_filter_layer *l, const uint8_t *at, size_t room)
{
    if (room < DD_FILTER_LAYER_HEADER) return 0;
    dd_filter_layer_get(l, at);
    const struct dd_filter_ops *ops = dd_filter_ops_of(l->kind);
    if (!ops || l->capacity == 0 || l->capacity > DD_FILTER_ITEMS_MAX) return 0;
    uint64_t body = ops->body_bytes(l);
    if (body == 0 || body > room - DD_FILTER_LAYER_HEADER || body > UINT32_MAX) return 0;
    l->bytes = at + DD_FILTER_LAYER_HEADER;
    l->bytes_len = (uint32_t)body;
    if (ops->check && !ops->check(l)) return 0;
    return DD_FILTER_LAYER_HEADER + (size_t)body;
}

static enum dd_err open_list(struct dd_filter_view *v, const uint8_t *at, size_t len, uint64_t layer_items,
                             bool verified)
{
    uint32_t distinct = 0;
    if (len % 4 != 0 || len / 4 > UINT32_MAX) return DD_CORRUPT;
    v->sparse = at;
    v->sparse_n = (uint32_t)(len / 4);
    if (verified) return DD_OK;
    if (v->sparse_n > 0 && !dd_list_check(at, v->sparse_n, v->policy.kind == DD_FILTER_COUNTING, &distinct)) {
        return DD_CORRUPT;
    }
    uint64_t items = layer_items + distinct;
    return (items < UINT32_MAX ? items : UINT32_MAX) == v->items ? DD_OK : DD_CORRUPT;
}

static enum dd_err open_blob(struct dd_filter_view *v, struct dd_slice blob, bool verified)
{
    view_empty(v, blob);
    if (blob.len == 0) return DD_OK;
    if (dd_filter_header_get(v, blob) != DD_OK) return DD_CORRUPT;
    size_t end = blob.len - DD_FILTER_TRAILER, at = DD_FILTER_HEADER;
    if (!verified && dd_filter_checksum(blob.ptr, end) != dd_get_le64(blob.ptr + end)) return DD_CORRUPT;
    uint64_t items = 0;
    for (unsigned i = 0; i < v->layers; i++) {
        size_t taken = open_layer(&v->layer[i], blob.ptr + at, end - at);
        if (taken == 0) return DD_CORRUPT;
        at += taken;
        items += v->layer[i].count;
    }
    return open_list(v, blob.ptr + at, end - at, items, verified);
}

enum dd_err dd_filter_view_open(struct dd_filter_view *v, struct dd_slice blob)
{
    return open_blob(v, blob, false);
}

enum dd_err dd_filter_view_reopen(struct dd_filter_view *v, struct dd_slice blob)
{
    return open_blob(v, blob, true);
}

size_t dd_filter_view_test(const struct dd_filter_view *v, const uint32_t *fps, size_t n, uint8_t *seen,
                           uint8_t mark)
{
    size_t found = 0;
    for (unsigned i = 0; i < v->layers; i++) {
        const struct dd_filter_layer *l = &v->layer[i];
        found += dd_filter_ops_of(l->kind)->test(l, fps, n, seen, mark);
    }
    return found + dd_list_test(v->sparse, v->sparse_n, fps, n, seen, mark);
}

unsigned dd_filter_view_count(const struct dd_filter_view *v, uint32_t fp)
{
    unsigned total = dd_list_count(v->sparse, v->sparse_n, fp);
    for (unsigned i = 0; i < v->layers; i++)
        total += dd_filter_ops_of(v->layer[i].kind)->count(&v->layer[i], fp);
    if (v->policy.kind != DD_FILTER_COUNTING) return total > 0;
    return total < DD_FILTER_COPIES ? total : DD_FILTER_COPIES;
}

void dd_filter_view_info(const struct dd_filter_view *v, struct dd_filter_info *out)
{
    *out = (struct dd_filter_info){
        .kind = v->policy.kind,
        .sparse = v->layers == 0,
        .damaged = v->damaged,
        .items = v->items,
        .layers = v->layers,
        .bytes = v->blob.len,
        .fpr = v->items / 4294967296.0,
    };
    if (v->layers == 0) out->capacity = dd_filter_next_capacity(v);
    for (unsigned i = 0; i < v->layers; i++) {
        const struct dd_filter_layer *l = &v->layer[i];
        const struct dd_filter_ops *ops = dd_filter_ops_of(l->kind);
        out->capacity += l->capacity;
        out->fpr += ops->rate(l);
        if (i + 1u == v->layers) out->fill = ops->fill(l);
    }
}
