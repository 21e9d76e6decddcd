/* Reading an old key whole, and removing what was read.
 *
 * ZSCAN and SSCAN go in pages and return every element that was there from the beginning of the walk to its
 * end; what comes or changes meanwhile is newer than the mark, which is taken before the walk. A list has no
 * such walk: pushes and trims shift it under any paging, so it is read by one LRANGE, which Redis answers as
 * one moment (100,000 elements: 5 ms). A zset from a time on is paged by its scores (below).
 *
 * Removal must not take what was not read. A member of a zset may have been seen again since, which moves its
 * score: a script compares and removes only what is as it was read. Elements of a list are compared with its
 * end (writers that LPUSH) or else its beginning (RPUSH), a page at a time, and cut off only when all are
 * equal. */
#include <hiredis/hiredis.h>

#include <stdio.h>
#include <stdlib.h>

#include "hot/legacy_impl.h"
#include "hot/legacy_sync.h"
#include "hot/resp.h"

#define PAGE       1000
#define REMOVE_MAX 500 /* members of one script */

struct stored_entry {
    size_t at;
    uint32_t len;
    double score;
    int64_t at_ms;
};

struct dd_legacy_entry dd_legacy_entry_at(const struct dd_legacy_entries *e, unsigned i)
{
    const struct stored_entry *s = (const struct stored_entry *)(const void *)e->entry.data + i;
    return (struct dd_legacy_entry){dd_slice_of(e->ids.data + s->at, s->len), s->score, s->at_ms};
}

void dd_legacy_entries_reset(struct dd_legacy_entries *e)
{
    dd_buf_reset(&e->ids);
    dd_buf_reset(&e->entry);
    e->n = 0;
}

void dd_legacy_entries_free(struct dd_legacy_entries *e)
{
    dd_buf_free(&e->ids);
    dd_buf_free(&e->entry);
    e->n = 0;
}

static void add_entry(struct dd_legacy_entries *e, const struct redisReply *id, double score, int64_t at_ms)
{
    if (id->type != REDIS_REPLY_STRING) return;
    struct stored_entry s = {e->ids.len, (uint32_t)id->len, score, at_ms};
    dd_buf_add(&e->ids, id->str, id->len);
    dd_buf_add(&e->entry, &s, sizeof s);
    e->n++;
}

/* ---- reading ---- */

static void add_pairs(struct dd_legacy_sync *s, const struct redisReply *pairs, struct dd_legacy_entries *out)
{
    double score;
    for (size_t i = 0; i + 1 < pairs->elements; i += 2) {
        const struct redisReply *text = pairs->element[i + 1];
        if (text->type == REDIS_REPLY_STRING && dd_legacy_score(dd_slice_of(text->str, text->len), &score))
            add_entry(out, pairs->element[i], score, dd_legacy_time(s->l->unit, score));
    }
}

static void add_members(const struct redisReply *members, struct dd_legacy_entries *out)
{
    for (size_t i = 0; i < members->elements; i++)
        add_entry(out, members->element[i], 0, 0);
}

static enum dd_err check_size(const struct dd_legacy_entries *out)
{
    if (!dd_buf_ok(&out->ids) || !dd_buf_ok(&out->entry)) return DD_NO_MEMORY;
    return out->n > DD_LEGACY_ENTRIES_MAX ? DD_TOO_LARGE : DD_OK;
}

static enum dd_err scan_page(struct dd_legacy_sync *s, struct dd_slice user, char cursor[24],
                             struct dd_legacy_entries *out)
{
    bool zset = s->l->type == DD_LEGACY_ZSET;
    const struct redisReply *reply = NULL;
    enum dd_err err = dd_legacy_begin(s, user, 5, zset ? "ZSCAN" : "SSCAN");
    if (err != DD_OK) return err;
    dd_resp_arg_str(&s->sync.command, cursor);
    dd_resp_arg_str(&s->sync.command, "COUNT");
    dd_resp_arg_i64(&s->sync.command, PAGE);
    err = dd_legacy_call(s, REDIS_REPLY_ARRAY, &reply);
    if (err != DD_OK) return err;
    if (reply->elements != 2 || reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_ARRAY)
        return DD_IO;
    snprintf(cursor, 24, "%.20s", reply->element[0]->str);
    if (zset)
        add_pairs(s, reply->element[1], out);
    else
        add_members(reply->element[1], out);
    return check_size(out);
}

