/* What filter.c (a request from its start to its answer, choosing and claiming) and filter_history.c (what
 * the tiers know of the user) share. Nothing else includes it. */
#ifndef DD_DEDUP_FILTER_IMPL_H
#define DD_DEDUP_FILTER_IMPL_H

#include "dedup/index.h"
#include "dedup/internal.h"
#include "dedup/migrate_impl.h"

enum dd_filter_stage { STAGE_FETCH, STAGE_READ, STAGE_CLAIM, STAGE_RECORD };

struct dd_filter_state {
    struct dd_filter_call *c;
    struct dd_dedup_loop *dl;
    struct dd_timer deadline;
    enum dd_filter_stage stage;
    bool answered;
    bool recording; /* inside dd_dedup_exposed: it may finish before it returns */
    unsigned io;    /* calls that have not come back */
    struct dd_slice scene, user;
    struct dd_index index;
    struct dd_period period[DD_WINDOW_MAX]; /* newest first */
    unsigned periods;
    uint8_t missing[DD_WINDOW_MAX]; /* numbers of the periods to read from the store */
    uint64_t number[DD_WINDOW_MAX]; /* that each period's set carried */
    struct dd_dual *dual;           /* NULL: no old key is asked */
    bool dual_pending, ready;       /* ready: everything but the old key has been looked at */
    bool dual_late;                 /* its reply came after sets were judged */
    unsigned limit;
    uint32_t *chosen;
    unsigned scan;        /* the next candidate to look at */
    uint32_t *round_item; /* candidates of the claim under way */
    uint8_t *scratch;
    struct dd_hot_fetch fetch;
    struct dd_store_read read;
    struct dd_hot_claim claim;
    struct dd_exposed_call record;
    struct dd_exposed_event record_event;
};

/* ---- filter.c ---- */

/* Answers, once. */
void dd_filter_answer(struct dd_filter_state *s, enum dd_err err);
/* After anything that came back: the last one gives the call's memory up. */
void dd_filter_settle(struct dd_filter_state *s);
/* Everything is known: survivors are chosen, claimed if asked, and the answer is given. */
void dd_filter_choose(struct dd_filter_state *s);

/* ---- filter_history.c ---- */

/* Asks the old key, if the scene is being migrated to. Before the hot tier is asked. */
void dd_filter_ask_old_key(struct dd_filter_state *s);
/* The hot tier has answered (s->fetch): judges its sets, reads what is missing, and goes on to choose. */
void dd_filter_take_fetch(struct dd_filter_state *s);

#endif
