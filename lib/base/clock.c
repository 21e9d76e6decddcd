#include "base/clock.h"

#include <time.h>

void dd_clock_init(struct dd_clock *c, int64_t offset_ms)
{
    c->manual = false;
    atomic_init(&c->offset_ms, offset_ms);
    atomic_init(&c->highest_ms, 0); /* no period begins before 1970 */
    atomic_init(&c->manual_ms, 0);
}

void dd_clock_init_manual(struct dd_clock *c, int64_t start_ms)
{
    dd_clock_init(c, 0);
    c->manual = true;
    atomic_store(&c->manual_ms, start_ms);
}

void dd_clock_move(struct dd_clock *c, int64_t by_ms)
{
    atomic_fetch_add(&c->manual_ms, by_ms);
}

void dd_clock_set_offset(struct dd_clock *c, int64_t offset_ms)
{
    atomic_store(&c->offset_ms, offset_ms);
}

static int64_t read_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t); /* cannot fail for these two clocks */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct dd_mono dd_clock_mono(const struct dd_clock *c)
{
    if (c->manual) return (struct dd_mono){atomic_load(&c->manual_ms) * 1000000};
    return (struct dd_mono){read_ns(CLOCK_MONOTONIC)};
}

struct dd_wall dd_clock_wall(const struct dd_clock *c)
{
    int64_t ms = c->manual ? atomic_load(&c->manual_ms) : read_ns(CLOCK_REALTIME) / 1000000;
    return (struct dd_wall){ms + atomic_load(&c->offset_ms)};
}

struct dd_wall dd_clock_period_now(struct dd_clock *c)
{
    int64_t now = dd_clock_wall(c).ms, seen = atomic_load(&c->highest_ms);
    while (now > seen)
        if (atomic_compare_exchange_weak(&c->highest_ms, &seen, now)) return (struct dd_wall){now};
    return (struct dd_wall){seen};
}

void dd_clock_observe(struct dd_clock *c, int64_t ms)
{
    int64_t seen = atomic_load(&c->highest_ms);
    while (ms > seen && !atomic_compare_exchange_weak(&c->highest_ms, &seen, ms)) {
    }
}

int64_t dd_clock_behind_ms(struct dd_clock *c)
{
    int64_t behind = atomic_load(&c->highest_ms) - dd_clock_wall(c).ms;
    return behind > 0 ? behind : 0;
}
