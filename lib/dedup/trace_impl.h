/* What trace.c (recording), trace_table.c (who is traced) and trace_entries.c (what is stored) share. */
#ifndef DD_DEDUP_TRACE_IMPL_H
#define DD_DEDUP_TRACE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "dedup/trace.h"

#define DD_TRACE_CELLS 65536

struct dd_traced {
    uint64_t id; /* random: notes of a trace that was stopped are not taken for those of its successor */
    uint8_t user_len;
    uint8_t user[DD_USER_MAX_BYTES];
    struct dd_trace_state state; /* active is not kept here */
};

struct dd_trace_note {
    struct dd_trace_note *next;
    uint64_t id;
    int64_t at_ms, ts_ms;
    uint8_t what, source;
    char scene[DD_SCENE_NAME_MAX + 1];
    unsigned n;
    struct dd_buf items; /* u16le length, bytes; n times */
};

/* Lock order: writing, then lock. The table changes under both, so either is enough to read it. */
struct dd_trace {
    struct dd_store *store;
    struct dd_clock *clock;
    /* A byte per hash of a user: how many traced users fall there, up to 255. What requests look at. */
    _Atomic uint8_t cell[DD_TRACE_CELLS];
    pthread_mutex_t writing; /* held while entries are written or removed */
    pthread_mutex_t lock;
    struct dd_traced *table; /* DD_TRACE_USERS_MAX */
    unsigned n;
    struct dd_trace_note *head, **tail;
    size_t queued_bytes;
    uint64_t noted, handled; /* notes, ever */
    uint32_t seq;
    bool stop;
    pthread_t thread;
    bool running;
    pthread_cond_t wake, idle;
    int64_t swept_ms; /* the thread's */
    struct dd_counter *recorded, *dropped;
    struct dd_gauge *users;
};

/* ---- trace_table.c ---- */

unsigned dd_trace_cell_of(const struct dd_trace *t, struct dd_slice user);
/* With either lock. NULL: not traced. */
struct dd_traced *dd_trace_find(struct dd_trace *t, struct dd_slice user);
struct dd_slice dd_traced_user(const struct dd_traced *e);
/* Reads the table from the store; before the thread runs. */
enum dd_err dd_trace_load(struct dd_trace *t) DD_MUST_USE;
/* With `writing`: takes the row out of the table and out of the store. */
enum dd_err dd_trace_forget(struct dd_trace *t, struct dd_slice user) DD_MUST_USE;

/* ---- trace_entries.c: with `writing` ---- */

/* Writes the items of one note and trims to max_entries. Returns how many were written. */
unsigned dd_trace_write(struct dd_trace *t, const struct dd_trace_note *n);
/* Removes entries: those older than older_ms (INT64_MAX: of any age), of one scene or (empty) of all, at most
 * `most`, the oldest first. */
enum dd_err dd_trace_remove(struct dd_trace *t, struct dd_slice user, struct dd_slice scene, int64_t older_ms,
                            uint64_t most, uint64_t *removed) DD_MUST_USE;
enum dd_err dd_trace_count(struct dd_trace *t, struct dd_slice user, uint64_t *n) DD_MUST_USE;

#endif
