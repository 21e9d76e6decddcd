/* Requests and replies over a real socket: keep-alive, pipelining, HEAD, Expect, half-close, clients that
 * leave. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"

static void setup(void)
{
    fixture_init();
    fixture_start(NULL);
}

static void teardown(void)
{
    fixture_stop();
}

START_TEST(keep_alive_and_headers)
{
    struct client c = client_open();
    for (int i = 0; i < 3; i++) {
        client_send(&c,
                    "POST /show?a=%20 HTTP/1.1\r\nHost: a\r\nX-Echo: v\r\nContent-Length: 5\r\n\r\nhello");
        struct response r = client_read(&c, false);
        ck_assert_uint_eq(r.status, 200);
        ck_assert_str_eq(r.body, "POST /show?a=%20 hello");
        ck_assert_str_eq(response_header(&r, "content-type"), "text/plain");
        ck_assert_str_eq(response_header(&r, "x-echo"), "v");
        ck_assert_str_eq(response_header(&r, "connection"), "");
        ck_assert_uint_eq(strlen(response_header(&r, "date")), 29);
        response_free(&r);
    }
    ck_assert_uint_eq(fixture_counter("connections_accepted"), 1);
    ck_assert_uint_eq(fixture_counter("requests"), 3);
    client_close(&c);
    fixture_wait_connections(0);
}
END_TEST

START_TEST(close_is_honoured)
{
    static const char *const requests[] = {"GET /show HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\n\r\n",
                                           "GET /show HTTP/1.0\r\n\r\n"};
    for (int i = 0; i < 2; i++) {
        struct client c = client_open();
        client_send(&c, requests[i]);
        struct response r = client_read(&c, false);
        ck_assert_uint_eq(r.status, 200);
        ck_assert_str_eq(response_header(&r, "connection"), "close");
        response_free(&r);
        client_expect_end(&c);
        client_close(&c);
    }
}
END_TEST

START_TEST(http_1_0_keep_alive)
{
    struct client c = client_open();
    for (int i = 0; i < 2; i++) {
        client_send(&c, "GET /show HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        struct response r = client_read(&c, false);
        ck_assert_str_eq(response_header(&r, "connection"), "keep-alive");
        response_free(&r);
    }
    client_close(&c);
}
END_TEST

START_TEST(head_has_the_length_and_no_body)
{
    struct client c = client_open();
    client_send(&c, "HEAD /big?1000 HTTP/1.1\r\nHost: a\r\n\r\nGET /big?10 HTTP/1.1\r\nHost: a\r\n\r\n");
    struct response r = client_read(&c, true);
    ck_assert_str_eq(response_header(&r, "content-length"), "1000");
    response_free(&r);
    client_expect(&c, 200, "xxxxxxxxxx");
    client_close(&c);
}
END_TEST

START_TEST(errors_are_escaped_json)
{
    struct client c = client_open();
    client_send(&c, "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
    client_expect(&c, 404, "{\"error\":{\"code\":\"not_found\",\"message\":\"no \\\"such\\\" path\"}}");
    client_close(&c);
}
END_TEST

START_TEST(one_byte_a_packet)
{
    static const char request[] = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    struct client c = client_open();
    for (size_t i = 0; i < sizeof request - 1; i++)
        client_send_bytes(&c, request + i, 1);
    client_expect(&c, 200, "hello");
    client_close(&c);
}
END_TEST

START_TEST(a_large_body_arrives_whole)
{
    size_t n = fx.options.max_body_bytes;
    char *body = malloc(n), head[128];
    for (size_t i = 0; i < n; i++)
        body[i] = (char)(i * 31 + i / 251);
    struct client c = client_open();
    for (int round = 0; round < 2; round++) {
        snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", n);
        client_send(&c, head);
        client_send_bytes(&c, body, n);
        struct response r = client_read(&c, false);
        ck_assert_uint_eq(r.len, n);
        ck_assert(memcmp(r.body, body, n) == 0);
        response_free(&r);
    }
    client_close(&c);
    free(body);
}
END_TEST

static struct client piper;

static void *send_pipelined(void *arg)
{
    struct dd_buf *b = arg;
    client_send_bytes(&piper, b->data, b->len);
    return NULL;
}

START_TEST(ten_thousand_pipelined_requests_in_order)
{
    enum { N = 10000 };
    struct dd_buf b = {0};
    for (int i = 0; i < N; i++)
        dd_buf_addf(&b, "POST /echo?%d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n%05d", i, i);
    piper = client_open();
    pthread_t thread;
    pthread_create(&thread, NULL, send_pipelined, &b);
    for (int i = 0; i < N; i++) {
        struct response r = client_read(&piper, false);
        ck_assert_uint_eq(r.status, 200);
        ck_assert_int_eq(atoi(r.body), i);
        response_free(&r);
    }
    pthread_join(thread, NULL);
    client_close(&piper);
    dd_buf_free(&b);
    ck_assert_uint_eq(fixture_handled(), N);
}
END_TEST

/* A pipelined stream of requests of every kind, cut at random places, answered at once or late, against the
 * list of what was sent. */
