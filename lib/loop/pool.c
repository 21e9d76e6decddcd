/* A queue under one mutex and a condition, as plain as it can be: its jobs are store reads of tens of
 * microseconds and more, so that the lock is not what is waited for.
 *
 * Pool threads block all signals: those belong to the main thread. */
#include "loop/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define THREADS_MAX 64

struct dd_pool {
    pthread_mutex_t lock; /* guards all below, except threads */
    pthread_cond_t work;
    struct dd_job *head, **tail;
    unsigned queued, queue_max;
    bool closing;

    unsigned thread_count;
    pthread_t threads[THREADS_MAX];
};

/* The next job, waiting for one; NULL when the pool is closing and the queue is empty. */
static struct dd_job *take(struct dd_pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->head && !p->closing)
        pthread_cond_wait(&p->work, &p->lock);
    struct dd_job *job = p->head;
    if (job) {
        p->head = job->next;
        if (!p->head) p->tail = &p->head;
        p->queued--;
    }
    pthread_mutex_unlock(&p->lock);
    return job;
}

static void *work(void *arg)
{
    struct dd_pool *p = arg;
    for (struct dd_job *job; (job = take(p));) {
        job->run(job->arg);
        job->task = (struct dd_task){.run = job->done, .arg = job->arg};
        dd_loop_post(job->loop, &job->task); /* the job is its submitter's again */
    }
    return NULL;
}

static void start_threads(struct dd_pool *p, unsigned threads)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (p->thread_count < threads && !pthread_create(&p->threads[p->thread_count], NULL, work, p))
        p->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

enum dd_err dd_pool_create(unsigned threads, unsigned queue_max, struct dd_pool **out)
{
    if (threads < 1 || threads > THREADS_MAX || queue_max < 1) return DD_INVALID;
    struct dd_pool *p = calloc(1, sizeof *p);
    if (!p) return DD_NO_MEMORY;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    p->tail = &p->head;
    p->queue_max = queue_max;
    start_threads(p, threads);
    if (p->thread_count < threads) {
        dd_pool_destroy(p);
        return DD_NO_MEMORY;
    }
    *out = p;
    return DD_OK;
}

void dd_pool_destroy(struct dd_pool *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

enum dd_err dd_pool_submit(struct dd_pool *p, struct dd_job *job)
{
    enum dd_err err = DD_OK;
    pthread_mutex_lock(&p->lock);
    if (p->closing)
        err = DD_SHUTDOWN;
    else if (p->queued >= p->queue_max)
        err = DD_BUSY;
    if (err == DD_OK) {
        job->next = NULL;
        *p->tail = job;
        p->tail = &job->next;
        p->queued++;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    return err;
}

unsigned dd_pool_queued(struct dd_pool *p)
{
    pthread_mutex_lock(&p->lock);
    unsigned n = p->queued;
    pthread_mutex_unlock(&p->lock);
    return n;
}
