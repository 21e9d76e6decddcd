/* Which process holds which store: the hash dd:n, one field a store (script.c has the format and the rules).
 */
#include <hiredis/hiredis.h>

#include <stdio.h>
#include <stdlib.h>

#include "hot/keys.h"
#include "hot/resp.h"
#include "hot/staging_internal.h"

/* The next part of *rest up to a tab, unescaped into out; too long or broken: "". */
static void cut(struct dd_slice *rest, char *out, size_t size)
{
    const uint8_t *tab = rest->len ? memchr(rest->ptr, '\t', rest->len) : NULL;
    size_t n = tab ? (size_t)(tab - rest->ptr) : rest->len;
    struct dd_buf plain = {0};
    out[0] = 0;
    if (dd_hot_unescape(dd_slice_of(rest->ptr, n), &plain) == DD_OK && plain.len < size && plain.len) {
        memcpy(out, plain.data, plain.len);
        out[plain.len] = 0;
    }
    dd_buf_free(&plain);
    n += tab != NULL;
    *rest = dd_slice_of(rest->ptr + n, rest->len - n);
}

static void read_holder(struct dd_slice store, struct dd_slice value, struct dd_hot_holder *out)
{
    char seen[24];
    *out = (struct dd_hot_holder){0};
    cut(&store, out->store_id, sizeof out->store_id);
    cut(&value, out->boot_id, sizeof out->boot_id);
    cut(&value, seen, sizeof seen);
    cut(&value, out->place, sizeof out->place);
    cut(&value, out->admin, sizeof out->admin);
    out->seen_ms = strtoll(seen, NULL, 10);
}

static void add_escaped(struct dd_hot_staging *s, const char *text)
{
    dd_buf_reset(&s->key);
    dd_hot_escape(&s->key, dd_slice_str(text));
    dd_staging_arg_key(s);
}

static enum dd_err run(struct dd_hot_staging *s, enum dd_script which, const struct dd_hot_boot *b,
                       const struct redisReply **reply)
{
    enum dd_err err = dd_sync_begin(&s->sync);
    if (!err) err = dd_script_load(&s->scripts, &s->sync, which);
    if (err) return err;
    dd_script_begin(&s->scripts, &s->sync, which, 1, 5);
    dd_resp_arg_str(&s->sync.command, DD_HOT_KEY_STORES);
    dd_buf_reset(&s->key);
    dd_hot_escape(&s->key, s->h->store);
    dd_staging_arg_key(s);
    add_escaped(s, b->boot_id);
    add_escaped(s, b->place);
    add_escaped(s, b->admin);
    dd_resp_arg_i64(&s->sync.command, b->alive_ms);
    err = dd_sync_add(&s->sync);
    return err ? err : dd_sync_next(&s->sync, reply);
}

/* DD_OK, or DD_LOCKED with the other's entry. */
static enum dd_err run_twice(struct dd_hot_staging *s, enum dd_script which, const struct dd_hot_boot *b,
                             struct dd_hot_holder *other)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        const struct redisReply *reply;
        enum dd_err err = run(s, which, b, &reply);
        if (err) return err;
        if (reply->type == REDIS_REPLY_STRING) {
            if (reply->len == 0) return DD_OK;
            if (other) read_holder(s->h->store, dd_slice_of(reply->str, reply->len), other);
            return DD_LOCKED;
        }
        if (!dd_script_is_missing(reply)) return dd_staging_error(s, reply);
        dd_script_forget(&s->scripts);
    }
    return DD_IO;
}

static enum dd_err check(const struct dd_hot_boot *b)
{
    bool sound = *b->boot_id && strlen(b->boot_id) < 40 && *b->place && strlen(b->place) <= 200 &&
                 strlen(b->admin) < 128;
    return sound && b->alive_ms > 0 ? DD_OK : DD_INVALID;
}

enum dd_err dd_hot_boot_register(struct dd_hot_staging *s, const struct dd_hot_boot *b,
                                 struct dd_hot_holder *other)
{
    enum dd_err err = check(b);
    return err ? err : run_twice(s, DD_SCRIPT_REGISTER, b, other);
}

enum dd_err dd_hot_boot_beat(struct dd_hot_staging *s, const struct dd_hot_boot *b,
                             struct dd_hot_holder *other)
{
    enum dd_err err = check(b);
    return err ? err : run_twice(s, DD_SCRIPT_BEAT, b, other);
}

enum dd_err dd_hot_boot_leave(struct dd_hot_staging *s, const struct dd_hot_boot *b)
{
    enum dd_err err = check(b);
    return err ? err : run_twice(s, DD_SCRIPT_LEAVE, b, NULL);
}

enum dd_err dd_hot_boot_list(struct dd_hot_staging *s, const struct dd_hot_holder **holders, unsigned *n)
{
    const struct redisReply *reply;
    enum dd_err err = dd_sync_begin(&s->sync);
    if (err) return err;
    dd_resp_begin(&s->sync.command, 2, "HGETALL");
    dd_resp_arg_str(&s->sync.command, DD_HOT_KEY_STORES);
    err = dd_sync_call(&s->sync, &reply);
    if (err) return err;
    if (reply->type != REDIS_REPLY_ARRAY) return dd_staging_error(s, reply);
    dd_buf_reset(&s->holders);
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const struct redisReply *field = reply->element[i], *value = reply->element[i + 1];
        struct dd_hot_holder h;
        if (field->type != REDIS_REPLY_STRING || value->type != REDIS_REPLY_STRING) continue;
        if (memchr(field->str, ':', field->len)) continue; /* <store>:stop */
        read_holder(dd_slice_of(field->str, field->len), dd_slice_of(value->str, value->len), &h);
        if (h.store_id[0]) dd_buf_add(&s->holders, &h, sizeof h);
    }
    if (!dd_buf_ok(&s->holders)) return DD_NO_MEMORY;
    *holders = (const struct dd_hot_holder *)(const void *)s->holders.data;
    *n = (unsigned)(s->holders.len / sizeof(struct dd_hot_holder));
    return DD_OK;
}
