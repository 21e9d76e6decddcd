#include "store/history.h"

#include "store/store_impl.h"

static enum dd_family family_of(enum dd_store_family f)
{
    return f == DD_STORE_META ? DD_FAMILY_META : DD_FAMILY_HISTORY;
}

static bool begins_with(struct dd_slice key, struct dd_slice prefix)
{
    return key.len >= prefix.len && (!prefix.len || memcmp(key.ptr, prefix.ptr, prefix.len) == 0);
}

static struct dd_slice key_at(const rocksdb_iterator_t *it)
{
    size_t len = 0;
    const char *key = rocksdb_iter_key(it, &len);
    return dd_slice_of(key, len);
}

static struct dd_slice value_at(const rocksdb_iterator_t *it)
{
    size_t len = 0;
    const char *value = rocksdb_iter_value(it, &len);
    return dd_slice_of(value, len);
}

static enum dd_err end_walk(rocksdb_iterator_t *it)
{
    char *text = NULL;
    rocksdb_iter_get_error(it, &text);
    rocksdb_iter_destroy(it);
    return dd_rocks_take_logged(text, "store.scan_failed", "records");
}

/* ---- on the writer thread ---- */

void dd_history_put(struct dd_commit *c, enum dd_store_family family, struct dd_slice head,
                    const struct dd_store_op *op)
{
    rocksdb_column_family_handle_t *cf = c->store->rocks.family[family_of(family)];
    uint8_t key[DD_KEY_MAX + DD_STORE_NAME_MAX];
    if (head.len) memcpy(key, head.ptr, head.len);
    memcpy(key + head.len, op->suffix.ptr, op->suffix.len);
    size_t len = head.len + op->suffix.len;
    if (family == DD_STORE_HISTORY) atomic_store(&c->store->has_records, true);
    if (op->operand.len)
        rocksdb_writebatch_put_cf(c->batch, cf, (const char *)key, len, (const char *)op->operand.ptr,
                                  op->operand.len);
    else
        rocksdb_writebatch_delete_cf(c->batch, cf, (const char *)key, len);
}

static rocksdb_iterator_t *seek_records(struct dd_store *s, struct dd_slice key)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(s->rocks.db, s->rocks.read,
                                                        s->rocks.family[DD_FAMILY_HISTORY]);
    rocksdb_iter_seek(it, (const char *)key.ptr, key.len);
    return it;
}

/* One delete for each: a range delete would cost every later read of the neighbourhood. */
enum dd_err dd_history_erase(struct dd_commit *c, struct dd_slice key, uint32_t *n)
{
    rocksdb_iterator_t *it = seek_records(c->store, key);
    *n = 0;
    for (; rocksdb_iter_valid(it) && begins_with(key_at(it), key); rocksdb_iter_next(it), (*n)++) {
        struct dd_slice k = key_at(it);
        rocksdb_writebatch_delete_cf(c->batch, c->store->rocks.family[DD_FAMILY_HISTORY], (const char *)k.ptr,
                                     k.len);
    }
    return end_walk(it);
}

enum dd_err dd_history_feed(struct dd_commit *c, struct dd_store_op *op, struct dd_slice key)
{
    rocksdb_iterator_t *it = seek_records(c->store, key);
    for (; rocksdb_iter_valid(it) && begins_with(key_at(it), key); rocksdb_iter_next(it), op->records++) {
        struct dd_slice k = key_at(it);
        op->record(op->update_arg, dd_slice_of(k.ptr + key.len, k.len - key.len), value_at(it));
    }
    return end_walk(it);
}

bool dd_history_any(struct dd_store *s)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(s->rocks.db, s->rocks.read,
                                                        s->rocks.family[DD_FAMILY_HISTORY]);
    rocksdb_iter_seek_to_first(it);
    bool any = rocksdb_iter_valid(it);
    return end_walk(it) != DD_OK || any;
}

/* ---- scans ---- */

/* Puts the iterator on the first key of the walk. */
static void seek_first(rocksdb_iterator_t *it, const struct dd_store_scan *scan)
{
    struct dd_slice at = scan->from.len ? scan->from : scan->prefix;
    if (!scan->reverse) {
        rocksdb_iter_seek(it, (const char *)at.ptr, at.len);
        if (scan->from.len && rocksdb_iter_valid(it) && dd_slice_eq(key_at(it), scan->from))
            rocksdb_iter_next(it);
        return;
    }
    uint8_t last[DD_KEY_MAX + DD_STORE_NAME_MAX + 64];
    if (!scan->from.len) { /* above every key of the prefix that anybody writes */
        memcpy(last, at.ptr, at.len);
        memset(last + at.len, 0xff, 64);
        at = dd_slice_of(last, at.len + 64);
    }
    rocksdb_iter_seek_for_prev(it, (const char *)at.ptr, at.len);
    if (scan->from.len && rocksdb_iter_valid(it) && dd_slice_eq(key_at(it), scan->from))
        rocksdb_iter_prev(it);
}

enum dd_err dd_store_scan(struct dd_store *s, const struct dd_store_scan *scan, dd_store_scan_visit visit,
                          void *arg)
{
    if (scan->prefix.len > DD_KEY_MAX + DD_STORE_NAME_MAX) return DD_INVALID;
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(s->rocks.db, s->rocks.read,
                                                        s->rocks.family[family_of(scan->family)]);
    seek_first(it, scan);
    while (rocksdb_iter_valid(it) && begins_with(key_at(it), scan->prefix)) {
        if (!visit(arg, key_at(it), value_at(it))) break;
        if (scan->reverse)
            rocksdb_iter_prev(it);
        else
            rocksdb_iter_next(it);
    }
    return end_walk(it);
}

struct behind {
    size_t skip;
    dd_store_scan_visit visit;
    void *arg;
};

static bool visit_suffix(void *arg, struct dd_slice key, struct dd_slice value)
{
    const struct behind *b = arg;
    return b->visit(b->arg, dd_slice_of(key.ptr + b->skip, key.len - b->skip), value);
}

enum dd_err dd_store_each_record(struct dd_store *s, struct dd_slice scene, struct dd_slice user,
                                 struct dd_period period, dd_store_scan_visit visit, void *arg)
{
    struct dd_key key;
    enum dd_err err = dd_key_encode(&key, period, scene, user);
    if (err != DD_OK) return err;
    struct behind b = {key.len, visit, arg};
    struct dd_store_scan scan = {.family = DD_STORE_HISTORY, .prefix = dd_key_slice(&key)};
    return dd_store_scan(s, &scan, visit_suffix, &b);
}

enum dd_err dd_store_each_recorded(struct dd_store *s, dd_store_recorded_visit visit, void *arg)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(s->rocks.db, s->rocks.read,
                                                        s->rocks.family[DD_FAMILY_HISTORY]);
    rocksdb_iter_seek_to_first(it);
    while (rocksdb_iter_valid(it)) {
        struct dd_slice scene, user, key = key_at(it);
        struct dd_period period;
        uint8_t next[DD_KEY_MAX + 64];
        /* The set's key says itself how long it is; what is not one (first byte above the kinds) comes last.
         */
        if (dd_key_decode_head(key, &period, &scene, &user) != DD_OK) break;
        size_t len = (size_t)(user.ptr + user.len - key.ptr);
        memcpy(next, key.ptr, len);
        if (!visit(arg, scene, user, period)) break;
        memset(next + len, 0xff, 64); /* behind every record of this set */
        rocksdb_iter_seek(it, (const char *)next, len + 64);
    }
    return end_walk(it);
}
