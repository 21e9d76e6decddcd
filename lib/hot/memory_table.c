/* The shards of the memory tier: hash chains, the order of claims, and eviction.
 *
 * 64 shards: with eight loops claiming at random, two meet in a shard about one time in sixteen, and a claim
 * holds the lock for a few microseconds. The bound is on the total, not on each shard, so one heavy shard
 * does not lose deliveries while others are empty. */
#include "hot/memory_table.h"

#include <stdlib.h>

#include "base/hash.h"

/* What malloc adds to the two blocks of a user. */
#define MALLOC_OVERHEAD 32

uint64_t dd_mem_hash(struct dd_slice scene, struct dd_slice user)
{
    return dd_hash64(user, dd_hash64(scene, 1));
}

/* The low bits chose the shard. */
static struct dd_mem_user **bucket_of(struct dd_mem_shard *s, uint64_t hash)
{
    return &s->table[(hash / DD_MEM_SHARDS) & (s->buckets - 1)];
}

static bool is_user(const struct dd_mem_user *u, uint64_t hash, struct dd_slice scene, struct dd_slice user)
{
    return u->hash == hash && dd_slice_eq(dd_slice_of(u->key, u->scene_len), scene) &&
           dd_slice_eq(dd_slice_of(u->key + u->scene_len, u->user_len), user);
}

struct dd_mem_user *dd_mem_lookup(struct dd_mem_shard *s, uint64_t hash, struct dd_slice scene,
                                  struct dd_slice user)
{
    if (s->buckets == 0) return NULL;
    for (struct dd_mem_user *u = *bucket_of(s, hash); u; u = u->chain)
        if (is_user(u, hash, scene, user)) return u;
    return NULL;
}

void dd_mem_account(struct dd_mem *m, size_t before, size_t after)
{
    atomic_fetch_add_explicit(&m->bytes, after - before, memory_order_relaxed);
}

static size_t fixed_bytes(const struct dd_mem_user *u)
{
    return sizeof *u + u->scene_len + u->user_len + MALLOC_OVERHEAD;
}

static void unlink_order(struct dd_mem_shard *s, struct dd_mem_user *u)
{
    *(u->newer ? &u->newer->older : &s->newest) = u->older;
    *(u->older ? &u->older->newer : &s->oldest) = u->newer;
}

static void make_newest(struct dd_mem_shard *s, struct dd_mem_user *u)
{
    u->newer = NULL;
    u->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = u;
    s->newest = u;
}

static void rehash(struct dd_mem *m, struct dd_mem_shard *s)
{
    size_t buckets = s->buckets ? s->buckets * 2 : 16;
    struct dd_mem_user **table = calloc(buckets, sizeof *table);
    if (!table) return; /* longer chains, until there is memory */
    dd_mem_account(m, s->buckets * sizeof *table, buckets * sizeof *table);
    free(s->table);
    s->table = table;
    s->buckets = buckets;
    for (struct dd_mem_user *u = s->oldest; u; u = u->newer) {
        struct dd_mem_user **b = bucket_of(s, u->hash);
        u->chain = *b;
        *b = u;
    }
}

struct dd_mem_user *dd_mem_obtain(struct dd_mem *m, struct dd_mem_shard *s, uint64_t hash,
                                  struct dd_slice scene, struct dd_slice user)
{
    struct dd_mem_user *u = dd_mem_lookup(s, hash, scene, user);
    if (u) {
        unlink_order(s, u);
        make_newest(s, u);
        return u;
    }
    if (s->users >= s->buckets) rehash(m, s);
    u = s->buckets ? calloc(1, sizeof *u + scene.len + user.len) : NULL;
    if (!u) return NULL;
    u->hash = hash;
    u->scene_len = (uint32_t)scene.len;
    u->user_len = (uint32_t)user.len;
    if (scene.len) memcpy(u->key, scene.ptr, scene.len);
    if (user.len) memcpy(u->key + scene.len, user.ptr, user.len);
    u->chain = *bucket_of(s, hash);
    *bucket_of(s, hash) = u;
    make_newest(s, u);
    s->users++;
    atomic_fetch_add_explicit(&m->users, 1, memory_order_relaxed);
    dd_mem_account(m, 0, fixed_bytes(u));
    return u;
}

void dd_mem_drop_user(struct dd_mem *m, struct dd_mem_shard *s, struct dd_mem_user *u)
{
    struct dd_mem_user **at = bucket_of(s, u->hash);
    while (*at != u)
        at = &(*at)->chain;
    *at = u->chain;
    unlink_order(s, u);
    s->users--;
    atomic_fetch_sub_explicit(&m->users, 1, memory_order_relaxed);
    dd_mem_account(m, fixed_bytes(u) + u->list.cap, 0);
    dd_deliveries_free(&u->list);
    free(u);
}

/* Drops the least recently claimed user of a shard. false: the shard is empty. */
static bool evict_one(struct dd_mem *m, struct dd_mem_shard *s, int64_t now_ms)
{
    pthread_mutex_lock(&s->lock);
    struct dd_mem_user *u = s->oldest;
    bool lapsed = !u || u->last_ms + u->ttl_ms <= now_ms;
    if (u) dd_mem_drop_user(m, s, u);
    pthread_mutex_unlock(&s->lock);
    if (!lapsed) atomic_store(&m->lost_ms, now_ms);
    return u != NULL;
}

void dd_mem_shrink(struct dd_mem *m, struct dd_mem_shard *first, int64_t now_ms)
{
    struct dd_mem_shard *s = first;
    unsigned empty = 0;
    while (atomic_load_explicit(&m->bytes, memory_order_relaxed) > m->max_bytes && empty < DD_MEM_SHARDS) {
        empty = evict_one(m, s, now_ms) ? 0 : empty + 1;
        s = &m->shard[atomic_fetch_add_explicit(&m->next_victim, 1, memory_order_relaxed) % DD_MEM_SHARDS];
    }
}
