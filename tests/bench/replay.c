/* A fixed replay for counting instructions: a whole server (HTTP, codec, dedup, RocksDB; embedded, in a
 * directory of its own) and its one client in one thread, one request at a time. Counts of callgrind repeat
 * to within a percent where times of a shared machine do not; replay.py runs it and compares with the
 * recorded counts.
 *
 *   replay DIRECTORY [requests]
 *
 * What is counted is what happens inside replay_filter, replay_claim and replay_exposed on this thread: the
 * client's send and recv and the waiting are in it, the writer's thread is not. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/api.h"

#define START_MS  1796040000000 /* 2026-11-30T12:00:00Z */
#define USERS     32
#define ITEMS     1000
#define CATALOGUE 100000

struct replay {
    struct dd_clock clock;
    struct dd_stats *stats;
    struct dd_scenes *scenes;
    struct dd_store *store;
    struct dd_hot *hot;
    struct dd_dedup *dedup;
    struct dd_loop *loop;
    struct dd_dedup_loop *dl;
    struct dd_api *api;
    struct dd_api_loop *al;
    struct dd_http_listeners *listeners;
    struct dd_http_server *server;
    int fd;
    struct dd_buf request;
    char reply[65536];
    uint64_t random;
};

static void must(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "replay: %s\n", what);
    exit(1);
}

static uint64_t rnd(struct replay *r)
{
    return dd_mix64(r->random += 0x9e3779b97f4a7c15ULL);
}

/* ---- the server ---- */

static void open_store(struct replay *r, const char *dir)
{
    struct dd_store_options o = {.path = dir,
                                 .block_cache_bytes = 64 << 20,
                                 .write_buffer_bytes = 32 << 20,
                                 .max_open_files = 100,
                                 .pool_threads = 1,
                                 .pool_queue = 64,
                                 .change_cells = 1 << 16,
                                 .change_tables = 4,
                                 .batch_max = 64};
    struct dd_scene scene = {.name = "default",
                             .period = DD_PERIOD_MONTH,
                             .window = 3,
                             .policy = dd_filter_policy_default(),
                             .recent_max = 100,
                             .recent_ttl_ms = 1800000,
                             .cache_ttl_ms = 1800000};
    enum dd_period_kind existing;
    must(dd_stats_create(&r->stats) == DD_OK && dd_scenes_create(&scene, 1, &r->scenes) == DD_OK &&
             dd_store_open(&o, r->stats, &r->store) == DD_OK &&
             dd_store_register_scene(r->store, dd_slice_str("default"), scene.period, scene.window,
                                     &existing) == DD_OK,
         "the store does not open");
}

static void serve(struct replay *r)
{
    struct dd_hot_options hot = {
        .memory_max_bytes = 16 << 20, .store_id = dd_store_id(r->store), .recent_ttl_ms_max = 1800000};
    struct dd_dedup_options dedup = {.deadline_ms = 30000, .max_future_ms = 300000, .pending_max = 20000};
    struct dd_http_options http;
    must(dd_hot_create(&hot, &r->clock, r->stats, &r->hot) == DD_OK &&
             dd_dedup_create(&dedup, r->scenes, r->store, r->hot, NULL, &r->clock, r->stats, &r->dedup) ==
                 DD_OK &&
             dd_loop_create(&r->loop) == DD_OK && dd_dedup_loop_create(r->dedup, r->loop, &r->dl) == DD_OK,
         "no loop");
    struct dd_api_options api = {
        .version = "replay", .scenes = r->scenes, .clock = &r->clock, .dedup = r->dedup, .stats = r->stats};
    dd_http_options_init(&http);
    http.max_body_bytes = 1 << 20;
    must(dd_api_create(&api, &r->api) == DD_OK &&
             dd_api_loop_create(r->api, r->dl, DD_API_DATA, &r->al) == DD_OK &&
             dd_http_listen("127.0.0.1:0", &r->listeners) == DD_OK &&
             dd_http_server_create(r->loop, &http, r->stats, r->listeners, dd_api_handle, r->al,
                                   &r->server) == DD_OK,
         "no server");
}

static void stop(struct replay *r)
{
    close(r->fd);
    dd_http_server_destroy(r->server);
    dd_http_listeners_destroy(r->listeners);
    dd_api_loop_destroy(r->al);
    dd_api_destroy(r->api);
    dd_dedup_loop_destroy(r->dl);
    dd_dedup_destroy(r->dedup);
    dd_hot_destroy(r->hot);
    dd_store_close(r->store, false);
    dd_loop_destroy(r->loop);
    dd_scenes_destroy(r->scenes);
    dd_stats_destroy(r->stats);
    dd_buf_free(&r->request);
}

/* ---- what it knows ---- */

static struct dd_slice item_name(struct replay *r, char out[32])
{
    snprintf(out, 32, "item-%019llu", (unsigned long long)(rnd(r) % CATALOGUE));
    return dd_slice_str(out);
}

