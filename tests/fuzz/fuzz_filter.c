/* Filter sets from arbitrary bytes. The input is up to four blobs, each behind a byte of its length in units
 * of 4 and a byte of flags: 1 gives it magic and version, 2 a right sum of items, 4 a right checksum, so that
 * the checks behind those are reached. Each blob is opened and used alone, then all are merged in both ways,
 * with a good operand last.
 *
 * Besides memory errors: a merge succeeds whatever it is given, its result opens, and what the good operand
 * holds is in it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "filter/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOBS_MAX = 4, FPS = 32 };

static void must(bool ok)
{
    if (!ok) abort();
}

/* A heap copy of exactly the blob's length, mended as the flags say. */
static struct dd_slice mended(const uint8_t *bytes, size_t len, unsigned flags)
{
    struct dd_filter_view v;
    uint8_t *copy = malloc(len + !len);
    must(copy != NULL);
    memcpy(copy, bytes, len);
    if (len < DD_FILTER_HEADER + DD_FILTER_TRAILER) return dd_slice_of(copy, len);
    if (flags & 1) memcpy(copy, "DF\1", 3);
    if (flags & 2) dd_put_le32(copy + 8, dd_get_le32(copy + 8) % 4096);
    if (flags & 4) dd_put_le64(copy + len - 8, dd_filter_checksum(copy, len - 8));
    /* The last field checked is the sum of items: find it when all else is right. */
    for (uint32_t items = 0;
         flags & 2 && items < 80 && dd_filter_view_open(&v, dd_slice_of(copy, len)) != DD_OK; items++) {
        dd_put_le32(copy + 8, items);
        dd_put_le64(copy + len - 8, dd_filter_checksum(copy, len - 8));
    }
    return dd_slice_of(copy, len);
}

static void use_view(struct dd_slice blob, const uint32_t *fps)
{
    struct dd_filter_view v;
    struct dd_filter_info info;
    struct dd_buf out = {0};
    uint8_t seen[FPS] = {0};
    size_t removed, marked = 0;
    if (dd_filter_view_open(&v, blob) != DD_OK) return;
    size_t found = dd_filter_view_test(&v, fps, FPS, seen, 1);
    for (int i = 0; i < FPS; i++) {
        marked += seen[i];
        must((dd_filter_view_count(&v, fps[i]) > 0) == (seen[i] == 1));
    }
    must(found == marked);
    dd_filter_view_info(&v, &info);
    enum dd_err err = dd_filter_forget(blob, fps, FPS, &out, &removed);
    must(err == DD_OK || err == DD_UNSUPPORTED);
    if (err == DD_OK) must(dd_filter_view_open(&v, dd_buf_slice(&out)) == DD_OK);
    dd_buf_free(&out);
}

static void check_result(struct dd_buf *out, const uint32_t *fps)
{
    struct dd_filter_view v;
    uint8_t seen[FPS] = {0};
    must(dd_filter_view_open(&v, dd_buf_slice(out)) == DD_OK);
    must(dd_filter_view_test(&v, fps, FPS, seen, 1) == FPS);
    dd_buf_reset(out);
}

static void use_merges(const struct dd_slice *blobs, size_t n, const uint32_t *fps)
{
    struct dd_buf out = {0};
    struct dd_filter_merge_report report;
    must(dd_filter_merge(blobs[0], blobs + 1, n - 1, &out, &report) == DD_OK);
    check_result(&out, fps);
    must(dd_filter_merge(blobs[n - 1], blobs, n - 1, &out, &report) == DD_OK);
    dd_buf_reset(&out);
    must(dd_filter_partial_merge(blobs, n, &out, &report) == DD_OK);
    check_result(&out, fps);
    dd_buf_free(&out);
}

/* Every kind in turn, by the input's first byte. */
static struct dd_slice good_operand(unsigned choice, const uint32_t *fps)
{
    struct dd_filter_policy p = dd_filter_policy_default();
    struct dd_buf out = {0};
    p.kind = (enum dd_filter_kind)(DD_FILTER_BLOOM + choice % 4);
    p.capacity = 16;
    must(dd_filter_operand(&p, 0, fps, FPS, &out) == DD_OK);
    return dd_buf_slice(&out); /* the caller frees its bytes */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dd_slice blobs[BLOBS_MAX + 1];
    size_t n = 0, at = 1;
    uint32_t fps[FPS];
    if (size < 3) return 0;
    for (unsigned i = 0; i < FPS; i++)
        fps[i] = i * 0x08421085u + data[0];
    while (n < BLOBS_MAX && at + 2 <= size) {
        size_t len = data[at] * 4u + (data[at + 1] >> 4 & 3), left = size - at - 2;
        if (len > left) len = left;
        blobs[n++] = mended(data + at + 2, len, data[at + 1]);
        at += 2 + len;
    }
    for (size_t i = 0; i < n; i++)
        use_view(blobs[i], fps);
    blobs[n++] = good_operand(data[0], fps);
    use_merges(blobs, n, fps);
    for (size_t i = 0; i < n; i++)
        free((void *)blobs[i].ptr);
    return 0;
}
