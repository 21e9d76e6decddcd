/* Reading the pending of a batch of users, and removing exactly what was read.
 *
 * SCARD first, for all: sets up to 10,000 are then read whole in one pipeline, larger ones in pages, so that
 * no single command keeps Redis for long. Pipelines of reads are cut at 64 users: the replies of one wait in
 * Redis' memory. Removals have short replies, and a Redis that syncs its log does so once for what a pipeline
 * brings at a time, so theirs are longer: 16,384 members. */
#include <hiredis/hiredis.h>

#include "base/log.h"
#include "hot/redis_reader.h"
#include "hot/resp.h"
#include "hot/staging_internal.h"

#define PIPELINE  64
#define WHOLE_MAX 10000
#define PIECE     1000
#define REMOVALS  16384

/* ---- reading ---- */

static void take_members(struct dd_hot_staging *s, const struct redisReply *list)
{
    for (size_t i = 0; i < list->elements; i++) {
        uint32_t fp;
        if (dd_redis_read_fp(list->element[i], &fp))
            dd_buf_add(&s->fps, &fp, sizeof fp);
        else
            dd_count(s->h->count.bad_member, 1);
    }
}

/* One command of one argument for each of the users that `wanted` likes. */
static enum dd_err send_each(struct dd_hot_staging *s, const char *command, const struct dd_hot_user *users,
                             unsigned n, bool (*wanted)(const struct dd_hot_user *u))
{
    enum dd_err err = dd_sync_begin(&s->sync);
    for (unsigned i = 0; i < n && !err; i++) {
        if (!wanted(&users[i])) continue;
        dd_staging_pending_key(s, &users[i]);
        dd_resp_begin(&s->sync.command, 2, command);
        dd_staging_arg_key(s);
        err = dd_sync_add(&s->sync);
    }
    return err;
}

static bool is_any(const struct dd_hot_user *u)
{
    (void)u;
    return true;
}

static bool is_small(const struct dd_hot_user *u)
{
    return u->err == DD_OK && u->n > 0 && u->n <= WHOLE_MAX;
}

/* Fills n with the sizes, err with DD_CORRUPT for what is not a set. */
static enum dd_err read_sizes(struct dd_hot_staging *s, struct dd_hot_user *users, unsigned n)
{
    enum dd_err err = send_each(s, "SCARD", users, n, is_any);
    for (unsigned i = 0; i < n && !err; i++) {
        int64_t size = 0;
        users[i].err = dd_staging_next_number(s, &size);
        users[i].n = (unsigned)size;
        users[i].fps = NULL;
        if (users[i].err == DD_UNAVAILABLE) err = DD_UNAVAILABLE;
    }
    return err;
}

/* fps become offsets into s->fps until all are read. */
static void begin_fps(const struct dd_hot_staging *s, struct dd_hot_user *u)
{
    u->fps = (const uint32_t *)(uintptr_t)s->fps.len;
}

static void end_fps(const struct dd_hot_staging *s, struct dd_hot_user *u)
{
    u->n = (unsigned)((s->fps.len - (uintptr_t)u->fps) / sizeof(uint32_t));
}

static enum dd_err read_small(struct dd_hot_staging *s, struct dd_hot_user *users, unsigned n)
{
    enum dd_err err = send_each(s, "SMEMBERS", users, n, is_small);
    for (unsigned i = 0; i < n && !err; i++) {
        const struct redisReply *reply;
        if (!is_small(&users[i])) continue;
        err = dd_sync_next(&s->sync, &reply);
        if (err) break;
        begin_fps(s, &users[i]);
        if (reply->type == REDIS_REPLY_ARRAY)
            take_members(s, reply);
        else
            users[i].err = dd_staging_error(s, reply);
        end_fps(s, &users[i]);
    }
    return err;
}

static enum dd_err read_page(struct dd_hot_staging *s, char cursor[24])
{
    const struct redisReply *reply;
    dd_resp_begin(&s->sync.command, 5, "SSCAN");
    dd_staging_arg_key(s);
    dd_resp_arg_str(&s->sync.command, cursor);
    dd_resp_arg_str(&s->sync.command, "COUNT");
    dd_resp_arg_i64(&s->sync.command, PIECE);
    enum dd_err err = dd_sync_add(&s->sync);
    if (!err) err = dd_sync_next(&s->sync, &reply);
    if (err) return err;
    bool sound = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                 reply->element[0]->type == REDIS_REPLY_STRING &&
                 reply->element[1]->type == REDIS_REPLY_ARRAY && reply->element[0]->len < 24;
    if (!sound) return dd_staging_error(s, reply);
    memcpy(cursor, reply->element[0]->str, reply->element[0]->len + 1);
    take_members(s, reply->element[1]);
    return DD_OK;
}

