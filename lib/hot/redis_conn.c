/* The life of a hiredis context, and what must hold (each learned from hiredis 0.14's source and from
 * valgrind):
 *
 * - A failed connect calls onConnect(ERR) and never onDisconnect; a lost connection answers all commands NULL
 * and then calls onDisconnect. In both the context is freed by hiredis after the callback: there we only
 * forget it.
 * - redisAsyncFree outside a callback answers all commands NULL, then calls onDisconnect, then frees. So we
 * free only from our timer, and have forgotten the context before.
 * - When redisAsyncConnect itself reports an error nothing will be called, and the context is ours to free.
 * - Commands are refused (never answered) while a context goes down: nothing is sent but in HELLO and UP, and
 * the first NULL reply leaves these states.
 *
 * Each command's callback and time of sending stand in a ring of our own, since replies come in the order of
 * commands: the oldest is at its head, and one timer watches it. */
#include "hot/redis_conn.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <hiredis/async.h>

#include "base/hash.h"
#include "hot/redis_events.h"
#include "hot/redis_reader.h"

#define BACKOFF_FIRST_MS 50

static void set_error(struct dd_redis *r, const char *what, const char *detail)
{
    snprintf(r->error, sizeof r->error, "%s: %.100s", what, detail && *detail ? detail : "closed");
}

static int64_t backoff_ms(struct dd_redis *r)
{
    int64_t most = r->o->retry_max_ms > BACKOFF_FIRST_MS ? r->o->retry_max_ms : BACKOFF_FIRST_MS;
    int64_t delay = most;
    if (r->failures < 20 && ((int64_t)BACKOFF_FIRST_MS << r->failures) < most)
        delay = (int64_t)BACKOFF_FIRST_MS << r->failures;
    r->random = dd_mix64(r->random + 0x9e3779b97f4a7c15ULL);
    return delay / 2 + (int64_t)(r->random % (uint64_t)(delay / 2 + 1));
}

/* The context is gone or about to go. */
static void gone(struct dd_redis *r)
{
    bool told = r->state == DD_REDIS_FAILING;
    r->ac = NULL;
    r->state = DD_REDIS_DOWN;
    dd_timer_start(&r->timer, backoff_ms(r));
    r->failures++;
    if (r->resolve) dd_resolve_refresh(r->resolve);
    if (!told) r->changed(r->arg, false, r->error);
}

static struct dd_redis_command ring_pop(struct dd_redis *r)
{
    struct dd_redis_command c = r->ring[r->head];
    r->head = (r->head + 1) & (r->ring_size - 1);
    r->inflight--;
    return c;
}

static enum dd_err ring_reserve(struct dd_redis *r, unsigned n)
{
    if (r->inflight + n <= r->ring_size) return DD_OK;
    unsigned size = r->ring_size ? r->ring_size : 64;
    while (size < r->inflight + n)
        size *= 2;
    struct dd_redis_command *ring = malloc(size * sizeof *ring);
    if (!ring) return DD_NO_MEMORY;
    for (unsigned i = 0; i < r->inflight; i++)
        ring[i] = r->ring[(r->head + i) & (r->ring_size - 1)];
    free(r->ring);
    r->ring = ring;
    r->ring_size = size;
    r->head = 0;
    return DD_OK;
}

bool dd_redis_is_refusal(const char *error)
{
    static const char *const begins[] = {"LOADING", "MASTERDOWN", "NOAUTH", "READONLY", "WRONGPASS"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(error, begins[i], strlen(begins[i])) == 0) return true;
    return false;
}

/* A server that refuses a client says why and closes at once: a write then fails before the reason was read.
 */
static const char *why_lost(const struct redisAsyncContext *ac, char words[100])
{
    ssize_t n = recv(ac->c.fd, words, 99, MSG_DONTWAIT);
    if (n < 2 || words[0] != '-') return ac->errstr;
    words[n] = 0;
    words[strcspn(words, "\r\n")] = 0;
    return words + 1;
}

static void on_reply(struct redisAsyncContext *ac, void *reply_arg, void *unused)
{
    (void)unused;
    struct dd_redis *r = ac->data;
    struct redisReply *reply = reply_arg;
    struct dd_redis_command c = ring_pop(r);
    r->grace = false;
    if (!reply) {
        char words[100];
        if (r->ac == ac && r->state != DD_REDIS_FAILING) dd_redis_fail(r, "connection", why_lost(ac, words));
    } else if (r->state == DD_REDIS_UP) {
        r->failures = 0;
        if (reply->type == REDIS_REPLY_ERROR && dd_redis_is_refusal(reply->str))
            dd_redis_fail(r, "redis", reply->str);
    }
    if (c.fn) c.fn(c.arg, reply);
}

static void on_connect(const struct redisAsyncContext *ac, int status)
{
    struct dd_redis *r = ac->data;
    if (r->ac != ac) return;
    if (status != REDIS_OK) {
        set_error(r, "connect", ac->c.errstr);
        gone(r);
        return;
    }
    r->state = DD_REDIS_HELLO;
    r->hello(r->arg);
}

static void on_disconnect(const struct redisAsyncContext *ac, int status)
{
    struct dd_redis *r = ac->data;
    if (r->ac != ac) return; /* we are freeing it */
    const char *why = status == REDIS_OK ? "" : ac->errstr;
    if (r->replies.unasked) why = "it sent a reply that nobody asked for";
    if (r->state != DD_REDIS_FAILING) set_error(r, "connection", why);
    gone(r);
}

