/* The store: filter sets by (period, scene, user), durable in RocksDB.
 *
 * Writes are merges of operands (lib/filter) through one writer thread: requests are committed in groups, one
 * WriteBatch and at most one fsync a group. Values are replaced (forget, rebuild, erase, quarantine) only on
 * that thread, which reads there.
 * Reads try memory first, on the caller's loop; what would block goes to a pool of threads.
 * A period of a scene is one contiguous range of keys: expiry drops whole files and sweeps the edges.
 * Families: default (filter sets), meta (store id, secret, scenes, quarantined blobs), history.
 *
 * Disk guard: below min_free_bytes of free space every write is DD_DISK_FULL, well before RocksDB's log would
 * meet a full disk (which aborts the process in Debian's build); reads go on.
 *
 * Threads: dd_store_read and dd_store_write may be called from any loop's thread; *_wait block and must not
 * be called on a loop. Callbacks run on the loop named in the request.
 * Ownership: request structs and the bytes they point to belong to the caller and must stay until done has
 * run. */
#ifndef DD_STORE_STORE_H
#define DD_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/period.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "stats/stats.h"
#include "store/change.h"

struct dd_store;

enum dd_store_compression { DD_STORE_RAW, DD_STORE_LZ4, DD_STORE_ZSTD };

struct dd_store_options {
    const char *path;           /* the data directory; made if absent */
    bool sync;                  /* fsync before every acknowledgement, also of batches that do not ask */
    uint64_t block_cache_bytes; /* a quarter of it holds sets as they were read last */
    uint64_t write_buffer_bytes, min_free_bytes;
    int max_open_files;
    enum dd_store_compression compression;
    unsigned pool_threads, pool_queue;
    uint32_t change_cells;
    unsigned change_tables;
    unsigned batch_max;     /* requests in one commit */
    unsigned batch_wait_us; /* how long the writer waits for more before it commits; 0: takes what is there */
};

/* Opens or creates. DD_LOCKED: another process (or this one) has it open. DD_UNSUPPORTED: written by a newer
 * version. DD_INVALID: an option outside its bounds. DD_CORRUPT, DD_IO, DD_DISK_FULL, DD_NO_MEMORY. The
 * reason is logged (store.open_failed). The LOCK is held when this returns, so listeners may bind after it.
 * The store begins as a new incarnation; see dd_store_resume. */
enum dd_err dd_store_open(const struct dd_store_options *o, struct dd_stats *stats,
                          struct dd_store **out) DD_MUST_USE;

/* Adopts the change table saved by the last clean stop if it has this incarnation and number (as another
 * witness, the hot tier, remembers them). true: adopted, cached sets of that incarnation are judged by their
 * numbers again. Once, after dd_store_open and before the first read or write; the file is gone afterwards in
 * any case. */
bool dd_store_resume(struct dd_store *s, uint64_t incarnation, uint64_t number);

/* Finishes queued writes, flushes, saves the change table if clean, closes. No request may be in flight. */
void dd_store_close(struct dd_store *s, bool clean);

/* 16 hex digits, made at creation, kept for ever; and the secret that salts fingerprints. */
const char *dd_store_id(const struct dd_store *s);
const struct dd_secret *dd_store_secret(const struct dd_store *s);
const struct dd_change *dd_store_change(const struct dd_store *s);

/* ---- reading ---- */

struct dd_store_read {
    /* in */
    struct dd_slice scene, user;
    struct dd_period periods[DD_WINDOW_MAX];
    unsigned n;
    struct dd_loop *loop;
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err; /* of the whole read: DD_OK; DD_IO when any set could not be read for another reason than
                        DD_CORRUPT. The sets that are DD_OK are good in either case. */
    uint64_t number; /* the lowest of the sets'; without any, dd_change_number before the read */
    struct dd_store_set {
        enum dd_err err; /* DD_OK, DD_CORRUPT (block checksum), DD_IO */
        /* Empty: nothing stored. Valid until dd_store_read_release. Not yet verified. */
        struct dd_slice blob;
        /* dd_change_number before this set was read: of the read, or lower if it was kept from an earlier
         * one. */
        uint64_t number;
        bool cached; /* kept from an earlier read, and verified then */
        void *pin;   /* the store's */
    } set[DD_WINDOW_MAX];
    /* the store's */
    struct dd_store *store;
    struct dd_job job;
};

