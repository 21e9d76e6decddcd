/* The hot tier: what must be asked first and in one round trip. Per user: recent deliveries, exposures that
 * are staged and not yet in the store (pending), and cached filter sets.
 *
 * Two implementations behind one face: Redis (one pipelining connection per worker loop) and process memory
 * (bounded). Memory is the embedded mode (no URL), and what deliveries fall back to while Redis is away;
 * deliveries taken in memory stay consulted until they lapse.
 *
 * Every call has a deadline; while Redis is away calls complete at once (circuit open) and say so by
 * `complete`. Keys and values: proto/storage.md, "Redis keys".
 *
 * The process ignores SIGPIPE (a broken connection is noticed by its write).
 *
 * Threads: struct dd_hot is shared; struct dd_hot_loop belongs to one loop's thread.
 * Ownership: request structs and what they point to belong to the caller until done has run (or the call
 * returned DD_OK). Outputs are valid until done returns; after DD_OK until dd_hot_fetch_release. */
#ifndef DD_HOT_HOT_H
#define DD_HOT_HOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/period.h"
#include "loop/loop.h"
#include "stats/stats.h"

struct dd_hot;
struct dd_hot_loop;

struct dd_hot_options {
    /* Redis; host and path NULL: embedded */
    const char *host, *path, *user, *password;
    uint16_t port;
    int db;
    int connect_timeout_ms, timeout_ms, retry_max_ms;
    unsigned max_inflight;   /* commands in flight per connection */
    size_t max_output_bytes; /* unsent bytes per connection */
    /* memory */
    size_t memory_max_bytes;
    const char *store_id;      /* part of the keys; copied */
    int64_t recent_ttl_ms_max; /* the longest recent.ttl of any scene: how long answers are partial after
                                  deliveries were lost */
};

enum dd_err dd_hot_create(const struct dd_hot_options *o, struct dd_clock *clock, struct dd_stats *stats,
                          struct dd_hot **out) DD_MUST_USE;
void dd_hot_destroy(struct dd_hot *h);

/* The handle of one loop; starts connecting. Destroy on the loop's thread (or after it ended): calls in
 * flight complete as incomplete. */
enum dd_err dd_hot_loop_create(struct dd_hot *h, struct dd_loop *loop, struct dd_hot_loop **out) DD_MUST_USE;
void dd_hot_loop_destroy(struct dd_hot_loop *hl);

bool dd_hot_is_embedded(const struct dd_hot *h);

/* ---- reading: one round trip ---- */

struct dd_hot_recent {
    struct dd_slice id;
    int64_t at_ms;
};

struct dd_hot_cached {
    bool present; /* false: no entry, or one that cannot be read (counted) */
    uint64_t incarnation, number;
    int64_t filled_ms;    /* when it was put */
    struct dd_slice blob; /* may be empty: nothing stored */
};

struct dd_hot_fetch {
    /* in */
    struct dd_slice scene, user;
    bool want_recent;
    int64_t now_ms, recent_ttl_ms; /* deliveries older than the ttl are left out */
    struct dd_period pending_period[DD_WINDOW_MAX];
    unsigned pending_n;
    struct dd_period cached_period[DD_WINDOW_MAX];
    unsigned cached_n;
    void (*done)(void *arg);
    void *arg;
    /* out */
    bool complete; /* Redis answered everything (embedded: always). false: deliveries are those in memory,
                      pending unknown */
    bool recent_intact; /* false: deliveries may have been lost (eviction, fail-over, restart) within the last
                           ttl */
    const struct dd_hot_recent *recent; /* newest last; an id may stand twice after an outage */
    unsigned recent_n;
    struct dd_hot_pending {
        const uint32_t *fps; /* unsorted, unique */
        unsigned n;
    } pending[DD_WINDOW_MAX];
    struct dd_hot_cached cached[DD_WINDOW_MAX];
    void *priv; /* the tier's */
};

