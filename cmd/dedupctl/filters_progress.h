/* A bar (bar.h) for work that takes minutes, and a clean way out of it.
 *
 * Between begin and end SIGINT, SIGTERM and SIGHUP are blocked in this thread and those that it starts; step
 * sees them, so that what the work made can be removed.
 *
 * Threads: begin, step and end on one thread, before other threads start. */
#ifndef DD_CTL_FILTERS_PROGRESS_H
#define DD_CTL_FILTERS_PROGRESS_H

#include <signal.h>
#include <stdint.h>

#include "bar.h"
#include "base/err.h"

struct dd_progress {
    uint64_t total, done;
    struct dd_bar bar;
    sigset_t before;
};

void dd_progress_begin(struct dd_progress *p, uint64_t total);
/* n more are done; label: what they are. DD_SHUTDOWN: a signal asks to stop. */
enum dd_err dd_progress_step(struct dd_progress *p, uint64_t n, const char *label) DD_MUST_USE;
/* Removes the bar. */
void dd_progress_end(struct dd_progress *p);

#endif
