/* From bytes to requests. Input is read into one contiguous buffer and parsed where it lies; the body is
 * handed out there too. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "http/impl.h"

/* Of one connection; then the others have their turn. */
#define REQUESTS_A_TURN 32
#define READS_A_TURN    4 /* 16, 64, 128, 256 KiB */

static const struct dd_http_refusal cut_short = {400, "bad_request",
                                                 "the connection was closed in the middle of a request"},
                                    no_room = {503, "overloaded", "too much input is buffered; try again"};

static struct dd_slice pending(const struct dd_http_work *w)
{
    return dd_slice_of(w->in + w->in_start, w->in_len - w->in_start);
}

static size_t request_bytes(const struct dd_http_work *w)
{
    return w->head.head_bytes + (size_t)w->head.body_bytes; /* body_bytes is at most max_body */
}

static bool over_inflight(struct dd_http_server *s)
{
    unsigned before = atomic_fetch_add_explicit(&s->listeners->inflight, 1, memory_order_relaxed);
    if (before < s->options.max_inflight) return false;
    atomic_fetch_sub_explicit(&s->listeners->inflight, 1, memory_order_relaxed);
    return true;
}

static void fill_request(struct dd_http_conn *c)
{
    const struct dd_http_work *w = c->work;
    const struct dd_http_head *h = &w->head;
    const uint8_t *bytes = pending(w).ptr;
    c->req = (struct dd_http_request){
        .method = h->method,
        .method_text = dd_http_span_slice(bytes, h->method_text),
        .path = dd_http_span_slice(bytes, h->path),
        .query = dd_http_span_slice(bytes, h->query),
        .body = dd_slice_of(bytes + h->head_bytes, (size_t)h->body_bytes),
    };
    /* http://host without a path means its root */
    if (c->req.path.len == 0) c->req.path = dd_slice_str("/");
}

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Requests that are served without waiting for anything queue in no counter: they wait in the kernel until
 * the loop comes to their connection. When more comes in than can be served, each turn of the loop finds all
 * connections readable, and lasts. A request that is read late in a long turn has waited at least since its
 * start; its client may have given up, and the work for it would be wasted on top. Turning it away costs a
 * fraction of serving it, so that the next turn begins in time: under three times the load that can be
 * served, that load is still served, within the limit. (The controlled-delay idea of CoDel, RFC 8289, with
 * the one clock that costs nothing here.) */
static bool waited_too_long(const struct dd_http_server *s)
{
    if (s->options.max_wait_ms == 0) return false;
    return clock_ns() - dd_loop_now(s->loop).ns > (int64_t)s->options.max_wait_ms * 1000000;
}

static bool is_always(const struct dd_http_conn *c)
{
    const char *path = c->server->options.always_path;
    return path && dd_slice_eq(c->req.path, dd_slice_str(path));
}

static void turn_away(struct dd_http_conn *c, const char *message)
{
    dd_count(c->server->m.overloaded, 1);
    dd_http_reply_header(&c->req, "Retry-After", dd_slice_str("1"));
    dd_http_reply_error(&c->req, 503, "overloaded", message);
}

/* Whether there is room for it; if not, it is answered. */
static bool admit(struct dd_http_conn *c)
{
    struct dd_http_server *s = c->server;
    if (is_always(c)) return true;
    if (waited_too_long(s)) {
        turn_away(c, "more requests come in than can be served; try again");
        return false;
    }
    if (over_inflight(s)) {
        turn_away(c, "too many requests are being handled; try again");
        return false;
    }
    c->counted = true;
    dd_gauge_add(s->m.inflight, 1);
    return true;
}

static void dispatch(struct dd_http_conn *c)
{
    struct dd_http_server *s = c->server;
    dd_http_conn_set_phase(c, DD_HANDLING);
    fill_request(c);
    c->holds++; /* until the reply */
    c->busy = true;
    c->close_after = !c->work->head.keep_alive;
    atomic_fetch_add_explicit(&s->busy, 1, memory_order_relaxed);
    dd_count(s->m.requests, 1);
    if (admit(c)) s->handler(s->ctx, &c->req);
}

/* Asks for the body if the client waits to be asked; it no longer does once a byte of the body is there. */
static void say_continue(struct dd_http_conn *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct dd_http_work *w = c->work;
    if (!w->head.expect_continue || pending(w).len > w->head.head_bytes) return;
    /* Nothing is unsent before it, so a socket that takes less than these 25 bytes is a broken one. */
    if (send(c->fd, text, sizeof text - 1, MSG_NOSIGNAL) != (ssize_t)sizeof text - 1) dd_http_conn_close(c);
}

