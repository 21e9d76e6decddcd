/* A set under construction, at the end of the caller's buffer: header room, layers, and the list beside it
 * until the end. A dense base is copied once, bits are added in the copy, and the checksum is computed again:
 * a merge of 20 items into a set of 1,000 does nothing else.
 *
 * An item goes, in this order: nowhere when it is present; into the newest layer while that has room; into
 * the list. The list becomes the next layer when it would take more bytes than that layer. */
#include "filter/internal.h"

#include <stdlib.h>

enum dd_err dd_filter_set_init(struct dd_filter_set *s, struct dd_buf *out, size_t room)
{
    s->out = out;
    s->start = out->len;
    s->tail_n = 0;
    s->tail_room = room;
    s->v.policy = dd_filter_policy_default();
    s->v.layers = 0;
    s->v.hint = s->v.items = s->v.sparse_n = 0;
    s->v.operand = s->v.damaged = false;
    s->tail = malloc(room * (2 * sizeof *s->tail + 1) + 1);
    if (!s->tail) return DD_NO_MEMORY;
    s->spare = s->tail + room;
    s->seen = (uint8_t *)(s->spare + room);
    if (dd_buf_extend(out, DD_FILTER_HEADER)) return DD_OK;
    dd_filter_set_free(s);
    return DD_NO_MEMORY;
}

void dd_filter_set_free(struct dd_filter_set *s)
{
    free(s->tail < s->spare ? s->tail : s->spare);
    s->tail = s->spare = NULL;
}

/* Appends a layer; body NULL: zero bytes. */
static bool append_layer(struct dd_filter_set *s, const struct dd_filter_layer *l, const uint8_t *body)
{
    uint8_t *at = dd_buf_extend(s->out, DD_FILTER_LAYER_HEADER + (size_t)l->bytes_len);
    if (!at || !dd_filter_room_after(s->out)) return false;
    at = s->out->data + s->out->len - l->bytes_len - DD_FILTER_LAYER_HEADER;
    if (body)
        memcpy(at + DD_FILTER_LAYER_HEADER, body, l->bytes_len);
    else
        memset(at + DD_FILTER_LAYER_HEADER, 0, l->bytes_len);
    s->at[s->v.layers] = s->out->len - l->bytes_len;
    s->v.layer[s->v.layers++] = *l;
    return true;
}

bool dd_filter_set_take(struct dd_filter_set *s, const struct dd_filter_view *v)
{
    if (s->v.layers + v->layers > DD_FILTER_LAYERS_MAX) return false;
    s->v.policy = v->policy;
    if (v->hint > 0) s->v.hint = v->hint;
    s->v.damaged |= v->damaged;
    for (unsigned i = 0; i < v->layers; i++) {
        if (!append_layer(s, &v->layer[i], v->layer[i].bytes))
            break; /* the buffer has failed: finish says so */
    }
    return true;
}

void dd_filter_set_relocate(struct dd_filter_set *s)
{
    for (unsigned i = 0; i < s->v.layers; i++)
        s->v.layer[i].bytes = s->out->data + s->at[i];
    s->v.sparse = (const uint8_t *)s->tail;
    s->v.sparse_n = (uint32_t)s->tail_n;
}

static unsigned copies_kept(const struct dd_filter_set *s)
{
    return s->v.policy.kind == DD_FILTER_COUNTING ? DD_FILTER_COPIES : 1;
}

/* Counts fp in the newest layer that has it. */
static bool count_again(const struct dd_filter_set *s, uint32_t fp)
{
    for (unsigned i = s->v.layers; i-- > 0;) {
        const struct dd_filter_layer *l = &s->v.layer[i];
        const struct dd_filter_ops *ops = dd_filter_ops_of(l->kind);
        if (ops->again && ops->again(l, s->out->data + s->at[i], fp)) return true;
    }
    return false;
}

/* Keeps the fingerprints that still have to be added; returns how many. */
static size_t drop_present(struct dd_filter_set *s, uint32_t *fps, size_t n)
{
    size_t kept = 0;
    bool counting = s->v.policy.kind == DD_FILTER_COUNTING;
    dd_filter_set_relocate(s);
    memset(s->seen, 0, n);
    if (!counting) dd_filter_view_test(&s->v, fps, n, s->seen, 1);
    for (size_t i = 0; i < n; i++) {
        if (s->seen[i] || (counting && count_again(s, fps[i]))) continue;
        fps[kept++] = fps[i];
    }
    return kept;
}

/* A layer of another kind is closed: a changed policy governs new layers. */
static size_t add_to_newest(struct dd_filter_set *s, const uint32_t *fps, size_t n, bool beyond)
{
    if (s->v.layers == 0 || s->out->failed) return 0;
    struct dd_filter_layer *l = &s->v.layer[s->v.layers - 1];
    if (l->kind != s->v.policy.kind || (l->count >= l->capacity && !beyond)) return 0;
    return dd_filter_ops_of(l->kind)->add(l, s->out, fps, n, beyond);
}

static void list_add(struct dd_filter_set *s, const uint32_t *fps, size_t n)
{
    if (n == 0) return;
    s->tail_n = dd_list_union(s->tail, s->tail_n, fps, n, s->spare, copies_kept(s));
    uint32_t *swap = s->tail;
    s->tail = s->spare, s->spare = swap;
}

static void list_drop_first(struct dd_filter_set *s, size_t n)
{
    s->tail_n -= n;
    memmove(s->tail, s->tail + n, s->tail_n * sizeof *s->tail);
}

