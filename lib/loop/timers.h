/* The hashed timer wheel behind dd_timer: private to lib/loop. */
#ifndef DD_LOOP_TIMERS_H
#define DD_LOOP_TIMERS_H

#include "loop/loop.h"

#define DD_TIMERS_TICK_NS 4000000
#define DD_TIMERS_SLOTS                                                                                      \
    512 /* one rotation is 2.048 s; later timers stay in their slot for more rotations                       \
         */

struct event;

struct dd_timers {
    int fd;              /* timerfd on CLOCK_MONOTONIC */
    struct event *event; /* readable fd */
    int64_t done_tick;   /* every tick up to this one has been served */
    int64_t armed_tick;  /* what fd is set to; INT64_MAX when off */
    unsigned count;      /* timers set */
    uint64_t occupied[DD_TIMERS_SLOTS / 64];
    struct dd_timer slots[DD_TIMERS_SLOTS]; /* list heads */
};

enum dd_err dd_timers_init(struct dd_loop *loop, struct dd_timers *w) DD_MUST_USE;
void dd_timers_close(struct dd_timers *w);
struct dd_timers *dd_loop_timers(struct dd_loop *loop);

#endif
