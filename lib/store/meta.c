/* The meta family:
 *
 *   format             u32 little-endian: version of the layout of keys and values
 *   id                 16 hex digits
 *   secret             192 bytes (base/hash.h)
 *   scene/<scene>      u8 period kind, u16 little-endian window
 *   quarantine/<key>   the bytes of a set that could not be read (repair.c)
 *   probe              empty (writer.c)
 *   trace/..., history/...   of lib/dedup (DD_STORE_PUT)
 *
 * The first three are written in one synced commit when the store is made. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "store/store_impl.h"

#define FORMAT 1

static const char scene_prefix[] = "scene/";

static enum dd_err get(struct dd_store *s, const char *name, struct dd_buf *out)
{
    dd_buf_reset(out);
    return dd_rocks_get(&s->rocks, DD_FAMILY_META, dd_slice_str(name), out);
}

static void put(struct dd_store *s, rocksdb_writebatch_t *b, const char *name, const void *value, size_t len)
{
    rocksdb_writebatch_put_cf(b, s->rocks.family[DD_FAMILY_META], name, strlen(name), value, len);
}

static enum dd_err is_empty(struct dd_store *s)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(s->rocks.db, s->rocks.read,
                                                        s->rocks.family[DD_FAMILY_SETS]);
    rocksdb_iter_seek_to_first(it);
    bool empty = !rocksdb_iter_valid(it);
    char *text = NULL;
    rocksdb_iter_get_error(it, &text);
    rocksdb_iter_destroy(it);
    enum dd_err err = dd_rocks_take(text);
    if (err != DD_OK) return err;
    return empty ? DD_OK : DD_CORRUPT;
}

static enum dd_err create(struct dd_store *s)
{
    if (atomic_load(&s->guard)) return DD_DISK_FULL;
    enum dd_err err = is_empty(s); /* a new secret would make every stored fingerprint meaningless */
    uint64_t id;
    if (err == DD_OK) err = dd_random(&id, sizeof id);
    if (err == DD_OK) err = dd_random(&s->secret, sizeof s->secret);
    if (err != DD_OK) return err;
    snprintf(s->id, sizeof s->id, "%016" PRIx64, id);
    uint8_t format[4];
    dd_put_le32(format, FORMAT);
    rocksdb_writebatch_t *b = rocksdb_writebatch_create();
    put(s, b, "format", format, sizeof format);
    put(s, b, "id", s->id, 16);
    put(s, b, "secret", s->secret.bytes, sizeof s->secret.bytes);
    char *text = NULL;
    rocksdb_write(s->rocks.db, s->rocks.write_sync, b, &text);
    rocksdb_writebatch_destroy(b);
    return dd_rocks_take_logged(text, "store.open_failed", "create");
}

static enum dd_err read_fixed(struct dd_store *s, const char *name, void *out, size_t len)
{
    struct dd_buf b = {0};
    enum dd_err err = get(s, name, &b);
    if (err == DD_NOT_FOUND || (err == DD_OK && b.len != len)) err = DD_CORRUPT;
    if (err == DD_OK) memcpy(out, b.data, len);
    dd_buf_free(&b);
    return err;
}

enum dd_err dd_meta_open(struct dd_store *s)
{
    struct dd_buf b = {0};
    enum dd_err err = get(s, "format", &b);
    uint32_t format = err == DD_OK && b.len == 4 ? dd_get_le32(b.data) : 0;
    dd_buf_free(&b);
    if (err == DD_NOT_FOUND) return create(s);
    if (err != DD_OK) return err;
    if (format > FORMAT) {
        dd_error("store.open_failed", "path=\"%s\" error=\"format %u, this version reads up to %d\"", s->path,
                 format, FORMAT);
        return DD_UNSUPPORTED;
    }
    if (format == 0) return DD_CORRUPT;
    err = read_fixed(s, "id", s->id, 16);
    return err == DD_OK ? read_fixed(s, "secret", s->secret.bytes, sizeof s->secret.bytes) : err;
}

/* ---- scenes ---- */

struct scene_record {
    char key[sizeof scene_prefix + 255];
    size_t key_len;
    uint8_t value[3];
};

static enum dd_err write_scene(struct dd_commit *c, struct dd_store_batch *b)
{
    const struct scene_record *r = b->arg_call;
    rocksdb_writebatch_put_cf(c->batch, c->store->rocks.family[DD_FAMILY_META], r->key, r->key_len,
                              (const char *)r->value, sizeof r->value);
    return DD_OK;
}

static enum dd_err found_one(void *arg, struct dd_period period)
{
    (void)arg, (void)period;
    return DD_EXISTS;
}

/* Whether the scene may become `kind`, given what is recorded. DD_EXISTS: recorded like that already. */
static enum dd_err check_change(struct dd_store *s, struct dd_slice scene, const struct dd_buf *recorded,
                                const uint8_t wanted[3], enum dd_period_kind *existing)
{
    if (recorded->len != 3) return DD_OK; /* not recorded, or unreadable: write it anew */
    *existing = (enum dd_period_kind)recorded->data[0];
    if (memcmp(recorded->data, wanted, 3) == 0) return DD_EXISTS;
    if (recorded->data[0] == wanted[0]) return DD_OK;
    enum dd_err err = dd_scan_periods(s, DD_FAMILY_SETS, scene, *existing, INT32_MAX, found_one, NULL);
    return err == DD_EXISTS ? DD_INVALID : err;
}

enum dd_err dd_store_register_scene(struct dd_store *s, struct dd_slice scene, enum dd_period_kind kind,
                                    unsigned window, enum dd_period_kind *existing)
{
    struct scene_record r = {.value = {(uint8_t)kind}};
    if (scene.len < 1 || scene.len > 255 || window > UINT16_MAX) return DD_INVALID;
    dd_put_le16(r.value + 1, (uint16_t)window);
    memcpy(r.key, scene_prefix, sizeof scene_prefix - 1);
    memcpy(r.key + sizeof scene_prefix - 1, scene.ptr, scene.len);
    r.key_len = sizeof scene_prefix - 1 + scene.len;
    *existing = kind;

    struct dd_buf recorded = {0};
    enum dd_err err = dd_rocks_get(&s->rocks, DD_FAMILY_META, dd_slice_of(r.key, r.key_len), &recorded);
    if (err == DD_OK || err == DD_NOT_FOUND) err = check_change(s, scene, &recorded, r.value, existing);
    dd_buf_free(&recorded);
    if (err == DD_EXISTS) return DD_OK;
    if (err != DD_OK) return err;
    *existing = kind;
    struct dd_store_batch b = {.sync = true, .call = write_scene, .arg_call = &r};
    return dd_writer_push_wait(s, &b, true);
}

void dd_store_each_scene(struct dd_store *s, dd_store_scene_visit visit, void *arg)
{
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(s->rocks.db, s->rocks.read,
                                                        s->rocks.family[DD_FAMILY_META]);
    size_t prefix = sizeof scene_prefix - 1, key_len, len;
    for (rocksdb_iter_seek(it, scene_prefix, prefix); rocksdb_iter_valid(it); rocksdb_iter_next(it)) {
        const char *key = rocksdb_iter_key(it, &key_len);
        if (key_len < prefix || memcmp(key, scene_prefix, prefix) != 0) break;
        const uint8_t *value = (const uint8_t *)rocksdb_iter_value(it, &len);
        if (len != 3) continue;
        visit(arg, dd_slice_of(key + prefix, key_len - prefix), (enum dd_period_kind)value[0],
              dd_get_le16(value + 1));
    }
    rocksdb_iter_destroy(it);
}
