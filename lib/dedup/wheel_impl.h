/* What wheel.c (thread, sealing, requests), wheel_flush.c (emptying a slot), wheel_mark.c (the durable mark)
 * and wheel_redis.c (what Redis promises, the register) share. Nothing else includes it. */
#ifndef DD_DEDUP_WHEEL_IMPL_H
#define DD_DEDUP_WHEEL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "dedup/hints.h"
#include "dedup/wheel.h"

struct dd_wheel {
    struct dd_wheel_options options;
    struct dd_store *store;
    struct dd_hot *hot;
    const struct dd_scenes *scenes;
    struct dd_clock *clock;
    struct dd_hot_staging *staging; /* the thread's; NULL: embedded */
    _Atomic int64_t sealed_s;       /* the mark: slots that begin before it are sealed; never moves back */
    _Atomic int64_t oldest_s;
    _Atomic uint64_t listed_run; /* dd_hot_run before the list that oldest_s is from */
    struct {
        struct dd_counter *users, *items, *pages, *failures, *stripped;
        struct dd_histogram *page_us;
        struct dd_gauge *lag_s;
    } count;
    _Atomic bool
        marked; /* staged.h: the mark was written, or the store takes none, so exposures may be staged */
    bool blind;
    bool mark_saved;
    int64_t marked_beat;
    struct dd_hints hints;                /* the thread's */
    enum dd_wheel_staging logged_staging; /* the thread's */
    bool registered;                      /* the thread's: the register of stores */
    struct dd_mono last_beat;
    _Atomic bool displaced;
    char tick_error[128]; /* the thread's */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stop, paused;
    unsigned rate_users_s;
    struct dd_wheel_flush *requests;
    struct dd_wheel_slot_info slots[DD_WHEEL_SLOTS_SHOWN];
    unsigned slots_n, slots_total;
    bool known;
    int64_t lag_s;
    char last_error[128];
};

/* Empties one sealed slot. DD_OK: it is empty and its name is gone (or users remain that a page could not
 * take, which is DD_BUSY: again later). DD_SHUTDOWN: asked to stop. Else what failed; *why gets a text. Adds
 * to *users and *items. */
enum dd_err dd_wheel_empty_slot(struct dd_wheel *w, struct dd_hot_slot slot, uint64_t *users, uint64_t *items,
                                char *why, size_t why_size) DD_MUST_USE;

/* Logs when staging goes on or off. */
void dd_wheel_log_staging(struct dd_wheel *w);
/* At the start. DD_INVALID (logged): staging is wanted by name and this Redis evicts keys without a TTL. */
enum dd_err dd_wheel_refuse_evicting(struct dd_wheel *w) DD_MUST_USE;
/* A sign of life for the register, if one is due, or at once: before anything is removed, since a process or
 * a machine that stood still may not have seen the time pass. */
void dd_wheel_beat(struct dd_wheel *w, bool at_once);

/* The mark of staged.h: written before anything is staged, kept up to date, removed at a clean stop with
 * nothing left. recall is for the start, before the first slot is looked at. */
void dd_wheel_recall_mark(struct dd_wheel *w);
void dd_wheel_keep_mark(struct dd_wheel *w);
void dd_wheel_leave_mark(struct dd_wheel *w);

/* Waits until the wheel is asked to stop, or to flush, or ms have passed, with signs of life in between.
 * false: stop. */
bool dd_wheel_rest(struct dd_wheel *w, int64_t ms, bool also_requests);

#endif
