/* Redis away, slow, hostile or restarted. */
#include <arpa/inet.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "world.h"

static struct world w;
static struct claimed won;
static struct fetched got;
static struct dd_hot_status status;

static const struct dd_hot_status *state(void)
{
    dd_hot_get_status(w.hot, &status);
    return &status;
}

static void open_with(struct server server)
{
    w = (struct world){.server = server};
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, world_is_up(&w));
}

static void close_world(void)
{
    if (w.server.pid) kill(w.server.pid, SIGCONT);
    world_close(&w);
}

/* A fetch is answered before the call returns; fails the test else. */
static bool is_refused_at_once(void)
{
    fetch_start(&w, 0, "u", &got);
    ck_assert(got.done == 1 && !got.complete);
    return true;
}

START_TEST(a_stopped_redis_is_answered_for_in_time)
{
    open_with((struct server){0});
    claim(&w, 0, "u", 1, 1, &won);
    kill(w.server.pid, SIGSTOP);
    static struct fetched fetches[50];
    static struct claimed claims[10];
    for (int i = 0; i < 50; i++)
        fetch_start(&w, 0, "u", &fetches[i]);
    for (unsigned i = 0; i < 10; i++)
        claim_start(&w, 0, "u", 10 + i * 10, 10, &claims[i]);
    for (int i = 0; i < 50; i++) {
        wait_for(&w, fetches[i].done);
        ck_assert(fetches[i].done == 1 && !fetches[i].complete);
    }
    for (int i = 0; i < 10; i++) {
        wait_for(&w, claims[i].done);
        ck_assert(claims[i].c.in_memory && claims[i].total == 10);
    }
    ck_assert(!state()->up);
    ck_assert_str_eq(state()->last_error, "redis: no answer in time");
    ck_assert_int_gt(state()->down_since_ms, 0);
    /* the circuit is open: at once from now on, also while it tries to connect */
    uint64_t attempts = counted(&w, "dedupd_hot_failures_total") + 2;
    wait_for(&w, is_refused_at_once() && counted(&w, "dedupd_hot_failures_total") >= attempts);
    kill(w.server.pid, SIGCONT);
    wait_for(&w, state()->up);
    ck_assert_str_eq(state()->last_error, "");
    fetch(&w, 0, "u", &got);
    ck_assert(got.complete);
    close_world();
}
END_TEST

START_TEST(a_killed_redis_comes_back_without_a_restart)
{
    open_with((struct server){0});
    claim(&w, 0, "u", 1, 3, &won);
    server_kill(&w.server);
    claim(&w, 0, "u", 3, 3, &won);
    ck_assert(won.c.in_memory);
    fetch(&w, 0, "u", &got);
    ck_assert(!got.complete);
    ck_assert_str_eq(got.recent, "i3 i4 i5");
    server_start(&w.server);
    wait_for(&w, state()->up);
    fetch(&w, 0, "u", &got);
    ck_assert(got.complete);
    ck_assert_str_eq(got.recent, "i3 i4 i5");
    ck_assert_msg(!got.intact, "it kept nothing on disk: deliveries are lost");
    claim(&w, 0, "u", 4, 3, &won);
    ck_assert(!won.c.in_memory && won.won[0] == 0 && won.won[1] == 0 && won.won[2] == 1);
    fetch(&w, 0, "u", &got);
    ck_assert_str_eq(got.recent, "i3 i4 i5 i6");
    close_world();
}
END_TEST

START_TEST(commands_in_flight_when_redis_is_killed)
{
    open_with((struct server){0});
    static struct fetched fetches[100];
    for (int i = 0; i < 100; i++)
        fetch_start(&w, 0, "u", &fetches[i]);
    claim_start(&w, 0, "u", 1, 100, &won);
    server_kill(&w.server);
    for (int i = 0; i < 100; i++)
        wait_for(&w, fetches[i].done);
    wait_for(&w, won.done);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(fetches[i].done, 1);
    ck_assert(won.done == 1 && won.total == 100);
    close_world();
}
END_TEST

START_TEST(redis_is_not_there_at_the_start)
{
    w = (struct world){0};
    w.server.dir = unit_mkdir();
    snprintf(w.server.socket, sizeof w.server.socket, "%s/s", w.server.dir);
    w.options.path = w.server.socket;
    world_open(&w, 1);
    ck_assert(is_refused_at_once());
    wait_for(&w, *state()->last_error);
    ck_assert_str_eq(state()->last_error, "connect: No such file or directory");
    server_start(&w.server);
    wait_for(&w, state()->up);
    close_world();
}
END_TEST

