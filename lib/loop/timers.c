/* A hashed wheel of 512 slots of 4 ms: a timer hangs in the slot of its due tick modulo 512, so starting and
 * stopping are list operations whatever the number of timers.
 *
 * The wheel does not tick through empty slots. A bitmap tells the next occupied one, and a timerfd is armed
 * for it. Most timers are deadlines that are stopped before they are due, each starting later than the one
 * before; then the armed tick stays where it is and costs one system call per deadline length, not one per
 * request. A timerfd and not libevent's heap, because libevent reads CLOCK_MONOTONIC_COARSE (4 ms steps here)
 * and sets its own timers by an epoll_wait of whole milliseconds.
 *
 * A timer's due time is rounded up to its tick when it starts, and a tick is served once the clock has
 * reached it: hence never early. */
#include "loop/timers.h"

#include <event2/event.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

static unsigned slot_of(int64_t tick)
{
    return (unsigned)tick % DD_TIMERS_SLOTS;
}

static void list_init(struct dd_timer *head)
{
    head->prev = head->next = head;
}

static void list_append(struct dd_timer *head, struct dd_timer *t)
{
    t->prev = head->prev;
    t->next = head;
    head->prev->next = t;
    head->prev = t;
}

static void list_remove(struct dd_timer *t)
{
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = NULL;
}

/* The first of a list that is not empty. */
static struct dd_timer *list_pop(struct dd_timer *head)
{
    struct dd_timer *t = head->next;
    head->next = t->next;
    t->next->prev = head;
    t->prev = t->next = NULL;
    return t;
}

static void mark(struct dd_timers *w, unsigned slot, bool on)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    if (on)
        w->occupied[slot / 64] |= bit;
    else
        w->occupied[slot / 64] &= ~bit;
}

/* The tick of the first occupied slot after done_tick; INT64_MAX when there is none. */
static int64_t next_tick(const struct dd_timers *w)
{
    int64_t tick = w->done_tick + 1;
    for (unsigned seen = 0; seen <= DD_TIMERS_SLOTS;) {
        unsigned slot = slot_of(tick);
        uint64_t bits = w->occupied[slot / 64] >> slot % 64;
        if (bits) return tick + __builtin_ctzll(bits);
        unsigned step = 64 - slot % 64;
        tick += step;
        seen += step;
    }
    return INT64_MAX;
}

static void arm(struct dd_timers *w, int64_t tick)
{
    if (tick == w->armed_tick) return;
    int64_t ns = tick == INT64_MAX ? 0 : tick * DD_TIMERS_TICK_NS; /* 0 turns it off */
    struct itimerspec at = {.it_value = {ns / 1000000000, ns % 1000000000}};
    timerfd_settime(w->fd, TFD_TIMER_ABSTIME, &at, NULL); /* fails only for arguments out of range */
    w->armed_tick = tick;
}

static void unlink_timer(struct dd_timers *w, struct dd_timer *t)
{
    unsigned slot = slot_of(t->due_ns / DD_TIMERS_TICK_NS);
    list_remove(t);
    w->count--;
    if (w->slots[slot].next == &w->slots[slot]) mark(w, slot, false);
}

/* Moves what is due in one slot to the end of expired; timers of later rotations stay. */
static void collect(struct dd_timers *w, unsigned slot, int64_t tick, struct dd_timer *expired)
{
    struct dd_timer *head = &w->slots[slot];
    for (struct dd_timer *t = head->next, *next; t != head; t = next) {
        next = t->next;
        if (t->due_ns > tick * DD_TIMERS_TICK_NS) continue;
        list_remove(t);
        list_append(expired, t);
    }
    if (head->next == head) mark(w, slot, false);
}

/* Timers run from a list of their own, so that one that runs may stop or start any other, itself included. */
static void run_expired(struct dd_timers *w, struct dd_timer *expired)
{
    while (expired->next != expired) {
        struct dd_timer *t = list_pop(expired);
        w->count--;
        t->run(t->arg);
    }
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct dd_loop *loop = arg;
    struct dd_timers *w = dd_loop_timers(loop);
    uint64_t expirations;
    ssize_t got = read(fd, &expirations, sizeof expirations);
    (void)got; /* EAGAIN when it was armed anew since: the clock decides below */
    w->armed_tick = INT64_MAX;
    int64_t now = dd_loop_now(loop).ns / DD_TIMERS_TICK_NS;
    struct dd_timer expired;
    list_init(&expired);
    /* Occupied ticks in their order. A slot left occupied by a later rotation comes round again 512 ticks
     * later. */
    for (int64_t tick; (tick = next_tick(w)) <= now; w->done_tick = tick)
        collect(w, slot_of(tick), tick, &expired);
    if (now > w->done_tick) w->done_tick = now;
    run_expired(w, &expired);
    arm(w, next_tick(w));
}

enum dd_err dd_timers_init(struct dd_loop *loop, struct dd_timers *w)
{
    memset(w, 0, sizeof *w);
    for (unsigned i = 0; i < DD_TIMERS_SLOTS; i++)
        list_init(&w->slots[i]);
    w->armed_tick = INT64_MAX;
    w->done_tick = dd_loop_now(loop).ns / DD_TIMERS_TICK_NS;
    w->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (w->fd < 0) return DD_IO;
    w->event = event_new(dd_loop_base(loop), w->fd, EV_READ | EV_PERSIST, on_tick, loop);
    if (w->event && event_add(w->event, NULL) == 0) return DD_OK;
    dd_timers_close(w);
    return DD_NO_MEMORY;
}

void dd_timers_close(struct dd_timers *w)
{
    if (w->event) event_free(w->event);
    if (w->fd >= 0) close(w->fd);
    w->event = NULL;
    w->fd = -1;
}

void dd_timer_init(struct dd_timer *t, struct dd_loop *loop, void (*run)(void *arg), void *arg)
{
    *t = (struct dd_timer){.run = run, .arg = arg, .loop = loop};
}

void dd_timer_start(struct dd_timer *t, int64_t delay_ms)
{
    struct dd_timers *w = dd_loop_timers(t->loop);
    int64_t now_ns = dd_loop_now(t->loop).ns;
    dd_timer_stop(t);
    if (w->count == 0 && now_ns / DD_TIMERS_TICK_NS > w->done_tick) w->done_tick = now_ns / DD_TIMERS_TICK_NS;
    int64_t due_ns = now_ns + (delay_ms > 0 ? delay_ms : 0) * 1000000;
    int64_t tick = (due_ns + DD_TIMERS_TICK_NS - 1) / DD_TIMERS_TICK_NS;
    if (tick <= w->done_tick) tick = w->done_tick + 1;
    t->due_ns = tick * DD_TIMERS_TICK_NS;
    list_append(&w->slots[slot_of(tick)], t);
    mark(w, slot_of(tick), true);
    w->count++;
    if (tick < w->armed_tick) arm(w, tick);
}

void dd_timer_stop(struct dd_timer *t)
{
    if (t->next) unlink_timer(dd_loop_timers(t->loop), t);
}

bool dd_timer_is_set(const struct dd_timer *t)
{
    return t->next != NULL;
}
