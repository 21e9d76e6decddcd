/* Deadlines are absolute: a byte now and then does not extend them. */
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "fixture.h"

#define SHORT_MS 300
#define LONG_MS  ((int)unit_patience_ms(15000)) /* what the others are set to, and the most a test waits */

static void setup(void)
{
    fixture_init();
    fx.options.head_timeout_ms = fx.options.body_timeout_ms = fx.options.write_timeout_ms = LONG_MS;
    fx.options.idle_timeout_ms = fx.options.linger_timeout_ms = LONG_MS;
}

static void teardown(void)
{
    fixture_stop();
}

/* Sends one byte every 20 ms until an answer comes. */
static void drip(struct client *c, char byte)
{
    int64_t start = now_ms();
    struct pollfd p = {c->fd, POLLIN, 0};
    while (poll(&p, 1, 20) == 0) {
        ck_assert_int_lt(now_ms() - start, LONG_MS);
        client_send_bytes(c, &byte, 1);
    }
}

static void check_cut_off(struct client *c, int64_t after_ms)
{
    client_expect(c, 408, "timeout");
    client_expect_end(c);
    client_close(c);
    ck_assert_int_ge(after_ms, SHORT_MS - 20);
    ck_assert_int_lt(after_ms, LONG_MS / 2);
    ck_assert_uint_eq(fixture_counter("timeouts"), 1);
    ck_assert_uint_eq(fixture_handled(), 0);
    fixture_wait_connections(0);
}

START_TEST(a_slow_head)
{
    fx.options.head_timeout_ms = SHORT_MS;
    fixture_start(NULL);
    int64_t start = now_ms();
    struct client c = client_open();
    client_send(&c, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    drip(&c, 'x');
    check_cut_off(&c, now_ms() - start);
}
END_TEST

START_TEST(a_slow_body)
{
    fx.options.body_timeout_ms = SHORT_MS;
    fixture_start(NULL);
    int64_t start = now_ms();
    struct client c = client_open();
    client_send(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    drip(&c, 'x');
    check_cut_off(&c, now_ms() - start);
}
END_TEST

START_TEST(an_expected_body_that_never_comes)
{
    fx.options.body_timeout_ms = SHORT_MS;
    fixture_start(NULL);
    struct client c = client_open();
    int64_t start = now_ms();
    client_send(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n");
    struct response r = client_read(&c, true);
    ck_assert_uint_eq(r.status, 100);
    response_free(&r);
    struct pollfd p = {c.fd, POLLIN, 0};
    ck_assert_int_eq(poll(&p, 1, LONG_MS), 1);
    check_cut_off(&c, now_ms() - start);
}
END_TEST

START_TEST(an_idle_connection)
{
    fx.options.idle_timeout_ms = SHORT_MS;
    fixture_start(NULL);
    struct client never = client_open(), once = client_open();
    int64_t start = now_ms();
    client_send(&once, "GET /show HTTP/1.1\r\nHost: a\r\n\r\n");
    client_expect(&once, 200, NULL);
    struct pollfd p = {once.fd, POLLIN, 0};
    ck_assert(poll(&p, 1, SHORT_MS / 2) == 0 || now_ms() - start >= SHORT_MS - 20);
    struct client later = client_open(); /* the sweep that closes the two above leaves this one for another */
    client_expect_end(&never);           /* silently */
    client_expect_end(&once);
    client_expect_end(&later);
    client_close(&later);
    ck_assert_int_lt(now_ms() - start, LONG_MS / 2);
    client_close(&never);
    client_close(&once);
}
END_TEST

START_TEST(a_handler_may_take_its_time)
{
    int64_t short_ms = unit_patience_ms(200); /* also what this client may take for its request */
    fx.options.idle_timeout_ms = fx.options.head_timeout_ms = fx.options.body_timeout_ms = (int)short_ms;
    fixture_start(NULL);
    struct client c = client_open();
    client_send(&c, "POST /park HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
    fixture_wait_parked(1);
    struct pollfd p = {c.fd, POLLIN, 0};
    ck_assert_int_eq(poll(&p, 1, (int)short_ms * 3), 0);
    fixture_unpark();
    client_expect(&c, 200, "late");
    client_close(&c);
}
END_TEST

START_TEST(a_reply_that_is_not_taken)
{
    fx.options.write_timeout_ms = SHORT_MS;
    fixture_start(NULL);
    struct client c = client_open();
    client_send(&c, "GET /big?20000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    struct pollfd p = {c.fd, POLLIN, 0};
    ck_assert_int_eq(poll(&p, 1, LONG_MS), 1);
    ck_assert_uint_eq(dd_http_server_inflight(fx.server), 1); /* until it is written */
    fixture_wait_connections(0);
    ck_assert_uint_eq(dd_http_server_inflight(fx.server), 0);
    ck_assert_uint_eq(fixture_counter("timeouts"), 1);
    client_close(&c);
}
END_TEST

/* The same while the client takes a little now and then. */
START_TEST(a_reply_that_is_taken_too_slowly)
{
    fx.options.write_timeout_ms = SHORT_MS;
    fixture_start(NULL);
    struct client c = client_open();
    client_send(&c, "GET /big?20000000 HTTP/1.1\r\nHost: a\r\n\r\n");
    char some[1000];
    int64_t start = now_ms();
    struct pollfd p = {c.fd, POLLHUP, 0};
    while (recv(c.fd, some, sizeof some, MSG_DONTWAIT) > 0 ||
           dd_http_listeners_connections(fx.listeners) > 0) {
        ck_assert_int_lt(now_ms() - start, LONG_MS / 2);
        poll(&p, 1, 10);
    }
    client_close(&c);
}
END_TEST

START_TEST(lingering_has_an_end)
{
    fx.options.linger_timeout_ms = SHORT_MS;
    fixture_start(NULL);
    struct client c = client_open();
    client_send(&c, "nonsense\r\n");
    client_expect(&c, 400, "bad_request");
    fixture_wait_connections(0); /* though the client neither closes nor sends */
    client_close(&c);
}
END_TEST

Suite *suite_deadline(void)
{
    Suite *s = suite_create("http deadlines");
    TCase *t = tcase_create("deadline");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_slow_head);
    tcase_add_test(t, a_slow_body);
    tcase_add_test(t, an_expected_body_that_never_comes);
    tcase_add_test(t, an_idle_connection);
    tcase_add_test(t, a_handler_may_take_its_time);
    tcase_add_test(t, a_reply_that_is_not_taken);
    tcase_add_test(t, a_reply_that_is_taken_too_slowly);
    tcase_add_test(t, lingering_has_an_end);
    suite_add_tcase(s, t);
    return s;
}
