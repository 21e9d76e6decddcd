/* Replies: the head is built in a buffer, the body is taken where the handler has it, and both leave in one
 * sendmsg. Only what the socket does not take is copied. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "http/impl.h"

const char *dd_http_status_text(unsigned status)
{
    static const struct {
        unsigned status;
        const char *text;
    } table[] = {{200, "OK"},
                 {201, "Created"},
                 {202, "Accepted"},
                 {204, "No Content"},
                 {304, "Not Modified"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {411, "Length Required"},
                 {413, "Content Too Large"},
                 {415, "Unsupported Media Type"},
                 {417, "Expectation Failed"},
                 {421, "Misdirected Request"},
                 {422, "Unprocessable Content"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"},
                 {505, "HTTP Version Not Supported"},
                 {507, "Insufficient Storage"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].status == status) return table[i].text;
    return "Unknown";
}

void dd_http_reply_header(struct dd_http_request *req, const char *name, struct dd_slice value)
{
    struct dd_buf *b = &dd_http_conn_of(req)->work->headers;
    dd_buf_add_str(b, name);
    dd_buf_add_str(b, ": ");
    for (size_t i = 0; i < value.len; i++) {
        uint8_t byte = value.ptr[i];
        dd_buf_add_u8(b, byte < 0x20 || byte == 0x7f ? '?' : byte);
    }
    dd_buf_add_str(b, "\r\n");
}

static void build_head(struct dd_http_conn *c, unsigned status, const char *content_type, size_t body_bytes)
{
    struct dd_buf *b = &c->work->out;
    dd_buf_reset(b);
    if (status == 200) {
        dd_buf_add_str(b, "HTTP/1.1 200 OK\r\nDate: ");
    } else {
        dd_buf_add_str(b, "HTTP/1.1 ");
        dd_buf_add_i64(b, status);
        dd_buf_add_u8(b, ' ');
        dd_buf_add_str(b, dd_http_status_text(status));
        dd_buf_add_str(b, "\r\nDate: ");
    }
    dd_buf_add_str(b, dd_http_date(c->server));
    if (content_type) {
        dd_buf_add_str(b, "\r\nContent-Type: ");
        dd_buf_add_str(b, content_type);
    }
    if (status != 204 && status != 304) {
        dd_buf_add_str(b, "\r\nContent-Length: ");
        dd_buf_add_i64(b, (int64_t)body_bytes);
    }
    if (c->close_after)
        dd_buf_add_str(b, "\r\nConnection: close\r\n");
    else if (c->work->head.minor == 0) /* a 1.0 client that asked for it; it has to be told */
        dd_buf_add_str(b, "\r\nConnection: keep-alive\r\n");
    else
        dd_buf_add_str(b, "\r\n");
    dd_buf_add_slice(b, dd_buf_slice(&c->work->headers));
    dd_buf_add_str(b, "\r\n");
}

/* Keeps what was not sent of head and body, sent bytes of both being out. */
static bool keep_rest(struct dd_http_conn *c, struct dd_slice body, size_t sent)
{
    struct dd_http_work *w = c->work;
    size_t head = w->out.len;
    w->out_sent = sent < head ? sent : head;
    size_t of_body = sent - w->out_sent;
    dd_buf_add(&w->out, body.ptr + of_body, body.len - of_body);
    dd_http_work_charge(c, body.len - of_body, true);
    return dd_buf_ok(&w->out);
}

static void transmit(struct dd_http_conn *c, struct dd_slice body)
{
    struct dd_http_work *w = c->work;
    struct iovec parts[2] = {{w->out.data, w->out.len}, {(void *)(uintptr_t)body.ptr, body.len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = body.len ? 2 : 1};
    ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        dd_http_conn_close(c);
        return;
    }
    size_t sent = n > 0 ? (size_t)n : 0;
    dd_count(c->server->m.out_bytes, sent);
    if (sent == w->out.len + body.len) {
        dd_http_conn_replied(c);
        return;
    }
    dd_http_conn_set_phase(c, DD_WRITING);
    if (keep_rest(c, body, sent))
        dd_http_conn_want(c, c->reading, true);
    else
        dd_http_conn_close(c);
}

void dd_http_on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct dd_http_conn *c = arg;
    struct dd_http_work *w = c->work;
    ssize_t n = send(fd, w->out.data + w->out_sent, w->out.len - w->out_sent, MSG_NOSIGNAL);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) dd_http_conn_close(c);
        return;
    }
    w->out_sent += (size_t)n;
    dd_count(c->server->m.out_bytes, (uint64_t)n);
    if (w->out_sent < w->out.len) return;
    dd_http_conn_want(c, c->reading, false);
    dd_http_conn_replied(c);
}

static void send_reply(struct dd_http_conn *c, unsigned status, const char *content_type,
                       struct dd_slice body)
{
    if (c->server->draining) c->close_after = true;
    dd_count(c->server->m.responses[status / 100 < 6 ? status / 100 : 5], 1);
    build_head(c, status, content_type, body.len);
    bool bare = c->work->head.method == DD_HTTP_HEAD || status == 204 || status == 304;
    if (!dd_buf_ok(&c->work->out) || !dd_buf_ok(&c->work->headers))
        dd_http_conn_close(c);
    else
        transmit(c, bare ? dd_slice_of(NULL, 0) : body);
}

void dd_http_reply(struct dd_http_request *req, unsigned status, const char *content_type,
                   struct dd_slice body)
{
    struct dd_http_conn *c = dd_http_conn_of(req);
    struct dd_http_server *s = c->server;
    if (c->counted) {
        atomic_fetch_sub_explicit(&s->listeners->inflight, 1, memory_order_relaxed);
        dd_gauge_add(s->m.inflight, -1);
        c->counted = false;
    }
    if (c->fd >= 0) send_reply(c, status, content_type, body);
    if (c->fd < 0 && c->busy) { /* it was closed before, or just now: the client had gone */
        atomic_fetch_sub_explicit(&s->busy, 1, memory_order_release);
        c->busy = false;
    }
    dd_http_conn_release(c); /* taken in dispatch */
}

static void put_escaped(struct dd_buf *b, const char *text)
{
    for (const char *p = text; *p; p++) {
        uint8_t byte = (uint8_t)*p;
        if (byte == '"' || byte == '\\') dd_buf_add_u8(b, '\\');
        dd_buf_add_u8(b, byte < 0x20 ? '?' : byte);
    }
}

static void put_error(struct dd_buf *b, const char *code, const char *message)
{
    dd_buf_reserve(b, 256);
    dd_buf_add_str(b, "{\"error\":{\"code\":\"");
    put_escaped(b, code);
    dd_buf_add_str(b, "\",\"message\":\"");
    put_escaped(b, message);
    dd_buf_add_str(b, "\"}}");
}

void dd_http_reply_error(struct dd_http_request *req, unsigned status, const char *code, const char *message)
{
    struct dd_buf body = {0};
    put_error(&body, code, message);
    dd_http_reply(req, status, "application/json", dd_buf_slice(&body));
    dd_buf_free(&body);
}

void dd_http_conn_refuse(struct dd_http_conn *c, const struct dd_http_refusal *why)
{
    struct dd_buf *body = dd_http_request_scratch(&c->req);
    put_error(body, why->code, why->message);
    if (why->status == 503) dd_http_reply_header(&c->req, "Retry-After", dd_slice_str("1"));
    dd_count(c->server->m.refused, 1);
    c->refused = c->close_after = true;
    send_reply(c, why->status, "application/json", dd_buf_slice(body));
}
