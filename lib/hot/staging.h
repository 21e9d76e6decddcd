/* Staging: exposures that wait in Redis until the wheel folds them into the store; and the register of which
 * process holds which store.
 *
 * An exposure is staged by three additions: the slot's name (dd:s), the user's entry in the slot (dd:a, 16
 * parts), the fingerprints in the user's pending (dd:{scene/user}:p). It may be acknowledged only when all
 * three are, and while the slot is still open. The additions are sent in this order, so that an interruption
 * leaves at most an entry without pending, which costs the wheel one look.
 *
 * The wheel's order (proto/storage.md): dd_hot_staging_read -> store commit, synced -> change table ->
 * dd_hot_staging_remove (exactly what was read; what was staged meanwhile stays) -> dd_hot_staging_unlist ->
 * dd_hot_staging_drop_slot. Only of sealed slots. Every step may be repeated, and another process may do the
 * same.
 *
 * Threads: dd_hot_stage on the loop's thread. A struct dd_hot_staging belongs to one thread (the wheel's);
 * open one more for another thread. dd_hot_get_durability from any thread. Ownership: results of the blocking
 * calls live in the struct dd_hot_staging until the next call of the same name. */
#ifndef DD_HOT_STAGING_H
#define DD_HOT_STAGING_H

#include "hot/hot.h"

/* ---- staging, on a loop ---- */

struct dd_hot_stage_entry {
    /* in */
    struct dd_slice scene, user;
    struct dd_period period;
    const uint32_t *fps; /* 1..n, in any order, may repeat */
    unsigned n;
    /* out */
    enum dd_err result; /* DD_OK: all three additions acknowledged. DD_LIMIT: the user's pending of this
                           period holds pending_max already (some of these may have been added; nothing of
                           them is promised). DD_UNAVAILABLE: write it directly (it may have been staged
                           nevertheless, which is harmless) */
};

struct dd_hot_stage {
    /* in */
    struct dd_hot_stage_entry *entries;
    unsigned n;
    int64_t slot_start_s, slot_end_s; /* of the slot that is open now; the caller checks again in done */
    unsigned pending_max;             /* soft: the request that reaches it is taken whole */
    void (*done)(void *arg);
    void *arg;
    void *priv; /* the tier's */
};

/* DD_PENDING: done runs on the loop, within timeout_ms. Otherwise nothing was sent and done never runs:
 * DD_UNAVAILABLE (embedded, Redis away), DD_BUSY (the connection is at its caps), DD_INVALID (n is 0, or an
 * entry's), DD_NO_MEMORY. */
enum dd_err dd_hot_stage(struct dd_hot_loop *hl, struct dd_hot_stage *st) DD_MUST_USE;

/* ---- what Redis promises ---- */

enum dd_hot_fsync { DD_HOT_FSYNC_UNKNOWN, DD_HOT_FSYNC_NO, DD_HOT_FSYNC_EVERYSEC, DD_HOT_FSYNC_ALWAYS };

struct dd_hot_durability {
    bool known;              /* Redis was asked since the start; the rest is its last answer */
    bool readable;           /* its settings could be read (a managed Redis may refuse CONFIG) */
    bool aof;                /* appendonly yes */
    enum dd_hot_fsync fsync; /* appendfsync */
    bool evicts_without_ttl; /* maxmemory with allkeys-*: pending may be evicted; never stage */
    bool evicts_with_ttl;    /* maxmemory with volatile-*: deliveries and caches may be */
    bool replicated;         /* it has replicas or was promoted: a fail-over may lose the last writes */
    uint64_t maxmemory, used_memory;
    uint64_t restarts;    /* times that another run of Redis was met */
    uint64_t losses;      /* times that keys were found to have vanished or to be older than before: staged
                             exposures were lost. Detected at reconnect and every ten seconds */
    int64_t last_loss_ms; /* wall time; 0: never */
    char warnings[400];   /* plain text, "; " between them; empty: none */
};

