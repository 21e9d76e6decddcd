/* What dedupd exists for: exposures are recorded, candidates that the user has seen are dropped, deliveries
 * are claimed. No HTTP and no JSON here.
 *
 * A request's way (lib/README.md draws it): one round trip to the hot tier brings deliveries, pending and
 * cached filter sets; cached sets are judged by the change table; what is missing is read from the store;
 * survivors are chosen and, if asked, claimed.
 *
 * Calls are asynchronous. The caller fills the "in" part, starts the call on its loop's thread, and gets
 *     done(arg)      exactly once, when the "out" part stands: the moment to answer;
 *     finished(arg)  exactly once, after done: nothing refers to the call's memory any more.
 * Between the two a late reply of a slow disk may still be under way (the deadline answered first). Both may
 * run before the starting function returns. Bytes that the call refers to (user, items) are needed only until
 * done: what outlives it is copied into the call's arena.
 *
 * Threads: struct dd_dedup is shared; a struct dd_dedup_loop and its calls belong to one loop's thread.
 * Ownership: the call struct and its arena belong to the caller until finished. */
#ifndef DD_DEDUP_DEDUP_H
#define DD_DEDUP_DEDUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"
#include "dedup/scene.h"
#include "dedup/wheel.h"
#include "hot/hot.h"
#include "hot/legacy.h"
#include "loop/loop.h"
#include "stats/stats.h"
#include "store/store.h"

#define DD_USER_MAX_BYTES 128
#define DD_ITEM_MAX_BYTES 256

/* Deliveries one claim or one /delivered may record. */
#define DD_CLAIM_MAX 1000

/* A period tells up to 15 times apart, so "more than 14" is the most that can be asked. */
#define DD_MAX_SEEN 14

struct dd_dedup;
struct dd_dedup_loop;
struct dd_history; /* history.h */
struct dd_trace;   /* trace.h */

struct dd_dedup_options {
    int64_t deadline_ms;   /* of a call, from its start */
    int64_t max_future_ms; /* event times up to this far ahead count as now; beyond they are an error */
    unsigned pending_max;  /* staged items of one user and period; past it an event is DD_LIMIT */
    bool store_sync;       /* the store fsyncs before it acknowledges: direct writes are "sync", else "wal" */
    struct dd_history *history; /* borrowed; NULL: no raw ids are kept */
    struct dd_trace *trace;     /* borrowed; NULL: nobody is traced */
};

/* Borrows everything; all must outlive the result. wheel NULL: nothing is staged. */
enum dd_err dd_dedup_create(const struct dd_dedup_options *o, const struct dd_scenes *scenes,
                            struct dd_store *store, struct dd_hot *hot, struct dd_wheel *wheel,
                            struct dd_clock *clock, struct dd_stats *stats,
                            struct dd_dedup **out) DD_MUST_USE;
void dd_dedup_destroy(struct dd_dedup *d);

enum dd_err dd_dedup_loop_create(struct dd_dedup *d, struct dd_loop *loop,
                                 struct dd_dedup_loop **out) DD_MUST_USE;
/* No call may be in flight (dd_dedup_loop_inflight is 0), except with a hot tier that completes them here. */
void dd_dedup_loop_destroy(struct dd_dedup_loop *dl);
unsigned dd_dedup_loop_inflight(const struct dd_dedup_loop *dl);

/* An item: `id` is what it is compared by (an integer's canonical decimal text and the same text as a string
 * are one item); `echo` is what the caller sent, for the answer. */
struct dd_item {
    struct dd_slice id, echo;
    uint32_t fp; /* dedup's */
};

/* What an acknowledgement promises. */
enum dd_durability {
    DD_DURABLE_SYNC,     /* on disk, fsynced */
    DD_DURABLE_WAL,      /* in the store's log: survives kill -9, not a power cut */
    DD_DURABLE_STAGED,   /* in a Redis that syncs its AOF before it answers */
    DD_DURABLE_VOLATILE, /* in a Redis that may lose it */
};

const char *dd_durability_name(enum dd_durability d);

/* Why a call failed beyond its code: the field to name, or NULL. Static strings. */

/* ---- exposed ---- */

#define DD_TS_NOW INT64_MIN

/* In a scene that counts, an item counts as often as it stands in the event. */
struct dd_exposed_event {
    /* in */
    const struct dd_scene *scene;
    struct dd_slice user;
    struct dd_item *items;
    unsigned n;
    int64_t ts_ms; /* DD_TS_NOW: none given */
    /* out */
    enum dd_err result; /* DD_OK, DD_EXPIRED (older than the window), DD_LIMIT (the user's cap), DD_INVALID
                           (ts too far ahead) */
};