static void fill(struct replay *r, unsigned user, unsigned month)
{
    static uint32_t fps[ITEMS];
    struct dd_filter_policy policy = dd_filter_policy_default();
    struct dd_period p = dd_period_at(DD_PERIOD_MONTH, (struct dd_wall){START_MS});
    struct dd_buf operand = {0};
    char name[32], item[32];
    snprintf(name, sizeof name, "user-%08u", user);
    uint64_t seed = dd_hash_user_seed(dd_store_secret(r->store), dd_slice_str("default"), dd_slice_str(name));
    for (unsigned i = 0; i < ITEMS; i++)
        fps[i] = dd_hash_fingerprint(seed, item_name(r, item));
    must(dd_filter_operand(&policy, ITEMS, fps, ITEMS, &operand) == DD_OK, "no operand");
    struct dd_store_op op = {.kind = DD_STORE_MERGE,
                             .scene = dd_slice_str("default"),
                             .user = dd_slice_str(name),
                             .period = {p.kind, p.ordinal - (int32_t)month},
                             .operand = dd_buf_slice(&operand),
                             .read_number = UINT64_MAX};
    struct dd_store_batch b = {.ops = &op, .n = 1};
    must(dd_store_write_wait(r->store, &b) == DD_OK && op.result == DD_OK, "not written");
    dd_buf_free(&operand);
}

/* ---- the client ---- */

static void dial(struct replay *r)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    to.sin_port = htons((uint16_t)atoi(strrchr(dd_http_listeners_text(r->listeners), ':') + 1));
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(connect(r->fd, (struct sockaddr *)&to, sizeof to) == 0, "not connected");
    setsockopt(r->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void make_request(struct replay *r, const char *path, const char *list, unsigned n, const char *end)
{
    char item[32];
    struct dd_buf body = {0};
    dd_buf_addf(&body, "{\"user\":\"user-%08u\",\"%s\":[", (unsigned)(rnd(r) % USERS), list);
    for (unsigned i = 0; i < n; i++) {
        item_name(r, item);
        dd_buf_addf(&body, "%s\"%s\"", i ? "," : "", item);
    }
    dd_buf_add_str(&body, end);
    dd_buf_reset(&r->request);
    dd_buf_addf(
        &r->request,
        "POST %s HTTP/1.1\r\nHost: replay\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
        path, body.len);
    dd_buf_add_slice(&r->request, dd_buf_slice(&body));
    must(dd_buf_ok(&r->request), "no memory");
    dd_buf_free(&body);
}

static bool is_whole(const char *reply, size_t n)
{
    const char *body = memmem(reply, n, "\r\n\r\n", 4), *length = memmem(reply, n, "Content-Length: ", 16);
    return body && length && (size_t)(reply + n - body - 4) >= strtoul(length + 16, NULL, 10);
}

static void exchange(struct replay *r)
{
    size_t n = 0;
    must(send(r->fd, r->request.data, r->request.len, 0) == (ssize_t)r->request.len, "not sent");
    do {
        dd_loop_turn(r->loop, 100);
        ssize_t got = recv(r->fd, r->reply + n, sizeof r->reply - n, MSG_DONTWAIT);
        if (got > 0) n += (size_t)got;
    } while (!is_whole(r->reply, n));
    must(memcmp(r->reply, "HTTP/1.1 200", 12) == 0, "an answer is not 200");
}

/* Names for the profiler; they must not become one. */
void replay_filter(struct replay *r);
void replay_claim(struct replay *r);
void replay_exposed(struct replay *r);

__attribute__((noinline)) void replay_filter(struct replay *r)
{
    exchange(r);
    __asm__ volatile("# filter");
}

__attribute__((noinline)) void replay_claim(struct replay *r)
{
    exchange(r);
    __asm__ volatile("# claim");
}

__attribute__((noinline)) void replay_exposed(struct replay *r)
{
    exchange(r);
    __asm__ volatile("# exposed");
}

int main(int argc, char **argv)
{
    static struct replay r;
    unsigned requests = argc > 2 ? (unsigned)atoi(argv[2]) : 200;
    must(argc > 1, "usage: replay DIRECTORY [requests]");
    dd_clock_init_manual(&r.clock, START_MS);
    open_store(&r, argv[1]);
    for (unsigned user = 0; user < USERS; user++)
        for (unsigned month = 0; month < 3; month++)
            fill(&r, user, month);
    dd_store_compact(r.store);
    serve(&r);
    dial(&r);
    for (unsigned i = 0; i < requests + USERS * 3; i++) {
        make_request(&r, "/filter", "candidates", 100, "]}");
        if (i < USERS * 3) /* into the block cache */
            exchange(&r);
        else
            replay_filter(&r);
    }
    for (unsigned i = 0; i < requests; i++) {
        make_request(&r, "/filter", "candidates", 100, "],\"claim\":true,\"limit\":5}");
        replay_claim(&r);
    }
    for (unsigned i = 0; i < requests; i++) {
        make_request(&r, "/exposed", "items", 10, "]}");
        replay_exposed(&r);
    }
    stop(&r);
    return 0;
}
