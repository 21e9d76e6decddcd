/* Limits: connections, requests in flight, buffered bytes, head and body sizes, descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "fixture.h"

static void setup(void)
{
    fixture_init();
}

static void teardown(void)
{
    fixture_stop();
}

#define GET_SHOW "GET /show HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_PARK "GET /park HTTP/1.1\r\nHost: a\r\n\r\n"

START_TEST(over_max_connections)
{
    fx.options.max_connections = 3;
    fixture_start(NULL);
    struct client in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = client_open();
        client_send(&in[i], GET_SHOW);
        client_expect(&in[i], 200, NULL);
    }
    for (int i = 0; i < 20; i++) {
        struct client out = client_open();
        client_send(&out, GET_SHOW);
        struct response r = client_read(&out, false);
        ck_assert_uint_eq(r.status, 503);
        ck_assert_str_eq(response_header(&r, "retry-after"), "1");
        ck_assert_str_eq(
            r.body, "{\"error\":{\"code\":\"overloaded\",\"message\":\"too many connections; try again\"}}");
        response_free(&r);
        client_expect_end(&out);
        client_close(&out);
    }
    ck_assert_uint_eq(fixture_counter("connections_rejected"), 20);
    client_send(&in[0], GET_SHOW); /* those inside are served */
    client_expect(&in[0], 200, NULL);
    client_close(&in[0]);
    fixture_wait_connections(2);
    in[0] = client_open(); /* and there is room again */
    client_send(&in[0], GET_SHOW);
    client_expect(&in[0], 200, NULL);
    for (int i = 0; i < 3; i++)
        client_close(&in[i]);
}
END_TEST

START_TEST(over_max_inflight)
{
    fx.options.max_inflight = 2;
    fixture_start(NULL);
    struct client a = client_open(), b = client_open(), c = client_open();
    client_send(&a, GET_PARK);
    client_send(&b, GET_PARK);
    fixture_wait_parked(2);
    ck_assert_uint_eq(dd_http_listeners_inflight(fx.listeners), 2);
    for (int i = 0; i < 3; i++) { /* the connection is kept */
        client_send(&c, GET_SHOW);
        struct response r = client_read(&c, false);
        ck_assert_uint_eq(r.status, 503);
        ck_assert_str_eq(response_header(&r, "retry-after"), "1");
        ck_assert_str_eq(response_header(&r, "connection"), "");
        ck_assert_ptr_nonnull(strstr(r.body, "overloaded"));
        response_free(&r);
    }
    fixture_unpark();
    client_expect(&a, 200, "late");
    client_expect(&b, 200, "late");
    client_send(&c, GET_SHOW);
    client_expect(&c, 200, NULL);
    client_close(&a);
    client_close(&b);
    client_close(&c);
}
END_TEST

#define GET_BLOCK "GET /block?120 HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_LIVE  "GET /live HTTP/1.1\r\nHost: a\r\n\r\n"

/* Pipelined requests are served in one turn of the loop: those behind a long one have waited for it. */
START_TEST(after_a_long_wait_requests_are_turned_away)
{
    fx.options.max_wait_ms = 50;
    fx.options.always_path = "/live";
    fixture_start(NULL);
    struct client c = client_open();
    client_send(&c, GET_BLOCK GET_SHOW GET_LIVE GET_SHOW);
    client_expect(&c, 200, "done");
    struct response r = client_read(&c, false);
    ck_assert_uint_eq(r.status, 503);
    ck_assert_str_eq(response_header(&r, "retry-after"), "1");
    ck_assert_str_eq(response_header(&r, "connection"), ""); /* kept */
    ck_assert_ptr_nonnull(strstr(r.body, "\"code\":\"overloaded\""));
    response_free(&r);
    client_expect(&c, 200, "live");
    client_expect(&c, 503, "overloaded");
    ck_assert_uint_eq(fixture_counter("overloaded"), 2);
    ck_assert_uint_eq(fixture_handled(), 2);
    client_send(&c, GET_SHOW); /* the next turn is young */
    client_expect(&c, 200, NULL);
    client_close(&c);
}
END_TEST

