/* Load for the benchmark: requests made from a seed, sent to one server, answers counted, latencies kept.
 *
 *   load ADDRESS SHAPE [--users N] [--n N] [--order zipf|each] [--first N] [--base N] [--catalogue N]
 * [--claim]
 *        [--conns N] [--seconds S | --requests N] [--rate R] [--seed N]
 *
 * ADDRESS is host:port or unix:/path. SHAPE is get, filter, exposed (HTTP), rget, zmscore, smismember
 * (Redis). Without --rate each connection sends its next request when the last is answered (capacity). With
 * it requests come at random moments (exponential gaps), whether answers came or not, and a latency counts
 * from the moment the request should have been sent: a server that stalls cannot hide it. wrk, hey and h2load
 * were not enough: the first has no open loop, and the others repeat one body, which is one user.
 *
 * Users: zipf picks rank r with a share of 1/r; each takes every one in turn, in an order
 * without neighbours, from the --first on. The number of
 * the
 * --base is added to either.
 * Prints one line of JSON. Exit status 1 when it could not connect. */
#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define IN_BYTES  (512 << 10)
#define CONNS_MAX 4096

enum shape { GET, FILTER, EXPOSED, RGET, ZMSCORE, SMISMEMBER };
static const char *const shapes[] = {"get", "filter", "exposed", "rget", "zmscore", "smismember"};

struct options {
    const char *address;
    enum shape shape;
    uint64_t users, n, first, base, catalogue, conns, requests, seed;
    double seconds, rate;
    bool each, claim;
};

struct conn {
    int fd;
    char *out, *in;
    size_t out_n, out_at, in_n;
    uint64_t due; /* when the request should have been sent */
    bool busy;
};