static enum dd_err load_pages(struct dd_legacy_sync *s, struct dd_slice user, struct dd_legacy_entries *out)
{
    char cursor[24] = "0";
    enum dd_err err;
    do {
        err = scan_page(s, user, cursor, out);
    } while (err == DD_OK && strcmp(cursor, "0") != 0);
    return err;
}

static enum dd_err load_list(struct dd_legacy_sync *s, struct dd_slice user, struct dd_legacy_entries *out)
{
    const struct redisReply *reply = NULL;
    enum dd_err err = dd_legacy_begin(s, user, 4, "LRANGE");
    if (err != DD_OK) return err;
    dd_resp_arg_i64(&s->sync.command, 0);
    dd_resp_arg_i64(&s->sync.command, DD_LEGACY_ENTRIES_MAX);
    err = dd_legacy_call(s, REDIS_REPLY_ARRAY, &reply);
    if (err == DD_OK) add_members(reply, out);
    return err == DD_OK ? check_size(out) : err;
}

/* ---- a zset from a time on ----
 *
 * Pages follow the scores, not positions: each begins at the last score of the one before, which is read
 * again, since more members may have it. Writers meanwhile: a member that is seen again moves up, to be read
 * there, or beyond the end, where it is newer than the mark; counted by positions it would shift a member
 * that nobody moved out of the walk, and that one would be lost. What is added behind the walk is as late as
 * it would have been after it: the margin is for that. */

struct walk {
    char min[40];
    const char *max;
    unsigned limit; /* of a page: doubled while one score fills it */
    unsigned tie;   /* first entry, of those read, with the score in min */
    bool ended;
};

