/* Records:
 *
 *   suffix  u64be time of writing in ms, u64be number (random at start, so that no two are alike)
 *   value   u8 version 1, i64le event time, then for each item u16le length, bytes
 *
 * Coverage: what is in the store's meta family says from which period on, per scene; a file beside the
 * database says that the store still is the one that was written. A start in another mode removes the file
 * (which needs no disk space); a checkpoint does not contain it. Without the file, or with one that does not
 * match, coverage begins anew with the next period.
 *
 *   history/lineage       16 hex digits; the file history.lineage holds the same
 *   history/scene/<name>  i32le: the first period covered */
#include "dedup/history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "store/files.h"
#include "store/history.h"

#define CELLS       4096
#define LINEAGE_LEN 16
#define NOT_COVERED INT32_MAX
#define SINGLE      (UINT64_C(1) << 16)

static const char lineage_key[] = "history/lineage", scene_prefix[] = "history/scene/";

struct coverage {
    bool registered, recorded; /* known to the store; what is recorded may be believed */
    int32_t first;
};

struct dd_history {
    struct dd_history_options options;
    struct dd_store *store;
    const struct dd_scenes *scenes;
    struct dd_clock *clock;
    struct dd_trace *trace;
    struct coverage *coverage; /* per scene */
    _Atomic uint64_t number;
    _Atomic uint64_t cell[CELLS]; /* low 16 bits: who stands there now; above: how many ever did */
    char path[4200];
};

/* ---- the file ---- */