/* DD_OK: answered at once from memory, done does not run. DD_PENDING: done runs later on loop. DD_BUSY: pool
 * full. DD_INVALID: scene or user not of 1..255 bytes, or n above DD_WINDOW_MAX. After DD_OK or done the
 * caller calls dd_store_read_release when it no longer needs the blobs. */
enum dd_err dd_store_read(struct dd_store *s, struct dd_store_read *r) DD_MUST_USE;
void dd_store_read_release(struct dd_store_read *r);
/* The same, blocking (wheel, tools, tests). loop and done are ignored. */
enum dd_err dd_store_read_wait(struct dd_store *s, struct dd_store_read *r) DD_MUST_USE;

/* ---- writing ---- */

enum dd_store_op_kind {
    DD_STORE_MERGE,  /* operand is merged into the set */
    DD_STORE_UPDATE, /* update() runs on the writer thread with the current set and gives the new one */
    DD_STORE_ERASE,  /* the set is deleted, and operands read before this commit are stripped (see
                        read_number); a quarantined blob of the set and its records go with it */
    DD_STORE_RECORD, /* operand becomes the record `suffix` of the set's history; empty: it is deleted. The
                        set stays as it is. Stripped like a merge. */
    DD_STORE_PUT,    /* operand becomes the value of key `suffix` in `family`; empty: it is deleted. scene,
                        user, period and read_number mean nothing */
};

/* Where DD_STORE_PUT and dd_store_scan may go: small values of other modules, under names that those choose
 * (proto/storage.md lists all of them). */
enum dd_store_family { DD_STORE_META, DD_STORE_HISTORY };

#define DD_STORE_NAME_MAX 512

struct dd_store_op {
    enum dd_store_op_kind kind;
    struct dd_slice scene, user;
    struct dd_period period;
    struct dd_slice operand; /* DD_STORE_MERGE, _RECORD, _PUT */
    struct dd_slice suffix;  /* _RECORD, _PUT: 1..DD_STORE_NAME_MAX bytes */
    enum dd_store_family family;
    /* DD_STORE_UPDATE: appends the new value to out (nothing: the key is deleted). A result other than DD_OK
     * leaves the value as it is and becomes `result`. Must not call the store. */
    enum dd_err (*update)(void *arg, struct dd_slice current, struct dd_buf *out);
    void *update_arg;
    /* DD_STORE_UPDATE: unless NULL, called with every record of the set in the order of suffixes, before
     * update() and seeing what was committed before it. Must not call the store. */
    void (*record)(void *update_arg, struct dd_slice suffix, struct dd_slice value);
    /* DD_STORE_UPDATE: what was read elsewhere before this commit is out of date, whatever update() returns:
     * a merge or update of this set with a read_number below the commit's is DD_BUSY ("read again"). So a
     * flush in flight cannot bring back what was forgotten, and loses nothing else that it carries. */
    bool outdates;
    /* A merge or update with something that was read elsewhere (pending, an old key, history):
     * dd_change_number before that read. If this set was erased by a later commit, the op is stripped.
     * UINT64_MAX: never stripped. */
    uint64_t read_number;
    /* Out, once the batch is DD_OK. DD_OK; DD_INVALID: scene or user not of 1..255 bytes; DD_BUSY: nothing
     * was done, read again: the set was changed by an op that outdates what was read, or so many sets were
     * erased since read_number that it is no longer known whether this one was. Of an update also what
     * update() returned; DD_CORRUPT or DD_IO when the set could not be read. */
    enum dd_err result;
    bool stripped;    /* out: the set was erased after read_number; nothing was done and result is DD_OK */
    uint32_t records; /* out: records that an erase deleted, or that an update was given */
};

struct dd_commit; /* the store's */

struct dd_store_batch {
    struct dd_store_op *ops;
    unsigned n;
    bool sync;            /* fsync before done, whatever the options say */
    struct dd_loop *loop; /* where done runs; NULL: on the writer thread, which must not be kept waiting */
    void (*done)(void *arg);
    void *arg;
    /* Out. DD_OK, DD_DISK_FULL, DD_IO, DD_SHUTDOWN. Not DD_OK: nothing of the batch is promised. */
    enum dd_err err;
    uint64_t number; /* out: the number of the commit */
    /* the store's */
    struct dd_store_batch *next;
    struct dd_task task;
    enum dd_err (*call)(struct dd_commit *c, struct dd_store_batch *b);
    void *arg_call;
};

