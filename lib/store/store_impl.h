/* The inside of a store: private to lib/store (and to its tests, which damage what is stored through it).
 *
 * Locks: writer.lock is taken for the queue only and never while RocksDB is called; repairing_lock likewise.
 * Neither is taken inside the other. */
#ifndef DD_STORE_STORE_IMPL_H
#define DD_STORE_STORE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/erase_marks.h"
#include "store/keys.h"
#include "store/rocks.h"
#include "store/set_cache.h"
#include "store/store.h"
#include "store/writer.h"

/* The directory of RocksDB inside the data directory. */
#define DD_STORE_DB_DIR "db"

/* Quarantine requests in flight. One more is dropped: whoever reads that blob next asks again. */
#define DD_REPAIRING_MAX 64

struct dd_store {
    struct dd_store_options options;
    char *path, *db_path, *change_path;
    struct dd_rocks rocks;
    struct dd_set_cache *cache;
    struct dd_merge_op *merge;
    struct dd_pool *pool;
    struct dd_writer writer;
    struct dd_erase_marks *marks; /* writer thread */

    struct dd_change *change;
    /* What the last clean stop saved, until dd_store_resume adopts it or the first commit makes it worthless.
     */
    struct dd_change *saved;
    char id[17];
    struct dd_secret secret;

    pthread_mutex_t repairing_lock;
    uint64_t repairing[DD_REPAIRING_MAX]; /* hashes of keys; 0: free */

    _Atomic bool guard;             /* the disk guard refuses writes */
    _Atomic uint64_t free_bytes;    /* as last seen by the guard */
    _Atomic enum dd_err last_error; /* of the last commit */
    _Atomic uint64_t corrupt;       /* blobs quarantined or kept aside */
    _Atomic bool has_records;       /* the history family may hold something */

    struct dd_counter *commits, *requests, *operations, *reads_kept, *reads_memory, *reads_pool, *reads_busy,
        *corrupt_total, *stripped, *write_errors;
    struct dd_histogram *commit_time, *pool_time;
    struct dd_gauge *guard_gauge, *free_gauge;
};

/* ---- meta.c ---- */

/* Reads or, in a new directory, makes the id and the secret. DD_UNSUPPORTED: written by a newer version.
 * DD_CORRUPT: sets are there but not the secret that they were made with. */
enum dd_err dd_meta_open(struct dd_store *s) DD_MUST_USE;

/* ---- guard.c ---- */

/* Looks at the free space and turns the guard on or off; logs a change. Writer thread, and once before it
 * starts. */
void dd_guard_check(struct dd_store *s);

/* ---- commit.c: writer thread ---- */

/* What one group writes. */
struct dd_commit {
    struct dd_store *store;
    rocksdb_writebatch_t *batch;
    uint64_t number;
    bool sync, wrote; /* wrote: something was given to RocksDB */
    enum dd_err err;  /* the first failure; nothing more is done after it */
    struct dd_buf current, value;
};

/* Commits the batches of a group, in order, and completes each of them. */
void dd_commit_group(struct dd_store *s, struct dd_store_batch *group);
/* Remembers the result of a write in status and metrics; logs at most one failure a second. Returns err. */
enum dd_err dd_commit_note(struct dd_store *s, char *text);

/* ---- repair.c: writer thread ---- */

/* The key in the meta family that keeps the bytes of an unreadable set. */
struct dd_repair_key {
    size_t len;
    uint8_t bytes[16 + DD_KEY_MAX];
};
void dd_repair_meta_key(struct dd_repair_key *out, struct dd_slice key);

/* Stores what the merge operator kept aside. */
void dd_repair_aside(struct dd_store *s);

/* ---- history.c: writer thread ---- */

/* Adds a put, or a delete, of key head + op->suffix to the batch. */
void dd_history_put(struct dd_commit *c, enum dd_store_family family, struct dd_slice head,
                    const struct dd_store_op *op);
/* Adds a delete for each record of the set to the batch; what the group wrote before must be written out. */
enum dd_err dd_history_erase(struct dd_commit *c, struct dd_slice key, uint32_t *n) DD_MUST_USE;
/* Gives the records of the set to op->record; likewise. */
enum dd_err dd_history_feed(struct dd_commit *c, struct dd_store_op *op, struct dd_slice key) DD_MUST_USE;
/* At opening: whether the history family holds anything. */
bool dd_history_any(struct dd_store *s);

/* ---- scan.c ---- */

/* Calls visit for every period below first_kept of which the family holds keys of the scene; returns DD_OK or
 * the error of the scan or of visit, which ends it. Blocks. */
typedef enum dd_err (*dd_scan_period)(void *arg, struct dd_period period);
enum dd_err dd_scan_periods(struct dd_store *s, enum dd_family family, struct dd_slice scene,
                            enum dd_period_kind kind, int32_t first_kept, dd_scan_period visit,
                            void *arg) DD_MUST_USE;

#endif