static bool file_matches(const struct dd_history *h, struct dd_slice lineage)
{
    char text[LINEAGE_LEN];
    int fd = open(h->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    enum dd_err err = dd_file_read_all(fd, text, sizeof text);
    close(fd);
    return err == DD_OK && dd_slice_eq(lineage, dd_slice_of(text, sizeof text));
}

static enum dd_err remove_file(const struct dd_history *h)
{
    if (unlink(h->path) != 0 && errno != ENOENT) return DD_IO;
    return dd_file_sync_parent(h->path);
}

static enum dd_err write_file(const struct dd_history *h, const char *lineage)
{
    int fd = open(h->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return DD_IO;
    enum dd_err err = dd_file_write_all(fd, lineage, LINEAGE_LEN);
    if (err == DD_OK && fsync(fd) != 0) err = DD_IO;
    if (close(fd) != 0 && err == DD_OK) err = DD_IO;
    return err == DD_OK ? dd_file_sync_parent(h->path) : err;
}

/* ---- coverage at start ---- */

static void visit_registered(void *arg, struct dd_slice name, enum dd_period_kind kind, unsigned window)
{
    struct dd_history *h = arg;
    (void)kind, (void)window;
    for (unsigned i = 0; i < dd_scenes_count(h->scenes); i++)
        if (dd_slice_eq(name, dd_scene_slice(dd_scenes_at(h->scenes, i)))) h->coverage[i].registered = true;
}

struct found {
    struct dd_history *h;
    char lineage[LINEAGE_LEN + 1];
};

static bool visit_meta(void *arg, struct dd_slice key, struct dd_slice value)
{
    struct found *f = arg;
    size_t skip = sizeof scene_prefix - 1;
    if (dd_slice_eq(key, dd_slice_str(lineage_key)) && value.len == LINEAGE_LEN)
        memcpy(f->lineage, value.ptr, LINEAGE_LEN);
    if (key.len <= skip || memcmp(key.ptr, scene_prefix, skip) != 0 || value.len != 4) return true;
    struct dd_slice name = dd_slice_of(key.ptr + skip, key.len - skip);
    for (unsigned i = 0; i < dd_scenes_count(f->h->scenes); i++) {
        if (!dd_slice_eq(name, dd_scene_slice(dd_scenes_at(f->h->scenes, i)))) continue;
        f->h->coverage[i].recorded = true;
        f->h->coverage[i].first = (int32_t)dd_get_le32(value.ptr);
    }
    return true;
}

static enum dd_err newest_stored(void *arg, struct dd_period period)
{
    int32_t *newest = arg;
    if (period.ordinal > *newest) *newest = period.ordinal;
    return DD_OK;
}

/* The period after the current one and after every one that was ever written to: the clock may have stood
 * ahead. */
static enum dd_err next_period(struct dd_history *h, const struct dd_scene *scene, int32_t *first)
{
    int32_t newest = dd_period_at(scene->period, dd_clock_wall(h->clock)).ordinal;
    enum dd_err err = dd_store_each_period(h->store, dd_scene_slice(scene), scene->period, newest_stored,
                                           &newest);
    *first = scene->period == DD_PERIOD_FOREVER ? NOT_COVERED : newest + 1;
    return err;
}

static enum dd_err decide(struct dd_history *h, bool same)
{
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < dd_scenes_count(h->scenes) && err == DD_OK; i++) {
        struct coverage *c = &h->coverage[i];
        if (c->first == NOT_COVERED) c->recorded = false; /* what kept it from being covered may be over */
        if (h->options.gap && strcmp(h->options.gap, dd_scenes_at(h->scenes, i)->name) == 0)
            c->first = NOT_COVERED;
        else if (!c->registered)
            c->first = 0;
        else if (!same || !c->recorded)
            err = next_period(h, dd_scenes_at(h->scenes, i), &c->first);
    }
    return err;
}

/* One synced commit for all. */
static enum dd_err record(struct dd_history *h, const char *lineage)
{
    unsigned n = dd_scenes_count(h->scenes);
    struct dd_arena arena = {0};
    struct dd_store_op *ops = dd_arena_calloc(&arena, n + 1, sizeof *ops);
    struct dd_buf name = {0};
    if (!ops) return DD_NO_MEMORY;
    for (unsigned i = 0; i < n; i++) {
        uint8_t first[4];
        dd_put_le32(first, (uint32_t)h->coverage[i].first);
        dd_buf_reset(&name);
        dd_buf_addf(&name, "%s%s", scene_prefix, dd_scenes_at(h->scenes, i)->name);
        ops[i].suffix = dd_arena_copy(&arena, dd_buf_slice(&name));
        ops[i].operand = dd_arena_copy(&arena, dd_slice_of(first, 4));
    }
    ops[n].suffix = dd_slice_str(lineage_key);
    ops[n].operand = dd_slice_of(lineage, LINEAGE_LEN);
    for (unsigned i = 0; i <= n; i++)
        ops[i].kind = DD_STORE_PUT; /* family: meta */
    struct dd_store_batch batch = {.ops = ops, .n = n + 1, .sync = true};
    enum dd_err err = dd_store_write_wait(h->store, &batch);
    for (unsigned i = 0; i <= n && err == DD_OK; i++)
        err = ops[i].result == DD_INVALID ? DD_NO_MEMORY : ops[i].result;
    dd_buf_free(&name);
    dd_arena_free(&arena);
    return err;
}

static enum dd_err begin_coverage(struct dd_history *h)
{
    struct found f = {.h = h};
    struct dd_store_scan scan = {.family = DD_STORE_META, .prefix = dd_slice_str("history/")};
    uint64_t id;
    dd_store_each_scene(h->store, visit_registered, h);
    enum dd_err err = dd_store_scan(h->store, &scan, visit_meta, &f);
    bool same = err == DD_OK && f.lineage[0] && file_matches(h, dd_slice_of(f.lineage, LINEAGE_LEN));
    if (err == DD_OK) err = decide(h, same);
    if (err == DD_OK && !same) err = dd_random(&id, sizeof id);
    if (err == DD_OK && !same) snprintf(f.lineage, sizeof f.lineage, "%016" PRIx64, id);
    if (err == DD_OK) err = record(h, f.lineage);
    if (err == DD_OK && !same) err = write_file(h, f.lineage); /* last: until then nothing is believed */
    if (err == DD_OK) dd_info("history.coverage", "continued=%s", same ? "yes" : "no");
    return err;
}

static void cover_nothing(struct dd_history *h)
{
    for (unsigned i = 0; i < dd_scenes_count(h->scenes); i++)
        h->coverage[i].first = NOT_COVERED;
}

enum dd_err dd_history_open(const struct dd_history_options *o, struct dd_store *store,
                            const struct dd_scenes *scenes, struct dd_clock *clock, struct dd_trace *trace,
                            struct dd_history **out)
{
    struct dd_history *h = calloc(1, sizeof *h);
    if (h) h->coverage = calloc(dd_scenes_count(scenes), sizeof *h->coverage);
    uint64_t number;
    enum dd_err err = h && h->coverage ? dd_random(&number, sizeof number) : DD_NO_MEMORY;
    if (err != DD_OK) {
        dd_history_close(h);
        return err;
    }
    h->options = *o;
    h->store = store;
    h->scenes = scenes;
    h->clock = clock;
    h->trace = trace;
    atomic_init(&h->number, number);
    snprintf(h->path, sizeof h->path, "%s/history.lineage", o->data_dir);
    if (o->mode == DD_HISTORY_ALL) {
        err = begin_coverage(h);
        if (err != DD_OK)
            dd_warn("history.coverage", "error=%s note=\"nothing is covered\"", dd_err_name(err));
    }
    bool covers = o->mode == DD_HISTORY_ALL && err == DD_OK;
    if (!covers) cover_nothing(h);
    err = covers ? DD_OK : remove_file(h);
    if (err != DD_OK) dd_history_close(h);
    if (err == DD_OK) *out = h;
    return err;
}

void dd_history_close(struct dd_history *h)
{
    if (h) free(h->coverage);
    free(h);
}

/* ---- asking ---- */

enum dd_history_mode dd_history_mode(const struct dd_history *h)
{
    return h ? h->options.mode : DD_HISTORY_OFF;
}

bool dd_history_wants(struct dd_history *h, struct dd_slice scene, struct dd_slice user)
{
    if (!h || h->options.mode == DD_HISTORY_OFF) return false;
    return h->options.mode == DD_HISTORY_ALL || dd_trace_is_on(h->trace, scene, user);
}

bool dd_history_covered_from(const struct dd_history *h, const struct dd_scene *scene, struct dd_period *out)
{
    for (unsigned i = 0; h && i < dd_scenes_count(h->scenes); i++) {
        if (dd_scenes_at(h->scenes, i) != scene || h->coverage[i].first == NOT_COVERED) continue;
        *out = (struct dd_period){scene->period, h->coverage[i].first};
        return true;
    }
    return false;
}

bool dd_history_covers(const struct dd_history *h, const struct dd_scene *scene, struct dd_period period)
{
    struct dd_period first;
    return dd_history_covered_from(h, scene, &first) && period.kind == first.kind &&
           period.ordinal >= first.ordinal;
}

/* ---- records ---- */

enum dd_err dd_history_make(struct dd_history *h, struct dd_arena *arena, int64_t ts_ms,
                            const struct dd_item *items, unsigned n, struct dd_slice *suffix,
                            struct dd_slice *value)
{
    uint64_t now = (uint64_t)dd_clock_wall(h->clock).ms, number = atomic_fetch_add(&h->number, 1);
    size_t len = 1 + 8;
    for (unsigned i = 0; i < n; i++)
        len += 2 + items[i].id.len;
    uint8_t *s = dd_arena_alloc(arena, DD_HISTORY_SUFFIX_BYTES), *at = dd_arena_alloc(arena, len);
    if (!s || !at) return DD_NO_MEMORY;
    dd_put_be32(s, (uint32_t)(now >> 32));
    dd_put_be32(s + 4, (uint32_t)now);
    dd_put_be32(s + 8, (uint32_t)(number >> 32));
    dd_put_be32(s + 12, (uint32_t)number);
    *suffix = dd_slice_of(s, DD_HISTORY_SUFFIX_BYTES);
    *value = dd_slice_of(at, len);
    *at++ = 1;
    dd_put_le64(at, ts_ms == DD_TS_NOW ? now : (uint64_t)ts_ms);
    at += 8;
    for (unsigned i = 0; i < n; i++) {
        dd_put_le16(at, (uint16_t)items[i].id.len);
        memcpy(at + 2, items[i].id.ptr, items[i].id.len);
        at += 2 + items[i].id.len;
    }
    return DD_OK;
}

bool dd_history_open_record(struct dd_slice value, int64_t *ts_ms, struct dd_slice *rest)
{
    if (value.len < 9 || value.ptr[0] != 1) return false;
    *ts_ms = (int64_t)dd_get_le64(value.ptr + 1);
    *rest = dd_slice_of(value.ptr + 9, value.len - 9);
    return true;
}

bool dd_history_next_item(struct dd_slice *rest, struct dd_slice *item)
{
    if (rest->len < 2) return false;
    size_t len = dd_get_le16(rest->ptr);
    if (len > rest->len - 2) return false;
    *item = dd_slice_of(rest->ptr + 2, len);
    *rest = dd_slice_of(rest->ptr + 2 + len, rest->len - 2 - len);
    return true;
}

/* ---- calm ---- */

static unsigned cell_of(struct dd_slice user)
{
    return (unsigned)(dd_hash64(user, 0) % CELLS);
}

void dd_history_enter(struct dd_history *h, struct dd_slice user)
{
    if (h) atomic_fetch_add(&h->cell[cell_of(user)], SINGLE + 1);
}

void dd_history_leave(struct dd_history *h, struct dd_slice user)
{
    if (h) atomic_fetch_sub(&h->cell[cell_of(user)], 1);
}

uint64_t dd_history_calm(const struct dd_history *h, struct dd_slice user)
{
    return h ? atomic_load(&h->cell[cell_of(user)]) : 0;
}

bool dd_history_stayed_calm(const struct dd_history *h, struct dd_slice user, uint64_t since)
{
    return since % SINGLE == 0 && dd_history_calm(h, user) == since;
}
