/* Paths and queries are split first and decoded afterwards, so that %2F and %26 inside an id stay part of it.
 */
#include "http/http.h"

bool dd_http_next_segment(struct dd_slice *rest, struct dd_slice *segment)
{
    if (rest->len == 0 || rest->ptr[0] != '/') return false;
    const uint8_t *from = rest->ptr + 1, *end = rest->ptr + rest->len;
    const uint8_t *slash = from < end ? memchr(from, '/', (size_t)(end - from)) : NULL;
    const uint8_t *to = slash ? slash : end;
    *segment = dd_slice_of(from, (size_t)(to - from));
    *rest = dd_slice_of(to, (size_t)(end - to));
    return true;
}

bool dd_http_next_param(struct dd_slice *rest, struct dd_slice *name, struct dd_slice *value)
{
    while (rest->len && rest->ptr[0] == '&')
        *rest = dd_slice_of(rest->ptr + 1, rest->len - 1);
    if (rest->len == 0) return false;
    const uint8_t *from = rest->ptr, *end = from + rest->len;
    const uint8_t *amp = memchr(from, '&', rest->len), *to = amp ? amp : end;
    const uint8_t *equals = memchr(from, '=', (size_t)(to - from));
    *name = dd_slice_of(from, (size_t)((equals ? equals : to) - from));
    *value = equals ? dd_slice_of(equals + 1, (size_t)(to - equals - 1)) : dd_slice_of(to, 0);
    *rest = dd_slice_of(to, (size_t)(end - to));
    return true;
}

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static enum dd_err decode(struct dd_slice raw, bool plus, struct dd_buf *out)
{
    if (raw.len == 0) return DD_OK;
    size_t before = out->len;
    uint8_t *to = dd_buf_extend(out, raw.len), *start = to;
    if (!to) return DD_NO_MEMORY;
    for (size_t i = 0; i < raw.len; i++) {
        uint8_t c = raw.ptr[i];
        if (c == '%') {
            int high = raw.len - i > 2 ? hex(raw.ptr[i + 1]) : -1, low = high >= 0 ? hex(raw.ptr[i + 2]) : -1;
            if (low < 0) goto invalid;
            c = (uint8_t)(high << 4 | low);
            i += 2;
        } else if (plus && c == '+') {
            c = ' ';
        }
        *to++ = c;
    }
    out->len = before + (size_t)(to - start);
    return DD_OK;
invalid:
    out->len = before;
    return DD_INVALID;
}

enum dd_err dd_http_decode_segment(struct dd_slice raw, struct dd_buf *out)
{
    return decode(raw, false, out);
}

enum dd_err dd_http_decode_param(struct dd_slice raw, struct dd_buf *out)
{
    return decode(raw, true, out);
}
