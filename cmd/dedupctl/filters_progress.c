#include "filters_progress.h"

#include <pthread.h>
#include <time.h>

static sigset_t stopping_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

void dd_progress_begin(struct dd_progress *p, uint64_t total)
{
    sigset_t set = stopping_signals();
    *p = (struct dd_progress){.total = total};
    dd_bar_begin(&p->bar, "items");
    pthread_sigmask(SIG_BLOCK, &set, &p->before);
}

enum dd_err dd_progress_step(struct dd_progress *p, uint64_t n, const char *label)
{
    sigset_t set = stopping_signals();
    struct timespec at_once = {0};
    p->done += n;
    p->bar.what = label;
    dd_bar_show(&p->bar, p->done, p->total);
    return sigtimedwait(&set, NULL, &at_once) > 0 ? DD_SHUTDOWN : DD_OK;
}

void dd_progress_end(struct dd_progress *p)
{
    dd_bar_end(&p->bar);
    pthread_sigmask(SIG_SETMASK, &p->before, NULL);
}
