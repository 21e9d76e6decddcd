/* A bar on the terminal for work that takes minutes, and a clean way out of it.
 *
 * Between begin and end SIGINT and SIGTERM are blocked in this thread and those that it starts; step sees
 * them, so that what the work made can be removed. Nothing is drawn when standard error is not a terminal.
 *
 * Threads: begin, step and end on one thread, before other threads start. */
#ifndef DD_CTL_FILTERS_PROGRESS_H
#define DD_CTL_FILTERS_PROGRESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct dd_progress {
    uint64_t total, done;
    const char *unit;
    bool terminal;
    struct dd_clock clock;
    struct dd_mono start, drawn;
    sigset_t before;
};

void dd_progress_begin(struct dd_progress *p, uint64_t total, const char *unit);
/* n more are done; label: what is worked on. DD_SHUTDOWN: a signal asks to stop. */
enum dd_err dd_progress_step(struct dd_progress *p, uint64_t n, const char *label) DD_MUST_USE;
/* Removes the bar. */
void dd_progress_end(struct dd_progress *p);

#endif