/* At the start: the beat that the Redis of this store had when it was last seen (dd_hot_last_beat, kept by
 * the caller). One that has less, or none, has lost what was staged: it is counted and logged as a loss at
 * the first contact. Before any other call of the tier. */
void dd_hot_expect_beat(struct dd_hot *h, int64_t beat);
/* false: not known yet. */
bool dd_hot_last_beat(struct dd_hot *h, int64_t *beat);

/* What is staged survives kill -9 of Redis: aof and DD_HOT_FSYNC_ALWAYS, nothing evicted, and no replica may
 * replace it. */
bool dd_hot_durability_is_firm(const struct dd_hot_durability *d);
void dd_hot_get_durability(struct dd_hot *h, struct dd_hot_durability *out);

/* The same in one word, without a lock, for every request. It is judged anew before a connection that was
 * just made may be used, so that nothing is staged on the word of a Redis that has been replaced. */
enum dd_hot_promise {
    DD_HOT_PROMISE_NONE,   /* not asked yet, or pending could be evicted: never stage */
    DD_HOT_PROMISE_MEMORY, /* no AOF: a Redis that dies loses everything */
    DD_HOT_PROMISE_WEAK,   /* an AOF, but not firm */
    DD_HOT_PROMISE_FIRM    /* dd_hot_durability_is_firm */
};
enum dd_hot_promise dd_hot_promise(const struct dd_hot *h);

/* Another number whenever another run of Redis, or other data, was met; before a request can be sent to it.
 * What was listed under an older number says nothing about this one. */
uint64_t dd_hot_run(const struct dd_hot *h);

/* ---- the wheel's side: blocking, on a connection of its own ---- */

struct dd_hot_staging;

/* Does not connect yet: each call connects when it must, at most once per back-off, and returns
 * DD_UNAVAILABLE until then. Every call returns within connect_timeout_ms plus, for each of its round trips,
 * timeout_ms or a second, whichever is longer (sync.h). DD_UNSUPPORTED: embedded. */
enum dd_err dd_hot_staging_open(struct dd_hot *h, struct dd_hot_staging **out) DD_MUST_USE;
void dd_hot_staging_close(struct dd_hot_staging *s);
/* Of the last failure: "timeout", "connect: Connection refused". Never holds a password. */
const char *dd_hot_staging_error(const struct dd_hot_staging *s);

/* Asks Redis for its settings, for a start that must know them before any loop runs: then
 * dd_hot_get_durability has an answer. */
enum dd_err dd_hot_staging_ask_settings(struct dd_hot_staging *s) DD_MUST_USE;

struct dd_hot_slot {
    int64_t start_s, end_s;
};

/* Slots that hold anything, oldest first. Names that nobody of us wrote are logged and left alone. DD_OK also
 * for none. */
enum dd_err dd_hot_staging_slots(struct dd_hot_staging *s, const struct dd_hot_slot **slots,
                                 unsigned *n) DD_MUST_USE;

/* Entries of a slot, all parts together, for /admin/slots. */
enum dd_err dd_hot_staging_slot_size(struct dd_hot_staging *s, struct dd_hot_slot slot,
                                     uint64_t *entries) DD_MUST_USE;

struct dd_hot_user {
    /* which */
    struct dd_slice scene, user;
    struct dd_period period;
    unsigned part;
    struct dd_slice member; /* the bytes of its entry */
    /* dd_hot_staging_read fills */
    const uint32_t *fps; /* may repeat when there are more than 10,000 */
    unsigned n;
    enum dd_err err; /* DD_OK; DD_CORRUPT: a key of another type stands under its name (left alone, n is 0) */
};

/* A walk over the entries of one slot with SSCAN: what stays in it from begin to end is seen at least once,
 * also when others are removed meanwhile; some may be seen twice. Zeroed but for slot to begin; ended says
 * that it is complete. */
