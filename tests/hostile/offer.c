/* A client that offers a load, whatever becomes of it: first as many requests at once as keep the server
 * busy, which measures its capacity, then a multiple of that rate, each request at its time on a free
 * connection. One that is not answered within a second is given up and its connection closed, as clients do.
 *
 *   offer PORT PID FILE CONNECTIONS SECONDS FACTOR SECONDS
 *
 * FILE holds the bytes of one request, PID is the server. It runs for the given seconds and no longer, and
 * prints one line of name=value. Requests a second: capacity, offered, good (200 in time), refused (another
 * status), lost (given up or closed), unsent (no connection was free). For a second of the server's CPU time,
 * whatever else the machine did: capacity_cpu, good_cpu. Of the good: p50_ms, p99_ms. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENT_NS 1000000000LL
#define SETTLE_NS  1000000000LL /* of the overload, before counting begins */
#define AT_ONCE    16
#define BURST      64
#define LATENCIES  1000000
#define ANSWER_MAX 4096

struct conn {
    int fd; /* -1: not open */
    int64_t since;
    size_t sent, got;
    struct conn *prev, *next; /* in waiting, in the order of since; next also in the list of the free */
    char answer[ANSWER_MAX];
};

struct counts {
    long good, refused, lost, unsent;
};

static struct {
    struct sockaddr_in to;
    char *request;
    size_t request_bytes;
    int epoll;
    clockid_t server_cpu;
    struct conn *conns, *free, *first, *last; /* first..last: waiting for an answer */
    size_t waiting;
    struct counts n;
    uint32_t *latencies; /* us */
    size_t latency_count;
} o;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double server_cpu_s(void)
{
    struct timespec t = {0};
    clock_gettime(o.server_cpu, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void give_free(struct conn *c)
{
    c->next = o.free;
    o.free = c;
}

static void unlink_waiting(struct conn *c)
{
    *(c->prev ? &c->prev->next : &o.first) = c->next;
    *(c->next ? &c->next->prev : &o.last) = c->prev;
    o.waiting--;
}

static void link_waiting(struct conn *c)
{
    c->prev = o.last;
    c->next = NULL;
    *(o.last ? &o.last->next : &o.first) = c;
    o.last = c;
    o.waiting++;
}

static void want(struct conn *c, int op, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = c};
    if (epoll_ctl(o.epoll, op, c->fd, &e) != 0) exit(1);
}

static int open_conn(struct conn *c)
{
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) return 0;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(c->fd, (struct sockaddr *)&o.to, sizeof o.to) != 0 && errno != EINPROGRESS) {
        close(c->fd);
        c->fd = -1;
        return 0;
    }
    want(c, EPOLL_CTL_ADD, EPOLLIN);
    return 1;
}

