/* Binds a hiredis context to a loop's event_base. Private to lib/hot. */
#ifndef DD_HOT_REDIS_EVENTS_H
#define DD_HOT_REDIS_EVENTS_H

#include "base/err.h"
#include "loop/loop.h"

struct redisAsyncContext;

/* From now on the loop reads and writes for the context, until hiredis frees it. DD_NO_MEMORY: nothing is
 * bound. */
enum dd_err dd_redis_attach(struct redisAsyncContext *ac, struct dd_loop *loop) DD_MUST_USE;

#endif
