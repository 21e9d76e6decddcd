#include "filters_progress.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 30, REDRAW_MS = 200 };

static sigset_t stopping_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

void dd_progress_begin(struct dd_progress *p, uint64_t total, const char *unit)
{
    sigset_t set = stopping_signals();
    *p = (struct dd_progress){.total = total ? total : 1, .unit = unit, .terminal = isatty(STDERR_FILENO)};
    dd_clock_init(&p->clock, 0);
    p->start = p->drawn = dd_clock_mono(&p->clock);
    pthread_sigmask(SIG_BLOCK, &set, &p->before);
}

static void draw(const struct dd_progress *p, const char *label, double seconds)
{
    double share = (double)p->done / (double)p->total, rate = (double)p->done / seconds;
    int filled = share < 1 ? (int)(share * WIDTH) : WIDTH;
    long left = share < 1 ? (long)((1 - share) / share * seconds + 0.5) : 0;
    fprintf(stderr, "\r%-20.20s [%.*s%*s] %3.0f%%  %.2f million %s/s  %ld:%02ld left \033[K", label, filled,
            "##############################", WIDTH - filled, "", 100 * share, rate / 1e6, p->unit, left / 60,
            left % 60);
}

enum dd_err dd_progress_step(struct dd_progress *p, uint64_t n, const char *label)
{
    sigset_t set = stopping_signals();
    struct timespec at_once = {0};
    struct dd_mono now = dd_clock_mono(&p->clock);
    p->done += n;
    if (p->terminal && p->done > 0 && dd_mono_ms_between(p->drawn, now) >= REDRAW_MS) {
        p->drawn = now;
        draw(p, label, (double)(now.ns - p->start.ns) / 1e9);
    }
    return sigtimedwait(&set, NULL, &at_once) > 0 ? DD_SHUTDOWN : DD_OK;
}

void dd_progress_end(struct dd_progress *p)
{
    if (p->terminal) fputs("\r\033[K", stderr);
    pthread_sigmask(SIG_SETMASK, &p->before, NULL);
}
