/* What is recorded, in the store's history family. The first byte is above every kind of period, so that
 * entries stand behind the records of sets:
 *
 *   key    't', u8 length of user, user, u64be time of recording in ms, u32be number
 *   value  u8 version 1, u8 what, u8 source, i64le event time, u8 length of scene, scene, item */
#include "dedup/trace_impl.h"
#include "store/history.h"

#define KEY_MAX    (2 + DD_USER_MAX_BYTES + DD_TRACE_CURSOR_BYTES)
#define VALUE_HEAD (1 + 1 + 1 + 8 + 1)
#define OPS_MAX    512 /* in one commit */

struct key {
    size_t len;
    uint8_t bytes[KEY_MAX];
};

static struct key prefix_of(struct dd_slice user)
{
    struct key k = {.len = 2 + user.len, .bytes = {'t', (uint8_t)user.len}};
    memcpy(k.bytes + 2, user.ptr, user.len);
    return k;
}

static struct key key_of(struct dd_slice user, int64_t at_ms, uint32_t seq)
{
    struct key k = prefix_of(user);
    dd_put_be32(k.bytes + k.len, (uint32_t)((uint64_t)at_ms >> 32));
    dd_put_be32(k.bytes + k.len + 4, (uint32_t)at_ms);
    dd_put_be32(k.bytes + k.len + 8, seq);
    k.len += DD_TRACE_CURSOR_BYTES;
    return k;
}

/* false: of no known form. */
static bool decode(struct dd_slice cursor, struct dd_slice value, struct dd_trace_entry *out)
{
    if (cursor.len != DD_TRACE_CURSOR_BYTES || value.len < VALUE_HEAD || value.ptr[0] != 1) return false;
    size_t scene = value.ptr[VALUE_HEAD - 1];
    if (value.len < VALUE_HEAD + scene) return false;
    *out = (struct dd_trace_entry){
        .at_ms = (int64_t)((uint64_t)dd_get_be32(cursor.ptr) << 32 | dd_get_be32(cursor.ptr + 4)),
        .what = (enum dd_trace_what)value.ptr[1],
        .source = (enum dd_trace_source)value.ptr[2],
        .ts_ms = (int64_t)dd_get_le64(value.ptr + 3),
        .scene = dd_slice_of(value.ptr + VALUE_HEAD, scene),
        .item = dd_slice_of(value.ptr + VALUE_HEAD + scene, value.len - VALUE_HEAD - scene),
        .cursor = cursor};
    return true;
}

/* ---- many operations, a bounded number in each commit ---- */

struct writer {
    struct dd_trace *t;
    struct dd_store_op ops[OPS_MAX];
    unsigned n;
    uint64_t done; /* operations committed */
    struct dd_arena arena;
    enum dd_err err;
};

static void commit(struct writer *w)
{
    struct dd_store_batch batch = {.ops = w->ops, .n = w->n};
    if (w->n && w->err == DD_OK) w->err = dd_store_write_wait(w->t->store, &batch);
    if (w->err == DD_OK) w->done += w->n;
    w->n = 0;
    dd_arena_reset(&w->arena);
}

static void put(struct writer *w, struct dd_slice key, struct dd_slice value)
{
    struct dd_slice k = dd_arena_copy(&w->arena, key), v = dd_arena_copy(&w->arena, value);
    if (!k.len || v.len != value.len) w->err = DD_NO_MEMORY;
    if (w->err != DD_OK) return;
    w->ops[w->n++] = (struct dd_store_op){
        .kind = DD_STORE_PUT, .family = DD_STORE_HISTORY, .suffix = k, .operand = v};
    if (w->n == OPS_MAX) commit(w);
}

/* ---- writing ---- */

static void put_entry(struct writer *w, const struct dd_trace_note *n, struct dd_slice user,
                      struct dd_slice item)
{
    uint8_t value[VALUE_HEAD + DD_SCENE_NAME_MAX + DD_ITEM_MAX_BYTES] = {1, n->what, n->source};
    size_t scene = strlen(n->scene), len = item.len < DD_ITEM_MAX_BYTES ? item.len : DD_ITEM_MAX_BYTES;
    struct key k = key_of(user, n->at_ms, w->t->seq++);
    dd_put_le64(value + 3, (uint64_t)n->ts_ms);
    value[VALUE_HEAD - 1] = (uint8_t)scene;
    memcpy(value + VALUE_HEAD, n->scene, scene);
    memcpy(value + VALUE_HEAD + scene, item.ptr, len);
    put(w, dd_slice_of(k.bytes, k.len), dd_slice_of(value, VALUE_HEAD + scene + len));
}

static struct dd_traced *find_id(struct dd_trace *t, uint64_t id)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->table[i].id == id) return &t->table[i];
    return NULL;
}

static void add_entries(struct dd_trace *t, struct dd_traced *e, int64_t by)
{
    pthread_mutex_lock(&t->lock); /* state is read under it */
    e->state.entries += (uint64_t)by;
    pthread_mutex_unlock(&t->lock);
}

