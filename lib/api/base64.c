#include "api/base64.h"

static void add_group(uint8_t to[4], const uint8_t *from, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t v = (uint32_t)from[0] << 16 | (n > 1 ? (uint32_t)from[1] << 8 : 0) | (n > 2 ? from[2] : 0u);
    for (unsigned i = 0; i < 4; i++)
        to[i] = i <= n ? (uint8_t)digits[v >> (18 - 6 * i) & 63] : '=';
}

void dd_base64_add(struct dd_buf *out, struct dd_slice bytes)
{
    uint8_t *to = bytes.len ? dd_buf_extend(out, (bytes.len + 2) / 3 * 4) : NULL;
    if (!to) return;
    for (size_t i = 0; i < bytes.len; i += 3, to += 4)
        add_group(to, bytes.ptr + i, bytes.len - i < 3 ? bytes.len - i : 3);
}