/* A bare chroot has no /etc/hosts, and then nobody knows "localhost". */
static bool localhost_is_known(void)
{
    struct addrinfo *found = NULL;
    bool known = getaddrinfo("localhost", NULL, NULL, &found) == 0;
    if (known) freeaddrinfo(found);
    return known;
}

START_TEST(over_tcp_and_by_name)
{
    w = (struct world){.server = {.port = free_port()}};
    w.options.host = _i ? "localhost" : "127.0.0.1";
    w.options.port = w.server.port;
    world_open(&w, 1);
    wait_for(&w, counted(&w, "dedupd_hot_failures_total") >= 3);
    ck_assert_str_eq(state()->last_error, "connect: Connection refused");
    server_start(&w.server);
    wait_for(&w, state()->up);
    claim(&w, 0, "u", 1, 3, &won);
    ck_assert(!won.c.in_memory);
    uint64_t a, b;
    ck_assert_err(dd_hot_witness_get(w.hot, &a, &b), DD_NOT_FOUND);
    close_world();
}
END_TEST

START_TEST(a_name_that_nobody_knows)
{
    w = (struct world){.options = {.host = "no-such-host.invalid", .port = 1}};
    world_open(&w, 1);
    wait_for(&w, counted(&w, "dedupd_hot_failures_total") >= 3);
    ck_assert_str_eq(state()->last_error, "connect: the host name cannot be resolved");
    close_world();
}
END_TEST

START_TEST(the_wrong_password_is_said_and_not_shown)
{
    w = (struct world){.server = {.extra = {"--requirepass", "right"}}};
    w.options.password = "wr0ng-secret";
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, counted(&w, "dedupd_hot_failures_total") >= 2);
    ck_assert(!state()->up);
    ck_assert_ptr_nonnull(strstr(state()->last_error, "auth: WRONGPASS"));
    ck_assert_ptr_null(strstr(state()->last_error, "wr0ng"));
    uint64_t a, b;
    ck_assert_err(dd_hot_witness_get(w.hot, &a, &b), DD_UNAVAILABLE);
    close_world();
}
END_TEST

START_TEST(no_password_where_one_is_needed)
{
    w = (struct world){.server = {.extra = {"--requirepass", "right"}}};
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, counted(&w, "dedupd_hot_failures_total") >= 2);
    ck_assert_ptr_nonnull(strstr(state()->last_error, "NOAUTH"));
    close_world();
}
END_TEST

START_TEST(user_password_and_database)
{
    w = (struct world){.server = {.extra = {"--user", "app", "on", ">s3cret", "~*", "+@all"}}};
    w.options.user = "app";
    w.options.password = "s3cret";
    w.options.db = 3;
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, state()->up);
    claim(&w, 0, "u", 1, 1, &won);
    ck_assert_str_eq(ask(&w.server, "ZCARD", "dd:{home/u}:d", NULL), "0");
    uint64_t a, b;
    ck_assert_ok(dd_hot_witness_put(w.hot, 4, 5));
    ck_assert_ok(dd_hot_witness_get(w.hot, &a, &b));
    close_world();
}
END_TEST

START_TEST(too_many_clients)
{
    w = (struct world){.server = {.extra = {"--maxclients", "1"}}};
    server_start(&w.server);
    world_open(&w, 2);
    wait_for(&w, state()->connections_up == 1 && counted(&w, "dedupd_hot_failures_total") >= 3);
    ck_assert(!state()->up && state()->connections == 2);
    ck_assert_msg(strstr(state()->last_error, "max number of clients") != NULL, "%s", state()->last_error);
    close_world();
}
END_TEST

START_TEST(a_replica_is_not_up)
{
    w = (struct world){.server = {.extra = {"--replicaof", "127.0.0.1 1"}}};
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, counted(&w, "dedupd_hot_failures_total") >= 2);
    ck_assert_ptr_nonnull(strstr(state()->last_error, "READONLY"));
    ask(&w.server, "REPLICAOF", "NO", "ONE", NULL);
    wait_for(&w, state()->up);
    ask(&w.server, "REPLICAOF", "127.0.0.1", "1", NULL);
    claim(&w, 0, "u", 1, 3, &won);
    ck_assert(won.c.in_memory && won.total == 3);
    for (int turns = 0; turns < 5 && state()->up; turns++)
        dd_loop_turn(w.loop[0], 0);
    ck_assert_msg(!state()->up, "its refusal itself must end the connection, not the next sample");
    close_world();
}
END_TEST

