/* Cuckoo layers: `units` buckets of 4 tags of `k` bits, bucket after bucket, bit-packed; tag 0 is an empty
 * place (Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom", 2014).
 *
 * The second bucket of a tag is hash(tag) - first bucket, modulo the number of buckets. That is its own
 * inverse, like the exclusive-or of the paper, but needs no power of two.
 *
 * An item that tests present is not added again, so a tag stands once in its two buckets: repeats never fill
 * them, and removing one tag removes the item. Layers are full at 80 % load. Two choices of four place 95 %
 * in large tables; in the smallest a walk of 200 moves may fail: it is then taken back, the layer is closed,
 * and the next one begins. */
#include "filter/internal.h"

#include "filter/bits.h"
#include "filter/probe.h"

#include <math.h>

enum { SLOTS = 4, MOVES_MAX = 200 };
#define LOAD 0.8

struct place {
    uint32_t tag, bucket, other;
};

static uint64_t body_bytes(const struct dd_filter_layer *l)
{
    return l->k < 4 || l->k > 32 || l->units < 2 ? 0 : ((uint64_t)l->units * SLOTS * l->k + 7) / 8;
}

/* A negative meets up to 8 tags, 80 % of them there: 6.4 / 2^k. */
static void plan(struct dd_filter_layer *l, const struct dd_filter_want *want)
{
    double bits = fmin(32, fmax(4, ceil(log2(2 * SLOTS * LOAD / want->rate + 1))));
    l->capacity = want->capacity;
    l->k = (uint8_t)fmax(bits, want->fingerprint_bits);
    l->units = (uint32_t)fmax(2, ceil(want->capacity / (LOAD * SLOTS)));
}

static uint32_t list_limit(const struct dd_filter_layer *l)
{
    return (uint32_t)((body_bytes(l) + DD_FILTER_LAYER_HEADER) / 4 + 1);
}

static inline uint32_t other_bucket(uint32_t tag, uint32_t bucket, uint32_t buckets)
{
    uint32_t sum = dd_probe_upper(dd_mix64(tag), buckets);
    return sum >= bucket ? sum - bucket : sum + buckets - bucket;
}

static inline struct place place_of(const struct dd_filter_layer *l, uint32_t fp)
{
    uint64_t h = dd_probe_hash(l, fp, 0);
    uint32_t tag = (uint32_t)h >> (32 - l->k);
    struct place p = {.tag = tag ? tag : 1, .bucket = dd_probe_upper(h, l->units)};
    p.other = other_bucket(p.tag, p.bucket, l->units);
    return p;
}

static inline uint64_t slot_bit(const struct dd_filter_layer *l, uint32_t bucket, unsigned slot)
{
    return ((uint64_t)bucket * SLOTS + slot) * l->k;
}

/* The slot of a tag in a bucket; SLOTS: not there. */
static unsigned find(const struct dd_filter_layer *l, const uint8_t *body, uint32_t bucket, uint32_t tag)
{
    unsigned slot = 0;
    while (slot < SLOTS && dd_bits_get(body, slot_bit(l, bucket, slot), l->k) != tag)
        slot++;
    return slot;
}

static bool contains(const struct dd_filter_layer *l, const uint8_t *body, uint32_t fp)
{
    struct place p = place_of(l, fp);
    return find(l, body, p.bucket, p.tag) < SLOTS || find(l, body, p.other, p.tag) < SLOTS;
}

/* Up to 16 bits a tag, the four of a bucket are compared at once: a lane of the difference that is 0 borrows
 * into its own highest bit. A bucket begins at a whole or half byte, so 8 bytes hold it (15 bits and a half
 * byte: 64). */
struct lanes {
    uint64_t ones, highs;
    unsigned bucket_bits;
};

static struct lanes lanes_of(const struct dd_filter_layer *l)
{
    uint64_t ones = 1 | 1ULL << l->k | 1ULL << 2 * l->k | 1ULL << 3 * l->k;
    return (struct lanes){ones, ones << (l->k - 1), 4u * l->k};
}

static inline bool bucket_has(const struct dd_filter_layer *l, const struct lanes *n, uint32_t bucket,
                              uint32_t tag)
{
    uint64_t bit = (uint64_t)bucket * n->bucket_bits;
    uint64_t d = (dd_get_le64(l->bytes + bit / 8) >> bit % 8) ^ n->ones * tag;
    return ((d - n->ones) & ~d & n->highs) != 0;
}

