/* Sets that cannot be read: their bytes go to the meta family under quarantine/<key>, and an empty set
 * flagged damaged takes their place. One write for both, on the writer thread, so that no exposure merged in
 * between is lost.
 *
 * Two ways lead here. A reader found a blob that fails verification (dd_store_quarantine). Or a merge met
 * such a base: then the operator has replaced it already, or will at the next compaction, and kept the bytes
 * in memory; between a compaction and the next second a crash loses those bytes, which nobody could read. */
#include <stdlib.h>

#include "base/log.h"
#include "filter/filter.h"
#include "store/store_impl.h"

static const char prefix[] = "quarantine/";

void dd_repair_meta_key(struct dd_repair_key *out, struct dd_slice key)
{
    memcpy(out->bytes, prefix, sizeof prefix - 1);
    memcpy(out->bytes + sizeof prefix - 1, key.ptr, key.len);
    out->len = sizeof prefix - 1 + key.len;
}

static void put(struct dd_store *s, rocksdb_writebatch_t *batch, enum dd_family family, const void *key,
                size_t key_len, struct dd_slice value)
{
    rocksdb_writebatch_put_cf(batch, s->rocks.family[family], key, key_len, (const char *)value.ptr,
                              value.len);
}

static void note(struct dd_store *s, struct dd_slice key, size_t bytes)
{
    struct dd_period period;
    struct dd_slice scene, user;
    char text[DD_PERIOD_TEXT] = "?";
    atomic_fetch_add(&s->corrupt, 1);
    dd_count(s->corrupt_total, 1);
    if (dd_key_decode(key, &period, &scene, &user) == DD_OK) dd_period_format(period, text);
    dd_error("store.quarantined", "period=%s key_hash=%016llx bytes=%zu", text,
             (unsigned long long)dd_hash64(key, 0), bytes);
}

/* ---- asked for by a reader ---- */

struct repair {
    struct dd_store *store;
    struct dd_store_batch batch;
    struct dd_store_op op; /* names the set whose cell is raised */
    struct dd_key key;
    uint64_t key_hash;
};

/* The blob as it is now, if it is still bad. DD_EXISTS: it is good, DD_NOT_FOUND: it is gone. */
static enum dd_err read_bad(struct dd_store *s, struct dd_slice key, struct dd_buf *out)
{
    static const uint8_t unreadable[1];
    struct dd_filter_view view;
    enum dd_err err = dd_rocks_get(&s->rocks, DD_FAMILY_SETS, key, out);
    if (err == DD_CORRUPT) { /* RocksDB cannot read its own block: there are no bytes to keep */
        dd_buf_reset(out);
        dd_buf_add(out, unreadable, sizeof unreadable);
        return dd_buf_ok(out) ? DD_OK : DD_NO_MEMORY;
    }
    if (err != DD_OK) return err;
    return dd_filter_view_open(&view, dd_buf_slice(out)) == DD_OK ? DD_EXISTS : DD_OK;
}

static enum dd_err replace(struct dd_commit *c, struct dd_store_batch *b)
{
    struct repair *r = b->arg;
    struct dd_store *s = c->store;
    struct dd_slice key = dd_key_slice(&r->key);
    struct dd_repair_key meta;
    struct dd_filter_merge_report report;
    dd_buf_reset(&c->current);
    dd_buf_reset(&c->value);
    enum dd_err err = read_bad(s, key, &c->current);
    if (err == DD_OK) err = dd_filter_merge(dd_buf_slice(&c->current), NULL, 0, &c->value, &report);
    if (err != DD_OK) return err;
    dd_repair_meta_key(&meta, key);
    put(s, c->batch, DD_FAMILY_META, meta.bytes, meta.len, dd_buf_slice(&c->current));
    put(s, c->batch, DD_FAMILY_SETS, key.ptr, key.len, dd_buf_slice(&c->value));
    note(s, key, c->current.len);
    return DD_OK;
}

