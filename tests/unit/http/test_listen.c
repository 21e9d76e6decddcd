/* Addresses: what is understood, what is bound, and Unix sockets that were left behind. */
#include <sys/stat.h>
#include <sys/wait.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "fixture.h"

static void setup(void)
{
    fixture_init();
    fx.dir = unit_mkdir();
    dd_log_set_level(DD_LOG_ERROR + 1); /* the refusals below are meant */
}

static void teardown(void)
{
    fixture_stop();
    unit_rmdir(fx.dir);
}

START_TEST(nonsense_is_invalid)
{
    static const char *const bad[] = {"",
                                      "8080",
                                      ":8080",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "host:80",
                                      "::1:80",
                                      "[::1]",
                                      "127.0.0.1:http",
                                      "127.0.0.1:65536",
                                      "[::1:80",
                                      "unix:",
                                      "127.0.0.1:0,",
                                      "[]:80",
                                      "127.0.0.1:-1",
                                      "1.2.3.4.5:1",
                                      "localhost:0",
                                      "unix:relative"};
    struct dd_http_listeners *l;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        enum dd_err err = dd_http_listen(bad[i], &l);
        ck_assert_msg(err == DD_INVALID, "\"%s\": %s", bad[i], dd_err_name(err));
    }
}
END_TEST

START_TEST(ports_are_reported_and_taken)
{
    struct dd_http_listeners *l, *again;
    ck_assert_ok(dd_http_listen("127.0.0.1:0", &l));
    const char *text = dd_http_listeners_text(l);
    int port = 0;
    ck_assert_int_eq(sscanf(text, "127.0.0.1:%d", &port), 1);
    ck_assert_int_gt(port, 0);
    ck_assert(dd_http_listeners_local(l));
    ck_assert_err(dd_http_listen(text, &again), DD_LOCKED);
    dd_http_listeners_destroy(l);
    ck_assert_ok(dd_http_listen("0.0.0.0:0", &l));
    ck_assert(!dd_http_listeners_local(l));
    dd_http_listeners_destroy(l);
}
END_TEST

START_TEST(unix_sockets)
{
    char path[512], address[520];
    struct dd_http_listeners *l, *again;
    struct stat st;
    snprintf(path, sizeof path, "%s/socket", fx.dir);
    snprintf(address, sizeof address, "unix:%s", path);
    ck_assert_ok(dd_http_listen(address, &l));
    ck_assert_str_eq(dd_http_listeners_text(l), address);
    ck_assert(dd_http_listeners_local(l));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0660);
    ck_assert_err(dd_http_listen(address, &again), DD_LOCKED); /* its owner lives */
    ck_assert_int_eq(stat(path, &st), 0);
    dd_http_listeners_destroy(l);
    ck_assert_int_ne(stat(path, &st), 0);
}
END_TEST

START_TEST(a_stale_unix_socket_is_replaced_and_a_file_is_not)
{
    char path[512], address[520];
    struct dd_http_listeners *l;
    snprintf(path, sizeof path, "%s/socket", fx.dir);
    snprintf(address, sizeof address, "unix:%s", path);
    pid_t child = fork();
    if (child == 0) _exit(dd_http_listen(address, &l) == DD_OK ? 0 : 1); /* leaves its socket behind */
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert_ok(dd_http_listen(address, &l));
    dd_http_listeners_destroy(l);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
    ck_assert_err(dd_http_listen(address, &l), DD_LOCKED);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(several_addresses_serve)
{
    char addresses[600], path[512];
    snprintf(path, sizeof path, "%s/socket", fx.dir);
    snprintf(addresses, sizeof addresses, "127.0.0.1:0, unix:%s", path);
    fixture_start(addresses);
    struct client tcp = client_open(), local = client_open_unix(path);
    client_send(&tcp, "GET /show HTTP/1.1\r\nHost: a\r\n\r\n");
    client_send(&local, "GET /show HTTP/1.1\r\nHost: a\r\n\r\n");
    struct response r = client_read(&tcp, false);
    ck_assert(strncmp(response_header(&r, "x-peer"), "127.0.0.1:", 10) == 0);
    response_free(&r);
    r = client_read(&local, false);
    ck_assert_str_eq(response_header(&r, "x-peer"), "unix");
    ck_assert_str_eq(response_header(&r, "x-local"), "yes");
    response_free(&r);
    client_close(&tcp);
    client_close(&local);
}
END_TEST

/* [::] takes IPv4 clients too, and says who they are in IPv4's own notation. */
START_TEST(the_ipv6_wildcard_serves_ipv4)
{
    struct dd_http_listeners *l;
    if (dd_http_listen("[::]:0", &l) != DD_OK) return; /* a machine without IPv6 */
    ck_assert(!dd_http_listeners_local(l));
    const char *colon = strrchr(dd_http_listeners_text(l), ':');
    ck_assert(strncmp(dd_http_listeners_text(l), "[::]:", 5) == 0);
    int port = atoi(colon + 1);
    dd_http_listeners_destroy(l);
    char address[32];
    snprintf(address, sizeof address, "[::]:%d", port);
    fixture_start(address);
    fx.port = port;
    struct client c = client_open();
    client_send(&c, "GET /show HTTP/1.1\r\nHost: a\r\n\r\n");
    struct response r = client_read(&c, false);
    ck_assert(strncmp(response_header(&r, "x-peer"), "127.0.0.1:", 10) == 0);
    ck_assert_str_eq(response_header(&r, "x-local"), "yes");
    response_free(&r);
    client_close(&c);
}
END_TEST

Suite *suite_listen(void)
{
    Suite *s = suite_create("http listen");
    TCase *t = tcase_create("listen");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nonsense_is_invalid);
    tcase_add_test(t, ports_are_reported_and_taken);
    tcase_add_test(t, unix_sockets);
    tcase_add_test(t, a_stale_unix_socket_is_replaced_and_a_file_is_not);
    tcase_add_test(t, several_addresses_serve);
    tcase_add_test(t, the_ipv6_wildcard_serves_ipv4);
    suite_add_tcase(s, t);
    return s;
}
