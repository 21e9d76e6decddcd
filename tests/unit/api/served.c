#include "served.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "scenes.h"
#include "unit.h"

#define START_MS    1796040000000 /* 2026-11-30T12:00:00Z */
#define PATIENCE_MS unit_patience_ms(20000)

void served_start(struct served *s, enum dd_api_listener listener)
{
    served_start_guarded(s, listener, NULL);
}

void served_start_guarded(struct served *s, enum dd_api_listener listener, const struct dd_auth *auth)
{
    struct dd_http_options http;
    *s = (struct served){.port = 0};
    dd_clock_init_manual(&s->clock, START_MS);
    fake_init(&s->fake, &s->clock);
    s->scenes = test_scenes();
    ck_assert_ok(dd_stats_create(&s->stats));
    ck_assert_ok(dd_loop_create(&s->loop));
    struct dd_api_options o = {.version = "1.2.3-test",
                               .scenes = s->scenes,
                               .clock = &s->clock,
                               .backend = &fake_backend,
                               .dedup = fake_dedup(&s->fake),
                               .wheel = fake_wheel(&s->fake),
                               .auth = auth,
                               .protect = true,
                               .stats = s->stats};
    ck_assert_ok(dd_api_create(&o, &s->api));
    ck_assert_ok(dd_api_loop_create(s->api, fake_loop(&s->fake), listener, &s->al));
    ck_assert_ok(dd_http_listen("127.0.0.1:0", &s->listeners));
    dd_http_options_init(&http);
    ck_assert_ok(
        dd_http_server_create(s->loop, &http, s->stats, s->listeners, dd_api_handle, s->al, &s->server));
    const char *colon = strrchr(dd_http_listeners_text(s->listeners), ':');
    s->port = (unsigned)atoi(colon + 1);
}

void served_stop(struct served *s)
{
    dd_http_server_destroy(s->server);
    dd_http_listeners_destroy(s->listeners);
    dd_api_loop_destroy(s->al);
    dd_api_destroy(s->api);
    dd_loop_destroy(s->loop);
    dd_stats_destroy(s->stats);
    dd_scenes_destroy(s->scenes);
    fake_free(&s->fake);
}

/* ---- the client ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void write_all(struct served *s, int fd, struct dd_slice bytes)
{
    int64_t end = now_ms() + PATIENCE_MS;
    while (bytes.len) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno == EAGAIN) n = 0;
        ck_assert_msg(n >= 0 && now_ms() < end, "write: %s", strerror(errno));
        bytes = dd_slice_of(bytes.ptr + n, bytes.len - (size_t)n);
        dd_loop_turn(s->loop, 0);
    }
}

int served_send(struct served *s, const char *method, const char *path, const char *headers,
                struct dd_slice body)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    struct dd_buf b = {0};
    dd_buf_addf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s", method, path,
                headers ? headers : "");
    if (body.ptr) dd_buf_addf(&b, "Content-Length: %zu\r\n", body.len);
    dd_buf_add_str(&b, "\r\n");
    dd_buf_add_slice(&b, body);
    write_all(s, fd, dd_buf_slice(&b));
    dd_buf_free(&b);
    return fd;
}

static void split(struct reply *r)
{
    const char *text = (const char *)r->head.data;
    const char *end = memmem(text, r->head.len, "\r\n\r\n", 4);
    ck_assert_msg(end && sscanf(text, "HTTP/1.1 %d ", &r->status) == 1, "no reply: %s", text);
    size_t head = (size_t)(end + 4 - text);
    dd_buf_add(&r->body, text + head, r->head.len - head);
    dd_buf_add_u8(&r->body, 0);
    r->body.len--;
    r->head.data[head - 2] = 0;
    r->head.len = head - 2;
}

void served_receive(struct served *s, int fd, struct reply *out)
{
    int64_t end = now_ms() + PATIENCE_MS;
    *out = (struct reply){.status = 0};
    for (ssize_t n = 1; n != 0;) {
        char chunk[65536];
        dd_loop_turn(s->loop, 1);
        n = read(fd, chunk, sizeof chunk);
        if (n > 0) dd_buf_add(&out->head, chunk, (size_t)n);
        if (n < 0 && errno != EAGAIN) break;
        ck_assert_msg(now_ms() < end, "no reply in time");
    }
    close(fd);
    dd_buf_add_u8(&out->head, 0);
    out->head.len--;
    split(out);
}

void served_turn_until(struct served *s, const unsigned *value, unsigned wanted)
{
    int64_t end = now_ms() + PATIENCE_MS;
    while (*value != wanted) {
        dd_loop_turn(s->loop, 1);
        ck_assert_msg(now_ms() < end, "waited for %u, it is %u", wanted, *value);
    }
}

void served_ask(struct served *s, const char *path, const char *body, struct reply *out)
{
    served_receive(s, served_send(s, "POST", path, NULL, dd_slice_str(body)), out);
}

void served_get(struct served *s, const char *path, struct reply *out)
{
    served_receive(s, served_send(s, "GET", path, NULL, dd_slice_of(NULL, 0)), out);
}

void reply_free(struct reply *r)
{
    dd_buf_free(&r->head);
    dd_buf_free(&r->body);
}

const char *reply_header(const struct reply *r, const char *name, char *out, size_t size)
{
    size_t n = strlen(name);
    for (const char *line = strchr((const char *)r->head.data, '\n'); line; line = strchr(line + 1, '\n')) {
        const char *at = line + 1;
        if (strncasecmp(at, name, n) != 0 || at[n] != ':') continue;
        at += n + 1 + strspn(at + n + 1, " ");
        snprintf(out, size, "%.*s", (int)strcspn(at, "\r\n"), at);
        return out;
    }
    return NULL;
}
