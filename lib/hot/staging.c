/* The wheel's view of what is staged: slots, their entries, and their end. All of it can be repeated: names
 * and entries are removed only when they are known to be done, and adding again what is there changes
 * nothing. */
#include "hot/staging.h"

#include <hiredis/hiredis.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "hot/keys.h"
#include "hot/resp.h"
#include "hot/staging_internal.h"

enum dd_err dd_hot_staging_open(struct dd_hot *h, struct dd_hot_staging **out)
{
    if (h->embedded) return DD_UNSUPPORTED;
    struct dd_hot_staging *s = calloc(1, sizeof *s);
    if (!s) return DD_NO_MEMORY;
    s->h = h;
    s->sync.o = &h->o;
    s->sync.resolve = h->resolve;
    *out = s;
    return DD_OK;
}

void dd_hot_staging_close(struct dd_hot_staging *s)
{
    if (!s) return;
    dd_sync_close(&s->sync);
    dd_buf_free(&s->key);
    dd_buf_free(&s->tail);
    dd_buf_free(&s->slots);
    dd_buf_free(&s->users);
    dd_buf_free(&s->bytes);
    dd_buf_free(&s->fps);
    dd_buf_free(&s->holders);
    free(s);
}

const char *dd_hot_staging_error(const struct dd_hot_staging *s)
{
    return s->sync.error;
}

void dd_hot_get_durability(struct dd_hot *h, struct dd_hot_durability *out)
{
    dd_server_durability(&h->server, out);
}

void dd_hot_expect_beat(struct dd_hot *h, int64_t beat)
{
    dd_server_expect(&h->server, beat);
}

bool dd_hot_last_beat(struct dd_hot *h, int64_t *beat)
{
    return dd_server_last_beat(&h->server, beat);
}

enum dd_hot_promise dd_hot_promise(const struct dd_hot *h)
{
    return (enum dd_hot_promise)atomic_load(&h->server.promise);
}

uint64_t dd_hot_run(const struct dd_hot *h)
{
    return atomic_load(&h->server.run);
}

static void read_settings(struct dd_server_sample *sample, const struct redisReply *reply)
{
    if (reply->type == REDIS_REPLY_STRING) dd_server_read_info(sample, dd_slice_of(reply->str, reply->len));
    if (reply->type != REDIS_REPLY_ARRAY) return;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const struct redisReply *name = reply->element[i], *value = reply->element[i + 1];
        if (name->type == REDIS_REPLY_STRING && value->type == REDIS_REPLY_STRING)
            dd_server_read_config(sample, dd_slice_of(name->str, name->len),
                                  dd_slice_of(value->str, value->len));
    }
}

enum dd_err dd_hot_staging_ask_settings(struct dd_hot_staging *s)
{
    static const char *const patterns[] = {NULL, "append*", "maxmemory*"};
    struct dd_server_sample sample = {0};
    const struct redisReply *reply;
    enum dd_err err = dd_sync_begin(&s->sync);
    for (unsigned i = 0; i < 3 && !err; i++) {
        dd_resp_begin(&s->sync.command, patterns[i] ? 3 : 1, patterns[i] ? "CONFIG" : "INFO");
        if (patterns[i]) dd_resp_arg_str(&s->sync.command, "GET");
        if (patterns[i]) dd_resp_arg_str(&s->sync.command, patterns[i]);
        err = dd_sync_call(&s->sync, &reply);
        if (!err) read_settings(&sample, reply);
        if (err == DD_IO) err = DD_OK; /* not allowed: it stays unknown */
    }
    if (!err) dd_server_observe(&s->h->server, &sample, dd_clock_wall(s->h->clock).ms);
    return err;
}

/* ---- shared ---- */

void dd_staging_bucket_key(struct dd_hot_staging *s, struct dd_hot_slot slot, unsigned part)
{
    dd_buf_reset(&s->key);
    dd_hot_key_bucket(&s->key, s->h->store, slot.start_s, slot.end_s, part);
}

void dd_staging_pending_key(struct dd_hot_staging *s, const struct dd_hot_user *u)
{
    dd_buf_reset(&s->key);
    dd_hot_key_user(&s->key, u->scene, u->user);
    dd_hot_key_add_pending(&s->key, s->h->store, u->period);
}

void dd_staging_arg_key(struct dd_hot_staging *s)
{
    if (!dd_buf_ok(&s->key)) s->sync.command.failed = true;
    dd_resp_arg(&s->sync.command, dd_buf_slice(&s->key));
}

enum dd_err dd_staging_error(struct dd_hot_staging *s, const struct redisReply *reply)
{
    bool wrong_type = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "WRONGTYPE", 9) == 0;
    if (wrong_type) dd_count(s->h->count.wrong_type, 1);
    snprintf(s->sync.error, sizeof s->sync.error, "redis: %.100s",
             reply->type == REDIS_REPLY_ERROR ? reply->str : "an unexpected reply");
    return wrong_type ? DD_CORRUPT : DD_IO;
}

