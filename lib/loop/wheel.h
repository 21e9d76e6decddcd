/* The hashed timer wheel behind dd_timer: private to lib/loop. */
#ifndef DD_LOOP_WHEEL_H
#define DD_LOOP_WHEEL_H

#include "loop/loop.h"

#define DD_WHEEL_TICK_NS 4000000
#define DD_WHEEL_SLOTS   512 /* one rotation is 2.048 s; later timers stay in their slot for more rotations */

struct event;

struct dd_wheel {
    int fd;              /* timerfd on CLOCK_MONOTONIC */
    struct event *event; /* readable fd */
    int64_t done_tick;   /* every tick up to this one has been served */
    int64_t armed_tick;  /* what fd is set to; INT64_MAX when off */
    unsigned count;      /* timers set */
    uint64_t occupied[DD_WHEEL_SLOTS / 64];
    struct dd_timer slots[DD_WHEEL_SLOTS]; /* list heads */
};

enum dd_err dd_wheel_init(struct dd_loop *loop, struct dd_wheel *w) DD_MUST_USE;
void dd_wheel_close(struct dd_wheel *w);
struct dd_wheel *dd_loop_wheel(struct dd_loop *loop);

#endif