/* DD_OK: answered at once, done does not run; call dd_hot_fetch_release. DD_PENDING: done runs on the loop,
 * within timeout_ms; nothing to release. The reply that carries pending is always processed before done.
 * DD_INVALID (more periods than DD_WINDOW_MAX), DD_NO_MEMORY: nothing was started. */
enum dd_err dd_hot_fetch(struct dd_hot_loop *hl, struct dd_hot_fetch *f) DD_MUST_USE;
void dd_hot_fetch_release(struct dd_hot_fetch *f);

/* ---- deliveries ---- */

struct dd_hot_claim {
    /* in */
    struct dd_slice scene, user;
    const struct dd_slice *ids; /* 1..1000, distinct */
    unsigned n;
    int64_t now_ms, recent_ttl_ms;
    unsigned recent_max; /* the newest that are kept; nothing younger than 60 s is trimmed */
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err; /* DD_OK, DD_LIMIT (over 1,000 live deliveries: none was added), DD_NO_MEMORY */
    bool in_memory;  /* Redis is away: recorded in this process only, so another process may hand out the same
                      */
    uint8_t *won;    /* caller's array of n: 1 recorded now, 0 it was there already */
    void *priv;      /* the tier's */
};

/* Records each id unless it is there, atomically per id: of concurrent claims exactly one wins. Expired
 * members are removed first. DD_OK: done at once (no callback); DD_PENDING. When Redis fails in the middle,
 * what it had not acknowledged is claimed in memory, and in_memory is true. done runs within timeout_ms,
 * twice that near the limit. DD_INVALID (n), DD_NO_MEMORY: nothing was started. */
enum dd_err dd_hot_claim(struct dd_hot_loop *hl, struct dd_hot_claim *c) DD_MUST_USE;

/* Takes deliveries back (a claim whose request then failed). Fire and forget. */
void dd_hot_unclaim(struct dd_hot_loop *hl, struct dd_slice scene, struct dd_slice user,
                    const struct dd_slice *ids, unsigned n);

/* ---- cached filter sets ---- */

/* Puts one period's set, to live ttl_ms (with up to 10 % jitter). number: dd_change_number loaded before the
 * store was read. Fire and forget; the bytes are copied. Does nothing when embedded or while Redis is away.
 */
void dd_hot_cache_put(struct dd_hot_loop *hl, struct dd_slice scene, struct dd_slice user,
                      struct dd_period period, uint64_t incarnation, uint64_t number, int64_t now_ms,
                      int64_t ttl_ms, struct dd_slice blob);

/* ---- clean stop and start ---- */

/* What the hot tier remembers of this store's last clean stop (`dd:n`). Blocks up to the connect and command
 * deadlines: before the loops run, after they ended. DD_NOT_FOUND, DD_UNAVAILABLE, DD_OK. */
enum dd_err dd_hot_witness_get(struct dd_hot *h, uint64_t *incarnation, uint64_t *number) DD_MUST_USE;
enum dd_err dd_hot_witness_put(struct dd_hot *h, uint64_t incarnation, uint64_t number) DD_MUST_USE;

/* Embedded: deliveries survive a clean restart through this file. Load deletes it (it may be used once). */
enum dd_err dd_hot_memory_save(struct dd_hot *h, const char *path) DD_MUST_USE;
enum dd_err dd_hot_memory_load(struct dd_hot *h, const char *path) DD_MUST_USE;

/* ---- state ---- */

struct dd_hot_status {
    bool embedded;
    bool up; /* every loop's connection answers */
    unsigned connections, connections_up;
    int64_t down_since_ms; /* wall time; 0 when up */
    char last_error[128];  /* "connect: Connection refused"; never holds a password */
    bool recent_intact;
    size_t memory_bytes;
    uint64_t memory_users;
};

void dd_hot_get_status(struct dd_hot *h, struct dd_hot_status *out);

#endif