/* Closes with a reset, which leaves no port waiting. */
static void lose(struct conn *c)
{
    struct linger at_once = {1, 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(c->fd);
    c->fd = -1;
    unlink_waiting(c);
    o.n.lost++;
    give_free(c);
}

static void on_writable(struct conn *c)
{
    ssize_t n = send(c->fd, o.request + c->sent, o.request_bytes - c->sent, MSG_NOSIGNAL);
    if (n > 0) c->sent += (size_t)n;
    if (n < 0 && errno != EAGAIN) {
        lose(c);
        return;
    }
    want(c, EPOLL_CTL_MOD, c->sent < o.request_bytes ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void begin(int64_t due)
{
    struct conn *c = o.free;
    if (!c) {
        o.n.unsent++;
        return;
    }
    o.free = c->next;
    if (c->fd < 0 && !open_conn(c)) {
        give_free(c);
        o.n.unsent++;
        return;
    }
    c->since = due;
    c->sent = c->got = 0;
    link_waiting(c);
    on_writable(c);
}

static void count_answer(const struct conn *c)
{
    if (strncmp(c->answer, "HTTP/1.1 200 ", 13) != 0) {
        o.n.refused++;
        return;
    }
    o.n.good++;
    if (o.latency_count < LATENCIES)
        o.latencies[o.latency_count++] = (uint32_t)((now_ns() - c->since) / 1000);
}

/* Whether what was received is a whole answer. */
static int whole(const struct conn *c)
{
    const char *end = memmem(c->answer, c->got, "\r\n\r\n", 4);
    const char *length = end ? memmem(c->answer, c->got, "Content-Length: ", 16) : NULL;
    return length && c->got >= (size_t)(end + 4 - c->answer) + strtoul(length + 16, NULL, 10);
}

static void on_readable(struct conn *c)
{
    ssize_t n = recv(c->fd, c->answer + c->got, ANSWER_MAX - 1 - c->got, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        if (c->since) {
            lose(c);
        } else { /* idle: the next request opens it again */
            close(c->fd);
            c->fd = -1;
        }
        return;
    }
    c->got += (size_t)n;
    c->answer[c->got] = 0;
    if (!c->since || !whole(c)) return;
    count_answer(c);
    unlink_waiting(c);
    c->since = 0;
    give_free(c);
}

static void turn(int wait_ms)
{
    struct epoll_event events[256];
    int n = epoll_wait(o.epoll, events, 256, wait_ms);
    for (int i = 0; i < n; i++) {
        struct conn *c = events[i].data.ptr;
        if (c->fd >= 0 && c->since && c->sent < o.request_bytes && events[i].events & EPOLLOUT)
            on_writable(c);
        if (c->fd >= 0 && events[i].events & ~(uint32_t)EPOLLOUT) on_readable(c);
    }
    int64_t oldest = now_ns() - PATIENT_NS;
    while (o.first && o.first->since < oldest)
        lose(o.first);
}

struct rate {
    double wall, cpu; /* good answers a second of either */
};

static struct rate measure_capacity(double seconds)
{
    double cpu = server_cpu_s();
    int64_t began = now_ns(), end = began + (int64_t)(seconds * 1e9), now = began;
    for (; now < end; now = now_ns()) {
        while (o.waiting < AT_ONCE && o.free)
            begin(now);
        turn(50);
    }
    return (struct rate){(double)o.n.good / ((double)(now - began) / 1e9),
                         (double)o.n.good / (server_cpu_s() - cpu + 1e-9)};
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double quantile_ms(double q)
{
    if (o.latency_count == 0) return 0;
    return o.latencies[(size_t)((double)(o.latency_count - 1) * q)] / 1000.0;
}

static void offer(struct rate capacity, double factor, double seconds)
{
    double cpu = 0;
    int64_t began = now_ns(), end = began + (int64_t)(seconds * 1e9), now = began, counted_from = 0;
    long sent = 0, sent_before = 0;
    for (; now < end; now = now_ns()) {
        if (!counted_from && now - began > SETTLE_NS) {
            o.n = (struct counts){0};
            o.latency_count = 0;
            counted_from = now;
            sent_before = sent;
            cpu = server_cpu_s();
        }
        long due = (long)((double)(now - began) / 1e9 * capacity.wall * factor);
        for (int i = 0; i < BURST && sent < due; i++, sent++)
            begin(now);
        turn(sent < due ? 0 : 1);
    }
    double counted = (double)(now - counted_from) / 1e9;
    qsort(o.latencies, o.latency_count, sizeof *o.latencies, by_value);
    printf("capacity=%.0f offered=%.0f good=%.0f refused=%.0f lost=%.0f unsent=%.0f ", capacity.wall,
           (double)(sent - sent_before) / counted, (double)o.n.good / counted, (double)o.n.refused / counted,
           (double)o.n.lost / counted, (double)o.n.unsent / counted);
    printf("capacity_cpu=%.0f good_cpu=%.0f p50_ms=%.1f p99_ms=%.1f\n", capacity.cpu,
           (double)o.n.good / (server_cpu_s() - cpu + 1e-9), quantile_ms(.5), quantile_ms(.99));
}

static int load_request(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    o.request = malloc(1 << 20);
    o.request_bytes = o.request ? fread(o.request, 1, 1 << 20, f) : 0;
    fclose(f);
    return o.request_bytes > 0;
}

static int prepare(const char *port, const char *pid, const char *file, size_t connections)
{
    if (clock_getcpuclockid((pid_t)atoi(pid), &o.server_cpu) != 0) return 0;
    o.to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    o.to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    o.epoll = epoll_create1(EPOLL_CLOEXEC);
    o.conns = calloc(connections, sizeof *o.conns);
    o.latencies = malloc(LATENCIES * sizeof *o.latencies);
    if (o.epoll < 0 || !o.conns || !o.latencies || !load_request(file)) return 0;
    for (size_t i = connections; i-- > 0;) {
        o.conns[i].fd = -1;
        give_free(&o.conns[i]);
    }
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 8 || !prepare(argv[1], argv[2], argv[3], strtoul(argv[4], NULL, 10))) {
        fprintf(stderr, "offer PORT PID FILE CONNECTIONS SECONDS FACTOR SECONDS\n");
        return 2;
    }
    struct rate capacity = measure_capacity(atof(argv[5]));
    if (capacity.wall <= 0) {
        fprintf(stderr, "offer: nothing was served\n");
        return 1;
    }
    offer(capacity, atof(argv[6]), atof(argv[7]));
    return 0;
}
