/* The loop: an event_base without locks, whose turns we drive one by one.
 *
 * EVENT_BASE_FLAG_NOLOCK: everything on a base happens on its thread; other threads reach it only through the
 * queue below and an eventfd. EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST is left out on purpose: it puts
 * EPOLL_CTL_DEL off to the next turn, when the number of a closed descriptor may already belong to another
 * thread. It would save nothing, as neither lib/http nor lib/hot changes its interest in a socket from
 * request to request (counted with strace: none in 8,000 requests).
 *
 * Turns are separate calls (EVLOOP_ONCE), so that the cached time can be dropped between them: the first
 * callback of a turn that asks for the time reads the clock, the others share it. libevent's own cache is of
 * no use here; it is coarse, and there is no hook at the start of a turn before libevent 2.2. */
#include "loop/loop.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loop/timers.h"

struct dd_loop {
    struct event_base *base;
    struct dd_clock clock;
    struct dd_mono now;
    bool in_turn, now_valid;
    _Atomic bool stop;

    int wake_fd; /* eventfd */
    struct event *wake_event;
    pthread_mutex_t lock; /* guards the three below */
    struct dd_task *head, **tail;
    bool waking; /* wake_fd was written and not yet read */

    struct event *turn_end; /* bounds the wait of dd_loop_turn */
    struct dd_timers wheel;
};

struct event_base *dd_loop_base(struct dd_loop *loop)
{
    return loop->base;
}

struct dd_timers *dd_loop_timers(struct dd_loop *loop)
{
    return &loop->wheel;
}

struct dd_mono dd_loop_now(struct dd_loop *loop)
{
    if (!loop->in_turn) return dd_clock_mono(&loop->clock);
    if (!loop->now_valid) loop->now = dd_clock_mono(&loop->clock);
    loop->now_valid = true;
    return loop->now;
}

static void wake(struct dd_loop *loop)
{
    uint64_t one = 1;
    while (write(loop->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {
    } /* EAGAIN: the counter is full, so the loop wakes anyway */
}

void dd_loop_post(struct dd_loop *loop, struct dd_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&loop->lock);
    *loop->tail = task;
    loop->tail = &task->next;
    bool first = !loop->waking;
    loop->waking = true;
    /* Inside the lock: once it is released the task may run, and what it does may destroy the loop. */
    if (first) wake(loop);
    pthread_mutex_unlock(&loop->lock);
}

static struct dd_task *take_all(struct dd_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct dd_task *list = loop->head;
    loop->head = NULL;
    loop->tail = &loop->head;
    loop->waking = false;
    pthread_mutex_unlock(&loop->lock);
    return list;
}

/* Runs what was posted so far. What these tasks post in turn comes in the next turn, after the sockets. */
static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct dd_loop *loop = arg;
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof count);
    (void)got; /* EAGAIN is a wake-up already served */
    for (struct dd_task *t = take_all(loop), *next; t; t = next) {
        next = t->next; /* t may be posted again or freed while it runs */
        t->run(t->arg);
    }
}

static void on_turn_end(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

static struct event_base *make_base(void)
{
    struct event_config *config = event_config_new();
    if (!config) return NULL;
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

static enum dd_err open_wake(struct dd_loop *loop)
{
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (loop->wake_fd < 0) return DD_IO;
    loop->wake_event = event_new(loop->base, loop->wake_fd, EV_READ | EV_PERSIST, on_wake, loop);
    if (loop->wake_event && event_add(loop->wake_event, NULL) == 0) return DD_OK;
    if (loop->wake_event) event_free(loop->wake_event);
    close(loop->wake_fd);
    return DD_NO_MEMORY;
}

enum dd_err dd_loop_create(struct dd_loop **out)
{
    struct dd_loop *loop = calloc(1, sizeof *loop);
    if (!loop) return DD_NO_MEMORY;
    enum dd_err err = DD_NO_MEMORY;
    dd_clock_init(&loop->clock, 0);
    atomic_init(&loop->stop, false);
    loop->tail = &loop->head;
    pthread_mutex_init(&loop->lock, NULL);
    if (!(loop->base = make_base())) goto fail_base;
    if ((err = open_wake(loop)) != DD_OK) goto fail_wake;
    if ((err = dd_timers_init(loop, &loop->wheel)) != DD_OK) goto fail_wheel;
    if (!(loop->turn_end = event_new(loop->base, -1, 0, on_turn_end, NULL))) goto fail_turn_end;
    *out = loop;
    return DD_OK;
fail_turn_end:
    dd_timers_close(&loop->wheel);
    err = DD_NO_MEMORY;
fail_wheel:
    event_free(loop->wake_event);
    close(loop->wake_fd);
fail_wake:
    event_base_free(loop->base);
fail_base:
    pthread_mutex_destroy(&loop->lock);
    free(loop);
    return err;
}

void dd_loop_destroy(struct dd_loop *loop)
{
    if (!loop) return;
    /* A post releases the lock after it woke the loop: let the last one leave. */
    pthread_mutex_lock(&loop->lock);
    pthread_mutex_unlock(&loop->lock);
    event_free(loop->turn_end);
    dd_timers_close(&loop->wheel);
    event_free(loop->wake_event);
    close(loop->wake_fd);
    event_base_free(loop->base);
    pthread_mutex_destroy(&loop->lock);
    free(loop);
}

static void turn(struct dd_loop *loop, int flags)
{
    loop->now_valid = false;
    loop->in_turn = true;
    event_base_loop(loop->base, flags);
    loop->in_turn = false;
}

void dd_loop_run(struct dd_loop *loop)
{
    while (!atomic_exchange(&loop->stop, false))
        turn(loop, EVLOOP_ONCE);
}

void dd_loop_stop(struct dd_loop *loop)
{
    pthread_mutex_lock(
        &loop->lock); /* as in dd_loop_post: the loop may be destroyed as soon as it sees the flag */
    atomic_store(&loop->stop, true);
    wake(loop);
    pthread_mutex_unlock(&loop->lock);
}

void dd_loop_turn(struct dd_loop *loop, int wait_ms)
{
    struct timeval wait = {wait_ms / 1000, wait_ms % 1000 * 1000};
    if (wait_ms <= 0 || event_add(loop->turn_end, &wait) != 0) {
        turn(loop, EVLOOP_ONCE | EVLOOP_NONBLOCK);
        return;
    }
    turn(loop, EVLOOP_ONCE);
    event_del(loop->turn_end);
}