START_TEST(without_a_limit_of_waiting_they_are_served)
{
    fixture_start(NULL);
    struct client c = client_open();
    client_send(&c, GET_BLOCK GET_SHOW);
    client_expect(&c, 200, "done");
    client_expect(&c, 200, "GET /show");
    client_close(&c);
}
END_TEST

START_TEST(probes_pass_over_max_inflight)
{
    fx.options.max_inflight = 1;
    fx.options.always_path = "/live";
    fixture_start(NULL);
    struct client a = client_open(), b = client_open();
    client_send(&a, GET_PARK);
    fixture_wait_parked(1);
    client_send(&b, GET_LIVE GET_SHOW GET_LIVE);
    client_expect(&b, 200, "live");
    client_expect(&b, 503, "overloaded");
    client_expect(&b, 200, "live");
    ck_assert_uint_eq(dd_http_listeners_inflight(fx.listeners), 1);
    fixture_unpark();
    client_expect(&a, 200, "late");
    client_close(&a);
    client_close(&b);
}
END_TEST

/* Sends without waiting until the kernel takes no more for 200 ms; returns the bytes it took. */
static size_t push_until_full(struct client *c, size_t most)
{
    static char junk[65536];
    size_t total = 0;
    memset(junk, 'A', sizeof junk);
    while (total < most) {
        struct pollfd p = {c->fd, POLLOUT, 0};
        if (poll(&p, 1, 200) == 0) break;
        ssize_t n = send(c->fd, junk, sizeof junk, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) break;
        if (n > 0) total += (size_t)n;
    }
    return total;
}

static int64_t cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A request whose reply is outstanding, or not taken by the client, stops the reading: what the client sends
 * stays in the kernel's buffers, which are bounded. */
START_TEST(input_behind_an_outstanding_reply_is_not_read)
{
    fixture_start(NULL);
    struct client c = client_open();
    client_send(&c, GET_PARK);
    fixture_wait_parked(1);
    uint64_t before = fixture_counter("received_bytes");
    size_t pushed = push_until_full(&c, 200 << 20);
    ck_assert_uint_lt(pushed, 100 << 20); /* it blocked */
    ck_assert_uint_eq(fixture_counter("received_bytes"), before);
    int64_t cpu = cpu_ms(); /* nor is the loop woken for it again and again */
    struct pollfd p = {c.fd, POLLIN, 0};
    ck_assert_int_eq(poll(&p, 1, 400), 0);
    ck_assert_int_lt(cpu_ms() - cpu, 200); /* spinning takes all 400 */
    client_close(&c);
}
END_TEST

START_TEST(input_behind_an_unread_reply_is_not_read)
{
    fixture_start(NULL);
    struct client c = client_open();
    int small = 4096;
    setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client_send(&c, "GET /big?20000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    size_t pushed = push_until_full(&c, 200 << 20);
    ck_assert_uint_lt(pushed, 100 << 20);
    ck_assert_uint_le(fixture_counter("received_bytes"), 16384 + 64);
    client_close(&c);
    fixture_wait_connections(0);
}
END_TEST

/* The test above by hand of a reader: all of a reply that did not fit at once arrives, and the next request
 * is served. */
START_TEST(a_large_reply_arrives_whole_at_a_slow_reader)
{
    fixture_start(NULL);
    struct client c = client_open();
    client_send(&c, "GET /big?20000000 HTTP/1.1\r\nHost: a\r\n\r\n" GET_SHOW);
    struct response r = client_read(&c, false);
    ck_assert_uint_eq(r.len, 20000000);
    for (size_t i = 0; i < r.len; i++)
        if (r.body[i] != 'x') ck_abort_msg("byte %zu differs", i);
    response_free(&r);
    client_expect(&c, 200, "GET /show");
    client_close(&c);
}
END_TEST

START_TEST(endless_heads_end_at_the_limit)
{
    static const char *const starts[] = {"GET /",
                                         "GET / HTTP/1.1\r\nHost: a\r\nX: ", "GET / HTTP/1.1\r\nHost: a\r\n"};
    fixture_start(NULL);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        struct client c = client_open();
        client_send(&c, starts[i]);
        for (int n = 0; n < 9000; n += 10)
            client_send(&c, i == 2 ? "ABCDEF:7\r\n" : "ABCDEFGHIJ");
        client_expect(&c, 431, "head_too_large");
        client_expect_end(&c);
        client_close(&c);
    }
}
END_TEST

