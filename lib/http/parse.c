/* Line by line, in one pass over the bytes. A line is scanned for its CRLF and for forbidden bytes at once,
 * so that garbage (a TLS hello, a NUL) is refused where it stands and not after a timeout; a whole line is
 * then taken apart.
 *
 * Why so strict: a service behind proxies is attacked through what two parsers read differently (request
 * smuggling). Of the 215 known probes most rely on a lenient reader of lengths, line ends or blanks. All
 * clients that matter send the narrow form, so the narrow form is the only one accepted. RFC 9112 allows each
 * of these refusals. */
#include "http/parse.h"

#include <stddef.h>
#include <strings.h>

/* Classes of bytes. */
enum {
    TOKEN = 1,  /* tchar, RFC 9110 section 5.6.2 */
    TARGET = 2, /* path and query, RFC 3986, with [ and ] */
    HOST = 4,   /* host and port, RFC 3986: no '@', no '/' */
    FIELD = 8,  /* what a line may hold at all: HTAB, SP to ~, obs-text */
};

#define ALNUM (TOKEN | TARGET | HOST | FIELD)
#define A10(first)                                                                                           \
    [first] = ALNUM, [first + 1] = ALNUM, [first + 2] = ALNUM, [first + 3] = ALNUM, [first + 4] = ALNUM,     \
    [first + 5] = ALNUM, [first + 6] = ALNUM, [first + 7] = ALNUM, [first + 8] = ALNUM, [first + 9] = ALNUM

/* clang-format off */
static const uint8_t classes[256] = {
    A10('0'), A10('a'), A10('k'), ['u'] = ALNUM, ['v'] = ALNUM, ['w'] = ALNUM, ['x'] = ALNUM, ['y'] = ALNUM,
    ['z'] = ALNUM, A10('A'), A10('K'), ['U'] = ALNUM, ['V'] = ALNUM, ['W'] = ALNUM, ['X'] = ALNUM, ['Y'] = ALNUM,
    ['Z'] = ALNUM,
    ['!'] = ALNUM, ['$'] = ALNUM, ['%'] = ALNUM, ['&'] = ALNUM, ['\''] = ALNUM, ['*'] = ALNUM, ['+'] = ALNUM,
    ['-'] = ALNUM, ['.'] = ALNUM, ['_'] = ALNUM, ['~'] = ALNUM,
    ['#'] = TOKEN | FIELD, ['^'] = TOKEN | FIELD, ['`'] = TOKEN | FIELD, ['|'] = TOKEN | FIELD,
    ['('] = TARGET | HOST | FIELD, [')'] = TARGET | HOST | FIELD, [','] = TARGET | HOST | FIELD,
    [';'] = TARGET | HOST | FIELD, ['='] = TARGET | HOST | FIELD, [':'] = TARGET | HOST | FIELD,
    ['['] = TARGET | HOST | FIELD, [']'] = TARGET | HOST | FIELD,
    ['/'] = TARGET | FIELD, ['?'] = TARGET | FIELD, ['@'] = TARGET | FIELD,
    ['\t'] = FIELD, [' '] = FIELD, ['"'] = FIELD, ['<'] = FIELD, ['>'] = FIELD, ['\\'] = FIELD, ['{'] = FIELD,
    ['}'] = FIELD, [128 ... 255] = FIELD,
};
/* clang-format on */
#undef A10
#undef ALNUM

/* Headers that the server itself reads, and those that must not occur twice. Bits of dd_http_head.seen. */
enum { SEEN_HOST = 1, SEEN_LENGTH = 2, SEEN_CODING = 4, SEEN_EXPECT = 8, SEEN_TYPE = 16, SEEN_AUTH = 32 };

