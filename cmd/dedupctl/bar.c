#include "bar.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define WIDTH     30
#define REDRAW_MS 200

void dd_bar_begin(struct dd_bar *b, const char *what)
{
    *b = (struct dd_bar){.what = what, .terminal = isatty(STDERR_FILENO)};
    dd_clock_init(&b->clock, 0);
    b->begun = b->drawn = dd_clock_mono(&b->clock);
}

void dd_bar_show(struct dd_bar *b, uint64_t done, uint64_t total)
{
    struct dd_mono now = dd_clock_mono(&b->clock);
    if (!b->terminal || dd_mono_ms_between(b->drawn, now) < REDRAW_MS) return;
    b->drawn = now;
    double seconds = (double)(now.ns - b->begun.ns) / 1e9, rate = (double)done / seconds;
    if (!total) {
        fprintf(stderr, "\r%llu %s, %.0f/s\033[K", (unsigned long long)done, b->what, rate);
        return;
    }
    double share = done < total ? (double)done / (double)total : 1;
    long left = rate > 0 ? (long)((double)(total > done ? total - done : 0) / rate) : 0;
    int filled = (int)(share * WIDTH);
    fprintf(stderr, "\r[%.*s%*s] %3.0f%%  %llu %s, %.0f/s, %ld:%02ld left\033[K", filled,
            "##############################", WIDTH - filled, "", 100 * share, (unsigned long long)done,
            b->what, rate, left / 60, left % 60);
}

void dd_bar_end(struct dd_bar *b)
{
    if (b->terminal) fputs("\r\033[K", stderr);
}

bool dd_ctl_wait_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    return nanosleep(&t, NULL) == 0;
}
