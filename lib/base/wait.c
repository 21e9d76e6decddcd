#include "base/wait.h"

void dd_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

struct timespec dd_until_us(int64_t us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += us / 1000000;
    t.tv_nsec += us % 1000000 * 1000;
    if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
    return t;
}

struct timespec dd_until_ms(int64_t ms)
{
    return dd_until_us(ms * 1000);
}

bool dd_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, const struct timespec *until)
{
    return pthread_cond_timedwait(c, lock, until) == 0;
}
