/* One pipelining connection to Redis on one loop. Private to lib/hot.
 *
 *   DOWN --- back-off ---> CONNECTING ---> HELLO ---> UP
 *     ^                        |             |         |
 *     +------ any failure -----+-------------+--- FAILING (dropped in the next turn, outside every callback)
 *
 * Only in UP are commands taken: while Redis is away calls fail at once. A connection whose oldest command
 * has waited for timeout_ms is dropped, and all its commands are answered NULL: hiredis can neither time out
 * nor cancel one. Back-off doubles from 50 ms to retry_max_ms, with jitter; connecting and hello together
 * have connect_timeout_ms.
 *
 * Replies that say that this server cannot serve now (LOADING, MASTERDOWN, NOAUTH, READONLY) drop the
 * connection too: after a fail-over the next attempt may meet the new master.
 *
 * Threads: the loop's thread. Ownership: a reply belongs to the connection and is freed when the callback
 * returns. */
#ifndef DD_HOT_REDIS_CONN_H
#define DD_HOT_REDIS_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "hot/hot.h"
#include "hot/redis_reader.h"
#include "hot/resolve.h"
#include "loop/loop.h"

struct redisReply;
struct redisAsyncContext;

/* reply NULL: the command was not answered (and may or may not have been carried out). Runs exactly once. */
typedef void (*dd_redis_fn)(void *arg, struct redisReply *reply);

enum dd_redis_state { DD_REDIS_DOWN, DD_REDIS_CONNECTING, DD_REDIS_HELLO, DD_REDIS_UP, DD_REDIS_FAILING };

struct dd_redis_command {
    dd_redis_fn fn; /* NULL: nobody waits */
    void *arg;
    int64_t sent_ns;
};

struct dd_redis {
    const struct dd_hot_options *o;
    struct dd_resolve *resolve; /* NULL: a Unix socket */
    struct dd_loop *loop;
    /* Sends the first commands through dd_redis_send; ends in dd_redis_opened or dd_redis_fail. */
    void (*hello)(void *arg);
    /* UP was reached or left; reason names the failure. Also for every failed attempt. */
    void (*changed)(void *arg, bool up, const char *reason);
    void *arg;

    enum dd_redis_state state;
    struct redisAsyncContext *ac;
    struct dd_timer timer;
    struct dd_redis_replies replies; /* of the reply being read or handled */
    struct dd_redis_command *ring;   /* in flight, oldest first; a power of two */
    unsigned ring_size, head, inflight;
    unsigned failures; /* since the last answer */
    bool grace;        /* the oldest command is overdue, but bytes have arrived */
    uint64_t random;
    uint64_t timeouts; /* connections dropped because of silence */
    char error[128];
};

/* The caller has set o, resolve, loop, hello, changed, arg, random (a seed); the rest is zero. Begins to
 * connect. */
void dd_redis_open(struct dd_redis *r);
/* All commands in flight are answered NULL here; changed is not called. */
void dd_redis_close(struct dd_redis *r);

static inline bool dd_redis_is_up(const struct dd_redis *r)
{
    return r->state == DD_REDIS_UP;
}

/* Whether n commands may be sent now: DD_OK (then dd_redis_send will take them), DD_UNAVAILABLE, DD_BUSY
 * (max_inflight or max_output_bytes is reached), DD_NO_MEMORY. */
enum dd_err dd_redis_may_send(struct dd_redis *r, unsigned n) DD_MUST_USE;
/* Whether less than half of the caps is used: what nobody waits for is sent only then. */
bool dd_redis_has_room(const struct dd_redis *r);

/* command: one command in the Redis protocol (resp.h); copied. Not DD_OK: fn never runs. */
enum dd_err dd_redis_send(struct dd_redis *r, struct dd_slice command, dd_redis_fn fn, void *arg) DD_MUST_USE;

/* From hello's last reply. */
void dd_redis_opened(struct dd_redis *r);
/* Gives the connection up, from anywhere; commands in flight are answered NULL in the next turn. */
void dd_redis_fail(struct dd_redis *r, const char *what, const char *detail);

/* Whether an error reply means that this server cannot serve now. */
bool dd_redis_is_refusal(const char *error);

#endif
