/* A progress bar on standard error: share, rate, time left. Drawn on a terminal only, at most five times a
 * second. */
#ifndef DD_CTL_BAR_H
#define DD_CTL_BAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct dd_bar {
    const char *what; /* "users" */
    bool terminal;
    struct dd_clock clock;
    struct dd_mono begun, drawn;
};

void dd_bar_begin(struct dd_bar *b, const char *what);
/* total 0: not known. */
void dd_bar_show(struct dd_bar *b, uint64_t done, uint64_t total);
/* Removes it. */
void dd_bar_end(struct dd_bar *b);

/* Waits; false: interrupted. */
bool dd_ctl_wait_ms(long ms);

#endif
