/* What the files of lib/hot share. Nothing outside includes it. */
#ifndef DD_HOT_INTERNAL_H
#define DD_HOT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "hot/hot.h"
#include "hot/memory.h"
#include "hot/redis_conn.h"
#include "hot/resolve.h"
#include "hot/server.h"

struct dd_hot {
    struct dd_hot_options o; /* its strings are copies */
    struct dd_slice store;
    bool embedded;
    struct dd_clock *clock;
    struct dd_mem *mem;
    struct dd_resolve *resolve; /* NULL: embedded, or a Unix socket */
    struct dd_server server;
    struct {
        struct dd_counter *commands, *errors, *connects, *failures, *wrong_type, *bad_value, *bad_member;
        struct dd_counter *memory_claims, *put_skipped, *busy;
        struct dd_gauge *up;
        struct dd_histogram *fetch;
    } count;
    pthread_mutex_t lock; /* below */
    unsigned connections, connections_up;
    int64_t down_since_ms;
    char last_error[128];
};

struct dd_fetch_ctx;
struct dd_claim_ctx;
struct dd_stage_ctx;

/* Keys of users whose pending was met at its cap: they are asked before anything is added (redis_stage.c). */
#define DD_FULL_TABLE 256

struct dd_hot_loop {
    struct dd_hot *h;
    struct dd_loop *loop;
    struct dd_redis conn;
    struct dd_timer watch;
    struct dd_server_sample sample; /* being taken */
    bool sampling, was_up;
    struct dd_buf command, key; /* scratch */
    struct dd_fetch_ctx *free_fetch;
    struct dd_claim_ctx *free_claim;
    struct dd_stage_ctx *free_stage;
    uint64_t full[DD_FULL_TABLE];
};

/* redis_hello.c: what is said first on a connection, and every ten seconds. */
void dd_hot_hello(struct dd_hot_loop *hl);
void dd_hot_sample(struct dd_hot_loop *hl);

/* hot.c */
bool dd_hot_is_intact(const struct dd_hot *h, int64_t now_ms);

/* Sends hl->command. */
enum dd_err dd_hot_send(struct dd_hot_loop *hl, dd_redis_fn fn, void *arg) DD_MUST_USE;
/* The same, and nobody waits for the reply; a failure is counted. */
void dd_hot_send_forgotten(struct dd_hot_loop *hl);
/* hl->key becomes the beginning of a user's keys, and is its length. */
size_t dd_hot_begin_user(struct dd_hot_loop *hl, struct dd_slice scene, struct dd_slice user);
/* Each counts an error reply. */
void dd_hot_count_error(struct dd_hot_loop *hl, const struct redisReply *reply);

/* fetch.c, claim.c: their contexts are freed with the loop. */
void dd_hot_free_fetches(struct dd_hot_loop *hl);
void dd_hot_free_claims(struct dd_hot_loop *hl);
void dd_hot_free_stages(struct dd_hot_loop *hl);

#endif