struct dd_exposed_call {
    /* in */
    struct dd_exposed_event *events;
    unsigned n;
    bool claimed; /* by a /filter, for the trace */
    struct dd_arena *arena;
    void (*done)(void *arg);
    void (*finished)(void *arg);
    void *arg;
    /* out */
    enum dd_err err; /* DD_OK: see each event; DD_INVALID: event `bad_event` has its ts too far ahead, nothing
                        was written; DD_UNAVAILABLE, DD_DISK_FULL, DD_TIMEOUT, DD_BUSY, DD_NO_MEMORY: nothing
                        acknowledged. DD_BUSY also: a user of the call is just being erased */
    unsigned bad_event;
    unsigned accepted, expired, limited; /* items */
    enum dd_durability durability;
    /* dedup's */
    struct dd_exposed_state *state;
};

void dd_dedup_exposed(struct dd_dedup_loop *dl, struct dd_exposed_call *c);

/* ---- filter ---- */

enum dd_claim { DD_CLAIM_NONE, DD_CLAIM_DELIVERED, DD_CLAIM_EXPOSED };

/* Why a candidate is not offered: reason[i]. */
enum {
    DD_REASON_UNSEEN = 0,
    DD_REASON_REPEAT,    /* stands earlier in the same request */
    DD_REASON_DELIVERED, /* handed out recently (or a concurrent claim won) */
    DD_REASON_PENDING,   /* exposed, staged */
    DD_REASON_LEGACY,    /* the old key of a user who is being migrated has it */
    DD_REASON_PERIOD,    /* exposed in period now - (reason - DD_REASON_PERIOD) */
};

struct dd_filter_call {
    /* in */
    const struct dd_scene *scene;
    struct dd_slice user;
    struct dd_item *items;
    unsigned n;
    unsigned limit;  /* the most to return; 0: all */
    unsigned window; /* periods to consult; 0: the scene's */
    /* Drop only what was seen more often than this, over the window together; 0: what was seen at all. For
     * scenes that count, 1..DD_MAX_SEEN. Deliveries drop as ever. */
    unsigned max_seen;
    enum dd_claim claim;
    bool explain; /* reason[] says the first of delivered, pending, legacy, newest period .. oldest; else any
                   * true one
                   */
    struct dd_arena *arena;
    void (*done)(void *arg);
    void (*finished)(void *arg);
    void *arg;
    /* out */
    enum dd_err err; /* DD_OK; DD_LIMIT (1,000 live deliveries), DD_TIMEOUT, DD_UNAVAILABLE, DD_DISK_FULL,
                        DD_BUSY, DD_NO_MEMORY */
    const uint32_t *chosen; /* indices into items, ascending */
    unsigned chosen_n;
    unsigned filtered; /* candidates dropped: seen, or repeated in the request */
    const uint8_t *reason;
    struct dd_period newest;       /* the period of DD_REASON_PERIOD + 0 */
    bool partial;                  /* the answer was made without part of the data */
    enum dd_durability durability; /* DD_CLAIM_EXPOSED */
    /* dedup's */
    struct dd_filter_state *state;
};

void dd_dedup_filter(struct dd_dedup_loop *dl, struct dd_filter_call *c);

/* ---- delivered ---- */

struct dd_delivered_call {
    /* in */
    const struct dd_scene *scene;
    struct dd_slice user;
    struct dd_item *items; /* 1..DD_CLAIM_MAX */
    unsigned n;
    struct dd_arena *arena;
    void (*done)(void *arg);
    void (*finished)(void *arg);
    void *arg;
    /* out */
    enum dd_err err;
    const uint8_t *won; /* per item: 1 accepted, 0 duplicate (also of an earlier one in the request) */
    bool partial;       /* recorded in this process only, or deliveries may have been lost */
    /* dedup's */
    struct dd_delivered_state *state;
};

void dd_dedup_delivered(struct dd_dedup_loop *dl, struct dd_delivered_call *c);

/* ---- state ---- */

struct dd_dedup_status {
    bool writable; /* exposures are accepted */
    bool full;     /* answers say "full" */
    struct dd_wheel_status wheel;
    int64_t clock_behind_ms;
    struct dd_store_status store;
    struct dd_hot_status hot;
    struct dd_legacy_status legacy; /* while migrate.mode is dual */
};

void dd_dedup_get_status(struct dd_dedup *d, struct dd_dedup_status *out);

#endif