static const struct dd_http_refusal
    bad_line = {400, "bad_request", "not a request line of HTTP/1.1"},
    bad_byte = {400, "bad_request", "a control byte, or a line that does not end in CR LF"},
    bad_target = {400, "bad_request", "the target is not a path of RFC 3986 characters"},
    bad_version = {505, "version", "only HTTP/1.1 and HTTP/1.0 are spoken here"},
    bad_header = {400, "bad_request", "a header is not name, colon, value"},
    bad_host = {400, "bad_request", "exactly one valid Host header is needed"},
    bad_length = {400, "bad_request", "Content-Length must be one decimal number"},
    bad_coding = {400, "bad_request", "this Transfer-Encoding is not supported"},
    bad_connection = {400, "bad_request", "the Connection header is not a list of names"},
    twice = {400, "bad_request", "a header that may occur once occurs twice"},
    body_on_get = {400, "bad_request", "GET and HEAD carry no body"},
    no_chunks = {411, "length_required", "send a Content-Length; chunked bodies are not accepted"},
    body_too_large = {413, "body_too_large", "the body is larger than this server accepts"},
    bad_expect = {417, "expectation_failed", "only Expect: 100-continue is known"},
    head_too_large = {431, "head_too_large", "request line and headers are larger than this server accepts"},
    not_implemented = {501, "not_implemented", "TRACE and CONNECT are not implemented"};

static enum dd_http_verdict refuse(struct dd_http_head *h, const struct dd_http_refusal *why)
{
    h->refusal = why;
    return DD_HTTP_REFUSED;
}

void dd_http_head_init(struct dd_http_head *h, size_t max_head, size_t max_body)
{
    memset(h, 0, offsetof(struct dd_http_head, fields));
    h->max_head = max_head < DD_HTTP_HEAD_MAX ? max_head : DD_HTTP_HEAD_MAX;
    h->max_body = max_body;
}

bool dd_http_same_word(struct dd_slice a, const char *lower)
{
    return strlen(lower) == a.len && strncasecmp((const char *)a.ptr, lower, a.len) == 0;
}

static struct dd_http_span span(const uint8_t *bytes, const uint8_t *from, const uint8_t *to)
{
    return (struct dd_http_span){(uint16_t)(from - bytes), (uint16_t)(to - from)};
}

/* The first byte from p on that is not of the class; end when all are. */
static const uint8_t *skip(const uint8_t *p, const uint8_t *end, uint8_t class)
{
    while (p < end && classes[*p] & class)
        p++;
    return p;
}

/* ---- request line ---- */

static enum dd_http_method method_of(struct dd_slice text)
{
    static const struct {
        const char *text;
        enum dd_http_method method;
    } known[] = {{"GET", DD_HTTP_GET},         {"POST", DD_HTTP_POST},     {"HEAD", DD_HTTP_HEAD},
                 {"PUT", DD_HTTP_PUT},         {"DELETE", DD_HTTP_DELETE}, {"PATCH", DD_HTTP_PATCH},
                 {"OPTIONS", DD_HTTP_OPTIONS}, {"TRACE", DD_HTTP_TRACE},   {"CONNECT", DD_HTTP_CONNECT}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (dd_slice_eq(text, dd_slice_str(known[i].text))) return known[i].method;
    return DD_HTTP_OTHER;
}

/* http://host[:port] in front of a path, RFC 9112 section 3.2.2: the path counts, the host does not. NULL:
 * refused. */
static const uint8_t *skip_authority(const uint8_t *p, const uint8_t *end)
{
    size_t n = (size_t)(end - p);
    if (n > 7 && strncasecmp((const char *)p, "http://", 7) == 0)
        p += 7;
    else if (n > 8 && strncasecmp((const char *)p, "https://", 8) == 0)
        p += 8;
    else
        return NULL;
    const uint8_t *path = skip(p, end, HOST);
    return path == p || (path < end && *path != '/' && *path != '?') ? NULL : path;
}

static const struct dd_http_refusal *read_target(struct dd_http_head *h, const uint8_t *bytes,
                                                 const uint8_t *p, const uint8_t *end)
{
    if (p == end || skip(p, end, TARGET) != end) return &bad_target;
    bool star = *p == '*' && end - p == 1 && h->method == DD_HTTP_OPTIONS;
    if (h->method == DD_HTTP_CONNECT) star = true; /* an authority; refused at the end of the head */
    if (*p != '/' && !star && !(p = skip_authority(p, end))) return &bad_target;
    const uint8_t *question = p < end ? memchr(p, '?', (size_t)(end - p)) : NULL;
    h->path = span(bytes, p, question ? question : end);
    h->query = question ? span(bytes, question + 1, end) : (struct dd_http_span){0};
    return NULL;
}

static const struct dd_http_refusal *read_version(struct dd_http_head *h, const uint8_t *p,
                                                  const uint8_t *end)
{
    if (end - p != 8 || memcmp(p, "HTTP/", 5) != 0 || p[6] != '.') return &bad_line;
    if (p[5] < '0' || p[5] > '9' || p[7] < '0' || p[7] > '9') return &bad_line;
    if (p[5] != '1' || p[7] > '1') return &bad_version;
    h->minor = (unsigned)(p[7] - '0');
    return NULL;
}

static const struct dd_http_refusal *read_request_line(struct dd_http_head *h, const uint8_t *bytes,
                                                       const uint8_t *p, const uint8_t *end)
{
    const uint8_t *method_end = skip(p, end, TOKEN);
    if (method_end == p || method_end == end || *method_end != ' ') return &bad_line;
    h->method_text = span(bytes, p, method_end);
    h->method = method_of(dd_http_span_slice(bytes, h->method_text));
    const uint8_t *target = method_end + 1, *target_end = memchr(target, ' ', (size_t)(end - target));
    if (!target_end) return &bad_line; /* HTTP/0.9 among others */
    const struct dd_http_refusal *why = read_version(h, target_end + 1, end);
    return why ? why : read_target(h, bytes, target, target_end);
}

/* ---- headers ---- */

static const struct dd_http_refusal *read_length(struct dd_http_head *h, struct dd_slice value)
{
    if (value.len == 0) return &bad_length;
    uint64_t n = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9') return &bad_length;
        if (n < UINT64_C(1) << 40) n = n * 10 + value.ptr[i] - '0'; /* past that it is too large anyway */
    }
    h->body_bytes = n;
    return NULL;
}

