/* Walking keys in order. */
#include "store/store_impl.h"

static rocksdb_readoptions_t *scan_options(const rocksdb_snapshot_t *snapshot)
{
    rocksdb_readoptions_t *ro = rocksdb_readoptions_create();
    rocksdb_readoptions_set_fill_cache(ro, 0); /* a walk must not drive out what requests use */
    rocksdb_readoptions_set_readahead_size(ro, 2 << 20);
    if (snapshot) rocksdb_readoptions_set_snapshot(ro, snapshot);
    return ro;
}

static struct dd_slice iterator_key(const rocksdb_iterator_t *it)
{
    size_t len = 0;
    const char *key = rocksdb_iter_key(it, &len);
    return dd_slice_of(key, len);
}

static enum dd_err iterator_err(const rocksdb_iterator_t *it)
{
    char *text = NULL;
    rocksdb_iter_get_error(it, &text);
    return dd_rocks_take_logged(text, "store.scan_failed", "scan");
}

static bool visit_current(rocksdb_iterator_t *it, dd_store_visit visit, void *arg)
{
    struct dd_slice scene, user;
    struct dd_period period;
    if (dd_key_decode(iterator_key(it), &period, &scene, &user) != DD_OK) return true; /* not ours */
    size_t len = 0;
    const char *value = rocksdb_iter_value(it, &len);
    return visit(arg, scene, user, period, dd_slice_of(value, len));
}

enum dd_err dd_store_each(struct dd_store *s, dd_store_visit visit, void *arg)
{
    const rocksdb_snapshot_t *snapshot = rocksdb_create_snapshot(s->rocks.db);
    rocksdb_readoptions_t *ro = scan_options(snapshot);
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(s->rocks.db, ro, s->rocks.family[DD_FAMILY_SETS]);
    bool go_on = true;
    for (rocksdb_iter_seek_to_first(it); go_on && rocksdb_iter_valid(it); rocksdb_iter_next(it))
        go_on = visit_current(it, visit, arg);
    enum dd_err err = iterator_err(it);
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(ro);
    rocksdb_release_snapshot(s->rocks.db, snapshot);
    return err;
}

/* What the iterator stands on, seen from the scene's range of the ordinal that was sought. */
enum place { PLACE_END, PLACE_IN_SCENE, PLACE_BEFORE_SCENE, PLACE_AFTER_SCENE };

static enum place place_of(const rocksdb_iterator_t *it, struct dd_slice scene, enum dd_period_kind kind,
                           int32_t first_kept, int32_t *ordinal)
{
    struct dd_slice key_scene, user;
    struct dd_period period;
    if (!rocksdb_iter_valid(it)) return PLACE_END;
    if (dd_key_decode_head(iterator_key(it), &period, &key_scene, &user) != DD_OK) return PLACE_END;
    if (period.kind != kind || period.ordinal >= first_kept) return PLACE_END;
    *ordinal = period.ordinal;
    if (dd_slice_eq(key_scene, scene)) return PLACE_IN_SCENE;
    /* Keys compare the length of the scene first. */
    bool before = key_scene.len != scene.len ? key_scene.len < scene.len : dd_slice_cmp(key_scene, scene) < 0;
    return before ? PLACE_BEFORE_SCENE : PLACE_AFTER_SCENE;
}

/* Skips from range to range: one or two seeks for each period that holds any scene's keys. */
enum dd_err dd_scan_periods(struct dd_store *s, enum dd_family family, struct dd_slice scene,
                            enum dd_period_kind kind, int32_t first_kept, dd_scan_period visit, void *arg)
{
    rocksdb_readoptions_t *ro = scan_options(NULL);
    rocksdb_readoptions_set_readahead_size(ro, 0);
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(s->rocks.db, ro, s->rocks.family[family]);
    enum dd_err err = DD_OK;
    for (int32_t ordinal = 0; err == DD_OK && ordinal < first_kept;) {
        struct dd_key start, end;
        err = dd_key_range((struct dd_period){kind, ordinal}, scene, &start, &end);
        if (err != DD_OK) break;
        rocksdb_iter_seek(it, (const char *)start.bytes, start.len);
        enum place place = place_of(it, scene, kind, first_kept, &ordinal);
        if (place == PLACE_END) break;
        if (place == PLACE_IN_SCENE) err = visit(arg, (struct dd_period){kind, ordinal});
        if (place != PLACE_BEFORE_SCENE) ordinal++;
    }
    enum dd_err scan = iterator_err(it);
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(ro);
    return err == DD_OK ? scan : err;
}

enum dd_err dd_store_each_period(struct dd_store *s, struct dd_slice scene, enum dd_period_kind kind,
                                 dd_store_period_visit visit, void *arg)
{
    return dd_scan_periods(s, DD_FAMILY_SETS, scene, kind, INT32_MAX, visit, arg);
}
