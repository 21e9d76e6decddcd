#include "hot/legacy.h"

#include <hiredis/async.h>

#include <stdlib.h>

#include "base/hash.h"
#include "hot/legacy_impl.h"
#include "hot/resp.h"

/* ---- the shared part ---- */

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool is_same_server(const struct dd_hot *h, const struct dd_hot_options *o)
{
    return !h->embedded && same_text(h->o.host, o->host) && same_text(h->o.path, o->path) &&
           h->o.port == o->port && h->o.db == o->db && same_text(h->o.user, o->user);
}

static enum dd_err split_pattern(struct dd_legacy *l, const char *key)
{
    static const char mark[] = "{user}";
    l->pattern = strdup(key);
    if (!l->pattern) return DD_NO_MEMORY;
    char *at = strstr(l->pattern, mark);
    if (!at) return DD_INVALID;
    l->head = dd_slice_of(l->pattern, (size_t)(at - l->pattern));
    l->tail = dd_slice_str(at + sizeof mark - 1);
    return DD_OK;
}

enum dd_err dd_legacy_create(const struct dd_legacy_options *o, struct dd_hot *hot, struct dd_stats *stats,
                             struct dd_legacy **out)
{
    struct dd_legacy *l = calloc(1, sizeof *l);
    if (!l) return DD_NO_MEMORY;
    l->type = o->type;
    l->unit = o->unit;
    l->hot = hot;
    dd_legacy_state_init(&l->state);
    l->count.reads = dd_stats_counter(stats, "dedupd_legacy_reads_total", "reads of old keys for requests");
    l->count.failures = dd_stats_counter(stats, "dedupd_legacy_failures_total",
                                         "reads of old keys that were not answered");
    l->count.wrong_type = dd_stats_counter(stats, "dedupd_legacy_wrong_type_total",
                                           "old keys of another type than stated");
    enum dd_err err = split_pattern(l, o->key);
    if (err == DD_OK && o->server && !is_same_server(hot, o->server))
        err = dd_hot_create(o->server, hot->clock, stats, &l->own);
    if (err == DD_OK && !l->own && hot->embedded) err = DD_INVALID;
    if (err != DD_OK) {
        dd_legacy_destroy(l);
        return err;
    }
    *out = l;
    return DD_OK;
}

void dd_legacy_destroy(struct dd_legacy *l)
{
    if (!l) return;
    dd_hot_destroy(l->own);
    dd_legacy_state_reset(&l->state);
    free(l->pattern);
    free(l);
}

bool dd_legacy_is_timed(const struct dd_legacy *l)
{
    return l->type == DD_LEGACY_ZSET;
}

/* ---- a second connection ---- */

static void on_hello(void *arg, struct redisReply *reply)
{
    struct dd_legacy_loop *ll = arg;
    if (reply && reply->type == REDIS_REPLY_ERROR) dd_redis_fail(&ll->conn, "hello", reply->str);
}

static void on_ping(void *arg, struct redisReply *reply)
{
    struct dd_legacy_loop *ll = arg;
    on_hello(arg, reply);
    if (reply && reply->type != REDIS_REPLY_ERROR) dd_redis_opened(&ll->conn);
}

static void say(struct dd_legacy_loop *ll, dd_redis_fn fn)
{
    if (!dd_buf_ok(&ll->command) || dd_redis_send(&ll->conn, dd_buf_slice(&ll->command), fn, ll))
        dd_redis_fail(&ll->conn, "hello", "out of memory");
    dd_buf_reset(&ll->command);
}

static void hello(void *arg)
{
    struct dd_legacy_loop *ll = arg;
    const struct dd_hot_options *o = ll->conn.o;
    dd_buf_reset(&ll->command);
    if (o->password) {
        dd_resp_auth(&ll->command, o->user, o->password);
        say(ll, on_hello);
    }
    if (o->db) {
        dd_resp_begin(&ll->command, 2, "SELECT");
        dd_resp_arg_i64(&ll->command, o->db);
        say(ll, on_hello);
    }
    dd_resp_begin(&ll->command, 1, "PING");
    say(ll, on_ping);
}

static void changed(void *arg, bool up, const char *reason)
{
    struct dd_legacy_loop *ll = arg;
    dd_legacy_state_count(ll->l, 0, (int)up - (int)ll->was_up);
    ll->was_up = up;
    dd_legacy_state_changed(ll->l, up, reason);
}

enum dd_err dd_legacy_loop_create(struct dd_legacy *l, struct dd_hot_loop *hot, struct dd_loop *loop,
                                  struct dd_legacy_loop **out)
{
    struct dd_legacy_loop *ll = calloc(1, sizeof *ll);
    if (!ll) return DD_NO_MEMORY;
    ll->l = l;
    ll->loop = loop;
    ll->hot = l->own ? NULL : hot;
    *out = ll;
    if (!l->own) return DD_OK;
    ll->conn = (struct dd_redis){.o = &l->own->o,
                                 .resolve = l->own->resolve,
                                 .loop = loop,
                                 .hello = hello,
                                 .changed = changed,
                                 .arg = ll};
    if (dd_random(&ll->conn.random, sizeof ll->conn.random)) ll->conn.random = (uint64_t)(uintptr_t)ll;
    dd_legacy_state_count(l, 1, 0);
    dd_redis_open(&ll->conn);
    return DD_OK;
}

void dd_legacy_loop_destroy(struct dd_legacy_loop *ll)
{
    if (!ll) return;
    if (!ll->hot) {
        dd_redis_close(&ll->conn);
        dd_legacy_state_count(ll->l, -1, ll->was_up ? -1 : 0);
    }
    dd_buf_free(&ll->command);
    dd_buf_free(&ll->key);
    free(ll);
}
