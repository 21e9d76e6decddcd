/* Waiting for a condition with a deadline. Conditions are of the monotonic clock, so that stepping the
 * system's time neither ends a wait nor prolongs it.
 *
 *     struct timespec until = dd_until_ms(1000);
 *     while (!ready && dd_cond_wait_until(&wake, &lock, &until)) {
 *     }
 *
 * Threads: any. */
#ifndef DD_BASE_WAIT_H
#define DD_BASE_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Destroy it by pthread_cond_destroy. */
void dd_cond_init(pthread_cond_t *c);

/* The moment us microseconds (ms milliseconds) from now, at least 0. */
struct timespec dd_until_us(int64_t us);
struct timespec dd_until_ms(int64_t ms);

/* As pthread_cond_timedwait, of a condition made here, with lock held. false: the time is over. */
bool dd_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, const struct timespec *until);

#endif