static void drop_oldest_layer(struct dd_filter_set *s)
{
    size_t from = s->at[0] - DD_FILTER_LAYER_HEADER, len = DD_FILTER_LAYER_HEADER + s->v.layer[0].bytes_len;
    memmove(s->out->data + from, s->out->data + from + len, s->out->len - from - len);
    s->out->len -= len;
    s->v.layers--;
    for (unsigned i = 0; i < s->v.layers; i++) {
        s->v.layer[i] = s->v.layer[i + 1];
        s->at[i] = s->at[i + 1] - len;
    }
}

/* rotate: the list counts as the newest block. */
static void rotate(struct dd_filter_set *s)
{
    if (s->v.policy.on_full != DD_ON_FULL_ROTATE) return;
    while (s->v.layers + (s->tail_n > 0) > s->v.policy.max_layers)
        drop_oldest_layer(s);
}

static bool saturated(const struct dd_filter_set *s)
{
    return s->v.policy.on_full == DD_ON_FULL_SATURATE && s->v.layers >= s->v.policy.max_layers &&
           s->v.layer[s->v.layers - 1].kind == s->v.policy.kind;
}

/* Capacity as the policy says; where layers may be of any size, at least what the list holds already. */
static struct dd_filter_layer plan_layer(const struct dd_filter_set *s)
{
    const struct dd_filter_policy *p = &s->v.policy;
    unsigned j = s->v.layers;
    struct dd_filter_want want = {.capacity = dd_filter_next_capacity(&s->v),
                                  .rate = dd_filter_layer_rate(p, j),
                                  .fingerprint_bits = p->fingerprint_bits,
                                  .roomy = j == 0 && s->v.hint == 0 && p->max_layers == 0,
                                  .exact = p->max_layers > 0};
    bool any_size = p->growth == 2 && p->max_layers == 0;
    if (any_size && s->tail_n > want.capacity && s->tail_n <= DD_FILTER_ITEMS_MAX) {
        want.capacity = (uint32_t)s->tail_n;
    }
    struct dd_filter_layer l = {.kind = (uint8_t)p->kind};
    if (j > 0) l.seed = (uint8_t)(s->v.layer[j - 1].seed + 1);
    const struct dd_filter_ops *ops = dd_filter_ops_of(l.kind);
    ops->plan(&l, &want);
    l.bytes_len = (uint32_t)ops->body_bytes(&l);
    return l;
}

/* Turns the list, or the part of it that fits, into a layer when that takes fewer bytes. true: it did. */
static bool promote(struct dd_filter_set *s)
{
    rotate(s);
    if (s->tail_n == 0 || s->out->failed) return false;
    if (saturated(s)) {
        add_to_newest(s, s->tail, s->tail_n, true); /* what a cuckoo layer cannot take is not remembered */
        s->tail_n = 0;
        return false;
    }
    if (s->v.layers == DD_FILTER_LAYERS_MAX) return false;
    struct dd_filter_layer l = plan_layer(s);
    uint32_t limit = dd_filter_ops_of(l.kind)->list_limit(&l);
    if (s->v.policy.on_full == DD_ON_FULL_ROTATE && limit > l.capacity) limit = l.capacity;
    if (s->tail_n < limit || !append_layer(s, &l, NULL)) return false;
    size_t taken = add_to_newest(s, s->tail, s->tail_n, false);
    list_drop_first(s, taken);
    return taken > 0;
}

/* How many of n items may join the list before it is looked at again. rotate: no more than one block holds,
 * so that a block never mixes items of which the older should leave first. */
static size_t list_part(const struct dd_filter_set *s, size_t n)
{
    if (s->v.policy.on_full != DD_ON_FULL_ROTATE) return n;
    size_t capacity = dd_filter_next_capacity(&s->v), room = capacity > s->tail_n ? capacity - s->tail_n : 1;
    return n < room ? n : room;
}

void dd_filter_set_absorb(struct dd_filter_set *s, uint32_t *fps, size_t n)
{
    if (s->out->failed) return;
    n = drop_present(s, fps, n);
    do {
        size_t taken = add_to_newest(s, fps, n, false);
        fps += taken, n -= taken;
        size_t part = list_part(s, n);
        list_add(s, fps, part);
        fps += part, n -= part;
        while (promote(s)) {
        }
    } while (n > 0);
}

enum dd_err dd_filter_set_finish(struct dd_filter_set *s)
{
    struct dd_buf *out = s->out;
    uint64_t items = dd_list_distinct(s->tail, s->tail_n);
    for (unsigned i = 0; i < s->v.layers; i++)
        items += s->v.layer[i].count;
    s->v.items = items < UINT32_MAX ? (uint32_t)items : UINT32_MAX;
    dd_buf_add(out, s->tail, s->tail_n * sizeof *s->tail);
    uint8_t *sum = dd_buf_extend(out, DD_FILTER_TRAILER);
    if (!sum || !dd_buf_ok(out)) {
        out->len = s->start;
        return DD_NO_MEMORY;
    }
    for (unsigned i = 0; i < s->v.layers; i++) {
        dd_filter_layer_put(&s->v.layer[i], out->data + s->at[i] - DD_FILTER_LAYER_HEADER);
    }
    dd_filter_header_put(&s->v, out->data + s->start);
    dd_put_le64(sum, dd_filter_checksum(out->data + s->start, (size_t)(sum - out->data) - s->start));
    return DD_OK;
}
