/* Accepting, and what happens when there are too many connections or no descriptors left.
 *
 * Out of descriptors (EMFILE, ENFILE) the listening socket stays readable and a naive loop spins. Here
 * accepting rests for 100 ms; a descriptor kept in reserve serves to take one connection off the queue and
 * close it, so that its client knows; and one line a second is logged. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "http/impl.h"

/* Connections a turn and loop: few, so that the loops share a burst; twice as many each time that was not
 * enough. A connection that waits in the kernel's queue may have its request in it already, and nobody sees
 * how long: with 8 a turn a loop under overload answered clients that had given up seconds before. */
#define BATCH_MIN     8
#define BATCH_MAX     1024
#define PAUSE_MS      100
#define REJECTING_MAX 256 /* connections that linger over their 503; above, they are closed at once */

static const char overloaded[] =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 75\r\n"
    "Connection: close\r\nRetry-After: 1\r\n\r\n"
    "{\"error\":{\"code\":\"overloaded\",\"message\":\"too many connections; try again\"}}";

static void reject(struct dd_http_server *s, int fd, const struct sockaddr_storage *peer)
{
    uint8_t request[4096];
    dd_count(s->m.rejected, 1);
    ssize_t got = recv(fd, request, sizeof request, 0); /* unread input would turn the close into a reset */
    ssize_t sent = send(fd, overloaded, sizeof overloaded - 1, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    (void)got, (void)sent; /* best effort: this client is turned away in any case */
    if (s->rejecting < REJECTING_MAX && dd_http_conn_open(s, fd, peer, true))
        s->rejecting++;
    else
        close(fd);
}

static void welcome(struct dd_http_server *s, int fd, const struct sockaddr_storage *peer)
{
    unsigned before = atomic_fetch_add(&s->listeners->connections, 1);
    if (before >= s->options.max_connections) {
        atomic_fetch_sub(&s->listeners->connections, 1);
        reject(s, fd, peer);
        return;
    }
    if (!dd_http_conn_open(s, fd, peer, false)) {
        atomic_fetch_sub(&s->listeners->connections, 1);
        close(fd);
        return;
    }
    dd_count(s->m.accepted, 1);
    dd_gauge_add(s->m.connections, 1);
}

static void listen_events(struct dd_http_server *s, bool on)
{
    for (unsigned i = 0; i < s->listeners->count; i++) {
        if (on)
            event_add(&s->acceptors[i].event,
                      NULL); /* fails only without memory; the resuming timer tries again */
        else
            event_del(&s->acceptors[i].event);
    }
}

static void complain(struct dd_http_server *s, const char *error)
{
    struct dd_mono now = dd_loop_now(s->loop);
    dd_count(s->m.accept_errors, 1);
    if (s->last_complaint.ns && dd_mono_ms_between(s->last_complaint, now) < 1000) return;
    s->last_complaint = now;
    dd_warn("http.accept", "listener=%s error=\"%s\" pause_ms=%d", s->options.name, error, PAUSE_MS);
}

static void take_a_rest(struct dd_http_acceptor *a, int error)
{
    struct dd_http_server *s = a->server;
    complain(s, strerror(error));
    if (s->spare_fd >= 0) {
        close(s->spare_fd);
        int fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) close(fd);
        s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    listen_events(s, false);
    dd_timer_start(&s->pause, PAUSE_MS);
}

static void on_rested(void *arg)
{
    struct dd_http_server *s = arg;
    if (s->spare_fd < 0) s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (s->accepting) listen_events(s, true);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct dd_http_acceptor *a = arg;
    unsigned batch = a->batch;
    a->batch = batch * 2 < BATCH_MAX ? batch * 2 : BATCH_MAX;
    for (unsigned i = 0; i < batch; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t size = sizeof peer;
        int client = accept4(fd, (struct sockaddr *)&peer, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            welcome(a->server, client, &peer);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            take_a_rest(a, errno);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) {
            a->batch = BATCH_MIN;
            return; /* EAGAIN: another loop took it, or that was all */
        }
    }
}

void dd_http_accept_start(struct dd_http_server *s)
{
    dd_timer_init(&s->pause, s->loop, on_rested, s);
    s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (unsigned i = 0; i < s->listeners->count; i++) {
        struct dd_http_acceptor *a = &s->acceptors[i];
        a->server = s;
        a->batch = BATCH_MIN;
        a->fd = s->listeners->items[i].fd;
        event_assign(&a->event, dd_loop_base(s->loop), a->fd, EV_READ | EV_PERSIST, on_acceptable, a);
    }
    s->accepting = true;
    listen_events(s, true);
}

void dd_http_accept_stop(struct dd_http_server *s)
{
    if (!s->accepting) return;
    s->accepting = false;
    dd_timer_stop(&s->pause);
    listen_events(s, false);
    if (s->spare_fd >= 0) close(s->spare_fd);
    s->spare_fd = -1;
}