/* One request a key at a time. false: one is under way, or too many are. */
static bool claim(struct dd_store *s, uint64_t key_hash)
{
    uint64_t *free_place = NULL;
    bool busy = false;
    pthread_mutex_lock(&s->repairing_lock);
    for (unsigned i = 0; i < DD_REPAIRING_MAX; i++) {
        if (s->repairing[i] == key_hash) busy = true;
        if (s->repairing[i] == 0) free_place = &s->repairing[i];
    }
    if (!busy && free_place) *free_place = key_hash;
    pthread_mutex_unlock(&s->repairing_lock);
    return !busy && free_place;
}

static void release(struct dd_store *s, uint64_t key_hash)
{
    pthread_mutex_lock(&s->repairing_lock);
    for (unsigned i = 0; i < DD_REPAIRING_MAX; i++)
        if (s->repairing[i] == key_hash) s->repairing[i] = 0;
    pthread_mutex_unlock(&s->repairing_lock);
}

static void finish(void *arg)
{
    struct repair *r = arg;
    release(r->store, r->key_hash);
    free(r);
}

void dd_store_quarantine(struct dd_store *s, struct dd_slice scene, struct dd_slice user,
                         struct dd_period period)
{
    struct repair *r = calloc(1, sizeof *r);
    if (!r) return;
    r->store = s;
    if (dd_key_encode(&r->key, period, scene, user) != DD_OK) goto give_up;
    r->key_hash = dd_hash64(dd_key_slice(&r->key), 0) | 1; /* never the 0 of a free place */
    if (!claim(s, r->key_hash)) goto give_up;
    if (dd_key_decode(dd_key_slice(&r->key), &r->op.period, &r->op.scene, &r->op.user) != DD_OK) goto unclaim;
    r->batch = (struct dd_store_batch){.ops = &r->op, .n = 1, .done = finish, .arg = r, .call = replace};
    if (dd_writer_push(s, &r->batch, true) == DD_PENDING) return; /* now the writer's */
unclaim:
    release(s, r->key_hash);
give_up:
    free(r);
}

/* ---- met by a merge ---- */

/* The merged value is written back over the bad base, or every read would merge onto it again. If the set is
 * gone meanwhile (erased), so are its bytes. */
static enum dd_err store_aside(struct dd_store *s, const struct dd_aside *a, rocksdb_writebatch_t *batch)
{
    struct dd_slice key = dd_slice_of(a->bytes, a->key_len),
                    value = dd_slice_of(a->bytes + a->key_len, a->value_len);
    struct dd_repair_key meta;
    struct dd_buf merged = {0}, known = {0};
    dd_repair_meta_key(&meta, key);
    enum dd_err err = dd_rocks_get(&s->rocks, DD_FAMILY_SETS, key, &merged);
    if (err != DD_OK) goto out;
    put(s, batch, DD_FAMILY_SETS, key.ptr, key.len, dd_buf_slice(&merged));
    err = dd_rocks_get(&s->rocks, DD_FAMILY_META, dd_slice_of(meta.bytes, meta.len), &known);
    if (err != DD_OK || !dd_slice_eq(dd_buf_slice(&known), value)) {
        put(s, batch, DD_FAMILY_META, meta.bytes, meta.len, value);
        note(s, key, value.len);
    }
    char *text = NULL;
    rocksdb_write(s->rocks.db, s->rocks.write, batch, &text);
    err = dd_commit_note(s, text);
out:
    rocksdb_writebatch_clear(batch);
    dd_buf_free(&merged);
    dd_buf_free(&known);
    return err;
}

void dd_repair_aside(struct dd_store *s)
{
    struct dd_aside *a = dd_merge_op_take_aside(s->merge);
    if (!a) return;
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    while (a) {
        struct dd_aside *next = a->next;
        enum dd_err err = store_aside(s, a, batch);
        if (err != DD_OK && err != DD_NOT_FOUND) dd_error("store.aside_failed", "err=%s", dd_err_name(err));
        free(a);
        a = next;
    }
    rocksdb_writebatch_destroy(batch);
}
