#include "dedup/staged.h"

#include "base/log.h"
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

void dd_staged_recall(struct dd_store *store, struct dd_hot *hot)
{
    int64_t beat;
    if (dd_staged_get(store, &beat) && beat && !dd_hot_is_embedded(hot)) dd_hot_expect_beat(hot, beat);
}
