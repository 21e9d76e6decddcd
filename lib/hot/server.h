/* What is known about the Redis behind the connections: its settings, whether it is still the same run of the
 * same data, and whether deliveries or staged exposures may have been lost. Private to lib/hot.
 *
 * Every connection takes a sample when it is made and every ten seconds: INFO, CONFIG GET, and the beat, the
 * integer at dd:g:<store>. The beat is set to a random number if absent and then raised by one with each
 * sample. So a beat a little above the last one      the data is the one we knew, up to that sample a beat at
 * or below it, in another run   an older snapshot was loaded a beat far away                         the key
 * had vanished: another instance, or it was flushed
 *
 * Another run_id with a sound beat is a restart that kept at least everything up to the last sample.
 * Deliveries count as intact only if nothing can be missing: an AOF synced at every write, before and after,
 * and no fail-over to a replica.
 *
 * Threads: dd_server_observe and the getters from any thread (a lock inside); parsing is pure. */
#ifndef DD_HOT_SERVER_H
#define DD_HOT_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "hot/staging.h"

struct redisReply;

enum dd_server_eviction { DD_EVICT_UNKNOWN, DD_EVICT_NONE, DD_EVICT_WITH_TTL, DD_EVICT_ANY };

struct dd_server_sample {
    bool has_info, has_config, has_beat;
    char run_id[48];
    bool aof, promoted; /* promoted: it was a replica before */
    enum dd_hot_fsync fsync;
    enum dd_server_eviction eviction; /* of the policy, whether or not maxmemory is set */
    uint64_t maxmemory, used_memory, evicted_keys;
    unsigned replicas;
    int64_t beat;
};

struct dd_server {
    pthread_mutex_t lock;
    bool met;
    bool expected; /* `last` is what an earlier process knew: only its beat */
    struct dd_server_sample last;
    uint64_t restarts, losses;
    int64_t last_loss_ms;
    _Atomic int64_t recent_lost_ms; /* when deliveries may last have been lost; INT64_MIN: never */
    _Atomic uint64_t run;           /* see dd_hot_run */
    _Atomic int promise;            /* enum dd_hot_promise */
};

void dd_server_init(struct dd_server *s);
void dd_server_reset(struct dd_server *s);

/* The text of INFO. */
void dd_server_read_info(struct dd_server_sample *out, struct dd_slice info);
/* One pair of CONFIG GET. */
void dd_server_read_config(struct dd_server_sample *out, struct dd_slice name, struct dd_slice value);

/* Compares with what was known; logs and counts what changed. */
void dd_server_observe(struct dd_server *s, const struct dd_server_sample *sample, int64_t now_ms);

static inline int64_t dd_server_recent_lost_ms(const struct dd_server *s)
{
    return atomic_load_explicit(&s->recent_lost_ms, memory_order_relaxed);
}

void dd_server_durability(struct dd_server *s, struct dd_hot_durability *out);

/* See dd_hot_expect_beat. */
void dd_server_expect(struct dd_server *s, int64_t beat);
bool dd_server_last_beat(struct dd_server *s, int64_t *beat);

/* A random first beat: far from any other, and far from the end of 64 bits. */
int64_t dd_server_new_beat(uint64_t random);

#endif