/* Serves the first buffered request if it is complete. true: it was, and its reply is out. */
static bool serve_one(struct dd_http_conn *c)
{
    struct dd_http_work *w = c->work;
    struct dd_slice in = pending(w);
    if (in.len == 0) return false;
    if (c->phase != DD_BODY) {
        enum dd_http_verdict verdict = dd_http_head_feed(&w->head, in.ptr, in.len);
        if (verdict == DD_HTTP_REFUSED) dd_http_conn_refuse(c, w->head.refusal);
        if (verdict == DD_HTTP_MORE) dd_http_conn_set_phase(c, DD_HEAD);
        if (verdict != DD_HTTP_COMPLETE) return false;
    }
    if (in.len < request_bytes(w)) {
        dd_http_conn_set_phase(c, DD_BODY);
        say_continue(c);
        return false;
    }
    dispatch(c);
    return c->fd >= 0 && c->phase < DD_HANDLING;
}

void dd_http_pump(struct dd_http_conn *c)
{
    c->holds++;
    c->pumping = true;
    bool served = true;
    for (unsigned i = 0; served && i < REQUESTS_A_TURN; i++)
        served = serve_one(c);
    c->pumping = false;
    if (c->fd >= 0 && c->phase < DD_HANDLING) {
        if (pending(c->work).len == 0) dd_http_work_detach(c);
        c->resume = served && c->work;
        if (c->resume) event_active(&c->read_event, EV_READ, 1);
        dd_http_conn_want(c, true, false);
    }
    dd_http_conn_release(c);
}

static void on_end_of_input(struct dd_http_conn *c)
{
    if (c->phase == DD_IDLE)
        dd_http_conn_close(c);
    else
        dd_http_conn_refuse(c, &cut_short);
}

/* Reads once. true: the room was filled and a body is still incomplete, so there is probably more. */
static bool receive_once(struct dd_http_conn *c)
{
    struct dd_http_work *w = c->work;
    if (!dd_http_work_room(c, c->phase == DD_BODY ? request_bytes(w) : 0)) {
        dd_count(c->server->m.overloaded, 1);
        dd_http_conn_refuse(c, &no_room);
        return false;
    }
    size_t room = w->in_cap - w->in_len;
    ssize_t n = recv(c->fd, w->in + w->in_len, room, 0);
    if (n > 0) {
        w->in_len += (size_t)n;
        dd_count(c->server->m.in_bytes, (uint64_t)n);
        dd_http_pump(c);
        return (size_t)n == room && c->fd >= 0 && c->phase == DD_BODY;
    }
    if (n == 0) {
        on_end_of_input(c);
    } else if (errno == EAGAIN || errno == EINTR) {
        if (pending(w).len == 0) dd_http_work_detach(c);
    } else {
        dd_http_conn_close(c);
    }
    return false;
}

/* A body that is there already is taken in one turn. */
static void receive(struct dd_http_conn *c)
{
    if (!dd_http_work_attach(c)) {
        dd_http_conn_close(c);
        return;
    }
    c->holds++;
    for (unsigned i = 0; i < READS_A_TURN && receive_once(c); i++) {
    }
    dd_http_conn_release(c);
}

/* More input, or the end of it, while a request is with the handler or its reply unsent: look away until
 * then. */
static void look_away(struct dd_http_conn *c)
{
    uint8_t byte;
    if (recv(c->fd, &byte, 1, MSG_PEEK) < 0 && errno != EAGAIN && errno != EINTR) c->gone = true;
    dd_http_conn_want(c, false, c->writing);
}

static void discard(struct dd_http_conn *c)
{
    uint8_t bytes[16384];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0 || (size_t)n >= c->linger_left)
        dd_http_conn_close(c);
    else
        c->linger_left -= (size_t)n;
}

void dd_http_on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct dd_http_conn *c = arg;
    bool resume = c->resume && c->phase < DD_HANDLING; /* the sweep may have come in between */
    c->resume = false;
    if (resume) {
        dd_http_pump(c);
    } else if (c->phase == DD_LINGER) {
        discard(c);
    } else if (c->phase >= DD_HANDLING) {
        look_away(c);
    } else {
        receive(c);
    }
}
