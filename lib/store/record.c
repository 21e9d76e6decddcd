#include "store/record.h"

#include "store/store_impl.h"

/* ---- reading ---- */

/* DD_PENDING: it would block. */
static enum dd_err look_in_memory(struct dd_store *s, struct dd_record_read *r)
{
    char *text = NULL;
    size_t len = 0;
    rocksdb_pinnableslice_t *value = rocksdb_get_pinned_cf(s->rocks.db, s->rocks.read_memory,
                                                           s->rocks.family[DD_FAMILY_META],
                                                           (const char *)r->key.ptr, r->key.len, &text);
    enum dd_err err = dd_rocks_take(text);
    if (err != DD_OK) return err;
    if (!value) return DD_NOT_FOUND;
    const char *bytes = rocksdb_pinnableslice_value(value, &len);
    dd_buf_add(&r->value, bytes, len);
    rocksdb_pinnableslice_destroy(value);
    return dd_buf_ok(&r->value) ? DD_OK : DD_NO_MEMORY;
}

static void run_on_pool(void *arg)
{
    struct dd_record_read *r = arg;
    r->err = dd_rocks_get(&r->store->rocks, DD_FAMILY_META, r->key, &r->value);
}

static void done_on_loop(void *arg)
{
    struct dd_record_read *r = arg;
    r->done(r->arg);
}

enum dd_err dd_store_record_read(struct dd_store *s, struct dd_record_read *r)
{
    r->store = s;
    r->err = look_in_memory(s, r);
    if (r->err != DD_PENDING) return DD_OK;
    r->job = (struct dd_job){.run = run_on_pool, .done = done_on_loop, .arg = r, .loop = r->loop};
    enum dd_err err = dd_pool_submit(s->pool, &r->job);
    return err == DD_OK ? DD_PENDING : err;
}

enum dd_err dd_store_record_get(struct dd_store *s, struct dd_slice key, struct dd_buf *out)
{
    return dd_rocks_get(&s->rocks, DD_FAMILY_META, key, out);
}

/* ---- writing ---- */

struct updates {
    const struct dd_record_update *u;
    unsigned n;
};

/* The batch holds what earlier updates of the same call wrote; one of the same key twice is the caller's
 * mistake, which costs the first of the two. */
static enum dd_err update_one(struct dd_commit *c, const struct dd_record_update *u)
{
    rocksdb_column_family_handle_t *meta = c->store->rocks.family[DD_FAMILY_META];
    dd_buf_reset(&c->current);
    dd_buf_reset(&c->value);
    enum dd_err err = dd_rocks_get(&c->store->rocks, DD_FAMILY_META, u->key, &c->current);
    if (err != DD_OK && err != DD_NOT_FOUND) return err;
    err = u->update(u->arg, dd_buf_slice(&c->current), &c->value);
    if (err == DD_OK && !dd_buf_ok(&c->value)) err = DD_NO_MEMORY;
    if (err != DD_OK) return err;
    const char *key = (const char *)u->key.ptr;
    if (c->value.len)
        rocksdb_writebatch_put_cf(c->batch, meta, key, u->key.len, (const char *)c->value.data, c->value.len);
    else
        rocksdb_writebatch_delete_cf(c->batch, meta, key, u->key.len);
    return DD_OK;
}

static enum dd_err apply(struct dd_commit *c, struct dd_store_batch *b)
{
    const struct updates *all = b->arg_call;
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < all->n && err == DD_OK; i++)
        err = update_one(c, &all->u[i]);
    return err;
}

enum dd_err dd_store_record_update(struct dd_store *s, const struct dd_record_update *u, unsigned n,
                                   bool sync)
{
    struct updates all = {u, n};
    for (unsigned i = 0; i < n; i++)
        if (u[i].key.len < 1 || u[i].key.len > DD_RECORD_KEY_MAX) return DD_INVALID;
    if (atomic_load(&s->guard)) return DD_DISK_FULL;
    struct dd_store_batch b = {.sync = sync, .call = apply, .arg_call = &all};
    return dd_writer_push_wait(s, &b, false);
}