struct dd_hot_walk {
    struct dd_hot_slot slot;
    unsigned part;
    uint64_t cursor;
    bool ended;
};

/* The next page, about `page` users (1..10000); may be empty before the end. Entries that cannot be read are
 * counted and logged, left alone, and not given. The users (and read's fps) are valid until the next
 * dd_hot_staging_walk. */
enum dd_err dd_hot_staging_walk(struct dd_hot_staging *s, struct dd_hot_walk *w, unsigned page,
                                struct dd_hot_user **users, unsigned *n) DD_MUST_USE;

/* Reads the pending of the users, pipelined; above 10,000 in pages. Fills fps, n, err. Users may be of any
 * origin (scene, user and period set). Not DD_OK: none is filled. */
enum dd_err dd_hot_staging_read(struct dd_hot_staging *s, struct dd_hot_user *users, unsigned n) DD_MUST_USE;

/* Removes from their pending exactly the fps that stand in the users: one SREM per 1,000. Not DD_OK: some
 * may have been removed; calling it again is harmless. */
enum dd_err dd_hot_staging_remove(struct dd_hot_staging *s, const struct dd_hot_user *users,
                                  unsigned n) DD_MUST_USE;

/* Removes the users' entries (member, part) from the slot. */
enum dd_err dd_hot_staging_unlist(struct dd_hot_staging *s, struct dd_hot_slot slot,
                                  const struct dd_hot_user *users, unsigned n) DD_MUST_USE;

/* Removes the slot's name if all its parts are empty, in one step: *dropped. */
enum dd_err dd_hot_staging_drop_slot(struct dd_hot_staging *s, struct dd_hot_slot slot,
                                     bool *dropped) DD_MUST_USE;

/* Removes a user's deliveries, cached sets and the pending of the given periods from Redis, and its
 * deliveries from memory. removed: how many Redis keys there were. Works embedded too, with s NULL. Entries
 * in slots stay: they leave when their slot is flushed. */
enum dd_err dd_hot_erase(struct dd_hot *h, struct dd_hot_staging *s, struct dd_slice scene,
                         struct dd_slice user, const struct dd_period *periods, unsigned n,
                         unsigned *removed) DD_MUST_USE;

/* ---- which process holds which store (dd:n) ---- */

struct dd_hot_boot {
    const char *boot_id; /* of this process: random, [0-9a-f] */
    const char *place;   /* of the directory: the same when the same directory is opened again, another for a
                            copy of   it (machine id, device and inode). 1..200 bytes */
    const char *admin;   /* address of the admin listener, for people and for erase; "" if none */
    int64_t alive_ms; /* a sign of life younger than this is a living process; dd_hot_boot_beat at a third of
                         it */
};

struct dd_hot_holder {
    char store_id[64], boot_id[40], place[208], admin[128];
    int64_t seen_ms;
};

/* Registers this process as the holder of the store. The same place takes over at once (RocksDB's lock
 * vouches that its former holder is gone or will be displaced), another place only when the registered one
 * gave no sign of life for alive_ms. DD_LOCKED: a copy lives at *other. */
enum dd_err dd_hot_boot_register(struct dd_hot_staging *s, const struct dd_hot_boot *b,
                                 struct dd_hot_holder *other) DD_MUST_USE;
/* A sign of life. DD_LOCKED: another process holds the store now: stop. */
enum dd_err dd_hot_boot_beat(struct dd_hot_staging *s, const struct dd_hot_boot *b,
                             struct dd_hot_holder *other) DD_MUST_USE;
/* At a clean stop: the next start of a copy need not wait. Nothing happens if another process holds the
 * store. */
enum dd_err dd_hot_boot_leave(struct dd_hot_staging *s, const struct dd_hot_boot *b) DD_MUST_USE;
/* All registered stores, this one too. */
enum dd_err dd_hot_boot_list(struct dd_hot_staging *s, const struct dd_hot_holder **holders,
                             unsigned *n) DD_MUST_USE;

#endif
