/* The exact store that a user's data comes from: one key a user in a Redis, which may be the hot tier's own.
 *
 *   zset  member = item, score = time it was seen, in seconds or milliseconds since 1970
 *   list  elements = items, no times
 *   set   members = items, no times
 *
 * Two ways to read it:
 *   dd_legacy_read     on a loop, for one request: which of the candidates does the old key know? In the hot
 *                      tier's own pipeline when it is the same Redis, else on a second connection.
 *   dd_legacy_load     blocking, whole: what the migrator turns into filter sets.
 *
 * Times: a score below 1e11 (the year 5138 in seconds, 1973 in milliseconds) is taken for seconds unless the
 * unit is stated. Fractions are cut off, infinite scores are the end and the beginning of time.
 *
 * A key of another type holds nothing that could be read: it is counted, and like a key that is not there.
 *
 * Threads: struct dd_legacy is shared; a struct dd_legacy_loop belongs to its loop's thread, a struct
 * dd_legacy_sync to one thread at a time.
 * Ownership: dd_legacy copies its options and borrows hot, which must outlive it. */
#ifndef DD_HOT_LEGACY_H
#define DD_HOT_LEGACY_H

#include "hot/hot.h"

struct dd_legacy;
struct dd_legacy_loop;
struct dd_legacy_sync;

enum dd_legacy_type { DD_LEGACY_ZSET, DD_LEGACY_LIST, DD_LEGACY_SET };
enum dd_legacy_unit { DD_LEGACY_AUTO, DD_LEGACY_S, DD_LEGACY_MS };

struct dd_legacy_options {
    const struct dd_hot_options
        *server;     /* NULL: the hot tier's; else its address, deadlines and caps count */
    const char *key; /* with {user} once */
    enum dd_legacy_type type;
    enum dd_legacy_unit unit;
};

enum dd_err dd_legacy_create(const struct dd_legacy_options *o, struct dd_hot *hot, struct dd_stats *stats,
                             struct dd_legacy **out) DD_MUST_USE;
void dd_legacy_destroy(struct dd_legacy *l);

/* Whether entries carry a time. */
bool dd_legacy_is_timed(const struct dd_legacy *l);

/* Whether requests can ask it, over all loops; any thread. Through the hot tier's connections its figures are
 * theirs. */
struct dd_legacy_status {
    bool asked; /* requests read old keys: the rest counts */
    bool up;    /* every loop is connected, and the last read was not refused */
    unsigned connections, connections_up;
    int64_t down_since_ms; /* 0: all are up */
    char last_error[128];  /* while not up */
};
void dd_legacy_get_status(struct dd_legacy *l, struct dd_legacy_status *out);

/* ---- for one request ---- */

enum dd_err dd_legacy_loop_create(struct dd_legacy *l, struct dd_hot_loop *hot, struct dd_loop *loop,
                                  struct dd_legacy_loop **out) DD_MUST_USE;
void dd_legacy_loop_destroy(struct dd_legacy_loop *ll); /* before its dd_hot_loop; reads in flight fail */

/* Elements of a list that a read looks at, from each of its ends. */
#define DD_LEGACY_LIST_MAX 10000

struct dd_legacy_read {
    /* in */
    struct dd_slice user;
    bool since; /* zset: only entries newer than since_ms. list: the user is migrated, what was added
                   stands at the ends */
    int64_t since_ms;
    unsigned n;                                   /* candidates */
    struct dd_slice (*id)(void *arg, unsigned i); /* each is asked for before dd_legacy_read returns */
    void (*known)(void *arg, unsigned i);         /* the key has candidate i */
    void (*found)(void *arg, struct dd_slice id); /* the key has this item */
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err;  /* DD_OK; DD_UNAVAILABLE; DD_LIMIT: not everything could be looked at */
    unsigned entries; /* since, zset: how many there were */
    /* legacy's */
    struct dd_legacy_loop *ll;
    unsigned waiting;
};

