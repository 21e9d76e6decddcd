/* The form that dedupd stores. */
#include <stdlib.h>

#include "base/hash.h"
#include "filters_structure.h"

static void fingerprints(const struct dd_structure *s, const struct dd_slice *ids, size_t n, uint32_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = dd_hash_fingerprint(s->seed, ids[i]);
}

static enum dd_err add(struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    uint32_t *fps = malloc(n * sizeof *fps + 1);
    if (!fps) return DD_NO_MEMORY;
    fingerprints(s, ids, n, fps);
    dd_buf_reset(&s->operand);
    dd_buf_reset(&s->merged);
    enum dd_err err = dd_filter_operand(&s->spec.policy, s->spec.hint, fps, n, &s->operand);
    free(fps);
    if (err != DD_OK) return err;
    struct dd_slice operand = dd_buf_slice(&s->operand);
    err = dd_filter_merge(dd_buf_slice(&s->blob), &operand, 1, &s->merged, NULL);
    if (err != DD_OK) return err;
    struct dd_buf before = s->blob;
    s->blob = s->merged, s->merged = before;
    return DD_OK;
}

static size_t test(const struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    struct dd_filter_view v;
    uint32_t fps[DD_STRUCTURE_TEST_MAX];
    uint8_t seen[DD_STRUCTURE_TEST_MAX] = {0};
    if (dd_filter_view_open(&v, dd_buf_slice(&s->blob)) != DD_OK) return 0;
    fingerprints(s, ids, n, fps);
    return dd_filter_view_test(&v, fps, n, seen, 1);
}

static size_t bytes(const struct dd_structure *s)
{
    return s->blob.len;
}

const struct dd_structure_ops dd_form_set = {.add = add, .test = test, .bytes = bytes};