START_TEST(buffered_bytes_are_bounded_over_all_connections)
{
    enum { N = 8 };
    fx.options.max_buffered_bytes = 2 << 20;
    fixture_start(NULL);
    static char body[1 << 20];
    struct client c[N];
    unsigned refused = 0;
    /* Each announces 1 MiB and sends all but one byte: at most two of the eight can be held. */
    for (int i = 0; i < N; i++) {
        c[i] = client_open();
        client_send(&c[i], "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n");
        client_send_bytes(&c[i], body, sizeof body - 1);
    }
    while (fixture_counter("requests_refused") < N - 2)
        fixture_settle();
    for (int i = 0; i < N; i++) {
        struct pollfd p = {c[i].fd, POLLIN, 0};
        if (poll(&p, 1, 0) != 1) continue;
        refused++;
        client_expect(&c[i], 503, "overloaded");
        client_close(&c[i]);
    }
    ck_assert_uint_ge(refused, N - 2);
    for (int i = 0; i < N; i++)
        if (c[i].fd >= 0) client_close(&c[i]);
    fixture_wait_connections(0);
    struct client last = client_open(); /* what was charged was given back */
    client_send(&last, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n");
    client_send_bytes(&last, body, sizeof body);
    client_expect(&last, 200, NULL);
    client_close(&last);
}
END_TEST

/* Out of descriptors: the server neither spins nor stays deaf. */
START_TEST(out_of_descriptors)
{
    enum { CLIENTS = 5 };
    struct rlimit limit, before;
    dd_log_set_level(DD_LOG_ERROR);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = 128;
    setrlimit(RLIMIT_NOFILE, &limit);
    fixture_start(NULL);
    struct client c[CLIENTS];
    int fill[128], filled = 0;
    c[0] = client_open();
    client_send(&c[0], GET_SHOW);
    client_expect(&c[0], 200, NULL);
    /* A client in this process takes a descriptor as well: keep as many as the other clients need. */
    int reserve[CLIENTS - 1];
    for (int i = 0; i < CLIENTS - 1; i++)
        reserve[i] = open("/dev/null", O_RDONLY);
    while ((fill[filled] = open("/dev/null", O_RDONLY)) >= 0)
        filled++;
    ck_assert_int_eq(errno, EMFILE);
    for (int i = 1; i < CLIENTS; i++) {
        close(reserve[i - 1]);
        c[i] = client_open(); /* the kernel completes the handshake */
    }
    struct rusage u0, u1;
    getrusage(RUSAGE_SELF, &u0);
    /* The reserve serves to take one connection each 100 ms off the queue and close it. */
    client_expect_end(&c[1]);
    client_expect_end(&c[2]);
    getrusage(RUSAGE_SELF, &u1);
    ck_assert_uint_lt(fixture_counter("accept_errors"), 40);
    ck_assert_int_lt(u1.ru_stime.tv_sec - u0.ru_stime.tv_sec, 2);
    client_send(&c[0], GET_SHOW); /* who is inside is served meanwhile */
    client_expect(&c[0], 200, NULL);
    while (filled)
        close(fill[--filled]);
    struct client late = client_open();
    client_send(&late, GET_SHOW);
    client_expect(&late, 200, NULL);
    client_close(&late);
    for (int i = 0; i < CLIENTS; i++)
        client_close(&c[i]);
    fixture_wait_connections(0);
    setrlimit(RLIMIT_NOFILE, &before);
}
END_TEST

static long resident_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Idle connections hold no buffers, also after a request, whether it was answered at once or late. */
START_TEST(idle_connections_are_small)
{
    enum { N = 2000 };
    bool late = _i;
    struct rlimit limit, before;
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = before.rlim_max < 2 * N + 100 ? before.rlim_max : 2 * N + 100;
    setrlimit(RLIMIT_NOFILE, &limit);
    int n = limit.rlim_cur < 2 * N + 100 ? (int)limit.rlim_cur / 2 - 50 : N;
    fixture_start(NULL);
    struct client *c = calloc((size_t)n, sizeof *c);
    struct client first = client_open(), buffer = {0};
    client_send(&first, GET_SHOW);
    client_expect(&first, 200, NULL);
    client_close(&first);
    long start = resident_kib();
    for (int i = 0; i < n; i++) {
        c[i] = client_open();
        c[i].data = buffer.data; /* one receive buffer for all: it is the server that is measured */
        c[i].cap = buffer.cap;
        client_send(&c[i], late ? GET_PARK : GET_SHOW);
        if (late) fixture_wait_parked(1);
        if (late) fixture_unpark();
        client_expect(&c[i], 200, NULL);
        buffer = c[i];
        c[i].data = NULL;
        c[i].cap = 0;
    }
    free(buffer.data);
    ck_assert_uint_eq(dd_http_listeners_connections(fx.listeners), n);
    ck_assert_int_lt(resident_kib() - start, n * 6); /* a struct of under 1 KiB; sanitizers add theirs */
    for (int i = 0; i < n; i++)
        client_close(&c[i]);
    free(c);
    fixture_wait_connections(0);
    setrlimit(RLIMIT_NOFILE, &before);
}
END_TEST

/* Many threads of clients, several connections each, bodies of all sizes: every answer is the right one. */
static void *mixed_load(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    static char zeros[100001];
    for (int i = 0; i < 150; i++) {
        struct client c = client_open();
        char head[128];
        for (int n = rand_r(&seed) % 4; n >= 0; n--) {
            size_t size = (size_t)rand_r(&seed) % (rand_r(&seed) % 5 ? 3000 : 100000);
            snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n",
                     size);
            client_send(&c, head);
            client_send_bytes(&c, zeros, size);
            struct response r = client_read(&c, false);
            ck_assert_uint_eq(r.status, 200);
            ck_assert_uint_eq(r.len, size);
            response_free(&r);
        }
        if (rand_r(&seed) % 3 == 0)
            client_reset(&c);
        else
            client_close(&c);
    }
    return NULL;
}

START_TEST(mixed_load_is_answered)
{
    pthread_t threads[4];
    fixture_start(NULL);
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, mixed_load, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    fixture_wait_connections(0);
}
END_TEST

Suite *suite_limits(void)
{
    Suite *s = suite_create("http limits");
    TCase *t = tcase_create("limits");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, over_max_connections);
    tcase_add_test(t, over_max_inflight);
    tcase_add_test(t, after_a_long_wait_requests_are_turned_away);
    tcase_add_test(t, without_a_limit_of_waiting_they_are_served);
    tcase_add_test(t, probes_pass_over_max_inflight);
    tcase_add_test(t, input_behind_an_outstanding_reply_is_not_read);
    tcase_add_test(t, input_behind_an_unread_reply_is_not_read);
    tcase_add_test(t, a_large_reply_arrives_whole_at_a_slow_reader);
    tcase_add_test(t, endless_heads_end_at_the_limit);
    tcase_add_test(t, buffered_bytes_are_bounded_over_all_connections);
    tcase_add_test(t, out_of_descriptors);
    tcase_add_loop_test(t, idle_connections_are_small, 0, 2);
    tcase_add_test(t, mixed_load_is_answered);
    suite_add_tcase(s, t);
    return s;
}
