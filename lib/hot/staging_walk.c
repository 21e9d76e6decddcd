/* Walking over the entries of a slot, and taking entries out. */
#include <hiredis/hiredis.h>

#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "hot/keys.h"
#include "hot/resp.h"
#include "hot/staging_internal.h"

/* Slices are offsets into s->bytes until the page is complete. */
static const uint8_t *at_offset(size_t offset)
{
    return (const uint8_t *)(uintptr_t)offset;
}

static void add_entry(struct dd_hot_staging *s, const struct redisReply *e, unsigned part)
{
    struct dd_hot_user u = {.part = part, .err = DD_OK};
    size_t scene_len, user_len, begin = s->bytes.len;
    struct dd_slice text = dd_slice_of(e->str, e->len);
    dd_buf_add_slice(&s->bytes, text);
    if (dd_hot_member_parse(text, &s->bytes, &scene_len, &user_len, &u.period)) {
        s->bytes.len = begin;
        dd_count(s->h->count.bad_member, 1);
        dd_warn("hot.strange_entry", "part=%u entry_hash=%016llx bytes=%zu", part,
                (unsigned long long)dd_hash64(text, 0), text.len);
        return;
    }
    u.member = dd_slice_of(at_offset(begin), text.len);
    u.scene = dd_slice_of(at_offset(begin + text.len), scene_len);
    u.user = dd_slice_of(at_offset(begin + text.len + scene_len), user_len);
    dd_buf_add(&s->users, &u, sizeof u);
}

static void point(struct dd_hot_staging *s, struct dd_hot_user **users, unsigned *n)
{
    *users = (struct dd_hot_user *)(void *)s->users.data;
    *n = (unsigned)(s->users.len / sizeof **users);
    for (unsigned i = 0; i < *n; i++) {
        struct dd_hot_user *u = &(*users)[i];
        u->member.ptr = s->bytes.data + (uintptr_t)u->member.ptr;
        u->scene.ptr = s->bytes.data + (uintptr_t)u->scene.ptr;
        u->user.ptr = s->bytes.data + (uintptr_t)u->user.ptr;
    }
}

static void next_part(struct dd_hot_walk *w)
{
    w->cursor = 0;
    w->ended = ++w->part >= DD_HOT_PARTS;
}

/* One SSCAN; *reply is its array of two. DD_CORRUPT: the part is not a set. */
static enum dd_err scan(struct dd_hot_staging *s, const struct dd_hot_walk *w, unsigned page,
                        const struct redisReply **reply)
{
    enum dd_err err = dd_sync_begin(&s->sync);
    if (err) return err;
    char cursor[24];
    snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)w->cursor);
    dd_staging_bucket_key(s, w->slot, w->part);
    dd_resp_begin(&s->sync.command, 5, "SSCAN");
    dd_staging_arg_key(s);
    dd_resp_arg_str(&s->sync.command, cursor);
    dd_resp_arg_str(&s->sync.command, "COUNT");
    dd_resp_arg_i64(&s->sync.command, page);
    err = dd_sync_add(&s->sync);
    if (!err) err = dd_sync_next(&s->sync, reply);
    if (err) return err;
    const struct redisReply *r = *reply;
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 || r->element[0]->type != REDIS_REPLY_STRING ||
        r->element[1]->type != REDIS_REPLY_ARRAY)
        return dd_staging_error(s, r);
    return DD_OK;
}

enum dd_err dd_hot_staging_walk(struct dd_hot_staging *s, struct dd_hot_walk *w, unsigned page,
                                struct dd_hot_user **users, unsigned *n)
{
    dd_buf_reset(&s->users);
    dd_buf_reset(&s->bytes);
    *n = 0;
    if (w->ended) return DD_OK;
    const struct redisReply *reply;
    enum dd_err err = scan(s, w, page, &reply);
    if (err == DD_CORRUPT) {
        dd_warn("hot.strange_slot", "part=%u error=\"%s\"", w->part, s->sync.error);
        next_part(w);
        return DD_OK;
    }
    if (err) return err;
    const struct redisReply *list = reply->element[1];
    for (size_t i = 0; i < list->elements; i++)
        if (list->element[i]->type == REDIS_REPLY_STRING) add_entry(s, list->element[i], w->part);
    if (!dd_buf_ok(&s->users) || !dd_buf_ok(&s->bytes)) return DD_NO_MEMORY;
    w->cursor = strtoull(reply->element[0]->str, NULL, 10);
    if (w->cursor == 0) next_part(w);
    point(s, users, n);
    return DD_OK;
}

/* One SREM with all entries of a part. false: there are none. */
static bool begin_unlist(struct dd_hot_staging *s, struct dd_hot_slot slot, unsigned part,
                         const struct dd_hot_user *users, unsigned n)
{
    unsigned count = 0;
    for (unsigned i = 0; i < n; i++)
        count += users[i].part == part;
    if (count == 0) return false;
    dd_staging_bucket_key(s, slot, part);
    dd_resp_begin(&s->sync.command, 2 + count, "SREM");
    dd_staging_arg_key(s);
    for (unsigned i = 0; i < n; i++)
        if (users[i].part == part) dd_resp_arg(&s->sync.command, users[i].member);
    return true;
}

enum dd_err dd_hot_staging_unlist(struct dd_hot_staging *s, struct dd_hot_slot slot,
                                  const struct dd_hot_user *users, unsigned n)
{
    unsigned sent = 0;
    enum dd_err err = dd_sync_begin(&s->sync);
    for (unsigned part = 0; part < DD_HOT_PARTS && !err; part++) {
        if (!begin_unlist(s, slot, part, users, n)) continue;
        err = dd_sync_add(&s->sync);
        sent++;
    }
    enum dd_err first = DD_OK;
    for (unsigned i = 0; i < sent && !err; i++) {
        int64_t removed;
        err = dd_staging_next_number(s, &removed);
        if (err == DD_UNAVAILABLE) break;
        if (err && !first) first = err; /* read on: replies must not stay behind */
        err = DD_OK;
    }
    return err ? err : first;
}