START_TEST(a_loading_redis_is_not_up)
{
    open_with((struct server){.extra = {"--enable-debug-command", "yes"}});
    ask(&w.server, "DEBUG", "POPULATE", "20000", NULL);
    ask(&w.server, "SAVE", NULL);
    server_kill(&w.server);
    const char *slow[] = {"--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"};
    memcpy(w.server.extra, slow, sizeof slow);
    server_start_unready(&w.server);
    wait_for(&w, strstr(state()->last_error, "LOADING"));
    fetch(&w, 0, "u", &got);
    ck_assert(!got.complete);
    close_world();
}
END_TEST

/* ---- a server that misbehaves ---- */

static int listener;

static void listen_fake(void)
{
    w = (struct world){0};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &len), 0);
    w.options.host = "127.0.0.1";
    w.options.port = ntohs(a.sin_port);
}

static int accept_fake(void)
{
    int fd = -1;
    wait_for(&w, (fd = accept(listener, NULL, NULL)) >= 0);
    return fd;
}

static void say(int fd, const char *text)
{
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Reads all that was sent, up to a command that holds the word. */
static void read_until(int fd, const char *word)
{
    static char bytes[65536];
    size_t n = 0;
    bytes[0] = 0;
    int64_t begun = mono_ms();
    while (!strstr(bytes, word)) {
        ck_assert_msg(mono_ms() - begun < unit_patience_ms(10000), "no %s was sent", word);
        world_turn(&w);
        ssize_t got_now = recv(fd, bytes + n, sizeof bytes - 1 - n, MSG_DONTWAIT);
        if (got_now > 0) n += (size_t)got_now;
        bytes[n] = 0;
    }
}

#define HELLO "+OK\r\n$14\r\nrun_id:aaaaaaa\r\n*0\r\n*0\r\n+OK\r\n:77\r\n"

static const char *const garbage[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                                      "\0\0\0\0",
                                      "*-7\r\n",
                                      "$999999999999999999999\r\n",
                                      "-ERR no\r\n-ERR no\r\n-ERR no\r\n",
                                      "+OK\r\n:1\r\n:2\r\n:3\r\n:4\r\n$3\r\nabc\r\n"};

START_TEST(garbage_instead_of_hello)
{
    listen_fake();
    world_open(&w, 1);
    for (int round = 0; round < 3; round++) {
        uint64_t failures = counted(&w, "dedupd_hot_failures_total");
        int fd = accept_fake();
        say(fd, garbage[_i]);
        close(fd);
        wait_for(&w, counted(&w, "dedupd_hot_failures_total") > failures);
    }
    ck_assert(!state()->up);
    world_close(&w);
    close(listener);
}
END_TEST

START_TEST(a_silent_server_meets_the_connect_deadline)
{
    listen_fake();
    world_open(&w, 1);
    int fd = accept_fake();
    wait_for(&w, counted(&w, "dedupd_hot_failures_total") > 0);
    ck_assert_str_eq(state()->last_error, "connect: no answer in time");
    world_close(&w);
    close(fd);
    close(listener);
}
END_TEST

/* The replies of a fetch, cut after each byte. */
#define REPLIES                                                                                              \
    "*1\r\n$2\r\n11\r\n*1\r\n$2\r\n-3\r\n*2\r\n$1\r\nx\r\n$13\r\n9999999999999\r\n*3\r\n$-1\r\n$-1\r\n$-"    \
    "1\r\n"

START_TEST(a_reply_that_breaks_off)
{
    listen_fake();
    world_open(&w, 1);
    for (size_t cut = 0; cut <= strlen(REPLIES); cut += 2) {
        int fd = accept_fake();
        say(fd, HELLO);
        wait_for(&w, state()->up);
        fetch_start(&w, 0, "u", &got);
        read_until(fd, "HMGET");
        char part[sizeof REPLIES];
        memcpy(part, REPLIES, cut);
        part[cut] = 0;
        say(fd, part);
        close(fd);
        wait_for(&w, got.done);
        ck_assert(got.done == 1 && got.complete == (cut == strlen(REPLIES)));
        wait_for(&w, !state()->up);
    }
    world_close(&w);
    close(listener);
}
END_TEST

static const char *const unasked[] = {"+OK\r\n", ":1\r\n",       "$1\r\nx\r\n",
                                      "$-1\r\n", "*1\r\n:1\r\n", "*0\r\n"};

START_TEST(a_reply_that_nobody_asked_for)
{
    listen_fake();
    world_open(&w, 1);
    int fd = accept_fake();
    say(fd, HELLO);
    wait_for(&w, state()->up);
    say(fd, unasked[_i]);
    wait_for(&w, !state()->up);
    ck_assert_str_eq(state()->last_error, "connection: it sent a reply that nobody asked for");
    world_close(&w);
    close(fd);
    close(listener);
}
END_TEST

START_TEST(what_is_unsent_stays_bounded)
{
    listen_fake();
    w.options.max_output_bytes = 200000;
    w.options.max_inflight = 100000;
    w.options.timeout_ms = 2000;
    world_open(&w, 1);
    int fd = accept_fake();
    say(fd, HELLO);
    wait_for(&w, state()->up);
    static uint8_t blob[50000];
    for (int i = 0; i < 2000; i++) {
        dd_hot_cache_put(w.hl[0], dd_slice_str("home"), dd_slice_str("u"), month(0), 1, 1, 1, 60000,
                         dd_slice_of(blob, sizeof blob));
        if (i % 10 == 0) dd_loop_turn(w.loop[0], 0);
    }
    ck_assert_uint_gt(counted(&w, "dedupd_hot_cache_skipped_total"), 1500);
    /* fetches use the other half, and then are refused at once */
    unsigned refused = 0;
    static struct fetched many[5000];
    for (int i = 0; i < 5000; i++) {
        fetch_start(&w, 0, "u", &many[i]);
        refused += many[i].done;
        ck_assert_msg(i > 0 || refused == 0, "cache fills must leave room for requests");
    }
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_gt(counted(&w, "dedupd_hot_busy_total"), 0);
    world_close(&w);
    for (int i = 0; i < 5000; i++)
        ck_assert(many[i].done == 1 && !many[i].complete);
    close(fd);
    close(listener);
}
END_TEST

START_TEST(commands_in_flight_are_bounded)
{
    w = (struct world){.options = {.max_inflight = 20}};
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, state()->up);
    static struct fetched many[10];
    for (int i = 0; i < 10; i++)
        fetch_start(&w, 0, "u", &many[i]);
    for (int i = 0; i < 10; i++) {
        wait_for(&w, many[i].done);
        ck_assert(many[i].complete == (i < 5));
    }
    fetch(&w, 0, "u", &got);
    ck_assert(got.complete);
    claim(&w, 0, "u", 1, 18, &won);
    ck_assert(won.c.in_memory && won.total == 18);
    close_world();
}
END_TEST

