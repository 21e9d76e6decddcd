/* Records: small values of other modules in the meta family, under keys that those choose (proto/storage.md
 * lists all of them). A record is written on the writer thread, so that an update sees every one before it.
 *
 * Threads: dd_store_record_read on a loop's thread; get and update block and must not be called on a loop.
 * Ownership: request structs and keys belong to the caller until done has run. */
#ifndef DD_STORE_RECORD_H
#define DD_STORE_RECORD_H

#include "store/store.h"

/* The longest key. */
#define DD_RECORD_KEY_MAX 512

struct dd_record_read {
    /* in */
    struct dd_slice key;
    struct dd_loop *loop;
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err;     /* DD_OK, DD_NOT_FOUND, DD_CORRUPT, DD_IO, DD_NO_MEMORY */
    struct dd_buf value; /* the caller's to free (zeroed to begin) */
    /* the store's */
    struct dd_store *store;
    struct dd_job job;
};

/* DD_OK: answered at once from memory, done does not run; see r->err. DD_PENDING: done runs later on loop.
 * DD_BUSY: too many reads wait. */
enum dd_err dd_store_record_read(struct dd_store *s, struct dd_record_read *r) DD_MUST_USE;

/* The same, blocking; appended to out. DD_OK, DD_NOT_FOUND, DD_CORRUPT, DD_IO, DD_NO_MEMORY. */
enum dd_err dd_store_record_get(struct dd_store *s, struct dd_slice key, struct dd_buf *out) DD_MUST_USE;

struct dd_record_update {
    struct dd_slice key;
    /* On the writer thread: appends the new value to out (nothing: the record is deleted), given the current
     * one (empty: there is none). Must not call the store. */
    enum dd_err (*update)(void *arg, struct dd_slice current, struct dd_buf *out);
    void *arg;
};

/* Carries out n updates in one commit, fsynced if asked, and waits. DD_OK; what an update returned: it and
 * those after it changed nothing; DD_DISK_FULL, DD_IO, DD_NO_MEMORY, DD_SHUTDOWN. */
enum dd_err dd_store_record_update(struct dd_store *s, const struct dd_record_update *u, unsigned n,
                                   bool sync) DD_MUST_USE;

#endif
