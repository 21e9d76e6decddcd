/* The head parser on any bytes: the verdict does not depend on how the bytes were cut, what is complete lies
 * inside the input, and a head that was accepted looks accepted to a slow reading of the rules that smuggling
 * breaks. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_HEAD 2048

static void must(int held)
{
    if (!held) abort();
}

static enum dd_http_verdict feed_in_pieces(struct dd_http_head *h, const uint8_t *data, size_t size,
                                           size_t piece)
{
    enum dd_http_verdict v = DD_HTTP_MORE;
    dd_http_head_init(h, MAX_HEAD, 1 << 20);
    for (size_t n = 0; v == DD_HTTP_MORE && n < size;) {
        n = size - n > piece ? n + piece : size;
        uint8_t *copy = malloc(n); /* another address each time, and nothing readable behind it */
        memcpy(copy, data, n);
        v = dd_http_head_feed(h, copy, n);
        free(copy);
    }
    return v;
}

static void check_accepted(const struct dd_http_head *h, const uint8_t *data, size_t size)
{
    must(h->head_bytes <= size && h->head_bytes <= MAX_HEAD && h->body_bytes <= 1 << 20);
    must(memcmp(data + h->head_bytes - 4, "\r\n\r\n", 4) == 0);
    must(!memchr(data, 0, h->head_bytes));
    unsigned lengths = 0;
    for (size_t i = 0; i < h->head_bytes; i++) {
        must(data[i] != '\n' || (i && data[i - 1] == '\r'));
        must(data[i] != '\r' || data[i + 1] == '\n');
        must(i < 2 || data[i - 1] != '\n' || (data[i] != ' ' && data[i] != '\t'));
        if (i && data[i - 1] == '\n') {
            const char *line = (const char *)data + i;
            must(strncasecmp(line, "transfer-encoding:", 18) != 0);
            lengths += strncasecmp(line, "content-length", 14) == 0 && data[i + 14] == ':';
            must(strncasecmp(line, "content-length", 14) != 0 ||
                 (data[i + 14] != ' ' && data[i + 14] != '\t'));
        }
    }
    must(lengths <= 1 && (lengths || h->body_bytes == 0));
    must(h->path.at + (size_t)h->path.len <= h->head_bytes &&
         h->query.at + (size_t)h->query.len <= h->head_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 2, 7, 64};
    struct dd_http_head whole, cut;
    if (size > 4096) return 0;
    enum dd_http_verdict v = feed_in_pieces(&whole, data, size, size ? size : 1);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        must(feed_in_pieces(&cut, data, size, pieces[i]) == v);
        must(cut.refusal == whole.refusal && cut.head_bytes == whole.head_bytes &&
             cut.body_bytes == whole.body_bytes && cut.field_count == whole.field_count &&
             cut.keep_alive == whole.keep_alive);
    }
    if (v == DD_HTTP_COMPLETE) check_accepted(&whole, data, size);
    struct dd_buf decoded = {0};
    enum dd_err err = dd_http_decode_param(dd_slice_of(data, size), &decoded);
    must(err != DD_OK || decoded.len <= size);
    dd_buf_free(&decoded);
    return 0;
}
