/* What one request asks of a user's old key:
 *
 *   not migrated   zset ZMSCORE of the candidates, set SMISMEMBER, list LRANGE of its beginning
 *   migrated       zset ZRANGEBYSCORE from the mark on (twice when the unit is not stated: seconds and
 *                  milliseconds lie in ranges of their own), set SMISMEMBER, list LRANGE at both ends, where
 *                  writers add
 *
 * On the hot tier's connection these go out before the request's other commands, in the same write, so that
 * their replies come first. */
#include <hiredis/async.h>

#include "hot/legacy_impl.h"
#include "hot/resp.h"

/* Elements from each end of a list, and entries of a zset newer than the mark, that are read at most: a user
 * with more of those is migrated again soon. */
#define READ_MAX DD_LEGACY_LIST_MAX

static struct dd_redis *connection(struct dd_legacy_loop *ll)
{
    return ll->hot ? &ll->hot->conn : &ll->conn;
}

/* ---- replies ---- */

static void take_flags(struct dd_legacy_read *r, const struct redisReply *reply)
{
    for (size_t i = 0; i < reply->elements && i < r->n; i++) {
        const struct redisReply *e = reply->element[i];
        if (e->type == REDIS_REPLY_STRING || (e->type == REDIS_REPLY_INTEGER && e->integer))
            r->known(r->arg, (unsigned)i);
    }
}

static void take_items(struct dd_legacy_read *r, const struct redisReply *reply)
{
    bool list = r->ll->l->type == DD_LEGACY_LIST;
    for (size_t i = 0; i < reply->elements; i++)
        if (reply->element[i]->type == REDIS_REPLY_STRING)
            r->found(r->arg, dd_slice_of(reply->element[i]->str, reply->element[i]->len));
    if (!list) r->entries += (unsigned)reply->elements;
    /* As many as were asked for: there may be more. Of a migrated list the middle is known. */
    if (reply->elements >= READ_MAX && !(list && r->since)) r->err = DD_LIMIT;
}

static bool asks_by_candidate(const struct dd_legacy_read *r)
{
    enum dd_legacy_type type = r->ll->l->type;
    return type == DD_LEGACY_SET || (type == DD_LEGACY_ZSET && !r->since);
}

static void on_reply(void *arg, struct redisReply *reply)
{
    struct dd_legacy_read *r = arg;
    struct dd_legacy *l = r->ll->l;
    bool wrong = reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGTYPE", 9) == 0;
    if (wrong) {
        dd_count(l->count.wrong_type, 1);
    } else if (!reply || reply->type != REDIS_REPLY_ARRAY) {
        r->err = DD_UNAVAILABLE;
        dd_count(l->count.failures, 1);
        if (reply && reply->type == REDIS_REPLY_ERROR) dd_legacy_state_refused(l, reply->str);
    } else if (asks_by_candidate(r)) {
        take_flags(r, reply);
    } else {
        take_items(r, reply);
    }
    if (reply && reply->type == REDIS_REPLY_ARRAY) dd_legacy_state_answered(l);
    if (--r->waiting == 0) r->done(r->arg);
}

/* ---- commands ---- */

/* Begins ll->command with a name and the user's key. */
static void begin(struct dd_legacy_read *r, unsigned args, const char *name)
{
    struct dd_legacy_loop *ll = r->ll;
    dd_buf_reset(&ll->command);
    dd_resp_begin(&ll->command, args, name);
    dd_resp_arg(&ll->command, dd_buf_slice(&ll->key));
}

static enum dd_err send(struct dd_legacy_read *r)
{
    struct dd_legacy_loop *ll = r->ll;
    if (!dd_buf_ok(&ll->command) || !dd_buf_ok(&ll->key)) return DD_NO_MEMORY;
    enum dd_err err = dd_redis_send(connection(ll), dd_buf_slice(&ll->command), on_reply, r);
    if (err == DD_OK) r->waiting++;
    return err;
}

static enum dd_err ask_candidates(struct dd_legacy_read *r)
{
    begin(r, 2 + r->n, r->ll->l->type == DD_LEGACY_SET ? "SMISMEMBER" : "ZMSCORE");
    for (unsigned i = 0; i < r->n; i++)
        dd_resp_arg(&r->ll->command, r->id(r->arg, i));
    return send(r);
}

static enum dd_err ask_since(struct dd_legacy_read *r)
{
    struct dd_legacy_range range[2];
    unsigned n = dd_legacy_ranges(r->ll->l->unit, r->since_ms, range);
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < n && err == DD_OK; i++) {
        begin(r, 7, "ZRANGEBYSCORE");
        dd_resp_arg_str(&r->ll->command, range[i].min);
        dd_resp_arg_str(&r->ll->command, range[i].max);
        dd_resp_arg_str(&r->ll->command, "LIMIT");
        dd_resp_arg_i64(&r->ll->command, 0);
        dd_resp_arg_i64(&r->ll->command, READ_MAX);
        err = send(r);
    }
    return err;
}

static enum dd_err ask_list(struct dd_legacy_read *r)
{
    begin(r, 4, "LRANGE");
    dd_resp_arg_i64(&r->ll->command, 0);
    dd_resp_arg_i64(&r->ll->command, READ_MAX - 1);
    enum dd_err err = send(r);
    if (err != DD_OK || !r->since) return err;
    begin(r, 4, "LRANGE");
    dd_resp_arg_i64(&r->ll->command, -READ_MAX);
    dd_resp_arg_i64(&r->ll->command, -1);
    return send(r);
}

enum dd_err dd_legacy_read(struct dd_legacy_loop *ll, struct dd_legacy_read *r)
{
    r->ll = ll;
    r->err = DD_OK;
    r->waiting = r->entries = 0;
    enum dd_err err = dd_redis_may_send(connection(ll), 2);
    dd_legacy_key(ll->l, r->user, &ll->key);
    dd_count(ll->l->count.reads, 1);
    if (err == DD_OK && asks_by_candidate(r))
        err = ask_candidates(r);
    else if (err == DD_OK)
        err = ll->l->type == DD_LEGACY_LIST ? ask_list(r) : ask_since(r);
    if (r->waiting) {
        if (err != DD_OK) r->err = DD_UNAVAILABLE; /* one went out; its reply ends the read */
        return DD_PENDING;
    }
    dd_count(ll->l->count.failures, 1);
    return err;
}
