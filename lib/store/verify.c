/* An iterator that meets a bad block is of no more use, and seeking behind the last good key finds the same
 * block again. So the walk goes on at the next key at which any file begins or ends: at most two stops for
 * each file, each behind the one before. Files of the first level are all looked into at every seek, so a bad
 * block there also hides what lies before it in other files (and seeking backward does not help: it begins
 * with a seek forward). That there is damage is found in any case, which is what a backup is restored for. */
#include "store/verify.h"

#include <stdlib.h>

#include "base/log.h"
#include "filter/filter.h"
#include "store/store_impl.h"

struct walk {
    struct dd_store *store;
    const struct dd_verify_options *o;
    struct dd_verify_report *r;
    rocksdb_readoptions_t *ro;
    struct dd_buf last; /* the key that was read last, or sought */
    bool stopped;
};

static void copy_text(char *out, size_t size, struct dd_slice from)
{
    size_t n = from.len < size - 1 ? from.len : size - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = from.ptr[i] >= ' ' && from.ptr[i] < 127 ? (char)from.ptr[i] : '?';
    out[n] = 0;
}

static void note_corrupt(struct walk *w, struct dd_slice scene, struct dd_slice user, struct dd_period period)
{
    struct dd_verify_report *r = w->r;
    r->corrupt++;
    if (r->shown < DD_VERIFY_SHOWN) {
        struct dd_verify_bad *bad = &r->bad[r->shown++];
        copy_text(bad->scene, sizeof bad->scene, scene);
        copy_text(bad->user, sizeof bad->user, user);
        bad->period = period;
    }
    if (!w->o->quarantine) return;
    dd_store_quarantine(w->store, scene, user, period);
    r->quarantined++;
}

static void check(struct walk *w, struct dd_slice key, struct dd_slice value)
{
    struct dd_slice scene, user;
    struct dd_period period;
    struct dd_filter_view view;
    if (dd_key_decode(key, &period, &scene, &user) != DD_OK) return; /* not ours */
    w->r->sets++;
    w->r->bytes += value.len;
    if (dd_filter_view_open(&view, value) != DD_OK)
        note_corrupt(w, scene, user, period);
    else if (view.damaged)
        w->r->damaged++;
}

/* From w->last on. DD_CORRUPT: stopped by a bad block. */
static enum dd_err walk_from_last(struct walk *w)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(w->store->rocks.db, w->ro,
                                                        w->store->rocks.family[DD_FAMILY_SETS]);
    rocksdb_iter_seek(it, w->last.len ? (const char *)w->last.data : "", w->last.len);
    for (; !w->stopped && rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
        size_t key_len = 0, len = 0;
        const char *key = rocksdb_iter_key(it, &key_len), *value = rocksdb_iter_value(it, &len);
        dd_buf_reset(&w->last);
        dd_buf_add(&w->last, key, key_len);
        check(w, dd_slice_of(key, key_len), dd_slice_of(value, len));
        if (w->o->progress && !w->o->progress(w->o->arg, w->r)) w->stopped = true;
    }
    char *text = NULL;
    rocksdb_iter_get_error(it, &text);
    rocksdb_iter_destroy(it);
    enum dd_err err = dd_rocks_take_logged(text, "store.verify", "read");
    return err == DD_OK && !dd_buf_ok(&w->last) ? DD_NO_MEMORY : err;
}

/* The smallest of the keys that lie behind w->last and that `key` has not undercut yet. */
static void take_smaller(const struct walk *w, const char *key, size_t len, struct dd_slice *best)
{
    struct dd_slice k = dd_slice_of(key, len);
    if (!key || dd_slice_cmp(k, dd_buf_slice(&w->last)) <= 0) return;
    if (!best->ptr || dd_slice_cmp(k, *best) < 0) *best = k;
}

/* Moves w->last to the next boundary between files. false: there is none. */
static bool skip(struct walk *w)
{
    const rocksdb_livefiles_t *files = rocksdb_livefiles(w->store->rocks.db);
    struct dd_slice best = {0};
    for (int i = 0, n = rocksdb_livefiles_count(files); i < n; i++) {
        size_t len = 0;
        if (strcmp(rocksdb_livefiles_column_family_name(files, i), "default") != 0) continue;
        const char *key = rocksdb_livefiles_smallestkey(files, i, &len);
        take_smaller(w, key, len, &best);
        key = rocksdb_livefiles_largestkey(files, i, &len);
        take_smaller(w, key, len, &best);
    }
    struct dd_buf next = {0};
    dd_buf_add_slice(&next, best);
    rocksdb_livefiles_destroy(files);
    dd_buf_free(&w->last);
    w->last = next;
    return best.ptr && dd_buf_ok(&w->last);
}

enum dd_err dd_store_verify(struct dd_store *s, const struct dd_verify_options *o,
                            struct dd_verify_report *out)
{
    struct walk w = {.store = s, .o = o, .r = out, .ro = rocksdb_readoptions_create()};
    *out = (struct dd_verify_report){0};
    rocksdb_readoptions_set_fill_cache(w.ro, 0); /* must not drive out what requests use */
    rocksdb_readoptions_set_readahead_size(w.ro, 2 << 20);
    enum dd_err err = walk_from_last(&w);
    while (err == DD_CORRUPT) {
        out->unreadable++;
        err = skip(&w) ? walk_from_last(&w) : DD_OK;
    }
    if (err == DD_OK && w.stopped) err = DD_SHUTDOWN;
    rocksdb_readoptions_destroy(w.ro);
    dd_buf_free(&w.last);
    return err;
}
