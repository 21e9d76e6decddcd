#include "hot/memory.h"

#include <stdlib.h>

#include "hot/hot.h"
#include "hot/memory_table.h"

enum dd_err dd_mem_create(size_t max_bytes, struct dd_mem **out)
{
    struct dd_mem *m = aligned_alloc(64, sizeof *m);
    if (!m) return DD_NO_MEMORY;
    memset(m, 0, sizeof *m);
    m->max_bytes = max_bytes;
    atomic_init(&m->lost_ms, INT64_MIN);
    for (unsigned i = 0; i < DD_MEM_SHARDS; i++)
        pthread_mutex_init(&m->shard[i].lock, NULL);
    *out = m;
    return DD_OK;
}

void dd_mem_destroy(struct dd_mem *m)
{
    if (!m) return;
    for (unsigned i = 0; i < DD_MEM_SHARDS; i++) {
        struct dd_mem_shard *s = &m->shard[i];
        while (s->oldest)
            dd_mem_drop_user(m, s, s->oldest);
        free(s->table);
        pthread_mutex_destroy(&s->lock);
    }
    free(m);
}

/* Appends the ids that are absent. On an error the list is as before. */
static enum dd_err add_absent(struct dd_deliveries *list, const struct dd_mem_claim *c)
{
    uint32_t len = list->len, count = list->count;
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < c->n && !err; i++) {
        c->won[i] = !dd_deliveries_has(list, c->ids[i], INT64_MIN);
        if (c->won[i]) err = dd_deliveries_add(list, c->ids[i], c->now_ms);
    }
    if (!err && dd_deliveries_count_newer(list, c->now_ms - DD_DELIVERIES_KEEP_MS) > DD_DELIVERIES_MAX)
        err = DD_LIMIT;
    if (!err) return DD_OK;
    list->len = len;
    list->count = count;
    memset(c->won, 0, c->n);
    return err;
}

static enum dd_err claim_locked(struct dd_mem *m, struct dd_mem_shard *s, struct dd_mem_user *u,
                                const struct dd_mem_claim *c)
{
    size_t before = u->list.cap;
    dd_deliveries_drop(&u->list, c->now_ms - c->ttl_ms, UINT32_MAX);
    enum dd_err err = add_absent(&u->list, c);
    if (!err) {
        u->last_ms = c->now_ms;
        u->ttl_ms = c->ttl_ms;
        if (u->list.count > c->recent_max)
            dd_deliveries_drop(&u->list, c->now_ms - DD_DELIVERIES_KEEP_MS, u->list.count - c->recent_max);
    }
    dd_mem_account(m, before, u->list.cap);
    if (u->list.count == 0) dd_mem_drop_user(m, s, u);
    return err;
}

/* At most two, so that a claim stays short: more than one goes for each that comes. */
static void drop_lapsed(struct dd_mem *m, struct dd_mem_shard *s, int64_t now_ms, unsigned most)
{
    while (most-- && s->oldest && s->oldest->last_ms + s->oldest->ttl_ms <= now_ms)
        dd_mem_drop_user(m, s, s->oldest);
}

enum dd_err dd_mem_claim(struct dd_mem *m, const struct dd_mem_claim *c)
{
    uint64_t hash = dd_mem_hash(c->scene, c->user);
    struct dd_mem_shard *s = dd_mem_shard_of(m, hash);
    pthread_mutex_lock(&s->lock);
    drop_lapsed(m, s, c->now_ms, 2);
    struct dd_mem_user *u = dd_mem_obtain(m, s, hash, c->scene, c->user);
    enum dd_err err = u ? claim_locked(m, s, u, c) : DD_NO_MEMORY;
    pthread_mutex_unlock(&s->lock);
    dd_mem_shrink(m, s, c->now_ms);
    return err;
}

void dd_mem_unclaim(struct dd_mem *m, struct dd_slice scene, struct dd_slice user, const struct dd_slice *ids,
                    unsigned n)
{
    uint64_t hash = dd_mem_hash(scene, user);
    struct dd_mem_shard *s = dd_mem_shard_of(m, hash);
    pthread_mutex_lock(&s->lock);
    struct dd_mem_user *u = dd_mem_lookup(s, hash, scene, user);
    for (unsigned i = 0; u && i < n; i++)
        dd_deliveries_remove(&u->list, ids[i]);
    if (u && u->list.count == 0) dd_mem_drop_user(m, s, u);
    pthread_mutex_unlock(&s->lock);
}

unsigned dd_mem_find(struct dd_mem *m, struct dd_slice scene, struct dd_slice user,
                     const struct dd_slice *ids, unsigned n, int64_t newer_than_ms, uint8_t *found)
{
    uint64_t hash = dd_mem_hash(scene, user);
    struct dd_mem_shard *s = dd_mem_shard_of(m, hash);
    unsigned total = 0;
    pthread_mutex_lock(&s->lock);
    struct dd_mem_user *u = dd_mem_lookup(s, hash, scene, user);
    for (unsigned i = 0; u && i < n; i++) {
        if (!dd_deliveries_has(&u->list, ids[i], newer_than_ms)) continue;
        found[i] = 1;
        total++;
    }
    pthread_mutex_unlock(&s->lock);
    return total;
}

void dd_mem_fetch(struct dd_mem *m, struct dd_slice scene, struct dd_slice user, int64_t newer_than_ms,
                  struct dd_buf *recent, struct dd_buf *ids)
{
    uint64_t hash = dd_mem_hash(scene, user);
    struct dd_mem_shard *s = dd_mem_shard_of(m, hash);
    pthread_mutex_lock(&s->lock);
    struct dd_mem_user *u = dd_mem_lookup(s, hash, scene, user);
    uint32_t at = 0;
    struct dd_delivery e;
    while (u && dd_deliveries_next(&u->list, &at, &e)) {
        if (e.at_ms <= newer_than_ms) continue;
        struct dd_hot_recent r = {{(const uint8_t *)(uintptr_t)ids->len, e.id.len}, e.at_ms};
        dd_buf_add(recent, &r, sizeof r);
        dd_buf_add_slice(ids, e.id);
    }
    pthread_mutex_unlock(&s->lock);
}

bool dd_mem_erase(struct dd_mem *m, struct dd_slice scene, struct dd_slice user)
{
    uint64_t hash = dd_mem_hash(scene, user);
    struct dd_mem_shard *s = dd_mem_shard_of(m, hash);
    pthread_mutex_lock(&s->lock);
    struct dd_mem_user *u = dd_mem_lookup(s, hash, scene, user);
    if (u) dd_mem_drop_user(m, s, u);
    pthread_mutex_unlock(&s->lock);
    return u != NULL;
}

void dd_mem_sweep(struct dd_mem *m, int64_t now_ms)
{
    for (unsigned i = 0; i < DD_MEM_SHARDS; i++) {
        struct dd_mem_shard *s = &m->shard[i];
        pthread_mutex_lock(&s->lock);
        drop_lapsed(m, s, now_ms, 1000);
        pthread_mutex_unlock(&s->lock);
    }
}

bool dd_mem_may_hold(const struct dd_mem *m)
{
    return atomic_load_explicit(&m->users, memory_order_acquire) != 0;
}

size_t dd_mem_bytes(const struct dd_mem *m)
{
    return atomic_load_explicit(&m->bytes, memory_order_relaxed);
}

uint64_t dd_mem_users(const struct dd_mem *m)
{
    return atomic_load_explicit(&m->users, memory_order_relaxed);
}

int64_t dd_mem_lost_ms(const struct dd_mem *m)
{
    return atomic_load_explicit(&m->lost_ms, memory_order_relaxed);
}
