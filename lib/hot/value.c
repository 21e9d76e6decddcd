#include "hot/value.h"

#define VERSION 1

void dd_hot_value_header(const struct dd_hot_value *v, uint8_t out[DD_HOT_VALUE_HEADER])
{
    out[0] = VERSION;
    dd_put_le64(out + 1, v->incarnation);
    dd_put_le64(out + 9, v->number);
    dd_put_le64(out + 17, (uint64_t)v->filled_ms);
}

enum dd_err dd_hot_value_decode(struct dd_slice bytes, struct dd_hot_value *out)
{
    if (bytes.len < DD_HOT_VALUE_HEADER || bytes.ptr[0] != VERSION) return DD_CORRUPT;
    *out = (struct dd_hot_value){
        .incarnation = dd_get_le64(bytes.ptr + 1),
        .number = dd_get_le64(bytes.ptr + 9),
        .filled_ms = (int64_t)dd_get_le64(bytes.ptr + 17),
        .blob = dd_slice_of(bytes.ptr + DD_HOT_VALUE_HEADER, bytes.len - DD_HOT_VALUE_HEADER),
    };
    return out->filled_ms < 0 ? DD_CORRUPT : DD_OK;
}
