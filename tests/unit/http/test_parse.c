/* The head parser from a table: each row gives the same verdict whole, in two pieces cut at every place, and
 * byte by byte. The rows are the ways in which lenient parsers were seen to disagree, and the forms that
 * clients really send. */
#include <stdlib.h>

#include "http/parse.h"
#include "suites.h"

#define MAX_HEAD 1024
#define MAX_BODY 1000

struct row {
    const char *name, *bytes;
    size_t len;
    unsigned status; /* 0: wants more; 200: complete */
};

#define ROW(name, bytes, status)                                                                             \
    {                                                                                                        \
        name, bytes, sizeof(bytes) - 1, status                                                               \
    }
#define H "Host: a\r\n"

static const struct row rows[] = {
    /* accepted */
    ROW("get", "GET / HTTP/1.1\r\n" H "\r\n", 200),
    ROW("post", "POST /filter HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", 200),
    ROW("pipelined", "GET /a HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\r\n" H "\r\n", 200),
    ROW("head", "HEAD / HTTP/1.1\r\n" H "\r\n", 200),
    ROW("query", "GET /stats?a=b&c=%20 HTTP/1.1\r\n" H "\r\n", 200),
    ROW("no length on post", "POST / HTTP/1.1\r\n" H "\r\n", 200),
    ROW("length 0 on get", "GET / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n", 200),
    ROW("body on delete", "DELETE /u/1 HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\n{}", 200),
    ROW("1.0 without host", "GET / HTTP/1.0\r\n\r\n", 200),
    ROW("empty line first", "\r\nGET / HTTP/1.1\r\n" H "\r\n", 200),
    ROW("no blank after colon", "GET / HTTP/1.1\r\nHost:a\r\n\r\n", 200),
    ROW("blanks around value", "GET / HTTP/1.1\r\nHost: \t a \t \r\n\r\n", 200),
    ROW("empty value", "GET / HTTP/1.1\r\n" H "X-A:\r\nX-B: \r\n\r\n", 200),
    ROW("empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 200),
    ROW("host with port", "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 200),
    ROW("obs-text in a value", "GET / HTTP/1.1\r\n" H "X: \xc3\xa9\xff\r\n\r\n", 200),
    ROW("tab in a value", "GET / HTTP/1.1\r\n" H "X: a\tb\r\n\r\n", 200),
    ROW("absolute form", "GET http://a:80/x HTTP/1.1\r\n" H "\r\n", 200),
    ROW("absolute form without path", "GET http://a HTTP/1.1\r\n" H "\r\n", 200),
    ROW("options star", "OPTIONS * HTTP/1.1\r\n" H "\r\n", 200),
    ROW("unknown method", "BREW /pot HTTP/1.1\r\n" H "\r\n", 200),
    ROW("lower-case method", "get / HTTP/1.1\r\n" H "\r\n", 200),
    ROW("expect", "POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 3\r\n\r\n", 200),
    ROW("largest body", "POST / HTTP/1.1\r\n" H "Content-Length: 1000\r\n\r\n", 200),
    ROW("leading zeros", "POST / HTTP/1.1\r\n" H "Content-Length: 0005\r\n\r\n", 200),
    ROW("connection list", "GET / HTTP/1.1\r\n" H "Connection: keep-alive, TE ,, x\r\n\r\n", 200),
    ROW("h2c upgrade is ignored", "GET / HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 200),
    /* not yet whole */
    ROW("nothing", "", 0),
    ROW("line", "GET / HTTP/1.1\r\n", 0),
    ROW("no empty line", "GET / HTTP/1.1\r\n" H, 0),
    ROW("half an empty line", "GET / HTTP/1.1\r\n" H "\r", 0),
    /* lengths */
    ROW("two different lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        400),
    ROW("two equal lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 2\r\nContent-Length: 2\r\n\r\n", 400),
    ROW("list of lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 2, 2\r\n\r\n", 400),
    ROW("blank before colon", "POST / HTTP/1.1\r\n" H "Content-Length : 35\r\n\r\n", 400),
    ROW("tab before colon", "POST / HTTP/1.1\r\n" H "Content-Length\t: 35\r\n\r\n", 400),
    ROW("plus length", "POST / HTTP/1.1\r\n" H "Content-Length: +2\r\n\r\n", 400),
    ROW("negative length", "POST / HTTP/1.1\r\n" H "Content-Length: -2\r\n\r\n", 400),
    ROW("hexadecimal length", "POST / HTTP/1.1\r\n" H "Content-Length: 0x2\r\n\r\n", 400),
    ROW("fractional length", "POST / HTTP/1.1\r\n" H "Content-Length: 2.0\r\n\r\n", 400),
    ROW("blank inside length", "POST / HTTP/1.1\r\n" H "Content-Length: 1 2\r\n\r\n", 400),
    ROW("quoted length", "POST / HTTP/1.1\r\n" H "Content-Length: \"2\"\r\n\r\n", 400),
    ROW("empty length", "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", 400),
    ROW("body over the limit", "POST / HTTP/1.1\r\n" H "Content-Length: 1001\r\n\r\n", 413),
    ROW("length of 2^64 + 2", "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551618\r\n\r\n", 413),
    ROW("length of 40 digits",
        "POST / HTTP/1.1\r\n" H "Content-Length: 1111111111222222222233333333334444444444\r\n\r\n", 413),
    ROW("get with body", "GET / HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\n{}", 400),
    ROW("head with body", "HEAD / HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\n{}", 400),
    ROW("trace with body", "TRACE / HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\n{}", 501),
    ROW("trace", "TRACE / HTTP/1.1\r\n" H "\r\n", 501),
    ROW("connect", "CONNECT a:80 HTTP/1.1\r\n" H "\r\n", 501),
    /* transfer codings */
    ROW("chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 411),
    ROW("chunked in capitals", "POST / HTTP/1.1\r\n" H "transfer-encoding: CHUNKED\r\n\r\n", 411),
    ROW("chunked on get", "GET / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 411),
    ROW("length and chunked",
        "POST / HTTP/1.1\r\n" H "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ROW("chunked and length",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", 400),
    ROW("gzip", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n", 400),
    ROW("xchunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n", 400),
    ROW("gzip, chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n", 400),
    ROW("chunked, identity", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, identity\r\n\r\n", 400),
    ROW("identity", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n", 400),
    ROW("vertical tab chunked",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \x0b"
        "chunked\r\n\r\n",
        400),
    ROW("empty coding", "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n", 400),
    ROW("chunked twice",
        "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ROW("chunked on 1.0", "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 400),
    ROW("folded coding", "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n chunked\r\n\r\n", 400),
    ROW("blank before coding's colon", "POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n", 400),
    /* lines and bytes */
    ROW("bare LF after the request line", "GET / HTTP/1.1\n" H "\r\n", 400),
    ROW("bare LF after a header", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
    ROW("bare LF as empty line", "GET / HTTP/1.1\r\n" H "\n", 400),
    ROW("bare LF first", "\nGET / HTTP/1.1\r\n" H "\r\n", 400),
    ROW("bare CR in a value", "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400),
    ROW("bare CR as line end", "GET / HTTP/1.1\rHost: a\r\r", 400),
    ROW("CR CR LF", "GET / HTTP/1.1\r\r\n" H "\r\n", 400),
    ROW("two empty lines first", "\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n", 400),
    ROW("NUL in the request line", "GET /\0 HTTP/1.1\r\n" H "\r\n", 400),
    ROW("NUL in a name", "GET / HTTP/1.1\r\n" H "X\0Y: a\r\n\r\n", 400),
    ROW("NUL in a value", "GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n", 400),
    ROW("DEL in a value", "GET / HTTP/1.1\r\n" H "X: a\x7f\r\n\r\n", 400),
    ROW("escape in a value", "GET / HTTP/1.1\r\n" H "X: \x1b[0m\r\n\r\n", 400),
    ROW("TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ROW("folded header", "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n", 400),
    ROW("folded with tab", "GET / HTTP/1.1\r\n" H "X: a\r\n\tb\r\n\r\n", 400),
    ROW("blank before the first header", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
    ROW("no colon", "GET / HTTP/1.1\r\n" H "nonsense\r\n\r\n", 400),
    ROW("empty name", "GET / HTTP/1.1\r\n" H ": x\r\n\r\n", 400),
    ROW("non-token name", "GET / HTTP/1.1\r\n" H "X(Y): x\r\n\r\n", 400),
    ROW("obs-text in a name", "GET / HTTP/1.1\r\n" H "\xc3\xa9: x\r\n\r\n", 400),
    /* request line */
    ROW("HTTP/0.9", "GET /\r\n", 400),
    ROW("HTTP/0.9 with version", "GET / HTTP/0.9\r\n" H "\r\n", 505),
    ROW("HTTP/1.2", "GET / HTTP/1.2\r\n" H "\r\n", 505),
    ROW("HTTP/2.0", "GET / HTTP/2.0\r\n" H "\r\n", 505),
    ROW("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ROW("version overflow", "GET / HTTP/1.99999999999\r\n" H "\r\n", 400),
    ROW("version of two digits", "GET / HTTP/11.1\r\n" H "\r\n", 400),
    ROW("lower-case version", "GET / http/1.1\r\n" H "\r\n", 400),
    ROW("version without minor", "GET / HTTP/1\r\n" H "\r\n", 400),
    ROW("other protocol", "GET / RTSP/1.0\r\n" H "\r\n", 400),
    ROW("two blanks", "GET  / HTTP/1.1\r\n" H "\r\n", 400),
    ROW("two blanks before the version", "GET /  HTTP/1.1\r\n" H "\r\n", 400),
    ROW("tab as blank", "GET\t/ HTTP/1.1\r\n" H "\r\n", 400),
    ROW("blank at the end", "GET / HTTP/1.1 \r\n" H "\r\n", 400),
    ROW("blank at the start", " GET / HTTP/1.1\r\n" H "\r\n", 400),
    ROW("blank in the target", "GET /a b HTTP/1.1\r\n" H "\r\n", 400),
    ROW("no target", "GET HTTP/1.1\r\n" H "\r\n", 400),
    ROW("non-token method", "GE{T / HTTP/1.1\r\n" H "\r\n", 400),
    ROW("empty method", " / HTTP/1.1\r\n" H "\r\n", 400),
    ROW("target without slash", "GET index HTTP/1.1\r\n" H "\r\n", 400),
    ROW("star on get", "GET * HTTP/1.1\r\n" H "\r\n", 400),
    ROW("fragment", "GET /#a HTTP/1.1\r\n" H "\r\n", 400),
    ROW("raw non-ASCII target", "GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n", 400),
    ROW("backslash", "GET /a\\b HTTP/1.1\r\n" H "\r\n", 400),
    ROW("other scheme", "GET ftp://a/ HTTP/1.1\r\n" H "\r\n", 400),
    ROW("user in the authority", "GET http://u@a/ HTTP/1.1\r\n" H "\r\n", 400),
    ROW("empty authority", "GET http:///x HTTP/1.1\r\n" H "\r\n", 400),
    /* hosts and other headers that count */
    ROW("no host", "GET / HTTP/1.1\r\n\r\n", 400),
    ROW("two hosts", "GET / HTTP/1.1\r\n" H "Host: b\r\n\r\n", 400),
    ROW("two equal hosts", "GET / HTTP/1.1\r\n" H H "\r\n", 400),
    ROW("two hosts on 1.0", "GET / HTTP/1.0\r\n" H H "\r\n", 400),
    ROW("host with blank", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
    ROW("host with path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    ROW("host with user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400),
    ROW("two authorizations", "GET / HTTP/1.1\r\n" H "Authorization: a\r\nAuthorization: b\r\n\r\n", 400),
    ROW("two content types", "POST / HTTP/1.1\r\n" H "Content-Type: a\r\nContent-Type: b\r\n\r\n", 400),
    ROW("unknown expectation", "POST / HTTP/1.1\r\n" H "Expect: 200-ok\r\nContent-Length: 3\r\n\r\n", 417),
    ROW("expectations", "POST / HTTP/1.1\r\n" H "Expect: 100-continue, x\r\nContent-Length: 3\r\n\r\n", 417),
    ROW("two expectations", "POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n",
        417),
    ROW("connection nonsense", "GET / HTTP/1.1\r\n" H "Connection: close;x\r\n\r\n", 400),
};

static enum dd_http_verdict feed_copy(struct dd_http_head *h, const char *bytes, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1); /* exactly as long: a sanitizer sees a read past it */
    memcpy(copy, bytes, len);
    enum dd_http_verdict v = dd_http_head_feed(h, copy, len);
    free(copy);
    return v;
}

static unsigned status_of(enum dd_http_verdict v, const struct dd_http_head *h)
{
    return v == DD_HTTP_REFUSED ? h->refusal->status : v == DD_HTTP_COMPLETE ? 200 : 0;
}

static unsigned judge_whole(const struct row *r, struct dd_http_head *h)
{
    dd_http_head_init(h, MAX_HEAD, MAX_BODY);
    return status_of(feed_copy(h, r->bytes, r->len), h);
}

START_TEST(whole)
{
    struct dd_http_head h;
    const struct row *r = &rows[_i];
    unsigned got = judge_whole(r, &h);
    ck_assert_msg(got == r->status, "%s: %u, not %u", r->name, got, r->status);
}
END_TEST

static void check_same(const struct row *r, size_t cut, const struct dd_http_head *a,
                       const struct dd_http_head *b)
{
    if (a->refusal || b->refusal) {
        ck_assert_msg(a->refusal == b->refusal, "%s, cut at %zu: another refusal", r->name, cut);
        return;
    }
    ck_assert_uint_eq(a->head_bytes, b->head_bytes);
    ck_assert_uint_eq(a->body_bytes, b->body_bytes);
    ck_assert_uint_eq(a->field_count, b->field_count);
    ck_assert_mem_eq(&a->path, &b->path, sizeof a->path);
    ck_assert_mem_eq(&a->query, &b->query, sizeof a->query);
    ck_assert_int_eq(a->keep_alive, b->keep_alive);
    for (unsigned i = 0; i < a->field_count; i++)
        ck_assert_mem_eq(&a->fields[i], &b->fields[i], sizeof a->fields[i]);
}

START_TEST(cut_at_every_place)
{
    struct dd_http_head one, two;
    const struct row *r = &rows[_i];
    judge_whole(r, &one);
    for (size_t cut = 0; cut <= r->len; cut++) {
        dd_http_head_init(&two, MAX_HEAD, MAX_BODY);
        enum dd_http_verdict v = feed_copy(&two, r->bytes, cut);
        if (v == DD_HTTP_MORE) v = feed_copy(&two, r->bytes, r->len);
        ck_assert_msg(status_of(v, &two) == r->status, "%s, cut at %zu: %u", r->name, cut,
                      status_of(v, &two));
        check_same(r, cut, &one, &two);
    }
}
END_TEST

START_TEST(byte_by_byte)
{
    struct dd_http_head one, two;
    const struct row *r = &rows[_i];
    judge_whole(r, &one);
    dd_http_head_init(&two, MAX_HEAD, MAX_BODY);
    enum dd_http_verdict v = DD_HTTP_MORE;
    for (size_t n = 0; n <= r->len && v == DD_HTTP_MORE; n++)
        v = feed_copy(&two, r->bytes, n);
    ck_assert_uint_eq(status_of(v, &two), r->status);
    check_same(r, 1, &one, &two);
}
END_TEST

/* No strict prefix of a head is complete, and a refused prefix stays refused: nothing is decided by what is
 * missing. */
START_TEST(a_prefix_is_never_complete)
{
    struct dd_http_head h;
    const struct row *r = &rows[_i];
    judge_whole(r, &h);
    size_t head = r->status == 200 ? h.head_bytes : r->len;
    for (size_t n = 0; n < head; n++) {
        dd_http_head_init(&h, MAX_HEAD, MAX_BODY);
        ck_assert_int_ne(feed_copy(&h, r->bytes, n), DD_HTTP_COMPLETE);
    }
}
END_TEST

static void check_span(const char *bytes, struct dd_http_span s, const char *expected)
{
    struct dd_slice got = dd_http_span_slice((const uint8_t *)bytes, s);
    ck_assert_msg(dd_slice_eq(got, dd_slice_str(expected)), "\"%.*s\", not \"%s\"", (int)got.len,
                  (const char *)got.ptr, expected);
}

START_TEST(results)
{
    static const char bytes[] = "POST http://h:1/a/b?x=1?y HTTP/1.1\r\nHost:  a:1\t\r\ncontent-LENGTH: 7\r\n"
                                "EXPECT: 100-continue\r\n\r\n0123456";
    struct dd_http_head h;
    dd_http_head_init(&h, MAX_HEAD, MAX_BODY);
    ck_assert_int_eq(dd_http_head_feed(&h, (const uint8_t *)bytes, sizeof bytes - 1), DD_HTTP_COMPLETE);
    ck_assert_int_eq(h.method, DD_HTTP_POST);
    check_span(bytes, h.method_text, "POST");
    check_span(bytes, h.path, "/a/b");
    check_span(bytes, h.query, "x=1?y");
    ck_assert_uint_eq(h.field_count, 3);
    check_span(bytes, h.fields[0].name, "Host");
    check_span(bytes, h.fields[0].value, "a:1");
    check_span(bytes, h.fields[1].value, "7");
    ck_assert_uint_eq(h.body_bytes, 7);
    ck_assert(h.expect_continue);
    ck_assert(h.keep_alive);
    ck_assert_uint_eq(h.head_bytes, sizeof bytes - 1 - 7);
}
END_TEST

START_TEST(keep_alive)
{
    static const struct {
        const char *bytes;
        bool keep;
    } cases[] = {{"GET / HTTP/1.1\r\n" H "\r\n", true},
                 {"GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", false},
                 {"GET / HTTP/1.1\r\n" H "Connection: Close, x\r\n\r\n", false},
                 {"GET / HTTP/1.1\r\n" H "Connection: x,CLOSE\r\n\r\n", false},
                 {"GET / HTTP/1.1\r\n" H "Connection: x\r\nConnection: close\r\n\r\n", false},
                 {"GET / HTTP/1.1\r\n" H "Connection: close, keep-alive\r\n\r\n", false},
                 {"GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n", true},
                 {"GET / HTTP/1.0\r\n\r\n", false},
                 {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
                 {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dd_http_head h;
        dd_http_head_init(&h, MAX_HEAD, MAX_BODY);
        const uint8_t *bytes = (const uint8_t *)cases[i].bytes;
        ck_assert_int_eq(dd_http_head_feed(&h, bytes, strlen(cases[i].bytes)), DD_HTTP_COMPLETE);
        ck_assert_msg(h.keep_alive == cases[i].keep, "%s", cases[i].bytes);
    }
}
END_TEST

/* A head of exactly the limit passes, one byte more is 431, however it is cut; an endless line ends at the
 * limit. */
START_TEST(head_limit)
{
    for (size_t total = MAX_HEAD - 2; total <= MAX_HEAD + 2; total++) {
        struct dd_buf b = {0};
        struct dd_http_head h;
        dd_buf_add_str(&b, "GET / HTTP/1.1\r\n" H "X: ");
        while (b.len < total - 4)
            dd_buf_add_u8(&b, 'x');
        dd_buf_add_str(&b, "\r\n\r\n");
        unsigned expected = total <= MAX_HEAD ? 200 : 431;
        for (size_t cut = MAX_HEAD - 8; cut <= total; cut++) {
            dd_http_head_init(&h, MAX_HEAD, MAX_BODY);
            enum dd_http_verdict v = feed_copy(&h, (char *)b.data, cut);
            if (v == DD_HTTP_MORE) v = feed_copy(&h, (char *)b.data, total);
            ck_assert_uint_eq(status_of(v, &h), expected);
        }
        dd_buf_free(&b);
    }
}
END_TEST

START_TEST(field_limit)
{
    for (unsigned n = DD_HTTP_HEADERS_MAX - 1; n <= DD_HTTP_HEADERS_MAX + 1; n++) {
        struct dd_buf b = {0};
        struct dd_http_head h;
        dd_buf_add_str(&b, "GET / HTTP/1.1\r\n" H);
        for (unsigned i = 1; i < n; i++)
            dd_buf_add_str(&b, "X: y\r\n");
        dd_buf_add_str(&b, "\r\n");
        dd_http_head_init(&h, 8192, MAX_BODY);
        unsigned got = status_of(dd_http_head_feed(&h, b.data, b.len), &h);
        ck_assert_uint_eq(got, n <= DD_HTTP_HEADERS_MAX ? 200 : 431);
        dd_buf_free(&b);
    }
}
END_TEST

/* Every byte at a place in the target, a name and a value, against the grammar written out once more. */
static unsigned with_byte(const char *before, int byte, const char *after)
{
    struct dd_buf b = {0};
    struct dd_http_head h;
    dd_buf_add_str(&b, before);
    dd_buf_add_u8(&b, (uint8_t)byte);
    dd_buf_add_str(&b, after);
    dd_http_head_init(&h, MAX_HEAD, MAX_BODY);
    unsigned status = status_of(feed_copy(&h, (char *)b.data, b.len), &h);
    dd_buf_free(&b);
    return status;
}

START_TEST(every_byte)
{
    static const char alnum[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int c = 0; c < 256; c++) {
        bool word = c && strchr(alnum, c);
        bool token = word || (c && strchr("!#$%&'*+-.^_`|~", c));
        bool target = word || (c && strchr("-._~:/?[]@!$&'()*+,;=%", c));
        bool value = c == '\t' || (c >= 0x20 && c != 0x7f);
        bool name = token || c == ':'; /* "X:Y: a" is the header X with the value "Y: a" */
        ck_assert_msg((with_byte("GET /x", c, "y HTTP/1.1\r\n" H "\r\n") == 200) == target, "target byte %d",
                      c);
        ck_assert_msg((with_byte("GET / HTTP/1.1\r\n" H "X", c, "Y: a\r\n\r\n") == 200) == name,
                      "name byte %d", c);
        ck_assert_msg((with_byte("GET / HTTP/1.1\r\n" H "X: a", c, "b\r\n\r\n") == 200) == value,
                      "value byte %d", c);
        ck_assert_msg((with_byte("GE", c, "T / HTTP/1.1\r\n" H "\r\n") == 200) == token, "method byte %d", c);
    }
}
END_TEST

Suite *suite_parse(void)
{
    Suite *s = suite_create("http parser");
    TCase *t = tcase_create("parse");
    int n = sizeof rows / sizeof *rows;
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, whole, 0, n);
    tcase_add_loop_test(t, cut_at_every_place, 0, n);
    tcase_add_loop_test(t, byte_by_byte, 0, n);
    tcase_add_loop_test(t, a_prefix_is_never_complete, 0, n);
    tcase_add_test(t, results);
    tcase_add_test(t, keep_alive);
    tcase_add_test(t, head_limit);
    tcase_add_test(t, field_limit);
    tcase_add_test(t, every_byte);
    suite_add_tcase(s, t);
    return s;
}
