/* The writer: one thread and the bounded queue before it. Private to lib/store.
 *
 * It takes what waits, at most batch_max requests, as one group for commit.c. Between groups, and every
 * second when idle, it checks the disk guard, stores what the merge operator kept aside and probes whether
 * writing works again.
 *
 * Threads: push from any thread. */
#ifndef DD_STORE_WRITER_H
#define DD_STORE_WRITER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "store/store.h"

struct dd_writer {
    pthread_t thread;
    bool running; /* the thread was started */
    pthread_mutex_t lock;
    pthread_cond_t wake;                 /* on CLOCK_MONOTONIC */
    struct dd_store_batch *head, **tail; /* these four under lock */
    unsigned queued, queue_max;
    bool stopping;
    struct dd_mono housekeeping; /* when it was last done: the thread's */
    struct dd_mono complained;   /* when a failure was last logged: the thread's */
    struct dd_gauge *queue_gauge;
};

enum dd_err dd_writer_start(struct dd_store *s) DD_MUST_USE;
/* Lets the thread finish what is queued and joins it; later pushes are DD_SHUTDOWN. */
void dd_writer_stop(struct dd_store *s);

/* Appends to the queue: DD_PENDING, DD_BUSY or DD_SHUTDOWN. internal: may exceed the bound (a handful of
 * ours). */
enum dd_err dd_writer_push(struct dd_store *s, struct dd_store_batch *b, bool internal) DD_MUST_USE;
/* Pushes and waits until it is done; returns b->err, or why it could not be pushed. loop, done and arg are
 * overwritten. */
enum dd_err dd_writer_push_wait(struct dd_store *s, struct dd_store_batch *b, bool internal) DD_MUST_USE;
unsigned dd_writer_queued(struct dd_store *s);

#endif
