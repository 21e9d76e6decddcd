/* Speaks just enough of Redis's protocol (RESP) for three commands; hiredis stays with the module that serves
 * requests. */
#include "filters_redis.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

/* Header of a cached set before its blob (proto/storage.md). */
#define VALUE_HEADER 25

#define START_MS 20000

/* Waits until the server's log on its standard output says that it listens ("Ready" or "ready"). */
static enum dd_err wait_ready(struct dd_own_redis *r)
{
    static const char ready[] = "eady to accept connections";
    struct dd_clock clock;
    dd_clock_init(&clock, 0);
    struct dd_mono start = dd_clock_mono(&clock);
    struct dd_buf log = {0};
    enum dd_err err = DD_TIMEOUT;
    for (int64_t waited = 0; err == DD_TIMEOUT && waited < START_MS;
         waited = dd_mono_ms_between(start, dd_clock_mono(&clock))) {
        struct pollfd p = {.fd = r->server.out, .events = POLLIN};
        if (poll(&p, 1, (int)(START_MS - waited)) < 0 && errno != EINTR) err = DD_IO;
        if (!(p.revents & (POLLIN | POLLHUP))) continue;
        if (!dd_buf_reserve(&log, 4096)) err = DD_NO_MEMORY;
        ssize_t n = err == DD_TIMEOUT ? read(r->server.out, log.data + log.len, 4096) : 0;
        if (n > 0) log.len += (size_t)n;
        if (n <= 0 || log.len > 1 << 20) err = DD_IO;
        if (n > 0 && memmem(log.data, log.len, ready, sizeof ready - 1)) err = DD_OK;
    }
    dd_buf_free(&log);
    return err;
}

static enum dd_err start(struct dd_own_redis *r, char *dir, char *path)
{
    char *argv[] = {(char[]){"redis-server"},
                    (char[]){"--port"},
                    (char[]){"0"},
                    (char[]){"--unixsocket"},
                    path,
                    (char[]){"--save"},
                    (char[]){""},
                    (char[]){"--appendonly"},
                    (char[]){"no"},
                    (char[]){"--daemonize"},
                    (char[]){"no"},
                    (char[]){"--dir"},
                    dir,
                    (char[]){"--loglevel"},
                    (char[]){"notice"},
                    (char[]){"--logfile"},
                    (char[]){""},
                    NULL};
    return dd_child_start(&r->server, argv, -1);
}

/* So many more log lines may come that the server would block on a full socket: they go nowhere. */
static void drop_log(struct dd_own_redis *r)
{
    shutdown(r->server.out, SHUT_RD);
}

enum dd_err dd_own_redis_open(struct dd_own_redis *r, const char *dir)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 20};
    *r = (struct dd_own_redis){.fd = -1};
    if ((size_t)snprintf(at.sun_path, sizeof at.sun_path, "%s/redis.sock", dir) >= sizeof at.sun_path)
        return DD_TOO_LARGE;
    char *copy = strdup(dir);
    if (!copy) return DD_NO_MEMORY;
    enum dd_err err = start(r, copy, at.sun_path);
    free(copy);
    if (err == DD_OK) err = wait_ready(r);
    if (err == DD_OK) {
        r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (r->fd < 0 || connect(r->fd, (struct sockaddr *)&at, sizeof at) != 0) err = DD_IO;
    }
    if (err == DD_OK && setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
        err = DD_IO;
    if (err == DD_OK)
        drop_log(r);
    else
        dd_own_redis_close(r);
    return err;
}

void dd_own_redis_close(struct dd_own_redis *r)
{
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
    if (dd_child_end(&r->server, SIGTERM) != DD_OK) return; /* it is gone in any case */
}

static void begin(struct dd_buf *out, unsigned words)
{
    dd_buf_addf(out, "*%u\r\n", words);
}

static void word(struct dd_buf *out, struct dd_slice a, struct dd_slice b)
{
    dd_buf_addf(out, "$%zu\r\n", a.len + b.len);
    dd_buf_add_slice(out, a);
    dd_buf_add_slice(out, b);
    dd_buf_add_str(out, "\r\n");
}

static void text(struct dd_buf *out, const char *s)
{
    word(out, dd_slice_str(s), dd_slice_of(NULL, 0));
}

static enum dd_err send_all(int fd, struct dd_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return DD_IO;
        bytes.ptr += n, bytes.len -= (size_t)n;
    }
    return DD_OK;
}

/* One reply of the form :number. */
static enum dd_err read_number(int fd, uint64_t *out)
{
    char line[32];
    size_t n = 0;
    do {
        ssize_t got = recv(fd, line + n, 1, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got != 1) return DD_IO;
        n++;
    } while (line[n - 1] != '\n' && n < sizeof line - 1);
    line[n] = 0;
    if (line[0] != ':' || line[n - 1] != '\n') return DD_IO;
    *out = strtoull(line + 1, NULL, 10);
    return DD_OK;
}

/* The key and fields as the service names them. */
static void add_commands(struct dd_buf *out, const char *key, const struct dd_slice *blobs, unsigned n)
{
    static const uint8_t header[VALUE_HEADER];
    begin(out, 2 + 2 * n);
    text(out, "HSET");
    text(out, key);
    for (unsigned i = 0; i < n; i++) {
        char period[16];
        snprintf(period, sizeof period, "2026-%02u", i + 1);
        text(out, period);
        word(out, dd_slice_of(header, sizeof header), blobs[i]);
    }
    begin(out, 3), text(out, "PEXPIRE"), text(out, key), text(out, "1800000");
    begin(out, 5), text(out, "MEMORY"), text(out, "USAGE"), text(out, key), text(out, "SAMPLES"),
        text(out, "0");
    begin(out, 2), text(out, "DEL"), text(out, key);
}

enum dd_err dd_own_redis_cached(struct dd_own_redis *r, struct dd_slice user, const struct dd_slice *blobs,
                                unsigned n, uint64_t *bytes)
{
    struct dd_buf out = {0};
    char key[256];
    uint64_t ignored = 0;
    snprintf(key, sizeof key, "dd:{home/%.*s}:c:0123456789abcdef", (int)user.len, (const char *)user.ptr);
    add_commands(&out, key, blobs, n);
    enum dd_err err = dd_buf_ok(&out) ? send_all(r->fd, dd_buf_slice(&out)) : DD_NO_MEMORY;
    dd_buf_free(&out);
    if (err == DD_OK) err = read_number(r->fd, &ignored);
    if (err == DD_OK) err = read_number(r->fd, &ignored);
    if (err == DD_OK) err = read_number(r->fd, bytes);
    if (err == DD_OK) err = read_number(r->fd, &ignored);
    return err;
}