static enum dd_err read_large(struct dd_hot_staging *s, struct dd_hot_user *u)
{
    enum dd_err err = dd_sync_begin(&s->sync);
    char cursor[24] = "0";
    dd_staging_pending_key(s, u);
    begin_fps(s, u);
    while (!err) {
        err = read_page(s, cursor);
        if (strcmp(cursor, "0") == 0) break;
    }
    end_fps(s, u);
    if (err == DD_CORRUPT || err == DD_IO) u->err = err;
    return err == DD_UNAVAILABLE || err == DD_NO_MEMORY ? err : DD_OK;
}

static enum dd_err read_some(struct dd_hot_staging *s, struct dd_hot_user *users, unsigned n)
{
    enum dd_err err = read_sizes(s, users, n);
    if (!err) err = read_small(s, users, n);
    for (unsigned i = 0; i < n && !err; i++)
        if (users[i].err == DD_OK && users[i].n > WHOLE_MAX && users[i].fps == NULL)
            err = read_large(s, &users[i]);
    return err;
}

static void point(const struct dd_hot_staging *s, struct dd_hot_user *users, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct dd_hot_user *u = &users[i];
        if (u->err) u->n = 0;
        u->fps = u->n ? (const uint32_t *)(const void *)(s->fps.data + (uintptr_t)u->fps) : NULL;
    }
}

enum dd_err dd_hot_staging_read(struct dd_hot_staging *s, struct dd_hot_user *users, unsigned n)
{
    enum dd_err err = DD_OK;
    dd_buf_reset(&s->fps);
    for (unsigned i = 0; i < n && !err; i += PIPELINE)
        err = read_some(s, users + i, n - i < PIPELINE ? n - i : PIPELINE);
    if (!err && !dd_buf_ok(&s->fps)) err = DD_NO_MEMORY;
    if (!err) {
        point(s, users, n);
        return DD_OK;
    }
    for (unsigned i = 0; i < n; i++) {
        users[i].n = 0;
        users[i].fps = NULL;
    }
    return err;
}

/* ---- removing ---- */

/* Plain SREMs: each is one step in Redis, and a script around it cost three times as much (11 against 3.5 us
 * of Redis' CPU for 20 members). */
static enum dd_err send_piece(struct dd_hot_staging *s, const struct dd_hot_user *u, unsigned from,
                              unsigned n)
{
    dd_staging_pending_key(s, u);
    dd_resp_begin(&s->sync.command, 2 + n, "SREM");
    dd_staging_arg_key(s);
    for (unsigned i = 0; i < n; i++)
        dd_resp_arg_i64(&s->sync.command, (int32_t)u->fps[from + i]);
    return dd_sync_add(&s->sync);
}

static enum dd_err send_removal(struct dd_hot_staging *s, const struct dd_hot_user *u, unsigned *sent)
{
    enum dd_err err = DD_OK;
    for (unsigned from = 0; from < u->n && !err; from += PIECE) {
        err = send_piece(s, u, from, u->n - from < PIECE ? u->n - from : PIECE);
        ++*sent;
    }
    return err;
}

/* All replies are read, so that none stays behind; a key that has become another type meanwhile has nothing
 * of ours to remove. */
static enum dd_err take_removals(struct dd_hot_staging *s, unsigned sent)
{
    enum dd_err result = DD_OK;
    for (; sent; sent--) {
        const struct redisReply *reply;
        enum dd_err err = dd_sync_next(&s->sync, &reply);
        if (err) return err;
        if (reply->type == REDIS_REPLY_INTEGER) continue;
        err = dd_staging_error(s, reply);
        if (err != DD_CORRUPT && !result) result = err;
    }
    return result;
}

/* Users from `from` on in one pipeline; *to: the first that had no place in it. */
static enum dd_err remove_some(struct dd_hot_staging *s, const struct dd_hot_user *users, unsigned from,
                               unsigned n, unsigned *to)
{
    unsigned sent = 0, members = 0;
    enum dd_err err = dd_sync_begin(&s->sync);
    for (*to = from; *to < n && members < REMOVALS && !err; ++*to) {
        members += users[*to].n;
        err = send_removal(s, &users[*to], &sent);
    }
    return err ? err : take_removals(s, sent);
}

enum dd_err dd_hot_staging_remove(struct dd_hot_staging *s, const struct dd_hot_user *users, unsigned n)
{
    enum dd_err err = DD_OK;
    for (unsigned at = 0; at < n && !err;)
        err = remove_some(s, users, at, n, &at);
    return err;
}