static struct redisAsyncContext *start_connect(struct dd_redis *r)
{
    if (!r->resolve) return redisAsyncConnectUnix(r->o->path);
    char address[DD_RESOLVE_TEXT];
    if (dd_resolve_get(r->resolve, r->failures, address)) {
        set_error(r, "connect", "the host name cannot be resolved");
        return NULL;
    }
    return redisAsyncConnect(address, r->o->port);
}

static void connect_now(struct dd_redis *r)
{
    set_error(r, "connect", "out of memory");
    struct redisAsyncContext *ac = start_connect(r);
    if (!ac) {
        gone(r);
        return;
    }
    r->replies.awaited = &r->inflight;
    if (ac->err || dd_redis_build_in(ac->c.reader, &r->replies) || dd_redis_attach(ac, r->loop)) {
        if (ac->err) set_error(r, "connect", ac->errstr);
        redisAsyncFree(ac);
        gone(r);
        return;
    }
    ac->data = r;
    r->ac = ac;
    r->state = DD_REDIS_CONNECTING;
    r->grace = false;
    redisAsyncSetDisconnectCallback(ac, on_disconnect);
    redisAsyncSetConnectCallback(ac, on_connect);
    dd_timer_start(&r->timer, r->o->connect_timeout_ms);
}

/* Frees the context; its commands are answered NULL inside. Only from the timer and from close. */
static void drop(struct dd_redis *r)
{
    struct redisAsyncContext *ac = r->ac;
    gone(r);
    if (ac) redisAsyncFree(ac);
}

static bool has_bytes(const struct dd_redis *r)
{
    struct pollfd p = {.fd = r->ac->c.fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

/* UP: is the oldest command overdue? If bytes wait to be read, this process was late, not Redis: one tick
 * more. */
static void check_oldest(struct dd_redis *r)
{
    if (r->inflight == 0) return;
    int64_t waited_ms = (dd_loop_now(r->loop).ns - r->ring[r->head].sent_ns) / 1000000;
    if (waited_ms < r->o->timeout_ms) {
        dd_timer_start(&r->timer, r->o->timeout_ms - waited_ms);
    } else if (!r->grace && has_bytes(r)) {
        r->grace = true;
        dd_timer_start(&r->timer, 0);
    } else {
        r->timeouts++;
        set_error(r, "redis", "no answer in time");
        drop(r);
    }
}

static void on_timer(void *arg)
{
    struct dd_redis *r = arg;
    switch (r->state) {
    case DD_REDIS_DOWN:
        connect_now(r);
        break;
    case DD_REDIS_UP:
        check_oldest(r);
        break;
    case DD_REDIS_FAILING:
        drop(r);
        break;
    case DD_REDIS_CONNECTING:
    case DD_REDIS_HELLO:
        r->timeouts++;
        set_error(r, "connect", "no answer in time");
        drop(r);
        break;
    }
}

void dd_redis_open(struct dd_redis *r)
{
    dd_timer_init(&r->timer, r->loop, on_timer, r);
    connect_now(r);
}

void dd_redis_close(struct dd_redis *r)
{
    struct redisAsyncContext *ac = r->ac;
    r->ac = NULL;
    r->state = DD_REDIS_DOWN;
    if (ac) redisAsyncFree(ac);
    dd_timer_stop(&r->timer);
    dd_arena_free(&r->replies.arena);
    free(r->ring);
    r->ring = NULL;
    r->ring_size = 0;
}

static size_t unsent_bytes(const struct dd_redis *r)
{
    return sdslen(r->ac->c.obuf);
}

enum dd_err dd_redis_may_send(struct dd_redis *r, unsigned n)
{
    if (r->state != DD_REDIS_UP) return DD_UNAVAILABLE;
    if (r->inflight + n > r->o->max_inflight) return DD_BUSY;
    if (unsent_bytes(r) >= r->o->max_output_bytes) return DD_BUSY;
    return ring_reserve(r, n);
}

bool dd_redis_has_room(const struct dd_redis *r)
{
    return r->state == DD_REDIS_UP && r->inflight < r->o->max_inflight / 2 &&
           unsent_bytes(r) < r->o->max_output_bytes / 2;
}

enum dd_err dd_redis_send(struct dd_redis *r, struct dd_slice command, dd_redis_fn fn, void *arg)
{
    if (r->state != DD_REDIS_UP && r->state != DD_REDIS_HELLO) return DD_UNAVAILABLE;
    if (ring_reserve(r, 1)) return DD_NO_MEMORY;
    if (redisAsyncFormattedCommand(r->ac, on_reply, NULL, (const char *)command.ptr, command.len) != REDIS_OK)
        return DD_UNAVAILABLE;
    struct dd_redis_command *c = &r->ring[(r->head + r->inflight) & (r->ring_size - 1)];
    *c = (struct dd_redis_command){fn, arg, dd_loop_now(r->loop).ns};
    r->inflight++;
    if (r->state == DD_REDIS_UP && !dd_timer_is_set(&r->timer)) dd_timer_start(&r->timer, r->o->timeout_ms);
    return DD_OK;
}

void dd_redis_opened(struct dd_redis *r)
{
    if (r->state != DD_REDIS_HELLO) return;
    r->state = DD_REDIS_UP;
    r->error[0] = 0;
    dd_timer_stop(&r->timer);
    if (r->inflight) dd_timer_start(&r->timer, r->o->timeout_ms);
    r->changed(r->arg, true, "");
}

void dd_redis_fail(struct dd_redis *r, const char *what, const char *detail)
{
    if (r->state == DD_REDIS_DOWN || r->state == DD_REDIS_FAILING) return;
    set_error(r, what, detail);
    r->state = DD_REDIS_FAILING;
    dd_timer_start(&r->timer, 0);
    r->changed(r->arg, false, r->error);
}
