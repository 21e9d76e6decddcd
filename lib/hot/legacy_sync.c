#include <hiredis/hiredis.h>

#include <stdio.h>
#include <stdlib.h>

#include "hot/legacy_impl.h"
#include "hot/legacy_sync.h"
#include "hot/resp.h"

#define SCAN_COUNT 500

enum dd_err dd_legacy_sync_open(struct dd_legacy *l, struct dd_legacy_sync **out)
{
    struct dd_legacy_sync *s = calloc(1, sizeof *s);
    if (!s) return DD_NO_MEMORY;
    const struct dd_hot *server = l->own ? l->own : l->hot;
    s->l = l;
    s->sync.o = &server->o;
    s->sync.resolve = server->resolve;
    *out = s;
    return DD_OK;
}

void dd_legacy_sync_close(struct dd_legacy_sync *s)
{
    if (!s) return;
    dd_sync_close(&s->sync);
    dd_buf_free(&s->key);
    dd_buf_free(&s->pattern);
    free(s);
}

const char *dd_legacy_sync_error(const struct dd_legacy_sync *s)
{
    return s->sync.error;
}

/* ---- shared with legacy_load.c ---- */

enum dd_err dd_legacy_begin(struct dd_legacy_sync *s, struct dd_slice user, unsigned args, const char *name)
{
    enum dd_err err = dd_sync_begin(&s->sync);
    if (err != DD_OK) return err;
    dd_resp_begin(&s->sync.command, args, name);
    if (!user.ptr) return DD_OK;
    dd_legacy_key(s->l, user, &s->key);
    if (!dd_buf_ok(&s->key)) s->sync.command.failed = true;
    dd_resp_arg(&s->sync.command, dd_buf_slice(&s->key));
    return DD_OK;
}

enum dd_err dd_legacy_call(struct dd_legacy_sync *s, int type, const struct redisReply **reply)
{
    enum dd_err err = dd_sync_call(&s->sync, reply);
    if (err == DD_IO && strstr(s->sync.error, "WRONGTYPE")) return DD_CORRUPT;
    if (err == DD_OK && (*reply)->type != type) {
        snprintf(s->sync.error, sizeof s->sync.error, "an unexpected reply");
        return (*reply)->type == REDIS_REPLY_NIL ? DD_NOT_FOUND : DD_IO;
    }
    return err;
}

/* ---- small questions ---- */

enum dd_err dd_legacy_expire(struct dd_legacy_sync *s, struct dd_slice user, int64_t seconds)
{
    const struct redisReply *reply = NULL;
    enum dd_err err = dd_legacy_begin(s, user, 3, "EXPIRE");
    if (err != DD_OK) return err;
    dd_resp_arg_i64(&s->sync.command, seconds);
    return dd_legacy_call(s, REDIS_REPLY_INTEGER, &reply);
}

enum dd_err dd_legacy_delete(struct dd_legacy_sync *s, struct dd_slice user, bool *existed)
{
    const struct redisReply *reply = NULL;
    enum dd_err err = dd_legacy_begin(s, user, 2, "UNLINK");
    if (err == DD_OK) err = dd_legacy_call(s, REDIS_REPLY_INTEGER, &reply);
    *existed = err == DD_OK && reply->integer > 0;
    return err;
}

enum dd_err dd_legacy_memory(struct dd_legacy_sync *s, struct dd_slice user, uint64_t *bytes)
{
    const struct redisReply *reply = NULL;
    *bytes = 0;
    enum dd_err err = dd_sync_begin(&s->sync);
    if (err != DD_OK) return err;
    dd_legacy_key(s->l, user, &s->key);
    dd_resp_begin(&s->sync.command, 3, "MEMORY");
    dd_resp_arg_str(&s->sync.command, "USAGE");
    dd_resp_arg(&s->sync.command, dd_buf_slice(&s->key));
    err = dd_legacy_call(s, REDIS_REPLY_INTEGER, &reply);
    if (err == DD_OK) *bytes = (uint64_t)reply->integer;
    return err == DD_NOT_FOUND ? DD_OK : err;
}

static enum dd_err newest_score(struct dd_legacy_sync *s, struct dd_slice user, int64_t *at_ms)
{
    const struct redisReply *reply = NULL;
    double score;
    enum dd_err err = dd_legacy_begin(s, user, 5, "ZREVRANGE");
    if (err != DD_OK) return err;
    dd_resp_arg_str(&s->sync.command, "0");
    dd_resp_arg_str(&s->sync.command, "0");
    dd_resp_arg_str(&s->sync.command, "WITHSCORES");
    err = dd_legacy_call(s, REDIS_REPLY_ARRAY, &reply);
    if (err != DD_OK) return err;
    if (reply->elements == 2 &&
        dd_legacy_score(dd_slice_of(reply->element[1]->str, reply->element[1]->len), &score))
        *at_ms = dd_legacy_time(s->l->unit, score);
    return DD_OK;
}

