/* What exposed.c (judging) and exposed_write.c (staging, direct writes) share. Nothing else includes it. */
#ifndef DD_DEDUP_EXPOSED_IMPL_H
#define DD_DEDUP_EXPOSED_IMPL_H

#include "dedup/history.h"
#include "dedup/internal.h"

/* Where an event that is to be kept goes. */
enum dd_route { DD_ROUTE_DONE, DD_ROUTE_STAGE, DD_ROUTE_DIRECT };

struct dd_exposed_work {
    uint64_t seed;
    struct dd_period period;
    struct dd_slice user; /* in the arena: outlives the request's body */
    uint32_t *fps;
    enum dd_route route;
    /* With history: the record, whether it is in the store already, and how calm it was before. */
    struct dd_slice suffix, record;
    bool recorded;
    uint64_t calm;
};

struct dd_exposed_state {
    struct dd_exposed_call *c;
    struct dd_dedup_loop *dl;
    struct dd_timer deadline;
    bool answered;
    unsigned io;                  /* calls that have not come back */
    unsigned next;                /* event whose cap is to be looked at */
    struct dd_exposed_work *work; /* per event */
    struct dd_store_read read;
    struct dd_store_batch batch;
    struct dd_hot_stage stage;
    struct dd_hot_slot slot; /* staged into */
    unsigned *stage_event;   /* per stage entry: its event */
    unsigned stage_tries;
    bool staging_failed;
    bool direct;                              /* the commit holds merges, not only records to take back */
    void (*then)(struct dd_exposed_state *s); /* once records are written */
};

/* Sends every event that is to be kept on its way; answers when all are acknowledged, or one cannot be. */
void dd_exposed_write(struct dd_exposed_state *s);

/* ---- exposed_record.c ---- */

/* Makes the records of the events that are to be kept and recorded. */
enum dd_err dd_exposed_record_make(struct dd_exposed_state *s) DD_MUST_USE;
/* Writes those of events that are to be staged, which must be there first. DD_OK: there are none. DD_PENDING:
 * next(s) runs when they are in the store; if they cannot be, the call is answered instead. */
enum dd_err dd_exposed_record_first(struct dd_exposed_state *s,
                                    void (*next)(struct dd_exposed_state *s)) DD_MUST_USE;
/* The op that writes the event's record with its merge, or takes back one that is not wanted any more (the
 * user's cap). false: neither. */
bool dd_exposed_record_op(struct dd_exposed_state *s, unsigned event, struct dd_store_op *op);
/* Whether every event that was recorded first may be acknowledged: see history.h. */
bool dd_exposed_record_stands(const struct dd_exposed_state *s);
/* Notes what was accepted for users who are traced. */
void dd_exposed_trace(const struct dd_exposed_state *s);

/* ---- exposed.c ---- */

void dd_exposed_answer(struct dd_exposed_state *s, enum dd_err err);
/* Calls finished once the call is answered and nothing is under way. s may be gone afterwards. */
void dd_exposed_settle(struct dd_exposed_state *s);
uint64_t dd_exposed_tally_hash(const struct dd_exposed_work *w);

#endif
