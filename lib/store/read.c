/* Reading the periods of a window: first from memory on the caller's loop, key by key, giving up at the first
 * that would touch the disk; then the rest in one batched call on a thread of the pool.
 *
 * The batched call is not for the loop: in RocksDB 7.8 it ignores read_tier and reads from the disk (a cold
 * key gives "Result incomplete" from rocksdb_get_pinned_cf and its value from rocksdb_batched_multi_get_cf).
 *
 * The number is loaded before the first look at RocksDB. For sets that are read again later it is merely
 * older than need be.
 *
 * Before all that, sets that were kept from an earlier read (set_cache.h) are taken if the user's cell,
 * looked up here and now, proves them fresh: callers read the store last, so the cell is looked up after
 * pending. Such a set carries its own, lower number. With that of the read it would be wrong: a commit that
 * has published its number and not yet raised the cell is in the number, and not in a set that was kept. */
#include "store/store_impl.h"

static const struct dd_clock system_clock;

/* Arrays as RocksDB wants them. */
struct lookup {
    unsigned n, set[DD_WINDOW_MAX]; /* which set of the read */
    const char *key[DD_WINDOW_MAX];
    size_t key_len[DD_WINDOW_MAX];
    rocksdb_pinnableslice_t *value[DD_WINDOW_MAX];
    char *text[DD_WINDOW_MAX];
};

static void take_result(struct dd_store_set *set, rocksdb_pinnableslice_t *value, char *text)
{
    set->err = dd_rocks_take(text);
    if (set->err != DD_OK && set->err != DD_PENDING && set->err != DD_CORRUPT) set->err = DD_IO;
    set->pin = value;
    set->blob = dd_slice_of(NULL, 0);
    if (!value) return;
    size_t len = 0;
    const char *bytes = rocksdb_pinnableslice_value(value, &len);
    set->blob = dd_slice_of(bytes, len);
}

struct ids {
    struct dd_key key[DD_WINDOW_MAX];
    uint64_t hash[DD_WINDOW_MAX];
};

/* What is kept and fresh. */
static void look_in_kept(struct dd_store *s, struct dd_store_read *r, struct ids *ids)
{
    uint64_t user = dd_hash_user_seed(&s->secret, r->scene, r->user), salt = dd_get_le64(s->secret.bytes);
    unsigned kept = 0;
    for (unsigned i = 0; i < r->n; i++) {
        struct dd_slice key = dd_key_slice(&ids->key[i]);
        ids->hash[i] = dd_hash64(key, salt);
        uint64_t cell = dd_change_cell(s->change, r->periods[i], user);
        struct dd_set_entry *e = dd_set_cache_get(s->cache, key, ids->hash[i], cell);
        if (!e) continue;
        r->set[i] = (struct dd_store_set){
            .err = DD_OK, .blob = e->blob, .number = e->number, .cached = true, .pin = e};
        if (e->number < r->number) r->number = e->number;
        kept++;
    }
    dd_count(s->reads_kept, kept);
}

/* Offers what RocksDB gave. */
static void keep(struct dd_store *s, const struct dd_store_read *r, const struct ids *ids)
{
    for (unsigned i = 0; i < r->n; i++)
        if (!r->set[i].cached && r->set[i].err == DD_OK)
            dd_set_cache_put(s->cache, dd_key_slice(&ids->key[i]), ids->hash[i], r->set[i].blob,
                             r->set[i].number);
}

/* From memtables and block cache. false: a set (and perhaps those after it) is left DD_PENDING. */
static bool look_in_memory(struct dd_store *s, struct dd_store_read *r, const struct dd_key *keys)
{
    for (unsigned i = 0; i < r->n; i++) {
        if (r->set[i].err != DD_PENDING) continue;
        char *text = NULL;
        rocksdb_pinnableslice_t *value = rocksdb_get_pinned_cf(
            s->rocks.db, s->rocks.read_memory, s->rocks.family[DD_FAMILY_SETS], (const char *)keys[i].bytes,
            keys[i].len, &text);
        take_result(&r->set[i], value, text);
        if (r->set[i].err == DD_PENDING) return false;
    }
    return true;
}

