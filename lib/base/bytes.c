#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "blobs are read in place: little-endian hosts only");

int dd_slice_cmp(struct dd_slice a, struct dd_slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return c ? c : (a.len > b.len) - (a.len < b.len);
}

void dd_buf_reset(struct dd_buf *b)
{
    b->len = 0;
    b->failed = false;
}

void dd_buf_free(struct dd_buf *b)
{
    free(b->data);
    *b = (struct dd_buf){0};
}

bool dd_buf_reserve(struct dd_buf *b, size_t n)
{
    if (b->failed) return false;
    if (n <= b->cap - b->len) return true;
    size_t cap = b->cap ? b->cap : 64;
    while (cap - b->len < n) {
        if (cap > SIZE_MAX / 2) goto fail;
        cap *= 2;
    }
    uint8_t *data = realloc(b->data, cap);
    if (!data) goto fail;
    b->data = data;
    b->cap = cap;
    return true;
fail:
    b->failed = true;
    return false;
}

uint8_t *dd_buf_extend(struct dd_buf *b, size_t n)
{
    if (!dd_buf_reserve(b, n)) return NULL;
    uint8_t *at = b->data + b->len;
    b->len += n;
    return at;
}

void dd_buf_add(struct dd_buf *b, const void *p, size_t n)
{
    uint8_t *at = n ? dd_buf_extend(b, n) : NULL;
    if (at) memcpy(at, p, n);
}

void dd_buf_add_slice(struct dd_buf *b, struct dd_slice s)
{
    dd_buf_add(b, s.ptr, s.len);
}

void dd_buf_add_str(struct dd_buf *b, const char *s)
{
    dd_buf_add(b, s, strlen(s));
}

void dd_buf_add_u8(struct dd_buf *b, uint8_t v)
{
    dd_buf_add(b, &v, 1);
}

void dd_buf_add_i64(struct dd_buf *b, int64_t v)
{
    char text[20], *p = text + sizeof text;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        *--p = (char)('0' + u % 10);
    } while (u /= 10);
    if (v < 0) *--p = '-';
    dd_buf_add(b, p, (size_t)(text + sizeof text - p));
}

void dd_buf_addf(struct dd_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n >= 0 && dd_buf_reserve(b, (size_t)n + 1)) {
        vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    } else {
        b->failed = true;
    }
    va_end(again);
    va_end(ap);
}
