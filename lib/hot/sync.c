#include "hot/sync.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "hot/redis_conn.h"
#include "hot/redis_reader.h"
#include "hot/resp.h"

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct timeval timeval_of(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

static int64_t patience_ms(const struct dd_sync *s)
{
    return s->o->timeout_ms > DD_SYNC_TIMEOUT_MS ? s->o->timeout_ms : DD_SYNC_TIMEOUT_MS;
}

static void drop_reply(struct dd_sync *s)
{
    if (s->reply) dd_arena_reset(&s->replies.arena);
    s->reply = NULL;
}

static void disconnect(struct dd_sync *s)
{
    drop_reply(s);
    if (s->c) redisFree(s->c);
    s->c = NULL;
}

void dd_sync_close(struct dd_sync *s)
{
    disconnect(s);
    dd_arena_free(&s->replies.arena);
    dd_buf_free(&s->command);
}

void dd_sync_fail(struct dd_sync *s, const char *what, const char *detail)
{
    snprintf(s->error, sizeof s->error, "%s: %.100s", what, detail && *detail ? detail : "closed");
    disconnect(s);
    int64_t delay = s->failures < 10 ? (int64_t)50 << s->failures : s->o->retry_max_ms;
    if (delay > s->o->retry_max_ms) delay = s->o->retry_max_ms;
    s->retry_at_ms = now_ms() + delay;
    s->failures++;
    if (s->resolve) dd_resolve_refresh(s->resolve);
}

static enum dd_err connect_now(struct dd_sync *s)
{
    struct timeval limit = timeval_of(s->o->connect_timeout_ms);
    char address[DD_RESOLVE_TEXT];
    if (!s->resolve) {
        s->c = redisConnectUnixWithTimeout(s->o->path, limit);
    } else if (dd_resolve_get(s->resolve, s->failures, address)) {
        dd_sync_fail(s, "connect", "the host name cannot be resolved");
        return DD_UNAVAILABLE;
    } else {
        s->c = redisConnectWithTimeout(address, s->o->port, limit);
    }
    bool connected = s->c && !s->c->err;
    if (connected && dd_redis_build_in(s->c->reader, &s->replies) == DD_OK) return DD_OK;
    char why[128];
    snprintf(why, sizeof why, "%s", s->c && !connected ? s->c->errstr : "out of memory");
    dd_sync_fail(s, "connect", why);
    return DD_UNAVAILABLE;
}

/* One command of the hello; any error reply ends the attempt. */
static enum dd_err say(struct dd_sync *s, const char *what)
{
    const struct redisReply *reply;
    if (dd_sync_add(s) || dd_sync_next(s, &reply)) return DD_UNAVAILABLE;
    if (reply->type != REDIS_REPLY_ERROR) return DD_OK;
    char why[128];
    snprintf(why, sizeof why, "%s", reply->str);
    dd_sync_fail(s, what, why);
    return DD_UNAVAILABLE;
}

static enum dd_err hello(struct dd_sync *s)
{
    if (redisSetTimeout(s->c, timeval_of(patience_ms(s))) != REDIS_OK) {
        dd_sync_fail(s, "connect", "setsockopt");
        return DD_UNAVAILABLE;
    }
    enum dd_err err = DD_OK;
    dd_buf_reset(&s->command);
    if (s->o->password) {
        dd_resp_auth(&s->command, s->o->user, s->o->password);
        err = say(s, "auth");
    }
    if (!err && s->o->db) {
        dd_resp_begin(&s->command, 2, "SELECT");
        dd_resp_arg_i64(&s->command, s->o->db);
        err = say(s, "select");
    }
    if (err) return err;
    dd_resp_begin(&s->command, 1, "PING");
    return say(s, "redis");
}

/* Nothing is owed between calls: what can be read is the end of the connection, or what nobody asked for. */
static bool is_stale(const struct dd_sync *s)
{
    struct pollfd p = {.fd = s->c->fd, .events = POLLIN};
    return poll(&p, 1, 0) != 0;
}

enum dd_err dd_sync_begin(struct dd_sync *s)
{
    drop_reply(s);
    dd_buf_reset(&s->command);
    if (s->c && is_stale(s)) disconnect(s);
    if (s->c) return DD_OK;
    if (now_ms() < s->retry_at_ms) return DD_UNAVAILABLE;
    enum dd_err err = connect_now(s);
    return err ? err : hello(s);
}

enum dd_err dd_sync_add(struct dd_sync *s)
{
    if (!s->c) return DD_UNAVAILABLE;
    bool good = dd_buf_ok(&s->command) &&
                redisAppendFormattedCommand(s->c, (const char *)s->command.data, s->command.len) == REDIS_OK;
    dd_buf_reset(&s->command);
    if (good) return DD_OK;
    dd_sync_fail(s, "redis", "out of memory");
    return DD_NO_MEMORY;
}

/* NULL: *why says why. The time is for the whole reply, however it drips; hiredis' own is for each read. */
static void *await_reply(struct dd_sync *s, const char **why)
{
    int64_t until = now_ms() + patience_ms(s);
    void *got = NULL;
    int sent = 0;
    *why = s->c->errstr;
    while (!sent)
        if (redisBufferWrite(s->c, &sent) != REDIS_OK) return NULL;
    for (;;) {
        if (redisGetReplyFromReader(s->c, &got) != REDIS_OK) return NULL;
        if (got) return got;
        int64_t left = until - now_ms();
        struct pollfd p = {.fd = s->c->fd, .events = POLLIN};
        if (left <= 0 || (poll(&p, 1, (int)left) == 0)) {
            *why = "no answer in time";
            return NULL;
        }
        if (redisBufferRead(s->c) != REDIS_OK) return NULL;
    }
}

enum dd_err dd_sync_next(struct dd_sync *s, const struct redisReply **reply)
{
    drop_reply(s);
    if (!s->c) return DD_UNAVAILABLE;
    const char *reason;
    void *got = await_reply(s, &reason);
    if (!got) {
        char why[128];
        snprintf(why, sizeof why, "%s", reason);
        bool silent = strstr(why, "temporarily unavailable") != NULL; /* EAGAIN: the socket's time-out */
        dd_sync_fail(s, "redis", silent ? "no answer in time" : why);
        return DD_UNAVAILABLE;
    }
    s->reply = got;
    *reply = got;
    if (s->reply->type == REDIS_REPLY_ERROR && dd_redis_is_refusal(s->reply->str)) {
        char why[128];
        snprintf(why, sizeof why, "%s", s->reply->str);
        dd_sync_fail(s, "redis", why);
        return DD_UNAVAILABLE;
    }
    s->failures = 0;
    return DD_OK;
}

enum dd_err dd_sync_call(struct dd_sync *s, const struct redisReply **reply)
{
    enum dd_err err = dd_sync_add(s);
    if (!err) err = dd_sync_next(s, reply);
    if (err || (*reply)->type != REDIS_REPLY_ERROR) return err;
    snprintf(s->error, sizeof s->error, "redis: %.100s", (*reply)->str);
    return DD_IO;
}
