/* Time. Monotonic and wall time are two types, so that one is never taken for the other.
 *
 * A clock is an instance: production reads the system, shifted by `offset_ms` (option clock.offset_s, for
 * rehearsing a rollover); tests make a manual one and move it by hand. dd_clock_period_now additionally never
 * goes back: a period must not return when the system clock is stepped back (dd_clock_behind_ms says by how
 * much it was).
 *
 * Threads: all functions may be called from any thread (the state is atomic). */
#ifndef DD_BASE_CLOCK_H
#define DD_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct dd_mono {
    int64_t ns; /* since an arbitrary start */
};

struct dd_wall {
    int64_t ms; /* since 1970-01-01T00:00:00Z */
};

struct dd_clock {
    _Atomic int64_t offset_ms;  /* added to the system's wall clock */
    _Atomic int64_t highest_ms; /* the latest wall time ever returned by dd_clock_period_now */
    _Atomic int64_t manual_ms;  /* wall and monotonic time of a manual clock */
    bool manual;
};

void dd_clock_init(struct dd_clock *c, int64_t offset_ms);
/* A clock that stands still at start_ms until dd_clock_move. */
void dd_clock_init_manual(struct dd_clock *c, int64_t start_ms);
void dd_clock_move(struct dd_clock *c, int64_t by_ms);
void dd_clock_set_offset(struct dd_clock *c, int64_t offset_ms);

struct dd_mono dd_clock_mono(const struct dd_clock *c);
struct dd_wall dd_clock_wall(const struct dd_clock *c);

/* Wall time that never goes back: what decides the current period. */
struct dd_wall dd_clock_period_now(struct dd_clock *c);
/* A time that is known to have been reached (by data that was written then): period_now is not before it. */
void dd_clock_observe(struct dd_clock *c, int64_t ms);
/* How far the wall clock now stands behind the highest time seen; 0 when it does not. */
int64_t dd_clock_behind_ms(struct dd_clock *c);

static inline int64_t dd_mono_ms_between(struct dd_mono from, struct dd_mono to)
{
    return (to.ns - from.ns) / 1000000;
}

#endif