unsigned dd_trace_write(struct dd_trace *t, const struct dd_trace_note *n)
{
    struct dd_traced *e = find_id(t, n->id);
    if (!e) return 0; /* stopped meanwhile */
    struct writer w = {.t = t};
    const uint8_t *at = n->items.data;
    for (unsigned i = 0; i < n->n; i++) {
        size_t len = dd_get_le16(at);
        put_entry(&w, n, dd_traced_user(e), dd_slice_of(at + 2, len));
        at += 2 + len;
    }
    commit(&w);
    dd_arena_free(&w.arena);
    add_entries(t, e, (int64_t)w.done);
    uint64_t removed, max = e->state.max_entries;
    if (e->state.entries > max)
        w.err = dd_trace_remove(t, dd_traced_user(e), dd_slice_of(NULL, 0), INT64_MAX, e->state.entries - max,
                                &removed);
    return (unsigned)w.done; /* what could not be trimmed is with the next note */
}

/* ---- removing ---- */

struct removal {
    struct writer w;
    size_t skip; /* of the key, up to the cursor */
    struct dd_slice scene;
    int64_t older_ms;
    uint64_t most;
};

static bool remove_one(void *arg, struct dd_slice key, struct dd_slice value)
{
    struct removal *r = arg;
    struct dd_trace_entry e;
    bool known = decode(dd_slice_of(key.ptr + r->skip, key.len - r->skip), value, &e);
    if (known && e.at_ms >= r->older_ms) return false;
    if (known && r->scene.len && !dd_slice_eq(r->scene, e.scene)) return true;
    put(&r->w, key, dd_slice_of(NULL, 0));
    return r->w.err == DD_OK && r->w.done + r->w.n < r->most;
}

enum dd_err dd_trace_remove(struct dd_trace *t, struct dd_slice user, struct dd_slice scene, int64_t older_ms,
                            uint64_t most, uint64_t *removed)
{
    struct key prefix = prefix_of(user);
    struct removal r = {
        .w = {.t = t}, .skip = prefix.len, .scene = scene, .older_ms = older_ms, .most = most};
    struct dd_store_scan scan = {.family = DD_STORE_HISTORY, .prefix = dd_slice_of(prefix.bytes, prefix.len)};
    enum dd_err err = dd_store_scan(t->store, &scan, remove_one, &r);
    commit(&r.w);
    dd_arena_free(&r.w.arena);
    *removed = r.w.done;
    struct dd_traced *e = dd_trace_find(t, user);
    if (e) add_entries(t, e, -(int64_t)(r.w.done < e->state.entries ? r.w.done : e->state.entries));
    return err == DD_OK ? r.w.err : err;
}

/* ---- reading ---- */

static bool count_one(void *arg, struct dd_slice key, struct dd_slice value)
{
    (void)key, (void)value;
    ++*(uint64_t *)arg;
    return true;
}

enum dd_err dd_trace_count(struct dd_trace *t, struct dd_slice user, uint64_t *n)
{
    struct key prefix = prefix_of(user);
    struct dd_store_scan scan = {.family = DD_STORE_HISTORY, .prefix = dd_slice_of(prefix.bytes, prefix.len)};
    *n = 0;
    return dd_store_scan(t->store, &scan, count_one, n);
}

struct showing {
    size_t skip;
    struct dd_slice scene;
    int64_t older_ms;
    dd_trace_visit visit;
    void *arg;
};

static bool show_one(void *arg, struct dd_slice key, struct dd_slice value)
{
    const struct showing *s = arg;
    struct dd_trace_entry e;
    if (!decode(dd_slice_of(key.ptr + s->skip, key.len - s->skip), value, &e)) return true;
    if (e.at_ms < s->older_ms) return false; /* past its days, and about to go */
    if (s->scene.len && !dd_slice_eq(s->scene, e.scene)) return true;
    return s->visit(s->arg, &e);
}

enum dd_err dd_trace_show(struct dd_trace *t, struct dd_slice user, struct dd_slice scene,
                          struct dd_slice before, dd_trace_visit visit, void *arg)
{
    struct dd_trace_state state;
    struct key prefix = prefix_of(user), from = prefix;
    enum dd_err err = dd_trace_get(t, user, &state);
    if (err != DD_OK) return err;
    if (before.len && before.len != DD_TRACE_CURSOR_BYTES) return DD_INVALID;
    if (before.len) memcpy(from.bytes + from.len, before.ptr, before.len);
    struct showing s = {.skip = prefix.len,
                        .scene = scene,
                        .older_ms = dd_clock_wall(t->clock).ms - (int64_t)state.days * 86400000,
                        .visit = visit,
                        .arg = arg};
    struct dd_store_scan scan = {.family = DD_STORE_HISTORY,
                                 .prefix = dd_slice_of(prefix.bytes, prefix.len),
                                 .from = dd_slice_of(from.bytes, before.len ? from.len + before.len : 0),
                                 .reverse = true};
    return dd_store_scan(t->store, &scan, show_one, &s);
}