static int compare_ids(struct dd_slice a, struct dd_slice b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Whether the entry just added was there: members of one score come in the order of their bytes, both times.
 */
static bool was_read(const struct dd_legacy_entries *e, unsigned *tie, unsigned ties_end)
{
    struct dd_legacy_entry one = dd_legacy_entry_at(e, e->n - 1);
    for (; *tie < ties_end; ++*tie) {
        struct dd_legacy_entry old = dd_legacy_entry_at(e, *tie);
        int order = old.score == one.score ? compare_ids(old.id, one.id) : 1;
        if (order >= 0) return order == 0;
    }
    return false;
}

static void drop_last(struct dd_legacy_entries *e)
{
    struct stored_entry *last = (struct stored_entry *)(void *)e->entry.data + --e->n;
    e->ids.len = last->at;
    e->entry.len -= sizeof *last;
}

static void take_page(struct dd_legacy_sync *s, struct walk *w, const struct redisReply *pairs,
                      struct dd_legacy_entries *out)
{
    unsigned before = out->n, tie = w->tie;
    double score;
    for (size_t i = 0; i + 1 < pairs->elements; i += 2) {
        const struct redisReply *text = pairs->element[i + 1];
        if (text->type != REDIS_REPLY_STRING || !dd_legacy_score(dd_slice_of(text->str, text->len), &score))
            continue;
        unsigned n = out->n;
        add_entry(out, pairs->element[i], score, dd_legacy_time(s->l->unit, score));
        if (dd_buf_ok(&out->entry) && out->n > n && was_read(out, &tie, before)) drop_last(out);
    }
}

/* Where the next page begins. */
static void go_on(struct walk *w, const struct redisReply *pairs, const struct dd_legacy_entries *out)
{
    const struct redisReply *last = pairs->elements ? pairs->element[pairs->elements - 1] : NULL;
    w->ended = !last || pairs->elements / 2 < w->limit || last->type != REDIS_REPLY_STRING;
    if (w->ended) return;
    bool stuck = strcmp(w->min, last->str) == 0;
    w->limit = stuck ? w->limit * 2 : PAGE;
    snprintf(w->min, sizeof w->min, "%s", last->str);
    while (!stuck && w->tie + 1 < out->n &&
           dd_legacy_entry_at(out, w->tie).score != dd_legacy_entry_at(out, out->n - 1).score)
        w->tie++;
}

static enum dd_err read_page(struct dd_legacy_sync *s, struct dd_slice user, struct walk *w,
                             struct dd_legacy_entries *out)
{
    const struct redisReply *reply = NULL;
    enum dd_err err = dd_legacy_begin(s, user, 8, "ZRANGEBYSCORE");
    if (err != DD_OK) return err;
    dd_resp_arg_str(&s->sync.command, w->min);
    dd_resp_arg_str(&s->sync.command, w->max);
    dd_resp_arg_str(&s->sync.command, "WITHSCORES");
    dd_resp_arg_str(&s->sync.command, "LIMIT");
    dd_resp_arg_i64(&s->sync.command, 0);
    dd_resp_arg_i64(&s->sync.command, w->limit);
    err = dd_legacy_call(s, REDIS_REPLY_ARRAY, &reply);
    if (err != DD_OK) return err;
    take_page(s, w, reply, out);
    err = check_size(out);
    if (err == DD_OK) go_on(w, reply, out);
    return err;
}

static enum dd_err load_since(struct dd_legacy_sync *s, struct dd_slice user, int64_t since_ms,
                              struct dd_legacy_entries *out)
{
    struct dd_legacy_range range[2];
    unsigned n = dd_legacy_ranges(s->l->unit, since_ms, range);
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < n && err == DD_OK; i++) {
        struct walk w = {.max = range[i].max, .limit = PAGE, .tie = out->n};
        memcpy(w.min, range[i].min, sizeof w.min);
        while (err == DD_OK && !w.ended)
            err = read_page(s, user, &w, out);
    }
    return err;
}

enum dd_err dd_legacy_load(struct dd_legacy_sync *s, struct dd_slice user, bool since, int64_t since_ms,
                           struct dd_legacy_entries *out)
{
    dd_legacy_entries_reset(out);
    if (s->l->type == DD_LEGACY_LIST) return load_list(s, user, out);
    if (since && s->l->type == DD_LEGACY_ZSET) return load_since(s, user, since_ms, out);
    return load_pages(s, user, out);
}

/* ---- removing ---- */

static const char remove_pairs[] = "for i = 1, #ARGV, 2 do "
                                   "local s = redis.call('ZSCORE', KEYS[1], ARGV[i]) "
                                   "if s and tonumber(s) == tonumber(ARGV[i + 1]) then "
                                   "redis.call('ZREM', KEYS[1], ARGV[i]) end end return 1";

static const char cut_list[] = "local n = #ARGV - 1 "
                               "local from, to = -n, -1 "
                               "if ARGV[1] == 'head' then from, to = 0, n - 1 end "
                               "local now = redis.call('LRANGE', KEYS[1], from, to) "
                               "if #now ~= n then return 0 end "
                               "for i = 1, n do if now[i] ~= ARGV[i + 1] then return 0 end end "
                               "if ARGV[1] == 'head' then redis.call('LTRIM', KEYS[1], n, -1) "
                               "else redis.call('LTRIM', KEYS[1], 0, -(n + 1)) end return 1";

static enum dd_err begin_script(struct dd_legacy_sync *s, struct dd_slice user, unsigned args,
                                const char *script)
{
    enum dd_err err = dd_sync_begin(&s->sync);
    if (err != DD_OK) return err;
    dd_legacy_key(s->l, user, &s->key);
    dd_resp_begin(&s->sync.command, 4 + args, "EVAL");
    dd_resp_arg_str(&s->sync.command, script);
    dd_resp_arg_str(&s->sync.command, "1");
    dd_resp_arg(&s->sync.command, dd_buf_slice(&s->key));
    return DD_OK;
}

