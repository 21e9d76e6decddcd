/* What memory.c and memory_file.c share: the shards. Nothing else includes it. */
#ifndef DD_HOT_MEMORY_TABLE_H
#define DD_HOT_MEMORY_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "hot/memory.h"

#define DD_MEM_SHARDS 64

struct dd_mem_user {
    struct dd_mem_user *chain;         /* same bucket */
    struct dd_mem_user *newer, *older; /* by last claim */
    uint64_t hash;
    int64_t last_ms, ttl_ms; /* all has lapsed at last_ms + ttl_ms */
    struct dd_deliveries list;
    uint32_t scene_len, user_len;
    uint8_t key[]; /* scene, user */
};

struct dd_mem_shard {
    _Alignas(64) pthread_mutex_t lock;
    struct dd_mem_user **table; /* buckets: a power of two */
    size_t buckets, users;
    struct dd_mem_user *newest, *oldest;
};

struct dd_mem {
    struct dd_mem_shard shard[DD_MEM_SHARDS];
    size_t max_bytes;
    _Atomic size_t bytes;
    _Atomic uint64_t users;
    _Atomic int64_t lost_ms;
    _Atomic unsigned next_victim;
};

uint64_t dd_mem_hash(struct dd_slice scene, struct dd_slice user);
static inline struct dd_mem_shard *dd_mem_shard_of(struct dd_mem *m, uint64_t hash)
{
    return &m->shard[hash % DD_MEM_SHARDS];
}

/* With the shard's lock held. */
struct dd_mem_user *dd_mem_lookup(struct dd_mem_shard *s, uint64_t hash, struct dd_slice scene,
                                  struct dd_slice user);
/* Also makes the user the newest. NULL: no memory. */
struct dd_mem_user *dd_mem_obtain(struct dd_mem *m, struct dd_mem_shard *s, uint64_t hash,
                                  struct dd_slice scene, struct dd_slice user);
void dd_mem_drop_user(struct dd_mem *m, struct dd_mem_shard *s, struct dd_mem_user *u);
/* Called when a user's block has changed its size from before. */
void dd_mem_account(struct dd_mem *m, size_t before, size_t after);

/* Without any lock: drops users until the total is within its bound, beginning with the shard that grew. */
void dd_mem_shrink(struct dd_mem *m, struct dd_mem_shard *first, int64_t now_ms);

#endif