static size_t test_narrow(const struct dd_filter_layer *l, const uint32_t *fps, size_t n, uint8_t *seen,
                          uint8_t mark)
{
    size_t found = 0;
    struct lanes lanes = lanes_of(l);
    for (size_t i = 0; i < n; i++) {
        if (seen[i] != 0) continue;
        struct place p = place_of(l, fps[i]);
        if (!bucket_has(l, &lanes, p.bucket, p.tag) && !bucket_has(l, &lanes, p.other, p.tag)) continue;
        seen[i] = mark;
        found++;
    }
    return found;
}

static size_t test(const struct dd_filter_layer *l, const uint32_t *fps, size_t n, uint8_t *seen,
                   uint8_t mark)
{
    size_t found = 0;
    if (l->k <= 16) return test_narrow(l, fps, n, seen, mark);
    for (size_t i = 0; i < n; i++) {
        if (seen[i] != 0 || !contains(l, l->bytes, fps[i])) continue;
        seen[i] = mark;
        found++;
    }
    return found;
}

static unsigned count(const struct dd_filter_layer *l, uint32_t fp)
{
    return contains(l, l->bytes, fp);
}

static bool put_free(const struct dd_filter_layer *l, uint8_t *body, uint32_t bucket, uint32_t tag)
{
    unsigned slot = find(l, body, bucket, 0);
    if (slot == SLOTS) return false;
    dd_bits_put(body, slot_bit(l, bucket, slot), l->k, tag);
    return true;
}

/* Puts tag into the bucket, and whoever must leave into its other bucket, and so on. On failure every move is
 * undone in reverse, and the body is as it was. */
static bool walk(const struct dd_filter_layer *l, uint8_t *body, uint32_t bucket, uint32_t tag)
{
    uint64_t path[MOVES_MAX], state = dd_mix64(((uint64_t)bucket << 32) + tag);
    for (unsigned moves = 0; moves < MOVES_MAX; moves++) {
        if (put_free(l, body, bucket, tag)) return true;
        state = dd_mix64(state + DD_FILTER_GOLDEN);
        path[moves] = slot_bit(l, bucket, state % SLOTS);
        uint32_t victim = dd_bits_get(body, path[moves], l->k);
        dd_bits_put(body, path[moves], l->k, tag);
        tag = victim;
        bucket = other_bucket(tag, bucket, l->units);
    }
    for (unsigned moves = MOVES_MAX; moves-- > 0;) {
        uint32_t placed = dd_bits_get(body, path[moves], l->k);
        dd_bits_put(body, path[moves], l->k, tag);
        tag = placed;
    }
    return false;
}

static bool insert(const struct dd_filter_layer *l, uint8_t *body, struct place p)
{
    return put_free(l, body, p.bucket, p.tag) || put_free(l, body, p.other, p.tag) ||
           walk(l, body, p.bucket, p.tag);
}

static size_t add(struct dd_filter_layer *l, struct dd_buf *out, const uint32_t *fps, size_t n, bool beyond)
{
    uint8_t *body = dd_filter_body(l, out);
    size_t i = 0;
    for (; i < n && (beyond || l->count < l->capacity); i++) {
        if (contains(l, body, fps[i])) continue;
        if (!insert(l, body, place_of(l, fps[i]))) {
            l->capacity = l->count; /* closed */
            break;
        }
        l->count++;
    }
    return i;
}

static size_t forget(struct dd_filter_layer *l, struct dd_buf *out, const uint32_t *fps, size_t n)
{
    uint8_t *body = dd_filter_body(l, out);
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        struct place p = place_of(l, fps[i]);
        uint32_t bucket = p.bucket;
        unsigned slot = find(l, body, bucket, p.tag);
        if (slot == SLOTS) bucket = p.other, slot = find(l, body, bucket, p.tag);
        if (slot == SLOTS) continue;
        dd_bits_put(body, slot_bit(l, bucket, slot), l->k, 0);
        removed++;
    }
    l->count -= removed < l->count ? (uint32_t)removed : l->count;
    return removed;
}

static double fill(const struct dd_filter_layer *l)
{
    return (double)l->count / ((double)l->units * SLOTS);
}

static double rate(const struct dd_filter_layer *l)
{
    return fmin(1, 2 * SLOTS * fill(l) / (exp2(l->k) - 1));
}

const struct dd_filter_ops dd_filter_cuckoo_ops = {
    .body_bytes = body_bytes,
    .plan = plan,
    .list_limit = list_limit,
    .test = test,
    .count = count,
    .add = add,
    .remove = forget,
    .fill = fill,
    .rate = rate,
};