static const struct dd_http_refusal *read_connection(struct dd_http_head *h, struct dd_slice value)
{
    const uint8_t *p = value.ptr, *end = p + value.len;
    while (p < end) {
        const uint8_t *word_end = skip(p, end, TOKEN);
        struct dd_slice word = dd_slice_of(p, (size_t)(word_end - p));
        if (dd_http_same_word(word, "close")) h->close = true;
        if (dd_http_same_word(word, "keep-alive")) h->keep = true;
        for (p = word_end; p < end && (*p == ' ' || *p == '\t');)
            p++;
        if (p < end && *p != ',') return &bad_connection;
        while (p < end && (*p == ' ' || *p == '\t' || *p == ','))
            p++;
    }
    return NULL;
}

static const struct dd_http_refusal *read_known(struct dd_http_head *h, unsigned which, const uint8_t *bytes,
                                                struct dd_http_span span_of_value)
{
    struct dd_slice value = dd_http_span_slice(bytes, span_of_value);
    switch (which) {
    case SEEN_LENGTH:
        return read_length(h, value);
    case SEEN_CODING:
        h->chunked = dd_http_same_word(value, "chunked");
        break;
    case SEEN_EXPECT:
        h->expect = span_of_value;
        break;
    case SEEN_HOST:
        return skip(value.ptr, value.ptr + value.len, HOST) == value.ptr + value.len ? NULL : &bad_host;
    default:
        break;
    }
    return NULL;
}

static const struct dd_http_refusal *read_special(struct dd_http_head *h, const uint8_t *bytes,
                                                  const struct dd_http_field *f)
{
    static const struct {
        const char *name;
        uint16_t len, seen;
        const struct dd_http_refusal *again;
    } special[] = {{"host", 4, SEEN_HOST, &bad_host},
                   {"expect", 6, SEEN_EXPECT, &bad_expect},
                   {"content-type", 12, SEEN_TYPE, &twice},
                   {"authorization", 13, SEEN_AUTH, &twice},
                   {"content-length", 14, SEEN_LENGTH, &bad_length},
                   {"transfer-encoding", 17, SEEN_CODING, &bad_coding}};
    struct dd_slice name = dd_http_span_slice(bytes, f->name);
    if (dd_http_same_word(name, "connection")) return read_connection(h, dd_http_span_slice(bytes, f->value));
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (special[i].len != name.len || !dd_http_same_word(name, special[i].name)) continue;
        if (h->seen & special[i].seen) return special[i].again;
        h->seen |= special[i].seen;
        return read_known(h, special[i].seen, bytes, f->value);
    }
    return NULL;
}

