/* What is said first on a connection, before any request may use it, and the sample that is taken then and
 * every ten seconds.
 *
 *   AUTH [user] password      if there is a password
 *   SELECT db                 if not 0
 *   CLIENT SETNAME dedupd
 *   INFO, CONFIG GET append*, CONFIG GET maxmemory*
 *   SET dd:g:<store> <random> NX, INCR dd:g:<store>
 *
 * The SET proves that this server can be written: a replica answers READONLY, one that loads its data
 * LOADING. A server that is out of memory can still be read, so OOM opens the gate: writes then fail one by
 * one and go to memory or the store. */
#include <hiredis/async.h>

#include "base/hash.h"
#include "hot/internal.h"
#include "hot/keys.h"
#include "hot/resp.h"

static bool is_error(const struct redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ERROR;
}

static struct dd_slice text_of(const struct redisReply *reply)
{
    return dd_slice_of(reply->str, reply->len);
}

/* Without one of these nothing works: any error ends the attempt. */
static void on_auth(void *arg, struct redisReply *reply)
{
    struct dd_hot_loop *hl = arg;
    if (is_error(reply)) dd_redis_fail(&hl->conn, "auth", reply->str);
}

/* Only for the case that Redis greets with an error of its own and closes: it comes as the reply to the first
 * command. */
static void on_name(void *arg, struct redisReply *reply)
{
    struct dd_hot_loop *hl = arg;
    if (is_error(reply) && strncmp(reply->str, "ERR max number", 14) == 0)
        dd_redis_fail(&hl->conn, "redis", reply->str);
}

static void on_select(void *arg, struct redisReply *reply)
{
    struct dd_hot_loop *hl = arg;
    if (is_error(reply)) dd_redis_fail(&hl->conn, "select", reply->str);
}

static void on_info(void *arg, struct redisReply *reply)
{
    struct dd_hot_loop *hl = arg;
    if (is_error(reply) && strncmp(reply->str, "NOPERM", 6) != 0)
        dd_redis_fail(&hl->conn, "redis", reply->str);
    if (reply && reply->type == REDIS_REPLY_STRING) dd_server_read_info(&hl->sample, text_of(reply));
}

static void on_config(void *arg, struct redisReply *reply)
{
    struct dd_hot_loop *hl = arg;
    if (!reply || reply->type != REDIS_REPLY_ARRAY) return;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const struct redisReply *name = reply->element[i], *value = reply->element[i + 1];
        if (name->type == REDIS_REPLY_STRING && value->type == REDIS_REPLY_STRING)
            dd_server_read_config(&hl->sample, text_of(name), text_of(value));
    }
}

static void on_first_write(void *arg, struct redisReply *reply)
{
    struct dd_hot_loop *hl = arg;
    if (!is_error(reply)) return;
    bool other_node = strncmp(reply->str, "MOVED", 5) == 0 || strncmp(reply->str, "CLUSTERDOWN", 11) == 0;
    if (other_node || dd_redis_is_refusal(reply->str)) dd_redis_fail(&hl->conn, "redis", reply->str);
}

static void on_beat(void *arg, struct redisReply *reply)
{
    struct dd_hot_loop *hl = arg;
    hl->sampling = false;
    if (!reply) return;
    hl->sample.has_beat = reply->type == REDIS_REPLY_INTEGER;
    if (hl->sample.has_beat) hl->sample.beat = reply->integer;
    if (hl->conn.state == DD_REDIS_FAILING) return;
    dd_server_observe(&hl->h->server, &hl->sample, dd_clock_wall(hl->h->clock).ms);
    dd_redis_opened(&hl->conn);
}

static void say(struct dd_hot_loop *hl, dd_redis_fn fn)
{
    if (dd_hot_send(hl, fn, hl)) dd_redis_fail(&hl->conn, "connect", "out of memory");
}

static void say_words(struct dd_hot_loop *hl, dd_redis_fn fn, unsigned n, const char *a, const char *b,
                      const char *c)
{
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, n, a);
    if (n > 1) dd_resp_arg_str(&hl->command, b);
    if (n > 2) dd_resp_arg_str(&hl->command, c);
    say(hl, fn);
}

static void say_select(struct dd_hot_loop *hl)
{
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 2, "SELECT");
    dd_resp_arg_i64(&hl->command, hl->h->o.db);
    say(hl, on_select);
}

static void say_beat(struct dd_hot_loop *hl)
{
    uint64_t random;
    if (dd_random(&random, sizeof random)) random = dd_mix64((uint64_t)dd_loop_now(hl->loop).ns);
    dd_buf_reset(&hl->key);
    dd_hot_key_generation(&hl->key, hl->h->store);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 4, "SET");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    dd_resp_arg_i64(&hl->command, dd_server_new_beat(random));
    dd_resp_arg_str(&hl->command, "NX");
    say(hl, on_first_write);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 2, "INCR");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    say(hl, on_beat);
}

static void say_sample(struct dd_hot_loop *hl)
{
    hl->sampling = true;
    hl->sample = (struct dd_server_sample){0};
    say_words(hl, on_info, 1, "INFO", NULL, NULL);
    say_words(hl, on_config, 3, "CONFIG", "GET", "append*");
    say_words(hl, on_config, 3, "CONFIG", "GET", "maxmemory*");
    say_beat(hl);
}

void dd_hot_hello(struct dd_hot_loop *hl)
{
    const struct dd_hot_options *o = &hl->h->o;
    if (o->password) {
        dd_buf_reset(&hl->command);
        dd_resp_auth(&hl->command, o->user, o->password);
        say(hl, on_auth);
    }
    if (o->db) say_select(hl);
    say_words(hl, on_name, 3, "CLIENT", "SETNAME", "dedupd");
    say_sample(hl);
}

void dd_hot_sample(struct dd_hot_loop *hl)
{
    if (hl->sampling || dd_redis_may_send(&hl->conn, 5)) return;
    say_sample(hl);
}
