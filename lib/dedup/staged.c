#include "dedup/staged.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "store/files.h"
#include "store/history.h"

#define NAME "staged"

struct found {
    bool is;
    int64_t beat;
};

static bool take(void *arg, struct dd_slice key, struct dd_slice value)
{
    struct found *f = arg;
    if (!dd_slice_eq(key, dd_slice_str(NAME))) return true;
    f->is = true;
    if (value.len == 8) f->beat = (int64_t)dd_get_le64(value.ptr);
    return false;
}

bool dd_staged_get(struct dd_store *store, int64_t *beat)
{
    struct found f = {false, 0};
    struct dd_store_scan scan = {.family = DD_STORE_META, .prefix = dd_slice_str(NAME)};
    enum dd_err err = dd_store_scan(store, &scan, take, &f);
    if (err != DD_OK) {
        dd_error("staged.mark_unreadable", "error=%s", dd_err_name(err));
        f.is = true; /* the careful answer */
    }
    *beat = f.beat;
    return f.is;
}

static enum dd_err put(struct dd_store *store, struct dd_slice value, bool sync)
{
    struct dd_store_op op = {.kind = DD_STORE_PUT,
                             .family = DD_STORE_META,
                             .suffix = dd_slice_str(NAME),
                             .operand = value,
                             .read_number = UINT64_MAX};
    struct dd_store_batch batch = {.ops = &op, .n = 1, .sync = sync};
    enum dd_err err = dd_store_write_wait(store, &batch);
    return err == DD_OK ? op.result : err;
}

enum dd_err dd_staged_put(struct dd_store *store, int64_t beat, bool sync)
{
    uint8_t bytes[8];
    dd_put_le64(bytes, (uint64_t)beat);
    return put(store, dd_slice_of(bytes, sizeof bytes), sync);
}

enum dd_err dd_staged_clear(struct dd_store *store)
{
    return put(store, dd_slice_of(NULL, 0), true);
}

/* ---- the note of a backup ---- */

#define PATH_BYTES 4200

static bool note_path(const char *data_dir, char out[PATH_BYTES])
{
    return snprintf(out, PATH_BYTES, "%s/" DD_STAGED_NOTE, data_dir) < PATH_BYTES;
}

enum dd_err dd_staged_note(const char *data_dir)
{
    static const char text[] = "nothing was staged when this backup was made\n";
    char path[PATH_BYTES];
    if (!note_path(data_dir, path)) return DD_IO;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    enum dd_err err = fd < 0 ? DD_IO : dd_file_write_all(fd, text, sizeof text - 1);
    if (err == DD_OK && fsync(fd) != 0) err = DD_IO;
    if (fd >= 0 && close(fd) != 0) err = DD_IO;
    if (err == DD_OK) err = dd_file_sync_parent(path);
    if (err != DD_OK) {
        dd_warn("staged.note_not_written", "path=\"%s\" error=\"%s\"", path, strerror(errno));
        if (fd >= 0) unlink(path);
    }
    return err;
}

void dd_staged_settle(struct dd_store *store, const char *data_dir)
{
    char path[PATH_BYTES];
    if (!note_path(data_dir, path) || access(path, F_OK) != 0) return;
    enum dd_err err = unlink(path) == 0 ? dd_file_sync_parent(path) : DD_IO;
    if (err == DD_OK) err = dd_staged_clear(store);
    if (err == DD_OK)
        dd_info("staged.settled", "what=\"this backup was made with nothing staged\"");
    else
        dd_warn("staged.not_settled", "path=\"%s\" error=%s", path, dd_err_name(err));
}

void dd_staged_recall(struct dd_store *store, struct dd_hot *hot)
{
    int64_t beat;
    if (dd_staged_get(store, &beat) && beat && !dd_hot_is_embedded(hot)) dd_hot_expect_beat(hot, beat);
}
