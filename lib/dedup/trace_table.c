/* Who is traced: a table in memory, and a value for each in the store's meta family:
 *
 *   trace/<user>   u8 version 1, u64le id, u32le days, u32le max entries, i64le started, i64le until, scene
 */
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "dedup/trace_impl.h"
#include "store/history.h"

static const char prefix[] = "trace/";

#define FIXED (1 + 8 + 4 + 4 + 8 + 8)

unsigned dd_trace_cell_of(const struct dd_trace *t, struct dd_slice user)
{
    return (unsigned)(dd_hash64(user, dd_get_le64(dd_store_secret(t->store)->bytes)) % DD_TRACE_CELLS);
}

struct dd_slice dd_traced_user(const struct dd_traced *e)
{
    return dd_slice_of(e->user, e->user_len);
}

struct dd_traced *dd_trace_find(struct dd_trace *t, struct dd_slice user)
{
    for (unsigned i = 0; i < t->n; i++)
        if (dd_slice_eq(user, dd_traced_user(&t->table[i]))) return &t->table[i];
    return NULL;
}

/* After a change of the table, with both locks. Counts anew: 255 users in one cell cannot be counted down. */
static void set_cell(struct dd_trace *t, struct dd_slice user)
{
    unsigned cell = dd_trace_cell_of(t, user);
    bool any = false;
    for (unsigned i = 0; i < t->n && !any; i++)
        any = dd_trace_cell_of(t, dd_traced_user(&t->table[i])) == cell;
    atomic_store(&t->cell[cell], any);
    dd_gauge_set(t->users, t->n);
}

/* With `writing`. */
static void set_row(struct dd_trace *t, const struct dd_traced *row)
{
    pthread_mutex_lock(&t->lock);
    struct dd_traced *e = dd_trace_find(t, dd_traced_user(row));
    if (!e) e = &t->table[t->n++];
    *e = *row;
    set_cell(t, dd_traced_user(row));
    pthread_mutex_unlock(&t->lock);
}

static void drop_row(struct dd_trace *t, struct dd_slice user)
{
    pthread_mutex_lock(&t->lock);
    struct dd_traced *e = dd_trace_find(t, user);
    if (e) *e = t->table[--t->n];
    set_cell(t, user);
    pthread_mutex_unlock(&t->lock);
}

/* ---- in the store ---- */

struct stored {
    uint8_t key[sizeof prefix + DD_USER_MAX_BYTES], value[FIXED + DD_SCENE_NAME_MAX];
};

static struct dd_store_op op_of(struct stored *s, struct dd_slice user)
{
    size_t n = sizeof prefix - 1;
    memcpy(s->key, prefix, n);
    memcpy(s->key + n, user.ptr, user.len);
    return (struct dd_store_op){
        .kind = DD_STORE_PUT, .family = DD_STORE_META, .suffix = dd_slice_of(s->key, n + user.len)};
}

static struct dd_slice encode(struct stored *s, const struct dd_traced *row)
{
    size_t scene = strlen(row->state.scene);
    s->value[0] = 1;
    dd_put_le64(s->value + 1, row->id);
    dd_put_le32(s->value + 9, row->state.days);
    dd_put_le32(s->value + 13, row->state.max_entries);
    dd_put_le64(s->value + 17, (uint64_t)row->state.started_ms);
    dd_put_le64(s->value + 25, (uint64_t)row->state.until_ms);
    memcpy(s->value + FIXED, row->state.scene, scene);
    return dd_slice_of(s->value, FIXED + scene);
}

static bool decode(struct dd_slice key, struct dd_slice value, struct dd_traced *row)
{
    struct dd_slice user = dd_slice_of(key.ptr + sizeof prefix - 1, key.len - (sizeof prefix - 1));
    size_t scene = value.len - FIXED;
    if (value.len < FIXED || value.ptr[0] != 1 || scene > DD_SCENE_NAME_MAX || !user.len ||
        user.len > DD_USER_MAX_BYTES)
        return false;
    *row = (struct dd_traced){.id = dd_get_le64(value.ptr + 1), .user_len = (uint8_t)user.len};
    memcpy(row->user, user.ptr, user.len);
    row->state.days = dd_get_le32(value.ptr + 9);
    row->state.max_entries = dd_get_le32(value.ptr + 13);
    row->state.started_ms = (int64_t)dd_get_le64(value.ptr + 17);
    row->state.until_ms = (int64_t)dd_get_le64(value.ptr + 25);
    memcpy(row->state.scene, value.ptr + FIXED, scene);
    return true;
}

static bool visit(void *arg, struct dd_slice key, struct dd_slice value)
{
    struct dd_trace *t = arg;
    struct dd_traced row;
    if (t->n == DD_TRACE_USERS_MAX) return false;
    if (decode(key, value, &row))
        set_row(t, &row);
    else
        dd_warn("trace.unreadable", "note=\"a trace in the store is of no known form and is left out\"");
    return true;
}

