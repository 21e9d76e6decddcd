/* The trace of one user, for operators: the blocking functions of trace.h as calls of the users' thread. The
 * shape of calls is that of admin.h. */
#ifndef DD_DEDUP_TRACE_CALL_H
#define DD_DEDUP_TRACE_CALL_H

#include "dedup/admin.h"
#include "dedup/trace.h"

#define DD_TRACE_PAGE_MAX 1000

enum dd_trace_verb { DD_TRACE_START, DD_TRACE_SHOW, DD_TRACE_STOP };

struct dd_trace_call {
    /* in */
    enum dd_trace_verb verb;
    struct dd_slice user, scene; /* scene empty: every scene */
    unsigned days;               /* start: 1..DD_TRACE_DAYS_MAX */
    unsigned limit;              /* show: 1..DD_TRACE_PAGE_MAX */
    struct dd_slice before;      /* show: a cursor, or empty */
    struct dd_arena *arena;
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err;              /* as the functions of trace.h; DD_BUSY, DD_UNSUPPORTED: no trace is kept */
    struct dd_trace_state state;  /* start, show */
    uint64_t removed;             /* stop */
    struct dd_trace_entry *entry; /* show: newest first, in the arena */
    unsigned n;
    bool more;
    /* dedup's */
    struct dd_trace *trace;
    struct dd_dedup_loop *dl;
    struct dd_job job;
};

void dd_trace_call(struct dd_admin *a, struct dd_dedup_loop *dl, struct dd_trace_call *c);

#endif