static const struct dd_http_refusal *read_header(struct dd_http_head *h, const uint8_t *bytes,
                                                 const uint8_t *p, const uint8_t *end)
{
    const uint8_t *colon = skip(p, end, TOKEN);
    if (colon == p || colon == end || *colon != ':')
        return &bad_header; /* folded lines too: they begin with a blank */
    if (h->field_count == DD_HTTP_HEADERS_MAX) return &head_too_large;
    const uint8_t *value = colon + 1;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    struct dd_http_field *f = &h->fields[h->field_count++];
    *f = (struct dd_http_field){span(bytes, p, colon), span(bytes, value, end)};
    return read_special(h, bytes, f);
}

/* ---- the end of the head ---- */

static const struct dd_http_refusal *judge_framing(struct dd_http_head *h)
{
    if (h->minor == 1 && !(h->seen & SEEN_HOST)) return &bad_host;
    if (h->seen & SEEN_CODING) {
        bool plain = h->chunked && h->minor == 1 && !(h->seen & SEEN_LENGTH);
        return plain ? &no_chunks : &bad_coding;
    }
    if (h->method == DD_HTTP_TRACE || h->method == DD_HTTP_CONNECT) return &not_implemented;
    if (h->body_bytes && (h->method == DD_HTTP_GET || h->method == DD_HTTP_HEAD)) return &body_on_get;
    return h->body_bytes > h->max_body ? &body_too_large : NULL;
}

static enum dd_http_verdict finish(struct dd_http_head *h, const uint8_t *bytes)
{
    const struct dd_http_refusal *why = judge_framing(h);
    if (why) return refuse(h, why);
    if (h->seen & SEEN_EXPECT) {
        if (!dd_http_same_word(dd_http_span_slice(bytes, h->expect), "100-continue"))
            return refuse(h, &bad_expect);
        h->expect_continue = h->minor == 1 &&
                             h->body_bytes; /* RFC 9110 section 10.1.1: 1.0 does not mean it */
    }
    h->keep_alive = !h->close && (h->minor == 1 || h->keep);
    return DD_HTTP_COMPLETE;
}

static enum dd_http_verdict read_line(struct dd_http_head *h, const uint8_t *bytes, size_t end)
{
    const struct dd_http_refusal *why = NULL;
    if (end == h->line) {
        if (h->stage == DD_HTTP_AT_HEADERS) return finish(h, bytes);
        if (h->stage == DD_HTTP_AT_REQUEST_LINE) return refuse(h, &bad_line);
        h->stage = DD_HTTP_AT_REQUEST_LINE;
    } else if (h->stage == DD_HTTP_AT_HEADERS) {
        why = read_header(h, bytes, bytes + h->line, bytes + end);
    } else {
        why = read_request_line(h, bytes, bytes + h->line, bytes + end);
        h->stage = DD_HTTP_AT_HEADERS;
    }
    return why ? refuse(h, why) : DD_HTTP_MORE;
}

/* Whether eight bytes hold no control: none below 0x20, none 0x7f. May say no for a group that holds none;
 * HTAB is a no. */
static bool plain8(const uint8_t *p)
{
    uint64_t v = dd_get_le64(p), ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    uint64_t below_space = (v - ones * 0x20) & ~v & highs;
    uint64_t x = v ^ ones * 0x7f;
    return !(below_space | ((x - ones) & ~x & highs));
}

static size_t scan(const uint8_t *bytes, size_t pos, size_t limit)
{
    do {
        while (limit - pos >= 8 && plain8(bytes + pos))
            pos += 8;
        for (unsigned i = 0; i < 8 && pos < limit; i++, pos++)
            if (!(classes[bytes[pos]] & FIELD)) return pos;
    } while (pos < limit);
    return pos;
}

enum dd_http_verdict dd_http_head_feed(struct dd_http_head *h, const uint8_t *bytes, size_t len)
{
    size_t limit = len < h->max_head ? len : h->max_head;
    for (;;) {
        h->pos = scan(bytes, h->pos, limit);
        if (h->pos < limit && bytes[h->pos] != '\r') return refuse(h, &bad_byte);
        if (limit - h->pos < 2) return limit == h->max_head ? refuse(h, &head_too_large) : DD_HTTP_MORE;
        if (bytes[h->pos + 1] != '\n') return refuse(h, &bad_byte);
        size_t end = h->pos;
        h->pos += 2;
        h->head_bytes = h->pos;
        enum dd_http_verdict verdict = read_line(h, bytes, end);
        if (verdict != DD_HTTP_MORE) return verdict;
        h->line = h->pos;
    }
}