/* The sets that are still DD_PENDING, from wherever they are. */
static void look_everywhere(struct dd_store *s, struct dd_store_read *r, const struct dd_key *keys)
{
    struct lookup l;
    l.n = 0;
    for (unsigned i = 0; i < r->n; i++) {
        if (r->set[i].err != DD_PENDING) continue;
        l.set[l.n] = i;
        l.key[l.n] = (const char *)keys[i].bytes;
        l.key_len[l.n] = keys[i].len;
        l.value[l.n] = NULL;
        l.text[l.n++] = NULL;
    }
    if (l.n == 0) return;
    rocksdb_batched_multi_get_cf(s->rocks.db, s->rocks.read, s->rocks.family[DD_FAMILY_SETS], l.n, l.key,
                                 l.key_len, l.value, l.text, false);
    for (unsigned i = 0; i < l.n; i++)
        take_result(&r->set[l.set[i]], l.value[i], l.text[i]);
}

/* What the whole read comes to. */
static void conclude(struct dd_store_read *r)
{
    r->err = DD_OK;
    for (unsigned i = 0; i < r->n; i++)
        if (r->set[i].err == DD_IO || r->set[i].err == DD_PENDING) r->set[i].err = r->err = DD_IO;
}

static enum dd_err begin(struct dd_store *s, struct dd_store_read *r, struct dd_key *keys)
{
    if (r->n > DD_WINDOW_MAX) return DD_INVALID;
    r->store = s;
    r->err = DD_OK;
    for (unsigned i = 0; i < r->n; i++) {
        enum dd_err err = dd_key_encode(&keys[i], r->periods[i], r->scene, r->user);
        if (err != DD_OK) return err;
    }
    r->number = dd_change_number(s->change); /* before the read */
    for (unsigned i = 0; i < r->n; i++)
        r->set[i] = (struct dd_store_set){.err = DD_PENDING, .number = r->number};
    return DD_OK;
}

static void look_blocking(struct dd_store *s, struct dd_store_read *r, const struct dd_key *keys)
{
    struct dd_mono start = dd_clock_mono(&system_clock);
    look_everywhere(s, r, keys);
    conclude(r);
    struct dd_mono end = dd_clock_mono(&system_clock);
    dd_histogram_record(s->pool_time, (end.ns - start.ns) / 1000);
}

static void run_on_pool(void *arg)
{
    struct dd_store_read *r = arg;
    struct ids ids;
    for (unsigned i = 0; i < r->n; i++) {
        if (dd_key_encode(&ids.key[i], r->periods[i], r->scene, r->user) != DD_OK)
            ids.key[i].len = 0; /* was good before */
        ids.hash[i] = dd_hash64(dd_key_slice(&ids.key[i]), dd_get_le64(r->store->secret.bytes));
    }
    look_blocking(r->store, r, ids.key);
    keep(r->store, r, &ids);
}

static void done_on_loop(void *arg)
{
    struct dd_store_read *r = arg;
    r->done(r->arg);
}

enum dd_err dd_store_read(struct dd_store *s, struct dd_store_read *r)
{
    struct ids ids;
    enum dd_err err = begin(s, r, ids.key);
    if (err != DD_OK) return err;
    look_in_kept(s, r, &ids);
    if (look_in_memory(s, r, ids.key)) {
        conclude(r);
        keep(s, r, &ids);
        dd_count(s->reads_memory, 1);
        return DD_OK;
    }
    r->job = (struct dd_job){.run = run_on_pool, .done = done_on_loop, .arg = r, .loop = r->loop};
    err = dd_pool_submit(s->pool, &r->job);
    dd_count(err == DD_OK ? s->reads_pool : s->reads_busy, 1);
    if (err == DD_OK) return DD_PENDING;
    dd_store_read_release(r);
    return err;
}

enum dd_err dd_store_read_wait(struct dd_store *s, struct dd_store_read *r)
{
    struct dd_key keys[DD_WINDOW_MAX];
    enum dd_err err = begin(s, r, keys);
    if (err != DD_OK) return err;
    look_blocking(s, r, keys);
    return r->err;
}

void dd_store_read_release(struct dd_store_read *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        if (r->set[i].pin && r->set[i].cached)
            dd_set_entry_release(r->set[i].pin);
        else if (r->set[i].pin)
            rocksdb_pinnableslice_destroy(r->set[i].pin);
        r->set[i].pin = NULL;
        r->set[i].blob = dd_slice_of(NULL, 0);
    }
}
