/* A blocking connection to Redis for threads that may block (the wheel, start and stop). Private to lib/hot.
 *
 *   dd_sync_begin            connects if there is no connection and the back-off has passed
 *   write s->command, dd_sync_add      once for each command of a pipeline
 *   dd_sync_next             once for each of them, in order
 *
 * Every wait on the socket is bounded: connect_timeout_ms to connect, and DD_SYNC_TIMEOUT_MS or timeout_ms,
 * whichever is longer, for each reply. After any failure the connection is closed and the next begin makes a
 * new one.
 *
 * Threads: one at a time. Ownership: a reply is valid until the next dd_sync_next, begin or close. */
#ifndef DD_HOT_SYNC_H
#define DD_HOT_SYNC_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "hot/hot.h"
#include "hot/redis_reader.h"
#include "hot/resolve.h"

/* The wheel moves pages of many kilobytes and nobody waits for it: patience costs less than a repeated page.
 */
#define DD_SYNC_TIMEOUT_MS 1000

struct redisContext;
struct redisReply;

struct dd_sync {
    const struct dd_hot_options *o;
    struct dd_resolve *resolve; /* NULL: a Unix socket */
    struct redisContext *c;
    struct dd_redis_replies replies;
    struct redisReply *reply;
    struct dd_buf command; /* the caller writes one command at a time here */
    int64_t retry_at_ms;   /* monotonic */
    unsigned failures;
    char error[128];
};

/* Zeroed but for o and resolve to begin. */
void dd_sync_close(struct dd_sync *s);

/* DD_UNAVAILABLE: away, or the back-off has not passed (s->error says why). */
enum dd_err dd_sync_begin(struct dd_sync *s) DD_MUST_USE;
/* Appends s->command and empties it. DD_NO_MEMORY: the connection is closed. */
enum dd_err dd_sync_add(struct dd_sync *s) DD_MUST_USE;
/* The next reply, which may be an error reply; DD_UNAVAILABLE, also when this server cannot serve now
 * (LOADING, READONLY, ...), which closes the connection. */
enum dd_err dd_sync_next(struct dd_sync *s, const struct redisReply **reply) DD_MUST_USE;
/* begin is done: one command, one reply. An error reply is DD_IO, its text in s->error. */
enum dd_err dd_sync_call(struct dd_sync *s, const struct redisReply **reply) DD_MUST_USE;

/* Gives the connection up, so that replies which nobody will read cannot be taken for others. */
void dd_sync_fail(struct dd_sync *s, const char *what, const char *detail);

#endif
