/* The whole store, for operators: a checkpoint while serving, and reading every filter set to see that it is
 * sound. */
#ifndef DD_DEDUP_BACKUP_H
#define DD_DEDUP_BACKUP_H

#include "dedup/admin.h"
#include "store/verify.h"

/* ---- checkpoint ---- */

struct dd_checkpoint_call {
    /* in */
    const char *path; /* of a directory that does not exist; its parent does */
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err;       /* DD_OK; as dd_store_checkpoint, DD_BUSY: there is none */
    enum dd_err flush_err; /* DD_OK: everything acknowledged before the call is in it, but for what is
                              pending. Else (Redis away) the checkpoint holds what the store holds */
    bool pending_known;
    /* What was staged and not in the store just before the checkpoint: it stands in Redis only. Never too
     * low for what was acknowledged before the call. */
    uint64_t pending_users, pending_items;
    /* dedup's */
    struct dd_admin *admin;
    struct dd_dedup_loop *dl;
    unsigned flushes;
    struct dd_wheel_flush flush;
    struct dd_job job;
};

/* Flushes all slots, the open one too, then makes the checkpoint. The path's bytes must stay until done. */
void dd_checkpoint(struct dd_admin *a, struct dd_dedup_loop *dl, struct dd_checkpoint_call *c);

/* ---- verification ---- */

struct dd_verify_status {
    bool ever, running, quarantine;
    int64_t started_ms, ended_ms; /* wall time; 0: not yet */
    uint64_t sets_estimate;
    enum dd_err err;                /* of one that has ended: DD_OK, DD_SHUTDOWN, DD_IO */
    struct dd_verify_report report; /* so far */
};

/* Starts reading every set on the store's thread. DD_OK; DD_EXISTS: one is running; DD_BUSY. */
enum dd_err dd_verify_start(struct dd_admin *a, struct dd_dedup_loop *dl, bool quarantine) DD_MUST_USE;
/* Any thread. */
void dd_verify_get(struct dd_admin *a, struct dd_verify_status *out);

#endif
