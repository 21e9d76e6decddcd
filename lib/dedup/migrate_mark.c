/* The mark of a user: u8 version, u8 flags, i64 mark_ms, i64 erased_ms, u64 entries, u64 skipped; integers
 * little-endian. Both events are kept side by side, and each update is made on the writer thread from what
 * stands there, so that a migration that ends after an erase cannot cover it up. */
#include "dedup/migrate_impl.h"

#define VERSION  1
#define BYTES    34
#define MIGRATED 1
#define ERASED   2

/* Clocks have milliseconds, old keys often seconds. */
#define ROUNDING_MS 1000

static const char prefix[] = "migrated/";

void dd_mark_key_make(struct dd_mark_key *out, struct dd_slice scene, struct dd_slice user)
{
    uint8_t *p = out->bytes;
    memcpy(p, prefix, sizeof prefix - 1);
    p += sizeof prefix - 1;
    memcpy(p, scene.ptr, scene.len);
    p += scene.len;
    *p++ = '/';
    memcpy(p, user.ptr, user.len);
    out->len = (size_t)(p - out->bytes) + user.len;
}

struct dd_migrate_mark dd_mark_decode(struct dd_slice value)
{
    struct dd_migrate_mark m = {0};
    if (value.len != BYTES || value.ptr[0] != VERSION) return m;
    m.migrated = value.ptr[1] & MIGRATED;
    m.erased = value.ptr[1] & ERASED;
    m.mark_ms = (int64_t)dd_get_le64(value.ptr + 2);
    m.erased_ms = (int64_t)dd_get_le64(value.ptr + 10);
    m.entries = dd_get_le64(value.ptr + 18);
    m.skipped = dd_get_le64(value.ptr + 26);
    return m;
}

void dd_mark_encode(const struct dd_migrate_mark *mark, struct dd_buf *out)
{
    uint8_t *p = dd_buf_extend(out, BYTES);
    if (!p) return;
    p[0] = VERSION;
    p[1] = (uint8_t)((mark->migrated ? MIGRATED : 0) | (mark->erased ? ERASED : 0));
    dd_put_le64(p + 2, (uint64_t)mark->mark_ms);
    dd_put_le64(p + 10, (uint64_t)mark->erased_ms);
    dd_put_le64(p + 18, mark->entries);
    dd_put_le64(p + 26, mark->skipped);
}

enum dd_err dd_mark_get(struct dd_migrate *m, struct dd_slice user, struct dd_migrate_mark *out)
{
    struct dd_mark_key key = {0};
    struct dd_buf value = {0};
    dd_mark_key_make(&key, dd_scene_slice(m->o.scene), user);
    enum dd_err err = dd_store_record_get(m->d->store, dd_slice_of(key.bytes, key.len), &value);
    *out = dd_mark_decode(err == DD_OK ? dd_buf_slice(&value) : dd_slice_of(NULL, 0));
    dd_buf_free(&value);
    return err == DD_NOT_FOUND ? DD_OK : err;
}

enum dd_err dd_mark_note_migrated(void *arg, struct dd_slice current, struct dd_buf *out)
{
    const struct dd_migrate_mark *news = arg;
    struct dd_migrate_mark mark = dd_mark_decode(current);
    if (!mark.migrated || news->mark_ms > mark.mark_ms) mark.mark_ms = news->mark_ms;
    mark.migrated = true;
    mark.entries += news->entries;
    mark.skipped += news->skipped;
    dd_mark_encode(&mark, out);
    return DD_OK;
}

enum dd_err dd_mark_note_erased(void *arg, struct dd_slice current, struct dd_buf *out)
{
    const struct dd_migrate_mark *news = arg;
    (void)current; /* counts of what was migrated go with it */
    struct dd_migrate_mark mark = {.erased = true, .erased_ms = news->erased_ms};
    dd_mark_encode(&mark, out);
    return DD_OK;
}

bool dd_mark_range(const struct dd_migrate *m, const struct dd_migrate_mark *mark, bool *since,
                   int64_t *since_ms)
{
    bool timed = dd_legacy_is_timed(m->legacy);
    *since = mark->migrated || mark->erased;
    *since_ms = 0;
    if (mark->erased && !timed) return false;
    if (mark->migrated) *since_ms = mark->mark_ms - m->o.margin_ms - ROUNDING_MS;
    if (mark->erased && (!mark->migrated || mark->erased_ms > *since_ms)) *since_ms = mark->erased_ms;
    return true;
}
