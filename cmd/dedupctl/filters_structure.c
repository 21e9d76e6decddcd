#include "filters_structure.h"

#include <stdlib.h>

static const struct dd_structure_ops *const forms[] = {
    [DD_FORM_SET] = &dd_form_set,
    [DD_FORM_LIST] = &dd_form_list,
    [DD_FORM_HASH] = &dd_form_hash,
    [DD_FORM_QUEUE] = &dd_form_queue,
};

enum dd_err dd_structure_create(const struct dd_structure_spec *spec, uint64_t seed,
                                struct dd_structure **out)
{
    struct dd_structure *s = calloc(1, sizeof *s);
    if (!s) return DD_NO_MEMORY;
    *s = (struct dd_structure){.ops = forms[spec->form], .spec = *spec, .seed = seed};
    if (spec->form == DD_FORM_QUEUE) {
        s->ring = calloc(spec->capacity, sizeof *s->ring);
        if (!s->ring) {
            free(s);
            return DD_NO_MEMORY;
        }
    }
    *out = s;
    return DD_OK;
}

void dd_structure_destroy(struct dd_structure *s)
{
    if (!s) return;
    for (uint32_t i = 0; s->ring && i < s->spec.capacity; i++)
        free(s->ring[i].bytes);
    free(s->ring);
    free(s->slot);
    dd_buf_free(&s->blob);
    dd_buf_free(&s->operand);
    dd_buf_free(&s->merged);
    free(s);
}

enum dd_err dd_structure_add(struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    for (size_t from = 0; from < n; from += DD_STRUCTURE_BATCH_MAX) {
        size_t part = n - from < DD_STRUCTURE_BATCH_MAX ? n - from : DD_STRUCTURE_BATCH_MAX;
        enum dd_err err = s->ops->add(s, ids + from, part);
        if (err != DD_OK) return err;
    }
    return DD_OK;
}

size_t dd_structure_test(const struct dd_structure *s, const struct dd_slice *ids, size_t n)
{
    return s->ops->test(s, ids, n);
}

size_t dd_structure_bytes(const struct dd_structure *s)
{
    return s->ops->bytes(s);
}
