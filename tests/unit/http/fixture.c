#include "fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS ((int)unit_patience_ms(20000))

struct fixture fx;

int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- server ---- */

static void park(struct dd_http_request *req)
{
    ck_assert_uint_lt(fx.parked_count, PARKED_MAX);
    fx.parked[fx.parked_count++] = req;
    pthread_cond_broadcast(&fx.changed);
}

static void show(struct dd_http_request *req)
{
    struct dd_buf *out = dd_http_request_scratch(req);
    char peer[DD_HTTP_PEER_TEXT];
    dd_buf_addf(out, "%.*s %.*s?%.*s %.*s", (int)req->method_text.len, (const char *)req->method_text.ptr,
                (int)req->path.len, (const char *)req->path.ptr, (int)req->query.len,
                (const char *)req->query.ptr, (int)req->body.len, (const char *)req->body.ptr);
    dd_http_reply_header(req, "X-Peer", dd_slice_str(dd_http_request_peer(req, peer)));
    dd_http_reply_header(req, "X-Local", dd_slice_str(dd_http_request_local(req) ? "yes" : "no"));
    dd_http_reply_header(req, "X-Echo", dd_http_request_header(req, "x-echo"));
    dd_http_reply(req, 200, "text/plain", dd_buf_slice(out));
}

static void big(struct dd_http_request *req)
{
    size_t n = strtoul((const char *)req->query.ptr, NULL, 10); /* a blank follows the query */
    uint8_t *p = dd_http_request_alloc(req, n);
    ck_assert_ptr_nonnull(p);
    memset(p, 'x', n);
    dd_http_reply(req, 200, "text/plain", dd_slice_of(p, n));
}

static void block(struct dd_http_request *req)
{
    int64_t end = now_ms() + strtol((const char *)req->query.ptr, NULL, 10);
    while (now_ms() < end) {
    }
    dd_http_reply(req, 200, "text/plain", dd_slice_str("done"));
}

static void handle(void *ctx, struct dd_http_request *req)
{
    (void)ctx;
    pthread_mutex_lock(&fx.lock);
    fx.handled++;
    bool parking = dd_slice_eq(req->path, dd_slice_str("/park"));
    if (parking) park(req);
    pthread_mutex_unlock(&fx.lock);
    if (parking) return;
    if (dd_slice_eq(req->path, dd_slice_str("/show")))
        show(req);
    else if (dd_slice_eq(req->path, dd_slice_str("/big")))
        big(req);
    else if (dd_slice_eq(req->path, dd_slice_str("/block")))
        block(req);
    else if (dd_slice_eq(req->path, dd_slice_str("/live")))
        dd_http_reply(req, 200, "text/plain", dd_slice_str("live"));
    else if (dd_slice_eq(req->path, dd_slice_str("/echo")))
        dd_http_reply(req, 200, "application/octet-stream", req->body);
    else
        dd_http_reply_error(req, 404, "not_found", "no \"such\" path");
}