static enum dd_err remove_scored(struct dd_legacy_sync *s, struct dd_slice user,
                                 const struct dd_legacy_entries *e, unsigned from, unsigned to,
                                 int64_t from_ms)
{
    const struct redisReply *reply = NULL;
    char text[40];
    unsigned n = 0;
    for (unsigned i = from; i < to; i++)
        n += dd_legacy_entry_at(e, i).at_ms >= from_ms;
    if (n == 0) return DD_OK;
    enum dd_err err = begin_script(s, user, 2 * n, remove_pairs);
    for (unsigned i = from; err == DD_OK && i < to; i++) {
        struct dd_legacy_entry x = dd_legacy_entry_at(e, i);
        if (x.at_ms < from_ms) continue;
        dd_resp_arg(&s->sync.command, x.id);
        snprintf(text, sizeof text, "%.17g", x.score);
        dd_resp_arg_str(&s->sync.command, text);
    }
    return err == DD_OK ? dd_legacy_call(s, REDIS_REPLY_INTEGER, &reply) : err;
}

static enum dd_err remove_members(struct dd_legacy_sync *s, struct dd_slice user,
                                  const struct dd_legacy_entries *e, unsigned from, unsigned to)
{
    const struct redisReply *reply = NULL;
    enum dd_err err = dd_legacy_begin(s, user, 2 + to - from, "SREM");
    for (unsigned i = from; err == DD_OK && i < to; i++)
        dd_resp_arg(&s->sync.command, dd_legacy_entry_at(e, i).id);
    return err == DD_OK ? dd_legacy_call(s, REDIS_REPLY_INTEGER, &reply) : err;
}

/* DD_NOT_FOUND: that end of the list is not what was read. */
static enum dd_err cut(struct dd_legacy_sync *s, struct dd_slice user, const struct dd_legacy_entries *e,
                       const char *end, unsigned from, unsigned to)
{
    const struct redisReply *reply = NULL;
    enum dd_err err = begin_script(s, user, 1 + to - from, cut_list);
    if (err != DD_OK) return err;
    dd_resp_arg_str(&s->sync.command, end);
    for (unsigned i = from; i < to; i++)
        dd_resp_arg(&s->sync.command, dd_legacy_entry_at(e, i).id);
    err = dd_legacy_call(s, REDIS_REPLY_INTEGER, &reply);
    return err == DD_OK && !reply->integer ? DD_NOT_FOUND : err;
}

static enum dd_err remove_elements(struct dd_legacy_sync *s, struct dd_slice user,
                                   const struct dd_legacy_entries *e)
{
    unsigned low = 0, high = e->n;
    while (low < high) {
        unsigned n = high - low < REMOVE_MAX ? high - low : REMOVE_MAX;
        enum dd_err err = cut(s, user, e, "tail", high - n, high);
        if (err == DD_OK) {
            high -= n;
            continue;
        }
        if (err == DD_NOT_FOUND) err = cut(s, user, e, "head", low, low + n);
        if (err != DD_OK) return err == DD_NOT_FOUND ? DD_OK : err; /* changed: what is left stays */
        low += n;
    }
    return DD_OK;
}

enum dd_err dd_legacy_remove(struct dd_legacy_sync *s, struct dd_slice user,
                             const struct dd_legacy_entries *e, int64_t from_ms)
{
    if (s->l->type == DD_LEGACY_LIST) return remove_elements(s, user, e);
    enum dd_err err = DD_OK;
    for (unsigned from = 0; from < e->n && err == DD_OK; from += REMOVE_MAX) {
        unsigned to = e->n - from < REMOVE_MAX ? e->n : from + REMOVE_MAX;
        err = s->l->type == DD_LEGACY_ZSET ? remove_scored(s, user, e, from, to, from_ms)
                                           : remove_members(s, user, e, from, to);
    }
    return err;
}
