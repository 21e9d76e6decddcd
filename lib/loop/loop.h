/* One event loop per worker thread: libevent's event_base, tasks posted from other threads, and timers.
 *
 * Tasks and timers are intrusive: posting or starting never allocates and never fails. The object that
 * contains them must live until they have run or were stopped.
 *
 * Timers sit in a hashed wheel (Varghese and Lauck 1987) of 4 ms ticks that only ticks while a timer is set:
 * starting and stopping cost a list operation, so every request can have one. A timer runs at its due time or
 * up to one tick and a loop turn later, never before.
 *
 * Threads: a loop belongs to the thread that runs dd_loop_run. Only dd_loop_post and dd_loop_stop may be
 * called from other threads. Ownership: dd_loop_destroy does not run what is still posted; the caller drains
 * first. */
#ifndef DD_LOOP_LOOP_H
#define DD_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct dd_loop;
struct event_base;

struct dd_task {
    void (*run)(void *arg);
    void *arg;
    struct dd_task *next; /* the loop's */
};

struct dd_timer {
    void (*run)(void *arg);
    void *arg;
    struct dd_loop *loop;
    struct dd_timer *prev, *next; /* the loop's; NULL while not set */
    int64_t due_ns;
};

enum dd_err dd_loop_create(struct dd_loop **out) DD_MUST_USE;
void dd_loop_destroy(struct dd_loop *loop);

/* Runs until dd_loop_stop, also when nothing is scheduled. Makes the calling thread the loop's thread. */
void dd_loop_run(struct dd_loop *loop);
void dd_loop_stop(struct dd_loop *loop);
/* One turn: what is ready now, after waiting at most wait_ms for something. For tests and for draining. */
void dd_loop_turn(struct dd_loop *loop, int wait_ms);

/* For lib/http and lib/hot, which have sockets in the loop. */
struct event_base *dd_loop_base(struct dd_loop *loop);

/* Runs task->run(task->arg) on the loop's thread, in the order of posting. The task may be reused once it
 * runs. */
void dd_loop_post(struct dd_loop *loop, struct dd_task *task);

/* Monotonic time, cached once per turn of the loop: what latencies of requests are measured with. */
struct dd_mono dd_loop_now(struct dd_loop *loop);

void dd_timer_init(struct dd_timer *t, struct dd_loop *loop, void (*run)(void *arg), void *arg);
/* (Re)starts: runs once after delay_ms, counted from dd_loop_now. */
void dd_timer_start(struct dd_timer *t, int64_t delay_ms);
/* Nothing happens when it is not set. */
void dd_timer_stop(struct dd_timer *t);
bool dd_timer_is_set(const struct dd_timer *t);

#endif
