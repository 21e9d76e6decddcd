/* A pool of threads for calls that may block (store reads), so that a loop never does.
 *
 * Jobs are intrusive. The queue is bounded: past it a submission is DD_BUSY and the caller answers that it is
 * overloaded, instead of a queue whose end nobody waits for.
 *
 * Threads: submit from any thread. job->run runs on a pool thread, then job->done on job->loop's thread,
 * exactly once each, unless submission failed. Ownership: the job belongs to the pool from a successful
 * submit until done runs. */
#ifndef DD_LOOP_POOL_H
#define DD_LOOP_POOL_H

#include "base/err.h"
#include "loop/loop.h"

struct dd_pool;

struct dd_job {
    void (*run)(void *arg);
    void (*done)(void *arg);
    void *arg;
    struct dd_loop *loop;
    struct dd_job *next; /* the pool's */
    struct dd_task task; /* the pool's */
};

/* threads: 1..64; queue_max: jobs waiting, not counting those that run. */
enum dd_err dd_pool_create(unsigned threads, unsigned queue_max, struct dd_pool **out) DD_MUST_USE;
/* Runs what is queued to its end (their done is still posted), then joins the threads. */
void dd_pool_destroy(struct dd_pool *p);

/* DD_OK, or DD_BUSY when the queue is full, DD_SHUTDOWN after destroy began. */
enum dd_err dd_pool_submit(struct dd_pool *p, struct dd_job *job) DD_MUST_USE;
unsigned dd_pool_queued(struct dd_pool *p);

#endif