START_TEST(destroyed_with_calls_in_flight)
{
    open_with((struct server){0});
    static struct fetched fetches[20];
    kill(w.server.pid, SIGSTOP);
    for (int i = 0; i < 20; i++)
        fetch_start(&w, 0, "u", &fetches[i]);
    claim_start(&w, 0, "u", 1, 10, &won);
    dd_loop_turn(w.loop[0], 0);
    close_world();
    for (int i = 0; i < 20; i++)
        ck_assert(fetches[i].done == 1 && !fetches[i].complete);
    ck_assert(won.done == 1 && won.c.in_memory && won.total == 10);
}
END_TEST

Suite *suite_outage(void);
Suite *suite_outage(void)
{
    Suite *s = suite_create("hot outage");
    TCase *t = tcase_create("outage");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_stopped_redis_is_answered_for_in_time);
    tcase_add_test(t, a_killed_redis_comes_back_without_a_restart);
    tcase_add_test(t, commands_in_flight_when_redis_is_killed);
    tcase_add_test(t, redis_is_not_there_at_the_start);
    tcase_add_loop_test(t, over_tcp_and_by_name, 0, localhost_is_known() ? 2 : 1);
    tcase_add_test(t, a_name_that_nobody_knows);
    tcase_add_test(t, the_wrong_password_is_said_and_not_shown);
    tcase_add_test(t, no_password_where_one_is_needed);
    tcase_add_test(t, user_password_and_database);
    tcase_add_test(t, too_many_clients);
    tcase_add_test(t, a_replica_is_not_up);
    tcase_add_test(t, a_loading_redis_is_not_up);
    tcase_add_loop_test(t, garbage_instead_of_hello, 0, (int)(sizeof garbage / sizeof *garbage));
    tcase_add_test(t, a_silent_server_meets_the_connect_deadline);
    tcase_add_test(t, a_reply_that_breaks_off);
    tcase_add_loop_test(t, a_reply_that_nobody_asked_for, 0, (int)(sizeof unasked / sizeof *unasked));
    tcase_add_test(t, what_is_unsent_stays_bounded);
    tcase_add_test(t, commands_in_flight_are_bounded);
    tcase_add_test(t, destroyed_with_calls_in_flight);
    suite_add_tcase(s, t);
    return s;
}
