#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hot/legacy_impl.h"

int64_t dd_legacy_time(enum dd_legacy_unit unit, double score)
{
    bool seconds = unit == DD_LEGACY_S || (unit == DD_LEGACY_AUTO && fabs(score) < DD_LEGACY_MS_FROM);
    double ms = seconds ? score * 1000 : score;
    if (isnan(ms)) return INT64_MAX;
    if (ms >= 9e18) return INT64_MAX;
    if (ms <= -9e18) return INT64_MIN;
    return (int64_t)floor(ms);
}

bool dd_legacy_score(struct dd_slice text, double *out)
{
    char copy[64], *end;
    if (text.len == 0 || text.len >= sizeof copy) return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    *out = strtod(copy, &end);
    return *end == 0 && end != copy;
}

/* "(" excludes the bound. */
unsigned dd_legacy_ranges(enum dd_legacy_unit unit, int64_t since_ms, struct dd_legacy_range out[2])
{
    unsigned n = 0;
    if (unit != DD_LEGACY_MS) {
        snprintf(out[n].min, sizeof out[n].min, "(%.3f", (double)since_ms / 1000);
        snprintf(out[n].max, sizeof out[n].max, unit == DD_LEGACY_AUTO ? "(%.0f" : "+inf", DD_LEGACY_MS_FROM);
        n++;
    }
    if (unit != DD_LEGACY_S) {
        bool below = unit == DD_LEGACY_AUTO && (double)since_ms < DD_LEGACY_MS_FROM;
        if (below)
            snprintf(out[n].min, sizeof out[n].min, "%.0f", DD_LEGACY_MS_FROM);
        else
            snprintf(out[n].min, sizeof out[n].min, "(%lld", (long long)since_ms);
        snprintf(out[n].max, sizeof out[n].max, "+inf");
        n++;
    }
    return n;
}

/* ---- names of keys ---- */

bool dd_legacy_user_of(const struct dd_legacy *l, struct dd_slice key, struct dd_slice *user)
{
    if (key.len <= l->head.len + l->tail.len) return false;
    if (memcmp(key.ptr, l->head.ptr, l->head.len) != 0) return false;
    if (memcmp(key.ptr + key.len - l->tail.len, l->tail.ptr, l->tail.len) != 0) return false;
    *user = dd_slice_of(key.ptr + l->head.len, key.len - l->head.len - l->tail.len);
    return true;
}

static void add_literal(struct dd_buf *out, struct dd_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (strchr("*?[]\\^", text.ptr[i]) && text.ptr[i]) dd_buf_add_u8(out, '\\');
        dd_buf_add_u8(out, text.ptr[i]);
    }
}

void dd_legacy_glob(const struct dd_legacy *l, struct dd_buf *out)
{
    dd_buf_reset(out);
    add_literal(out, l->head);
    dd_buf_add_u8(out, '*');
    add_literal(out, l->tail);
}

void dd_legacy_key(const struct dd_legacy *l, struct dd_slice user, struct dd_buf *out)
{
    dd_buf_reset(out);
    dd_buf_add_slice(out, l->head);
    dd_buf_add_slice(out, user);
    dd_buf_add_slice(out, l->tail);
}