enum dd_err dd_legacy_activity(struct dd_legacy_sync *s, struct dd_slice user, int64_t now_ms, int64_t *at_ms)
{
    const struct redisReply *reply = NULL;
    *at_ms = INT64_MAX;
    if (s->l->type == DD_LEGACY_ZSET) {
        enum dd_err err = newest_score(s, user, at_ms);
        return err == DD_CORRUPT ? DD_OK : err;
    }
    enum dd_err err = dd_sync_begin(&s->sync);
    if (err != DD_OK) return err;
    dd_legacy_key(s->l, user, &s->key);
    dd_resp_begin(&s->sync.command, 3, "OBJECT");
    dd_resp_arg_str(&s->sync.command, "IDLETIME");
    dd_resp_arg(&s->sync.command, dd_buf_slice(&s->key));
    err = dd_legacy_call(s, REDIS_REPLY_INTEGER, &reply);
    if (err == DD_OK) *at_ms = now_ms - reply->integer * 1000;
    return err == DD_NOT_FOUND || err == DD_IO ? DD_OK : err; /* under an LFU policy there is no idle time */
}

/* ---- the walk over keys ---- */

static void visit_keys(struct dd_legacy_sync *s, const struct redisReply *keys, dd_legacy_visit visit,
                       void *arg)
{
    struct dd_slice user;
    for (size_t i = 0; i < keys->elements; i++) {
        const struct redisReply *e = keys->element[i];
        if (e->type == REDIS_REPLY_STRING && dd_legacy_user_of(s->l, dd_slice_of(e->str, e->len), &user))
            visit(arg, user);
    }
}

enum dd_err dd_legacy_scan(struct dd_legacy_sync *s, uint64_t *cursor, dd_legacy_visit visit, void *arg)
{
    const struct redisReply *reply = NULL;
    char text[24];
    enum dd_err err = dd_legacy_begin(s, dd_slice_of(NULL, 0), 6, "SCAN");
    if (err != DD_OK) return err;
    dd_legacy_glob(s->l, &s->pattern);
    if (!dd_buf_ok(&s->pattern)) return DD_NO_MEMORY;
    snprintf(text, sizeof text, "%llu", (unsigned long long)*cursor);
    dd_resp_arg_str(&s->sync.command, text);
    dd_resp_arg_str(&s->sync.command, "MATCH");
    dd_resp_arg(&s->sync.command, dd_buf_slice(&s->pattern));
    dd_resp_arg_str(&s->sync.command, "COUNT");
    dd_resp_arg_i64(&s->sync.command, SCAN_COUNT);
    err = dd_legacy_call(s, REDIS_REPLY_ARRAY, &reply);
    if (err != DD_OK) return err;
    if (reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_ARRAY)
        return DD_IO;
    *cursor = strtoull(reply->element[0]->str, NULL, 10);
    visit_keys(s, reply->element[1], visit, arg);
    return DD_OK;
}

static void read_run_id(const char *info, char run_id[DD_LEGACY_RUN_ID])
{
    const char *at = strstr(info, "run_id:");
    run_id[0] = 0;
    if (at) snprintf(run_id, DD_LEGACY_RUN_ID, "%.*s", (int)strcspn(at + 7, "\r\n"), at + 7);
}

enum dd_err dd_legacy_server(struct dd_legacy_sync *s, char run_id[DD_LEGACY_RUN_ID], uint64_t *keys)
{
    const struct redisReply *reply = NULL;
    enum dd_err err = dd_legacy_begin(s, dd_slice_of(NULL, 0), 2, "INFO");
    if (err != DD_OK) return err;
    dd_resp_arg_str(&s->sync.command, "server");
    err = dd_legacy_call(s, REDIS_REPLY_STRING, &reply);
    if (err != DD_OK) return err;
    read_run_id(reply->str, run_id);
    err = dd_legacy_begin(s, dd_slice_of(NULL, 0), 1, "DBSIZE");
    if (err == DD_OK) err = dd_legacy_call(s, REDIS_REPLY_INTEGER, &reply);
    if (err == DD_OK) *keys = (uint64_t)reply->integer;
    return err;
}