enum dd_err dd_trace_load(struct dd_trace *t)
{
    struct dd_store_scan scan = {.family = DD_STORE_META, .prefix = dd_slice_str(prefix)};
    enum dd_err err = dd_store_scan(t->store, &scan, visit, t);
    for (unsigned i = 0; i < t->n && err == DD_OK; i++)
        err = dd_trace_count(t, dd_traced_user(&t->table[i]), &t->table[i].state.entries);
    return err;
}

static enum dd_err write_row(struct dd_trace *t, const struct dd_traced *row)
{
    struct stored s;
    struct dd_store_op op = op_of(&s, dd_traced_user(row));
    op.operand = encode(&s, row);
    struct dd_store_batch batch = {.ops = &op, .n = 1, .sync = true};
    return dd_store_write_wait(t->store, &batch);
}

enum dd_err dd_trace_forget(struct dd_trace *t, struct dd_slice user)
{
    struct stored s;
    struct dd_store_op op = op_of(&s, user);
    drop_row(t, user); /* first: from here on nothing is noted */
    struct dd_store_batch batch = {.ops = &op, .n = 1, .sync = true};
    return dd_store_write_wait(t->store, &batch);
}

/* ---- for operators ---- */

static void fill_state(const struct dd_trace *t, const struct dd_traced *e, struct dd_trace_state *out)
{
    *out = e->state;
    out->active = dd_clock_wall(t->clock).ms < e->state.until_ms;
}

enum dd_err dd_trace_get(struct dd_trace *t, struct dd_slice user, struct dd_trace_state *out)
{
    pthread_mutex_lock(&t->lock);
    const struct dd_traced *e = dd_trace_find(t, user);
    if (e) fill_state(t, e, out);
    pthread_mutex_unlock(&t->lock);
    return e ? DD_OK : DD_NOT_FOUND;
}

static enum dd_err start(struct dd_trace *t, struct dd_slice user, struct dd_slice scene, unsigned days,
                         struct dd_traced *row)
{
    const struct dd_traced *before = dd_trace_find(t, user);
    *row = (struct dd_traced){.user_len = (uint8_t)user.len};
    if (user.len > DD_USER_MAX_BYTES || scene.len > DD_SCENE_NAME_MAX) return DD_INVALID;
    if (before)
        *row = *before;
    else if (t->n == DD_TRACE_USERS_MAX)
        return DD_LIMIT;
    enum dd_err err = before ? DD_OK : dd_random(&row->id, sizeof row->id);
    if (err != DD_OK) return err;
    row->id |= 1; /* never 0 */
    memcpy(row->user, user.ptr, user.len);
    memset(row->state.scene, 0, sizeof row->state.scene);
    if (scene.len) memcpy(row->state.scene, scene.ptr, scene.len);
    row->state.days = days;
    row->state.max_entries = DD_TRACE_ENTRIES_MAX;
    row->state.started_ms = dd_clock_wall(t->clock).ms;
    row->state.until_ms = row->state.started_ms + (int64_t)days * 86400000;
    err = write_row(t, row);
    if (err == DD_OK) set_row(t, row);
    return err;
}

enum dd_err dd_trace_start(struct dd_trace *t, struct dd_slice user, struct dd_slice scene, unsigned days,
                           struct dd_trace_state *out)
{
    struct dd_traced row;
    pthread_mutex_lock(&t->writing);
    enum dd_err err = start(t, user, scene, days, &row);
    if (err == DD_OK) fill_state(t, &row, out);
    pthread_mutex_unlock(&t->writing);
    return err;
}

/* The value goes last: if something fails or the process ends, the next start still knows of the trace. */
static enum dd_err stop(struct dd_trace *t, struct dd_slice user, struct dd_slice only_scene,
                        uint64_t *removed)
{
    const struct dd_traced *e = dd_trace_find(t, user);
    if (!e) return DD_NOT_FOUND;
    bool whole = !only_scene.len || dd_slice_eq(only_scene, dd_slice_str(e->state.scene));
    enum dd_err err = dd_trace_remove(t, user, only_scene, INT64_MAX, UINT64_MAX, removed);
    if (err == DD_OK && whole && only_scene.len) {
        uint64_t rest; /* entries of before the trace was narrowed to this scene */
        err = dd_trace_remove(t, user, dd_slice_of(NULL, 0), INT64_MAX, UINT64_MAX, &rest);
        *removed += rest;
    }
    return err == DD_OK && whole ? dd_trace_forget(t, user) : err;
}

enum dd_err dd_trace_stop(struct dd_trace *t, struct dd_slice user, struct dd_slice only_scene,
                          uint64_t *removed)
{
    *removed = 0;
    pthread_mutex_lock(&t->writing);
    enum dd_err err = stop(t, user, only_scene, removed);
    pthread_mutex_unlock(&t->writing);
    return err;
}