struct stream {
    struct dd_buf bytes;
    unsigned seed;
    struct client *client;
};

static void *send_cut(void *arg)
{
    struct stream *s = arg;
    for (size_t at = 0; at < s->bytes.len;) {
        size_t most = rand_r(&s->seed) % 3 ? 40 : 30000, n = (size_t)rand_r(&s->seed) % most + 1;
        if (n > s->bytes.len - at) n = s->bytes.len - at;
        client_send_bytes(s->client, s->bytes.data + at, n);
        at += n;
    }
    return NULL;
}

enum kind { ECHO, PARK, HEAD, SHOW };

static enum kind add_random(struct stream *s, size_t *body_len)
{
    enum kind kind = (enum kind)(rand_r(&s->seed) % 4);
    *body_len = 0;
    if (kind == ECHO) *body_len = (size_t)rand_r(&s->seed) % (rand_r(&s->seed) % 4 ? 100 : 100000);
    if (kind == PARK) dd_buf_add_str(&s->bytes, "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    if (kind == HEAD) dd_buf_add_str(&s->bytes, "HEAD /big?77 HTTP/1.1\r\nHost: a\r\n\r\n");
    if (kind == SHOW) dd_buf_add_str(&s->bytes, "GET /show HTTP/1.1\r\nHost: a\r\n\r\n");
    if (kind != ECHO) return kind;
    dd_buf_addf(&s->bytes, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", *body_len);
    for (size_t i = 0; i < *body_len; i++)
        dd_buf_add_u8(&s->bytes, "GET /\r\n"[i % 7]);
    return kind;
}

static void expect_kind(struct client *c, enum kind kind, size_t body_len)
{
    if (kind == PARK) {
        fixture_wait_parked(1);
        fixture_unpark();
    }
    struct response r = client_read(c, kind == HEAD);
    ck_assert_uint_eq(r.status, 200);
    if (kind == PARK) ck_assert_str_eq(r.body, "late");
    if (kind == HEAD) ck_assert_str_eq(response_header(&r, "content-length"), "77");
    if (kind == SHOW) ck_assert_str_eq(r.body, "GET /show? ");
    if (kind == ECHO) ck_assert_uint_eq(r.len, body_len);
    response_free(&r);
}

START_TEST(random_streams)
{
    enum { N = 100 };
    enum kind kinds[N];
    size_t lens[N];
    struct client c = client_open();
    struct stream s = {.seed = (unsigned)_i + 1, .client = &c};
    pthread_t thread;
    for (int i = 0; i < N; i++)
        kinds[i] = add_random(&s, &lens[i]);
    pthread_create(&thread, NULL, send_cut, &s);
    for (int i = 0; i < N; i++)
        expect_kind(&c, kinds[i], lens[i]);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(c.len, 0);
    client_close(&c);
    dd_buf_free(&s.bytes);
}
END_TEST

START_TEST(pipelined_behind_a_late_reply)
{
    struct client c = client_open();
    client_send(&c, "GET /park HTTP/1.1\r\nHost: a\r\n\r\nGET /show?2 HTTP/1.1\r\nHost: a\r\n\r\n"
                    "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    fixture_wait_parked(1);
    ck_assert_uint_eq(fixture_handled(), 1); /* one at a time */
    client_send(&c, "GET /show?4 HTTP/1.1\r\nHost: a\r\n\r\n");
    fixture_unpark();
    client_expect(&c, 200, "late");
    client_expect(&c, 200, "GET /show?2");
    fixture_wait_parked(1);
    fixture_unpark();
    client_expect(&c, 200, "late");
    client_expect(&c, 200, "GET /show?4");
    client_close(&c);
}
END_TEST

START_TEST(half_closed_clients_get_their_answer)
{
    struct client c = client_open();
    client_send(&c, "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    shutdown(c.fd, SHUT_WR);
    fixture_wait_parked(1);
    ck_assert_uint_eq(fixture_unpark(), 0);
    client_expect(&c, 200, "late");
    client_expect_end(&c);
    client_close(&c);
    struct client cut = client_open();
    client_send(&cut, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
    shutdown(cut.fd, SHUT_WR);
    client_expect(&cut, 400, "closed in the middle");
    client_expect_end(&cut);
    client_close(&cut);
    fixture_wait_connections(0);
}
END_TEST

START_TEST(reset_in_the_middle_of_a_body)
{
    for (int i = 0; i < 50; i++) {
        struct client c = client_open();
        client_send(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\nabc");
        client_reset(&c);
    }
    fixture_wait_connections(0);
    ck_assert_uint_eq(fixture_handled(), 0);
}
END_TEST

START_TEST(a_client_that_left_before_the_reply)
{
    struct client stays = client_open();
    for (int i = 0; i < 20; i++) {
        struct client c = client_open();
        client_send(&c, "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
        fixture_wait_parked((unsigned)i + 1);
        if (i % 2)
            client_reset(&c);
        else
            client_close(&c);
    }
    client_send(&stays, "GET /show HTTP/1.1\r\nHost: a\r\n\r\n");
    client_expect(&stays, 200, NULL); /* the loop has seen the resets by now */
    ck_assert_uint_eq(fixture_unpark(), 10);
    fixture_wait_connections(1);
    ck_assert_uint_eq(dd_http_server_inflight(fx.server), 0); /* else a stop would wait for them */
    client_close(&stays);
    fixture_wait_connections(0);
}
END_TEST

START_TEST(expect_100_continue)
{
    struct client c = client_open();
    client_send(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    struct response r = client_read(&c, true);
    ck_assert_uint_eq(r.status, 100);
    response_free(&r);
    client_send(&c, "he");
    client_send(&c, "llo");
    client_expect(&c, 200, "hello"); /* and no second 100 */
    /* The body comes at once: nothing to ask for. */
    client_send(&c,
                "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nworld");
    client_expect(&c, 200, "world");
    client_send(&c,
                "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n\r\n");
    client_expect(&c, 413, "body_too_large");
    client_expect_end(&c);
    client_close(&c);
}
END_TEST

START_TEST(reply_headers_cannot_be_forged)
{
    struct client c = client_open();
    /* no way in through the parser: obs-text passes, controls do not */
    client_send(&c, "GET /show HTTP/1.1\r\nHost: a\r\nX-Echo: a\tb\r\n\r\n");
    struct response r = client_read(&c, false);
    ck_assert_str_eq(response_header(&r, "x-echo"), "a?b");
    response_free(&r);
    client_close(&c);
}
END_TEST

/* What the hostile table of the parser does to a connection: refused with JSON, closed, and the tail is not
 * run. */
START_TEST(a_refused_request_ends_the_connection)
{
    static const struct {
        const char *request;
        unsigned status;
        const char *code;
    } rows[] = {
        {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 30\r\n\r\n", 400,
         "bad_request"},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length : 30\r\n\r\n", 400, "bad_request"},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 400, "bad_request"},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411,
         "length_required"},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n", 413, "body_too_large"},
        {"TRACE /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\n", 501, "not_implemented"},
        {"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", 417, "expectation_failed"},
        {"GET /echo HTTP/3.0\r\nHost: a\r\n\r\n", 505, "version"},
        {"GET /echo HTTP/1.1\nHost: a\n\n", 400, "bad_request"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct client c = client_open();
        client_send(&c, rows[i].request);
        client_send(&c, "GET /show?smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
        struct response r = client_read(&c, false);
        ck_assert_msg(r.status == rows[i].status, "row %zu: %u", i, r.status);
        ck_assert_ptr_nonnull(strstr(r.body, rows[i].code));
        ck_assert_str_eq(response_header(&r, "content-type"), "application/json");
        ck_assert_str_eq(response_header(&r, "connection"), "close");
        response_free(&r);
        client_expect_end(&c);
        client_close(&c);
    }
    ck_assert_uint_eq(fixture_handled(), 0);
    ck_assert_uint_eq(fixture_counter("requests_refused"), sizeof rows / sizeof *rows);
}
END_TEST

/* A client that is refused while it still sends its body can read why: no reset overtakes the answer. */
START_TEST(the_refusal_of_an_upload_can_be_read)
{
    static char chunk[100000];
    memset(chunk, 'x', sizeof chunk);
    for (int round = 0; round < 20; round++) {
        struct client c = client_open();
        client_send(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
        for (int i = 0; i < 30; i++)
            client_send_bytes(&c, chunk, sizeof chunk);
        client_expect(&c, 413, "body_too_large");
        client_expect_end(&c);
        client_close(&c);
    }
}
END_TEST

Suite *suite_server(void)
{
    Suite *s = suite_create("http server");
    TCase *t = tcase_create("server");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, keep_alive_and_headers);
    tcase_add_test(t, close_is_honoured);
    tcase_add_test(t, http_1_0_keep_alive);
    tcase_add_test(t, head_has_the_length_and_no_body);
    tcase_add_test(t, errors_are_escaped_json);
    tcase_add_test(t, one_byte_a_packet);
    tcase_add_test(t, a_large_body_arrives_whole);
    tcase_add_test(t, ten_thousand_pipelined_requests_in_order);
    tcase_add_loop_test(t, random_streams, 0, 20);
    tcase_add_test(t, pipelined_behind_a_late_reply);
    tcase_add_test(t, half_closed_clients_get_their_answer);
    tcase_add_test(t, reset_in_the_middle_of_a_body);
    tcase_add_test(t, a_client_that_left_before_the_reply);
    tcase_add_test(t, expect_100_continue);
    tcase_add_test(t, reply_headers_cannot_be_forged);
    tcase_add_test(t, a_refused_request_ends_the_connection);
    tcase_add_test(t, the_refusal_of_an_upload_can_be_read);
    suite_add_tcase(s, t);
    return s;
}
