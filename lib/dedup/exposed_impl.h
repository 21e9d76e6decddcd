/* What exposed.c (judging) and exposed_write.c (staging, direct writes) share. Nothing else includes it. */
#ifndef DD_DEDUP_EXPOSED_IMPL_H
#define DD_DEDUP_EXPOSED_IMPL_H

#include "dedup/internal.h"

/* Where an event that is to be kept goes. */
enum dd_route { DD_ROUTE_DONE, DD_ROUTE_STAGE, DD_ROUTE_DIRECT };

struct dd_exposed_work {
    uint64_t seed;
    struct dd_period period;
    struct dd_slice user; /* in the arena: outlives the request's body */
    uint32_t *fps;
    enum dd_route route;
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
};

/* Sends every event that is to be kept on its way; answers when all are acknowledged, or one cannot be. */
void dd_exposed_write(struct dd_exposed_state *s);

void dd_exposed_answer(struct dd_exposed_state *s, enum dd_err err);
/* Calls finished once the call is answered and nothing is under way. s may be gone afterwards. */
void dd_exposed_settle(struct dd_exposed_state *s);
uint64_t dd_exposed_tally_hash(const struct dd_exposed_work *w);

#endif
