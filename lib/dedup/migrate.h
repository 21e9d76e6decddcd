/* Moving from an exact store (hot/legacy.h) without stopping.
 *
 *   dual   /filter also asks the user's old key and drops what either knows. Users seen in traffic are queued
 *          and migrated in the background (lazy); a walk over all keys does the rest (bulk).
 *   done   the old keys are not read any more.
 *
 * Migrating a user, on this module's thread, in batches of users:
 *
 *     number = change table's number     (what is read before an erase is stripped by the writer)
 *     mark and time are read, then the old key
 *     entries -> operands by period; older than the window: skipped and counted
 *     store commit, synced, cells raised
 *     mark (the time from before the read)
 *     old key: kept, or given a life, or what was read is removed
 *
 * A crash between any two steps costs another migration, which changes nothing: merging twice is merging
 * once. After the mark only entries newer than mark - margin are read from the old key (of lists and sets,
 * whose entries have no time, all).
 *
 * Marks stand in the store (record `migrated/<scene>/<user>`, proto/storage.md) and are read for each
 * request, from memory as a rule. A mark of an erased user says from when on the old key counts again, so
 * that what was erased stays erased. An erase of one period only leaves the old key as it is.
 *
 * Threads: create and destroy from the main thread, before the loops and after them; everything else any. */
#ifndef DD_DEDUP_MIGRATE_H
#define DD_DEDUP_MIGRATE_H

#include "dedup/dedup.h"
#include "hot/legacy.h"

struct dd_migrate;

enum dd_migrate_after { DD_AFTER_KEEP, DD_AFTER_EXPIRE, DD_AFTER_DELETE };

struct dd_migrate_options {
    const struct dd_scene *scene;
    struct dd_legacy_options legacy;
    bool dual; /* false: done, only erased users are marked */
    bool lazy;
    unsigned rate_users_s; /* 0: no limit */
    int64_t margin_ms;
    enum dd_migrate_after after;
    int64_t expire_s;
};

/* Starts the thread, and a bulk walk that a restart interrupted goes on. From now on d's loops read the old
 * keys. */
enum dd_err dd_migrate_create(const struct dd_migrate_options *o, struct dd_dedup *d, struct dd_stats *stats,
                              struct dd_migrate **out) DD_MUST_USE;
void dd_migrate_destroy(struct dd_migrate *m);

/* ---- for operators ---- */

enum dd_bulk_state { DD_BULK_NEVER, DD_BULK_RUNNING, DD_BULK_PAUSED, DD_BULK_DONE };

struct dd_bulk {
    enum dd_bulk_state state;
    unsigned pass, passes; /* with active_days the active users come first, then all */
    unsigned active_days, rate_users_s;
    int64_t started_ms, ended_ms;
    uint64_t cursor; /* of the pass */
    uint64_t keys, users, entries, skipped, wrong_type, too_large, erased;
    uint64_t sampled, bytes_before, bytes_after; /* of every 16th user: MEMORY USAGE, then filter sets */
    char run_id[DD_LEGACY_RUN_ID];
};

struct dd_migrate_verify {
    bool running;
    unsigned sample;
    enum dd_err err;
    int64_t started_ms, ended_ms;
    uint64_t users, unmigrated, entries, missing, never, false_positives;
    uint64_t newer; /* elements of lists and sets that are in no filter set: without a time they count as
                       added since, and the old key still answers for them; 0 after another migration */
};

struct dd_migrate_status {
    bool dual, lazy;
    double fpr;                                              /* what the scene promises, over its window */
    uint64_t queued, dropped;                                /* lazy: waiting; not taken, queue full */
    uint64_t users, entries, skipped, wrong_type, too_large; /* since the start, lazy and bulk */
    double progress;                                         /* of the bulk walk, 0..1 */
    struct dd_bulk bulk;
    struct dd_migrate_verify verify;
    char last_error[128]; /* of the walk and the lazy migration, else of reads for /filter; empty: the last
                             tries went well */
};

void dd_migrate_get_status(struct dd_migrate *m, struct dd_migrate_status *out);

/* Begins a walk, or goes on with one that was paused. rate_users_s 0: no limit. DD_OK; DD_EXISTS: it runs;
 * DD_UNSUPPORTED: the mode is done. */
enum dd_err dd_migrate_start(struct dd_migrate *m, unsigned active_days, unsigned rate_users_s) DD_MUST_USE;
void dd_migrate_pause(struct dd_migrate *m);
/* DD_OK, DD_EXISTS: one is under way. */
enum dd_err dd_migrate_verify(struct dd_migrate *m, unsigned sample) DD_MUST_USE;

struct dd_migrate_mark {
    bool migrated, erased;
    int64_t mark_ms, erased_ms; /* when */
    uint64_t entries, skipped;  /* that the migrations took, and left out as older than the window */
};

/* NULL: nothing is migrated. */
struct dd_migrate *dd_dedup_migrate(struct dd_dedup *d);

#endif
