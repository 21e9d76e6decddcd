/* The time wheel: exposures staged in Redis are folded into the store, one batch per active user and slot.
 *
 * Time is cut into slots (an hour by default). A request stages into the slot that is open; one node-wide
 * mark says up to where slots are sealed, and it never moves back. The wheel's thread raises the mark when a
 * slot has ended plus a grace, then empties every sealed slot that still holds users, oldest first, so that a
 * failed hour is made good at the next tick. For a page of users:
 *
 *     number = change table's number          (operands read before an erase can be stripped)
 *     read pending                            dd_hot_staging_read
 *     store commit, synced, cells raised      dd_store_write_wait
 *     remove exactly what was read            dd_hot_staging_remove
 *     remove their entries from the slot      dd_hot_staging_unlist
 *
 * and at the end the slot's name, if nothing is left in it. A crash at any point leaves a sealed slot to be
 * emptied again; repeating a batch changes nothing.
 *
 * Two orders carry the promise of no repeat:
 *   - an exposure is acknowledged only if its slot is still open after Redis acknowledged all three additions
 *     (dd_wheel_is_open): then the wheel, which raises the mark before it walks, sees the entry;
 *   - removal comes after the store's commit and the raised cell, so that a reader who finds pending already
 * empty also finds the cell raised and reads the store.
 *
 * Threads: create, destroy and reload from the main thread; dd_wheel_get_slots and the two functions marked
 * "any" from any. */
#ifndef DD_DEDUP_WHEEL_H
#define DD_DEDUP_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "dedup/scene.h"
#include "hot/staging.h"
#include "store/store.h"

struct dd_wheel;

struct dd_wheel_options {
    bool stage;          /* ingest.mode is staged; false: only what is still in Redis is emptied */
    bool allow_volatile; /* stage also where Redis may lose it, and say so */
    unsigned slot_s, grace_s;
    unsigned batch_users;  /* 1..10000 */
    unsigned rate_users_s; /* 0: no limit */
    bool paused;
    int64_t tick_ms;
    unsigned lag_warn_s;
    bool abandon_staged;  /* what an earlier run staged in a Redis that is not configured is given up */
    bool refuse_evicting; /* ingest.mode is staged by name: an evicting Redis at start is DD_INVALID */
    const struct dd_hot_boot *boot; /* the entry in the register that the wheel keeps alive; NULL: none */
    void (*displaced)(void *arg);   /* once, on the wheel's thread: another process holds the store now */
    void *displaced_arg;
};

/* Starts the thread. Borrows everything. With an embedded hot tier nothing is ever staged and the thread does
 * nothing. */
enum dd_err dd_wheel_create(const struct dd_wheel_options *o, struct dd_store *store, struct dd_hot *hot,
                            const struct dd_scenes *scenes, struct dd_clock *clock, struct dd_stats *stats,
                            struct dd_wheel **out) DD_MUST_USE;
/* Ends the thread after the batch under way; whoever waits for a flush is answered DD_SHUTDOWN. Returns at
 * once; from the main thread, before the loops end, so that a long flush does not hold up a stop. */
void dd_wheel_stop(struct dd_wheel *w);
/* Waits for the batch under way. What is left stays in Redis for the next start. */
void dd_wheel_destroy(struct dd_wheel *w);

/* Takes over paused and rate_users_s. */
void dd_wheel_reload(struct dd_wheel *w, bool paused, unsigned rate_users_s);

/* ---- for requests, any thread ---- */

enum dd_wheel_staging { DD_STAGING_OFF, DD_STAGING_FIRM, DD_STAGING_VOLATILE };

/* Whether exposures may be staged now, and what staging promises. */
enum dd_wheel_staging dd_wheel_staging(const struct dd_wheel *w);
/* The slot to stage into, and whether it is still open (after the acknowledgement). */
struct dd_hot_slot dd_wheel_open_slot(struct dd_wheel *w);
bool dd_wheel_is_open(const struct dd_wheel *w, struct dd_hot_slot slot);

/* Start of the oldest slot that may hold anything, seconds since 1970. INT64_MIN: not known yet (everything
 * may). INT64_MAX: nothing is staged, and nothing will be. */
int64_t dd_wheel_oldest_s(const struct dd_wheel *w);

/* Embedded, and an earlier run left exposures in a Redis: every answer is partial (staged.h). */
bool dd_wheel_is_blind(const struct dd_wheel *w);

/* ---- for operators, any thread ---- */

struct dd_wheel_flush {
    bool all; /* the open slot too: it is sealed first */
    struct dd_loop *loop;
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err; /* DD_OK: every slot that was sealed when it began is empty; else why not */
    uint64_t slots, users, items;
    /* the wheel's */
    struct dd_wheel_flush *next;
    struct dd_task task;
};

/* DD_PENDING: done runs on loop. DD_UNSUPPORTED: embedded. DD_SHUTDOWN. Works while paused. */
enum dd_err dd_wheel_flush(struct dd_wheel *w, struct dd_wheel_flush *f) DD_MUST_USE;

enum dd_wheel_slot_state { DD_SLOT_OPEN, DD_SLOT_SEALED, DD_SLOT_FLUSHING, DD_SLOT_RETRYING };
#define DD_WHEEL_SLOTS_SHOWN 256

struct dd_wheel_slot_info {
    struct dd_hot_slot slot;
    enum dd_wheel_slot_state state;
    uint64_t users;      /* entries when last counted */
    char last_error[96]; /* empty: none */
};

struct dd_wheel_status {
    bool embedded, staging_wanted, paused;
    enum dd_wheel_staging staging;
    bool known;     /* the slots have been listed since the start */
    int64_t lag_s;  /* age of the oldest sealed slot that is not empty: since its end; 0: none */
    bool lagging;   /* lag_s is above lag_warn_s */
    unsigned slots; /* that hold anything */
    uint64_t users_flushed, items_flushed;
    char last_error[128]; /* of the last tick; empty: none */
    struct dd_hot_durability durability;
    bool blind;     /* see dd_wheel_is_blind */
    bool displaced; /* another process holds this store in the register */
};

void dd_wheel_get_status(struct dd_wheel *w, struct dd_wheel_status *out);
/* The oldest slots as last seen by the wheel; returns how many, at most max. */
unsigned dd_wheel_get_slots(struct dd_wheel *w, struct dd_wheel_slot_info *out, unsigned max);

#endif
