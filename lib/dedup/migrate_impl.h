/* What the files of migration share. Nothing outside lib/dedup includes it. */
#ifndef DD_DEDUP_MIGRATE_IMPL_H
#define DD_DEDUP_MIGRATE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "dedup/index.h"
#include "dedup/internal.h"
#include "dedup/migrate.h"
#include "store/record.h"

#define DD_MIGRATE_QUEUE 16384 /* users waiting; more come again with their next request */
#define DD_MIGRATE_BATCH 64    /* users of one commit */

struct dd_migrate_user {
    uint8_t len, bytes[DD_USER_MAX_BYTES];
};

struct dd_migrate_job;

struct dd_migrate {
    struct dd_migrate_options o;
    struct dd_dedup *d;
    struct dd_legacy *legacy;
    struct dd_legacy_sync *sync; /* the thread's */
    struct dd_migrate_job *jobs; /* the thread's */
    unsigned jobs_n;
    uint64_t jobs_entries;
    struct {
        struct dd_counter *users, *entries, *skipped, *wrong_type, *too_large, *queued, *dropped, *erased;
    } count;
    pthread_t thread;
    bool started;
    pthread_mutex_t erase_lock; /* guards erase_sync */
    struct dd_legacy_sync *erase_sync;
    pthread_mutex_t lock; /* guards what follows; never held over I/O */
    pthread_cond_t wake;
    bool stop;
    bool unsaved;                  /* an order changed the bulk walk's state: the thread writes it down */
    struct dd_migrate_user *queue; /* a ring */
    unsigned head, queued;
    uint64_t *recent; /* hashes of queued users, one place each: a user is queued once */
    uint64_t dropped;
    struct dd_bulk bulk;
    struct dd_migrate_verify verify;
    char last_error[128];
};

/* ---- migrate_mark.c ---- */

struct dd_mark_key {
    size_t len;
    uint8_t bytes[DD_RECORD_KEY_MAX];
};
void dd_mark_key_make(struct dd_mark_key *out, struct dd_slice scene, struct dd_slice user);
/* Anything that is no mark reads as "not migrated". */
struct dd_migrate_mark dd_mark_decode(struct dd_slice value);
void dd_mark_encode(const struct dd_migrate_mark *mark, struct dd_buf *out);
/* Blocking. DD_OK also when there is none. */
enum dd_err dd_mark_get(struct dd_migrate *m, struct dd_slice user, struct dd_migrate_mark *out) DD_MUST_USE;
/* Updates for dd_store_record_update; arg is a struct dd_migrate_mark of what is new. */
enum dd_err dd_mark_note_migrated(void *arg, struct dd_slice current, struct dd_buf *out);
enum dd_err dd_mark_note_erased(void *arg, struct dd_slice current, struct dd_buf *out);

/* Which entries of the old key count, given the mark. false: none. */
bool dd_mark_range(const struct dd_migrate *m, const struct dd_migrate_mark *mark, bool *since,
                   int64_t *since_ms);

/* ---- migrate_read.c: the dual read of one request ---- */

struct dd_dual {
    /* in */
    struct dd_dedup_loop *dl;
    struct dd_slice user;
    struct dd_index *index;
    const bool *dead; /* the request was answered: mark nothing */
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err; /* DD_OK, or the old key could not be asked (whole) */
    /* its own */
    struct dd_mark_key key;
    struct dd_record_read record;
    struct dd_migrate_mark mark;
    struct dd_legacy_read read;
};

/* Marks what the old key knows with DD_REASON_LEGACY. DD_OK: done at once, done() does not run; DD_PENDING.
 */
enum dd_err dd_dual_start(struct dd_dual *q) DD_MUST_USE;
/* Whether requests of this scene ask the old store. */
bool dd_dual_wanted(const struct dd_dedup *d, const struct dd_scene *scene);

/* ---- migrate.c ---- */

/* Queues a user; any thread. */
void dd_migrate_enqueue(struct dd_migrate *m, struct dd_slice user);
void dd_migrate_failed(struct dd_migrate *m, const char *what, enum dd_err err);
bool dd_migrate_stopping(struct dd_migrate *m);

/* ---- migrate_users.c: the thread ---- */

/* What became of the users handed to dd_migrate_take, for the bulk walk's report; may be NULL. */
struct dd_migrate_sum {
    uint64_t users, entries, skipped, wrong_type, too_large, erased, sampled, bytes_before, bytes_after;
    int64_t not_since_ms; /* users with a mark from here on are left out */
};
/* Reads the user's key, and writes when the batch is full. dd_migrate_flush writes what is left. An error
 * other than DD_OK: the batch is dropped, nothing of it is marked; do it again. */
enum dd_err dd_migrate_take(struct dd_migrate *m, struct dd_slice user,
                            struct dd_migrate_sum *sum) DD_MUST_USE;
enum dd_err dd_migrate_flush(struct dd_migrate *m, struct dd_migrate_sum *sum) DD_MUST_USE;
void dd_migrate_drop(struct dd_migrate *m);
enum dd_err dd_migrate_jobs_create(struct dd_migrate *m) DD_MUST_USE;
void dd_migrate_jobs_destroy(struct dd_migrate *m);

/* ---- migrate_bulk.c: the thread ---- */

void dd_bulk_load(struct dd_migrate *m);
/* One page of the walk. */
enum dd_err dd_bulk_step(struct dd_migrate *m, uint64_t *users) DD_MUST_USE;
/* Writes the state down. */
void dd_bulk_save(struct dd_migrate *m);
double dd_bulk_progress(const struct dd_bulk *b);

/* ---- migrate_verify.c: the thread ---- */

void dd_verify_run(struct dd_migrate *m);

/* ---- for erase.c ---- */

/* The user's data must not come back from the old key: it counts only from now on. legacy: the key is deleted
 * too. Before the filter sets are erased. DD_OK also for another scene. */
enum dd_err dd_migrate_erase(struct dd_migrate *m, struct dd_slice scene, struct dd_slice user, bool legacy,
                             unsigned *keys) DD_MUST_USE;
/* The old key is deleted and the sets are erased: the mark has nothing to guard any more. */
enum dd_err dd_migrate_forget(struct dd_migrate *m, struct dd_slice scene, struct dd_slice user) DD_MUST_USE;

#endif