/* DD_PENDING: known and found are called, then done, on the loop. Otherwise nothing is called:
 * DD_UNAVAILABLE, DD_BUSY, DD_NO_MEMORY. */
enum dd_err dd_legacy_read(struct dd_legacy_loop *ll, struct dd_legacy_read *r) DD_MUST_USE;

/* ---- blocking: migrator, tools ---- */

enum dd_err dd_legacy_sync_open(struct dd_legacy *l, struct dd_legacy_sync **out) DD_MUST_USE;
void dd_legacy_sync_close(struct dd_legacy_sync *s);
/* Why the last call failed. */
const char *dd_legacy_sync_error(const struct dd_legacy_sync *s);

/* The most entries of one key; more are DD_TOO_LARGE. */
#define DD_LEGACY_ENTRIES_MAX 2000000

struct dd_legacy_entries {
    struct dd_buf ids, entry; /* zeroed to begin; dd_legacy_entries_free */
    unsigned n;
};
struct dd_legacy_entry {
    struct dd_slice id; /* valid until the entries are added to or freed */
    double score;       /* zset */
    int64_t at_ms;      /* zset: the time; INT64_MIN and INT64_MAX for infinite ones */
};
struct dd_legacy_entry dd_legacy_entry_at(const struct dd_legacy_entries *e, unsigned i);
void dd_legacy_entries_reset(struct dd_legacy_entries *e);
void dd_legacy_entries_free(struct dd_legacy_entries *e);

/* Reads the entries of a user's key; since: of a zset only those newer than since_ms. DD_OK (also when there
 * is no such key), DD_CORRUPT: a key of another type, DD_TOO_LARGE, DD_UNAVAILABLE, DD_IO, DD_NO_MEMORY. */
enum dd_err dd_legacy_load(struct dd_legacy_sync *s, struct dd_slice user, bool since, int64_t since_ms,
                           struct dd_legacy_entries *out) DD_MUST_USE;
/* Removes what was read and nothing else: a member whose score has changed stays, and so does what was added.
 * A list that was changed in its middle keeps what cannot be told apart. from_ms: older entries of a zset
 * stay too (INT64_MIN: none do). */
enum dd_err dd_legacy_remove(struct dd_legacy_sync *s, struct dd_slice user,
                             const struct dd_legacy_entries *e, int64_t from_ms) DD_MUST_USE;
enum dd_err dd_legacy_expire(struct dd_legacy_sync *s, struct dd_slice user, int64_t seconds) DD_MUST_USE;
/* Deletes the key. */
enum dd_err dd_legacy_delete(struct dd_legacy_sync *s, struct dd_slice user, bool *existed) DD_MUST_USE;

/* One step of a walk over all keys: *cursor 0 begins, 0 afterwards ends it. Users may come twice. */
typedef void (*dd_legacy_visit)(void *arg, struct dd_slice user);
enum dd_err dd_legacy_scan(struct dd_legacy_sync *s, uint64_t *cursor, dd_legacy_visit visit,
                           void *arg) DD_MUST_USE;
/* When the user was last active: the newest score of a zset, else the last use of the key. INT64_MAX: not
 * known. */
enum dd_err dd_legacy_activity(struct dd_legacy_sync *s, struct dd_slice user, int64_t now_ms,
                               int64_t *at_ms) DD_MUST_USE;
/* Bytes of the key by MEMORY USAGE; 0: no key. */
enum dd_err dd_legacy_memory(struct dd_legacy_sync *s, struct dd_slice user, uint64_t *bytes) DD_MUST_USE;

#define DD_LEGACY_RUN_ID 48
/* Which run of which server this is (a cursor is good for one run), and how many keys it has. */
enum dd_err dd_legacy_server(struct dd_legacy_sync *s, char run_id[DD_LEGACY_RUN_ID],
                             uint64_t *keys) DD_MUST_USE;

#endif