/* DD_PENDING: done runs. DD_BUSY: too many batches wait. DD_DISK_FULL: guard on. DD_SHUTDOWN. When done runs
 * with DD_OK the commit is in the log (and synced if asked), its number published and the cells raised. Ops
 * on one set take effect in the order of ops and of dd_store_write. A failed batch may have taken effect in
 * part: its cells are raised too, and repeating it is safe, since merging twice changes nothing (except in
 * counting sets). */
enum dd_err dd_store_write(struct dd_store *s, struct dd_store_batch *b) DD_MUST_USE;
/* The same, blocking: returns b->err. loop, done and arg are overwritten. */
enum dd_err dd_store_write_wait(struct dd_store *s, struct dd_store_batch *b) DD_MUST_USE;

/* A blob that failed verification: on the writer thread it is read again, and if it is still bad its bytes go
 * to the meta family (quarantine/<key>) and an empty set flagged damaged takes its place, so that the user's
 * answers say partial and new exposures are kept. Fire and forget: once per key, however often it is
 * called. */
void dd_store_quarantine(struct dd_store *s, struct dd_slice scene, struct dd_slice user,
                         struct dd_period period);

/* ---- scenes, expiry ---- */

/* Records the period kind and window of a scene. DD_INVALID: the store already has data of this scene under
 * another kind (which cannot be changed: *existing says what it is). */
enum dd_err dd_store_register_scene(struct dd_store *s, struct dd_slice scene, enum dd_period_kind kind,
                                    unsigned window, enum dd_period_kind *existing) DD_MUST_USE;

/* Every scene that was ever registered, configured or not. */
typedef void (*dd_store_scene_visit)(void *arg, struct dd_slice scene, enum dd_period_kind kind,
                                     unsigned window);
void dd_store_each_scene(struct dd_store *s, dd_store_scene_visit visit, void *arg);

/* Drops every period of the scene with an ordinal below first_kept: whole files, then the edges, then a
 * compaction of what is left. Keys of the history family that begin with the key of an expired set go too.
 * Blocks (call from a maintenance thread); the range delete itself passes through the writer thread.
 * DD_DISK_FULL, DD_IO, DD_SHUTDOWN: call again. */
enum dd_err dd_store_expire(struct dd_store *s, struct dd_slice scene, enum dd_period_kind kind,
                            int32_t first_kept) DD_MUST_USE;
/* Ends the compaction that dd_store_expire is in, and those to come: the store is about to be closed. What is
 * not compacted is hidden by the range delete, and goes with later compactions. Any thread. */
void dd_store_end_expiry(struct dd_store *s);

/* Every period of which the scene holds any set, oldest first; a few seeks. Blocks. Returns what visit
 * returns, which ends the walk unless it is DD_OK, or DD_CORRUPT, DD_IO. */
typedef enum dd_err (*dd_store_period_visit)(void *arg, struct dd_period period);
enum dd_err dd_store_each_period(struct dd_store *s, struct dd_slice scene, enum dd_period_kind kind,
                                 dd_store_period_visit visit, void *arg) DD_MUST_USE;

/* Visits every filter set in key order, from a snapshot, outside the block cache; return false from visit to
 * stop. Blocks. */
typedef bool (*dd_store_visit)(void *arg, struct dd_slice scene, struct dd_slice user,
                               struct dd_period period, struct dd_slice blob);
enum dd_err dd_store_each(struct dd_store *s, dd_store_visit visit, void *arg) DD_MUST_USE;

/* ---- operations ---- */

/* A checkpoint (hard links) in the new directory `path`, while serving. Blocks. DD_EXISTS; DD_INVALID: among
 * the store's own files; DD_IO (why is logged), DD_DISK_FULL, DD_NO_MEMORY. */
enum dd_err dd_store_checkpoint(struct dd_store *s, const char *path) DD_MUST_USE;

/* Carries out every merge and removes from the disk what was deleted. Blocks while the whole store is read
 * and written, beside its service. */
void dd_store_compact(struct dd_store *s);

struct dd_store_status {
    /* false: disk guard on, or the last write failed. After a failed write RocksDB may refuse all others
     * until the process is restarted; the writer tries once a second, and turns writable again when that
     * succeeds. */
    bool writable;
    bool guard;             /* the disk guard is on */
    enum dd_err last_error; /* of the last commit; DD_OK when it went well */
    uint64_t free_bytes, disk_bytes, keys_estimate;
    uint64_t commits, number, incarnation;
    unsigned write_queue, read_queue;
    uint64_t corrupt; /* blobs quarantined or left out since the start */
};

void dd_store_get_status(struct dd_store *s, struct dd_store_status *out);

#endif