void fixture_init(void)
{
    fx = (struct fixture){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    dd_http_options_init(&fx.options);
}

static void *run(void *arg)
{
    dd_loop_run(arg);
    return NULL;
}

void fixture_start(const char *addresses)
{
    ck_assert_ok(dd_loop_create(&fx.loop));
    ck_assert_ok(dd_stats_create(&fx.stats));
    ck_assert_ok(dd_http_listen(addresses ? addresses : "127.0.0.1:0", &fx.listeners));
    const char *colon = strchr(dd_http_listeners_text(fx.listeners), ':');
    fx.port = colon ? atoi(colon + 1) : 0;
    ck_assert_ok(
        dd_http_server_create(fx.loop, &fx.options, fx.stats, fx.listeners, handle, NULL, &fx.server));
    pthread_create(&fx.thread, NULL, run, fx.loop);
}

void fixture_stop(void)
{
    if (!fx.loop) return;
    dd_loop_stop(fx.loop);
    pthread_join(fx.thread, NULL);
    dd_http_server_destroy(fx.server);
    for (unsigned i = 0; i < fx.parked_count;
         i++) /* left behind by a test: the handler's duty all the same */
        dd_http_reply(fx.parked[i], 503, NULL, dd_slice_of(NULL, 0));
    ck_assert_uint_eq(dd_http_listeners_connections(fx.listeners), 0);
    ck_assert_uint_eq(dd_http_listeners_inflight(fx.listeners), 0);
    dd_http_listeners_destroy(fx.listeners);
    dd_stats_destroy(fx.stats);
    dd_loop_destroy(fx.loop);
    fx.loop = NULL;
}

struct errand {
    struct dd_task task;
    void (*fn)(void *arg);
    bool done;
};

static void run_errand(void *arg)
{
    struct errand *e = arg;
    e->fn(&fx);
    pthread_mutex_lock(&fx.lock);
    e->done = true;
    pthread_cond_broadcast(&fx.changed);
    pthread_mutex_unlock(&fx.lock);
}

static void wait_changed(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    int err = pthread_cond_timedwait(&fx.changed, &fx.lock, &until);
    ck_assert_msg(err == 0, "nothing happened for %d ms", WAIT_MS);
}

void fixture_on_loop(void (*fn)(void *arg))
{
    struct errand e = {.fn = fn};
    e.task = (struct dd_task){.run = run_errand, .arg = &e};
    dd_loop_post(fx.loop, &e.task);
    pthread_mutex_lock(&fx.lock);
    while (!e.done)
        wait_changed();
    pthread_mutex_unlock(&fx.lock);
}

void fixture_wait_parked(unsigned n)
{
    pthread_mutex_lock(&fx.lock);
    while (fx.parked_count < n)
        wait_changed();
    pthread_mutex_unlock(&fx.lock);
}

unsigned fixture_handled(void)
{
    pthread_mutex_lock(&fx.lock);
    unsigned n = fx.handled;
    pthread_mutex_unlock(&fx.lock);
    return n;
}

static unsigned gone;

static void unpark(void *arg)
{
    (void)arg;
    gone = 0;
    unsigned n = fx.parked_count;
    struct dd_http_request *requests[PARKED_MAX];
    memcpy(requests, fx.parked, n * sizeof *requests);
    fx.parked_count = 0;
    for (unsigned i = 0; i < n; i++) {
        gone += dd_http_request_gone(requests[i]);
        dd_http_reply(requests[i], 200, "text/plain", dd_slice_str("late"));
    }
}

unsigned fixture_unpark(void)
{
    fixture_on_loop(unpark);
    return gone;
}

static void nothing(void *arg)
{
    (void)arg;
}

void fixture_settle(void)
{
    fixture_on_loop(nothing);
}

void fixture_wait_connections(unsigned n)
{
    int64_t until = now_ms() + WAIT_MS;
    while (dd_http_listeners_connections(fx.listeners) != n) {
        ck_assert_msg(now_ms() < until, "%u connections, not %u", dd_http_listeners_connections(fx.listeners),
                      n);
        fixture_settle();
    }
}

uint64_t fixture_counter(const char *what)
{
    char name[160];
    snprintf(name, sizeof name, "dedupd_http_%s_total{listener=\"data\"}", what);
    return dd_counter_get(dd_stats_counter(fx.stats, name, "?"));
}

/* ---- clients ---- */

static struct client connect_to(const struct sockaddr *to, socklen_t size)
{
    struct client c = {.fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct timeval limit = {WAIT_MS / 1000, 0};
    ck_assert_int_ge(c.fd, 0);
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(c.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ck_assert_msg(connect(c.fd, to, size) == 0, "connect: %s", strerror(errno));
    return c;
}

struct client client_open(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)fx.port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct client c = connect_to((struct sockaddr *)&to, sizeof to);
    int on = 1; /* else a body sent after its head waits 40 ms for the head's acknowledgement */
    setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return c;
}

struct client client_open_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    return connect_to((struct sockaddr *)&to, sizeof to);
}

void client_close(struct client *c)
{
    close(c->fd);
    free(c->data);
    *c = (struct client){.fd = -1};
}

void client_reset(struct client *c)
{
    struct linger at_once = {1, 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client_close(c);
}

void client_send_bytes(struct client *c, const void *p, size_t n)
{
    const char *at = p;
    while (n) {
        ssize_t sent = send(c->fd, at, n, MSG_NOSIGNAL);
        ck_assert_msg(sent > 0, "send: %s", strerror(errno));
        at += sent;
        n -= (size_t)sent;
    }
}

void client_send(struct client *c, const char *text)
{
    client_send_bytes(c, text, strlen(text));
}

/* false: the end of the stream. */
static bool receive_more(struct client *c)
{
    if (c->len == c->cap) {
        c->cap = c->cap ? c->cap * 2 : 4096;
        c->data = realloc(c->data, c->cap);
        ck_assert_ptr_nonnull(c->data);
    }
    ssize_t n = recv(c->fd, c->data + c->len, c->cap - c->len, 0);
    ck_assert_msg(n >= 0, "recv: %s", strerror(errno));
    c->len += (size_t)n;
    return n > 0;
}

static void take(struct client *c, size_t n)
{
    memmove(c->data, c->data + n, c->len - n);
    c->len -= n;
}

const char *response_header(const struct response *r, const char *name)
{
    static _Thread_local char value[1024];
    size_t len = strlen(name);
    value[0] = 0;
    for (const char *line = strstr(r->head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, len) == 0 && line[2 + len] == ':')
            sscanf(line + 2 + len + 1, " %1023[^\r]", value);
    return value;
}

struct response client_read(struct client *c, bool no_body)
{
    struct response r = {0};
    char *end;
    while (!c->len || !(end = memmem(c->data, c->len, "\r\n\r\n", 4)))
        ck_assert_msg(receive_more(c), "the connection ended instead of a response");
    size_t head = (size_t)(end - c->data) + 4;
    ck_assert_uint_lt(head, sizeof r.head);
    memcpy(r.head, c->data, head);
    ck_assert_msg(sscanf(r.head, "HTTP/1.1 %u ", &r.status) == 1, "not a status line: %s", r.head);
    take(c, head);
    r.len = no_body ? 0 : strtoul(response_header(&r, "content-length"), NULL, 10);
    while (c->len < r.len)
        ck_assert_msg(receive_more(c), "the connection ended inside a body");
    r.body = calloc(1, r.len + 1);
    memcpy(r.body, c->data, r.len);
    take(c, r.len);
    return r;
}

void response_free(struct response *r)
{
    free(r->body);
    r->body = NULL;
}

void client_expect(struct client *c, unsigned status, const char *text)
{
    struct response r = client_read(c, false);
    ck_assert_msg(r.status == status, "%u, not %u: %s", r.status, status, r.body);
    if (text) ck_assert_msg(strstr(r.body, text), "no \"%s\" in \"%s\"", text, r.body);
    response_free(&r);
}

void client_expect_end(struct client *c)
{
    ck_assert_uint_eq(c->len, 0);
    struct pollfd p = {c->fd, POLLIN, 0};
    ck_assert_msg(poll(&p, 1, WAIT_MS) == 1, "still open");
    char byte;
    ssize_t n = recv(c->fd, &byte, 1, 0);
    ck_assert_msg(n == 0 || (n < 0 && errno == ECONNRESET), "more bytes");
}
