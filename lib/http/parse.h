/* The head of an HTTP/1 request: a pure, incremental, strict parser. It reads no socket and allocates
 * nothing.
 *
 *   request-line = token SP target SP ("HTTP/1.0" | "HTTP/1.1") CRLF     one empty line before it is skipped
 *   target       = path ["?" query] | "http://" authority [path] | "*" (OPTIONS only); RFC 3986 characters
 * only header       = token ":" OWS value OWS CRLF                          value: HTAB, SP to ~, 0x80 to
 * 0xff head         = request-line *header CRLF
 *
 * Everything else is refused: bare LF or CR, NUL and other controls, folded headers, blanks before the colon
 * or around a name, more than one SP in the request line, no or two Hosts, two Content-Lengths (also equal
 * ones), signs, lists or hexadecimal in Content-Length, any Transfer-Encoding, a body on GET, HEAD, TRACE or
 * CONNECT.
 *
 * The verdict depends on the bytes alone, not on how they were cut into pieces: bytes are judged in order,
 * and what needs the whole head is judged at its end.
 *
 * Threads: pure functions. Ownership: nothing; spans are offsets into the caller's bytes. */
#ifndef DD_HTTP_PARSE_H
#define DD_HTTP_PARSE_H

#include "http/http.h"

#define DD_HTTP_HEADERS_MAX 64
#define DD_HTTP_HEAD_MAX    65535

enum dd_http_verdict { DD_HTTP_MORE, DD_HTTP_COMPLETE, DD_HTTP_REFUSED };

struct dd_http_refusal {
    unsigned status;
    const char *code, *message;
};

struct dd_http_span {
    uint16_t at, len;
};

struct dd_http_field {
    struct dd_http_span name, value;
};

struct dd_http_head {
    /* limits, by dd_http_head_init */
    size_t max_head, max_body;
    /* results, once COMPLETE */
    enum dd_http_method method;
    struct dd_http_span method_text, path, query;
    unsigned minor; /* of the version: 0 or 1 */
    bool keep_alive;
    bool expect_continue; /* and a body is announced */
    uint64_t body_bytes;
    size_t head_bytes; /* with the empty line */
    /* once REFUSED */
    const struct dd_http_refusal *refusal;
    /* the parser's */
    enum { DD_HTTP_AT_START, DD_HTTP_AT_REQUEST_LINE, DD_HTTP_AT_HEADERS } stage;
    size_t line, pos; /* where the current line begins; how far it has been scanned */
    unsigned seen;    /* headers that may occur once */
    bool close, keep; /* tokens of Connection */
    bool chunked;     /* Transfer-Encoding is exactly that */
    struct dd_http_span expect;
    unsigned field_count;
    struct dd_http_field fields[DD_HTTP_HEADERS_MAX];
};

/* Ready for a new request. max_head is at most DD_HTTP_HEAD_MAX. */
void dd_http_head_init(struct dd_http_head *h, size_t max_head, size_t max_body);

/* bytes: everything received of this request so far, from its first byte; it may be longer than the head.
 * Call again with more after MORE, at any address. */
enum dd_http_verdict dd_http_head_feed(struct dd_http_head *h, const uint8_t *bytes, size_t len);

/* Whether two ASCII texts are equal but for case. */
bool dd_http_same_word(struct dd_slice a, const char *lower);

static inline struct dd_slice dd_http_span_slice(const uint8_t *bytes, struct dd_http_span s)
{
    return dd_slice_of(bytes + s.at, s.len);
}

#endif
