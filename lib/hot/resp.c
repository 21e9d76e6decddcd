#include "hot/resp.h"

static void add_length(struct dd_buf *b, char mark, size_t n)
{
    dd_buf_add_u8(b, (uint8_t)mark);
    dd_buf_add_i64(b, (int64_t)n);
    dd_buf_add(b, "\r\n", 2);
}

void dd_resp_begin(struct dd_buf *b, unsigned args, const char *name)
{
    add_length(b, '*', args);
    dd_resp_arg_str(b, name);
}

void dd_resp_arg(struct dd_buf *b, struct dd_slice arg)
{
    add_length(b, '$', arg.len);
    dd_buf_add_slice(b, arg);
    dd_buf_add(b, "\r\n", 2);
}

void dd_resp_arg_str(struct dd_buf *b, const char *arg)
{
    dd_resp_arg(b, dd_slice_str(arg));
}

/* The wheel removes members by the million: the whole argument is written backwards and added in one piece.
 */
void dd_resp_arg_i64(struct dd_buf *b, int64_t arg)
{
    uint8_t text[32], *end = text + sizeof text, *p = end;
    uint64_t u = arg < 0 ? 0 - (uint64_t)arg : (uint64_t)arg;
    *--p = '\n', *--p = '\r';
    do {
        *--p = (uint8_t)('0' + u % 10);
    } while (u /= 10);
    if (arg < 0) *--p = '-';
    unsigned digits = (unsigned)(end - p) - 2; /* at most 20 */
    *--p = '\n', *--p = '\r';
    *--p = (uint8_t)('0' + digits % 10);
    if (digits > 9) *--p = (uint8_t)('0' + digits / 10);
    *--p = '$';
    dd_buf_add(b, p, (size_t)(end - p));
}

void dd_resp_arg_pair(struct dd_buf *b, struct dd_slice head, struct dd_slice tail)
{
    add_length(b, '$', head.len + tail.len);
    dd_buf_add_slice(b, head);
    dd_buf_add_slice(b, tail);
    dd_buf_add(b, "\r\n", 2);
}

void dd_resp_auth(struct dd_buf *b, const char *user, const char *password)
{
    dd_resp_begin(b, user ? 3 : 2, "AUTH");
    if (user) dd_resp_arg_str(b, user);
    dd_resp_arg_str(b, password);
}