struct load {
    struct options o;
    int epoll;
    struct conn *conn;
    uint32_t *idle;
    size_t idle_n;
    uint64_t random, user_at, begun, end;
    uint64_t sent, answered, wrong, partial, broken;
    uint64_t *due; /* ring of arrivals that found no connection free */
    size_t due_head, due_tail, due_cap;
    uint64_t next; /* the next arrival */
    uint32_t *latency;
    size_t latency_cap;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t rnd(struct load *l)
{
    uint64_t x = l->random += 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

static double unit(struct load *l)
{
    return (double)(rnd(l) >> 11) / 9007199254740992.0;
}

/* ---- requests ---- */

static uint64_t pick_user(struct load *l)
{
    uint64_t n = l->o.users;
    if (l->o.each) return l->o.base + (l->o.first + l->user_at++) * 2654435761u % n;
    uint64_t rank = (uint64_t)exp(unit(l) * log((double)n + 1)) - 1;
    return l->o.base + (rank < n ? rank : n - 1) * 2654435761u % n; /* a prime: every user has one rank */
}

static char *put_number(char *at, uint64_t v, int digits)
{
    for (int i = digits - 1; i >= 0; i--, v /= 10)
        at[i] = (char)('0' + v % 10);
    return at + digits;
}

static char *put(char *at, const char *text)
{
    size_t n = strlen(text);
    memcpy(at, text, n);
    return at + n;
}

static char *put_item(struct load *l, char *at)
{
    at = put(at, "item-");
    return put_number(at, rnd(l) % l->o.catalogue, 19);
}

static char *put_items(struct load *l, char *at)
{
    for (uint64_t i = 0; i < l->o.n; i++) {
        *at++ = '"';
        at = put_item(l, at);
        *at++ = '"';
        *at++ = ',';
    }
    return at - 1;
}

static size_t make_http(struct load *l, char *out)
{
    const char *path = l->o.shape == FILTER ? "/filter" : "/exposed";
    const char *list = l->o.shape == FILTER ? "\",\"candidates\":[" : "\",\"items\":[";
    const char *end = l->o.claim ? "],\"claim\":true,\"limit\":10}" : "]}";
    size_t body = strlen("{\"user\":\"user-") + 8 + strlen(list) + l->o.n * 27 - 1 + strlen(end);
    char *at = out + sprintf(out,
                             "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
                             "Content-Length: %zu\r\n\r\n{\"user\":\"user-",
                             path, body);
    at = put_number(at, pick_user(l), 8);
    at = put_items(l, put(at, list));
    return (size_t)(put(at, end) - out);
}

static size_t make_redis(struct load *l, char *out)
{
    char *at = out;
    if (l->o.shape == RGET) {
        at = put(at, "*2\r\n$3\r\nGET\r\n$11\r\ns:");
        at = put_number(at, pick_user(l), 9);
        return (size_t)(put(at, "\r\n") - out);
    }
    const char *name = l->o.shape == ZMSCORE ? "ZMSCORE" : "SMISMEMBER";
    at += sprintf(at, "*%llu\r\n$%zu\r\n%s\r\n$11\r\n%s", (unsigned long long)l->o.n + 2, strlen(name), name,
                  l->o.shape == ZMSCORE ? "z:" : "m:");
    at = put_number(at, pick_user(l), 9);
    for (uint64_t i = 0; i < l->o.n; i++)
        at = put_item(l, put(at, "\r\n$24\r\n"));
    return (size_t)(put(at, "\r\n") - out);
}

static size_t make(struct load *l, char *out)
{
    if (l->o.shape == GET) return (size_t)(put(out, "GET /static HTTP/1.1\r\nHost: bench\r\n\r\n") - out);
    return l->o.shape <= EXPOSED ? make_http(l, out) : make_redis(l, out);
}

/* ---- answers ---- */

/* Whether the answer is whole. */
static bool whole_http(struct load *l, struct conn *c)
{
    c->in[c->in_n] = 0;
    char *body = strstr(c->in, "\r\n\r\n");
    if (!body) return false;
    char *length = strcasestr(c->in, "\ncontent-length:");
    size_t n = length && length < body ? strtoul(length + 16, NULL, 10) : 0;
    body += 4;
    if ((size_t)(c->in + c->in_n - body) < n) return false;
    if (strncmp(c->in, "HTTP/1.1 2", 10)) l->wrong++;
    if (n > 24 && memmem(body + n - 24, 24, "\"partial\"", 9)) l->partial++;
    return true;
}

/* Bytes of one reply at `at`, 0: not all there. Arrays of plain replies. */
static size_t reply_bytes(const char *at, const char *end)
{
    const char *eol = memchr(at, '\n', (size_t)(end - at));
    if (!eol) return 0;
    size_t head = (size_t)(eol + 1 - at);
    long n = strtol(at + 1, NULL, 10);
    if (*at == '$')
        return n < 0 ? head : (size_t)(end - at) >= head + (size_t)n + 2 ? head + (size_t)n + 2 : 0;
    for (long i = 0; *at == '*' && i < n; i++) {
        size_t one = reply_bytes(at + head, end);
        if (!one) return 0;
        head += one;
    }
    return head;
}

static bool whole(struct load *l, struct conn *c)
{
    if (l->o.shape <= EXPOSED) return whole_http(l, c);
    c->in[c->in_n] = 0;
    if (*c->in == '-') l->wrong++;
    return reply_bytes(c->in, c->in + c->in_n) > 0;
}

static void keep_latency(struct load *l, uint64_t ns)
{
    if (l->answered >= l->latency_cap) {
        l->latency_cap = l->latency_cap ? 2 * l->latency_cap : 1 << 16;
        l->latency = realloc(l->latency, l->latency_cap * sizeof *l->latency);
        if (!l->latency) exit(1);
    }
    l->latency[l->answered++] = ns / 10 < UINT32_MAX ? (uint32_t)(ns / 10) : UINT32_MAX;
}

/* ---- connections ---- */

static int dial(const char *address)
{
    if (strncmp(address, "unix:", 5) == 0) {
        struct sockaddr_un u = {.sun_family = AF_UNIX};
        strncpy(u.sun_path, address + 5, sizeof u.sun_path - 1);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        return connect(fd, (struct sockaddr *)&u, sizeof u) == 0 ? fd : -1;
    }
    char host[256];
    const char *colon = strrchr(address, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (!colon) return -1;
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    if (getaddrinfo(host, colon + 1, &hints, &found)) return -1;
    int fd = socket(found->ai_family, SOCK_STREAM, 0), one = 1;
    int failed = connect(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (!failed) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return failed ? -1 : fd;
}

static bool open_conns(struct load *l)
{
    size_t out = 512 + (l->o.n + 4) * 40;
    for (uint32_t i = 0; i < l->o.conns; i++) {
        struct conn *c = &l->conn[i];
        *c = (struct conn){.fd = dial(l->o.address), .out = malloc(out), .in = malloc(IN_BYTES + 1)};
        if (c->fd < 0 || !c->out || !c->in) return false;
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &e);
        l->idle[l->idle_n++] = (uint32_t)l->o.conns - 1 - i;
    }
    return true;
}

/* The rest of the request; a socket buffer that is full is waited for. */
static void write_out(struct load *l, struct conn *c)
{
    while (c->out_at < c->out_n) {
        ssize_t n = send(c->fd, c->out + c->out_at, c->out_n - c->out_at, MSG_NOSIGNAL);
        if (n < 0) {
            l->broken++;
            return;
        }
        c->out_at += (size_t)n;
    }
}

static void send_one(struct load *l, uint64_t due)
{
    struct conn *c = &l->conn[l->idle[--l->idle_n]];
    c->out_n = make(l, c->out);
    c->out_at = c->in_n = 0;
    c->busy = true;
    c->due = due ? due : now_ns();
    l->sent++;
    write_out(l, c);
}

static void receive(struct load *l, uint32_t index)
{
    struct conn *c = &l->conn[index];
    ssize_t n = recv(c->fd, c->in + c->in_n, IN_BYTES - c->in_n, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0 || !c->busy) { /* closed under us */
        l->broken++;
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, c->fd, NULL);
        return;
    }
    c->in_n += (size_t)n;
    if (!whole(l, c)) return;
    c->busy = false;
    keep_latency(l, now_ns() - c->due);
    l->idle[l->idle_n++] = index;
}

/* ---- the two kinds of load ---- */

static bool may_send(const struct load *l, uint64_t now)
{
    return (!l->o.requests || l->sent < l->o.requests) && now < l->end;
}

static void send_closed(struct load *l)
{
    while (l->idle_n && may_send(l, now_ns()))
        send_one(l, 0);
}

static void send_open(struct load *l)
{
    for (uint64_t now = now_ns(); l->next <= now && l->next < l->end;) {
        l->due[l->due_tail++ % l->due_cap] = l->next;
        l->next += (uint64_t)(-log(1 - unit(l)) / l->o.rate * 1e9);
    }
    while (l->idle_n && l->due_head < l->due_tail && (!l->o.requests || l->sent < l->o.requests))
        send_one(l, l->due[l->due_head++ % l->due_cap]);
}

static bool finished(const struct load *l, uint64_t now)
{
    bool all_sent = l->o.requests && l->sent >= l->o.requests;
    bool waiting = l->o.rate > 0 && !all_sent && l->due_head < l->due_tail;
    if (now > l->end + 10000000000ull) return true; /* answers that do not come are counted as missing */
    return (all_sent || now >= l->end) && !waiting && l->answered + l->broken >= l->sent;
}

static void wait_some(struct load *l)
{
    struct epoll_event e[64];
    uint64_t now = now_ns(), until = now + 100000000;
    if (l->o.rate > 0 && l->next < until) until = l->next > now ? l->next : now;
    struct timespec t = {.tv_nsec = (long)(until - now)};
    int n = epoll_pwait2(l->epoll, e, 64, &t, NULL);
    for (int i = 0; i < n; i++)
        receive(l, e[i].data.u32);
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double percentile(const struct load *l, double p)
{
    if (!l->answered) return 0;
    size_t at = (size_t)ceil(p / 100 * (double)l->answered);
    return l->latency[at ? at - 1 : 0] / 100.0;
}

static void report(struct load *l, double seconds)
{
    qsort(l->latency, l->answered, sizeof *l->latency, ascending);
    printf(
        "{\"requests\":%llu,\"seconds\":%.3f,\"per_s\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
        "\"max_us\":%.1f,\"wrong\":%llu,\"partial\":%llu,\"broken\":%llu,\"missing\":%llu}\n",
        (unsigned long long)l->answered, seconds, (double)l->answered / seconds, percentile(l, 50),
        percentile(l, 99), percentile(l, 99.9), percentile(l, 100), (unsigned long long)l->wrong,
        (unsigned long long)l->partial, (unsigned long long)l->broken,
        (unsigned long long)(l->sent - l->answered));
}

static int run(struct load *l)
{
    l->epoll = epoll_create1(0);
    l->conn = calloc(l->o.conns, sizeof *l->conn);
    l->idle = calloc(l->o.conns, sizeof *l->idle);
    l->due_cap = (size_t)(l->o.rate * (l->o.seconds + 1)) + 1024; /* every arrival has room */
    l->due = calloc(l->due_cap, sizeof *l->due);
    if (!l->conn || !l->idle || !l->due || !open_conns(l)) {
        fprintf(stderr, "load: no connection to %s\n", l->o.address);
        return 1;
    }
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    l->random = l->o.seed * 0x2545f4914f6cdd1dULL;
    l->begun = l->next = now_ns();
    l->end = l->begun + (uint64_t)(l->o.seconds * 1e9);
    while (!finished(l, now_ns())) {
        if (l->o.rate > 0)
            send_open(l);
        else
            send_closed(l);
        wait_some(l);
    }
    report(l, (double)(now_ns() - l->begun) / 1e9);
    return 0;
}

/* ---- arguments ---- */

static bool take(struct options *o, int argc, char **argv, int *i)
{
    static const char *const names[] = {"--users",     "--n",     "--first",    "--base",
                                        "--catalogue", "--conns", "--requests", "--seed"};
    uint64_t *const numbers[] = {&o->users,     &o->n,     &o->first,    &o->base,
                                 &o->catalogue, &o->conns, &o->requests, &o->seed};
    if (strcmp(argv[*i], "--claim") == 0) return o->claim = true;
    if (*i + 1 >= argc) return false;
    const char *name = argv[*i], *value = argv[++*i];
    if (strcmp(name, "--order") == 0)
        return (o->each = strcmp(value, "each") == 0) || strcmp(value, "zipf") == 0;
    if (strcmp(name, "--seconds") == 0) return (o->seconds = atof(value)) > 0;
    if (strcmp(name, "--rate") == 0) return (o->rate = atof(value)) > 0;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (strcmp(name, names[n]) == 0) {
            *numbers[n] = strtoull(value, NULL, 10);
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    struct load l = {
        .o = {.users = 100000, .n = 100, .catalogue = 100000, .conns = 32, .seed = 1, .seconds = 60}};
    bool good = argc > 2;
    size_t shape = 0, count = sizeof shapes / sizeof *shapes;
    while (good && shape < count && strcmp(argv[2], shapes[shape]))
        shape++;
    good = good && shape < count;
    for (int i = 3; good && i < argc; i++)
        good = take(&l.o, argc, argv, &i);
    if (!good || !l.o.n || !l.o.users || !l.o.catalogue || !l.o.conns || l.o.conns > CONNS_MAX) {
        fprintf(stderr, "usage: see the head of tests/bench/load.c\n");
        return 2;
    }
    l.o.address = argv[1];
    l.o.shape = (enum shape)shape;
    return run(&l);
}