enum dd_err dd_staging_next_number(struct dd_hot_staging *s, int64_t *out)
{
    const struct redisReply *reply;
    enum dd_err err = dd_sync_next(&s->sync, &reply);
    if (err) return err;
    if (reply->type != REDIS_REPLY_INTEGER) return dd_staging_error(s, reply);
    *out = reply->integer;
    return DD_OK;
}

/* ---- slots ---- */

static int by_start(const void *a, const void *b)
{
    const struct dd_hot_slot *x = a, *y = b;
    if (x->start_s != y->start_s) return x->start_s < y->start_s ? -1 : 1;
    return (x->end_s > y->end_s) - (x->end_s < y->end_s);
}

enum dd_err dd_hot_staging_slots(struct dd_hot_staging *s, const struct dd_hot_slot **slots, unsigned *n)
{
    const struct redisReply *reply;
    enum dd_err err = dd_sync_begin(&s->sync);
    if (err) return err;
    dd_buf_reset(&s->key);
    dd_hot_key_slots(&s->key, s->h->store);
    dd_resp_begin(&s->sync.command, 2, "SMEMBERS");
    dd_staging_arg_key(s);
    err = dd_sync_call(&s->sync, &reply);
    if (err) return err;
    if (reply->type != REDIS_REPLY_ARRAY) return dd_staging_error(s, reply);
    dd_buf_reset(&s->slots);
    for (size_t i = 0; i < reply->elements; i++) {
        const struct redisReply *e = reply->element[i];
        struct dd_hot_slot slot;
        if (e->type == REDIS_REPLY_STRING &&
            !dd_hot_slot_parse(dd_slice_of(e->str, e->len), &slot.start_s, &slot.end_s))
            dd_buf_add(&s->slots, &slot, sizeof slot);
        else
            dd_warn("hot.strange_slot", "name=\"%.60s\"", e->type == REDIS_REPLY_STRING ? e->str : "");
    }
    if (!dd_buf_ok(&s->slots)) return DD_NO_MEMORY;
    *n = (unsigned)(s->slots.len / sizeof(struct dd_hot_slot));
    if (*n) qsort(s->slots.data, *n, sizeof(struct dd_hot_slot), by_start);
    *slots = (const struct dd_hot_slot *)(const void *)s->slots.data;
    return DD_OK;
}

enum dd_err dd_hot_staging_slot_size(struct dd_hot_staging *s, struct dd_hot_slot slot, uint64_t *entries)
{
    enum dd_err err = dd_sync_begin(&s->sync);
    for (unsigned part = 0; part < DD_HOT_PARTS && !err; part++) {
        dd_staging_bucket_key(s, slot, part);
        dd_resp_begin(&s->sync.command, 2, "SCARD");
        dd_staging_arg_key(s);
        err = dd_sync_add(&s->sync);
    }
    *entries = 0;
    enum dd_err first = DD_OK;
    for (unsigned part = 0; part < DD_HOT_PARTS && !err; part++) {
        int64_t n = 0;
        err = dd_staging_next_number(s, &n);
        if (err == DD_UNAVAILABLE) break;
        if (err == DD_IO && !first) first = err; /* read on: replies must not stay behind */
        err = DD_OK;                             /* DD_CORRUPT: nothing of ours */
        *entries += (uint64_t)n;
    }
    return err ? err : first;
}

static enum dd_err ask_drop(struct dd_hot_staging *s, struct dd_hot_slot slot)
{
    enum dd_err err = dd_sync_begin(&s->sync);
    if (!err) err = dd_script_load(&s->scripts, &s->sync, DD_SCRIPT_DROP_SLOT);
    if (err) return err;
    dd_script_begin(&s->scripts, &s->sync, DD_SCRIPT_DROP_SLOT, 1 + DD_HOT_PARTS, 1);
    dd_buf_reset(&s->key);
    dd_hot_key_slots(&s->key, s->h->store);
    dd_staging_arg_key(s);
    for (unsigned part = 0; part < DD_HOT_PARTS; part++) {
        dd_staging_bucket_key(s, slot, part);
        dd_staging_arg_key(s);
    }
    dd_buf_reset(&s->key);
    dd_hot_slot_name(&s->key, slot.start_s, slot.end_s);
    dd_staging_arg_key(s);
    return dd_sync_add(&s->sync);
}

enum dd_err dd_hot_staging_drop_slot(struct dd_hot_staging *s, struct dd_hot_slot slot, bool *dropped)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        const struct redisReply *reply;
        enum dd_err err = ask_drop(s, slot);
        if (!err) err = dd_sync_next(&s->sync, &reply);
        if (err) return err;
        if (reply->type == REDIS_REPLY_INTEGER) {
            *dropped = reply->integer == 1;
            return DD_OK;
        }
        if (!dd_script_is_missing(reply)) return dd_staging_error(s, reply);
        dd_script_forget(&s->scripts);
    }
    return DD_IO;
}
