#include "world.h"

#include "dedup/staged.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void path_of(const struct world *w, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", w->dir, name);
}

void world_init(struct world *w, bool with_redis)
{
    *w = (struct world){
        .options = {.deadline_ms = 30000, .max_future_ms = 300000, .pending_max = 20000},
        .wheel_options = {
            .slot_s = 3600, .grace_s = 30, .batch_users = 256, .tick_ms = 20, .lag_warn_s = 7200}};
    signal(SIGPIPE, SIG_IGN); /* as main does: hiredis writes to sockets that may be closed */
    w->dir = unit_mkdir();
    dd_clock_init_manual(&w->clock, WORLD_START_MS);
    struct dd_scene scene = {
        .name = "default",
        .period = DD_PERIOD_MONTH,
        .window = 3,
        .policy = {.kind = DD_FILTER_BLOOM, .fpr = 0.001 / 3, .capacity = 128, .cap = 200000, .growth = 2},
        .recent_max = 100,
        .recent_ttl_ms = 1800000,
        .cache_ttl_ms = 1800000};
    w->scene[0] = scene;
    strcpy(scene.name, "push");
    w->scene[1] = scene;
    w->scene_n = 2;
    if (with_redis) world_redis_start(w);
    world_open(w);
}

void world_free(struct world *w)
{
    if (w->store) world_close(w, true);
    if (w->redis) world_redis_kill(w);
    unit_rmdir(w->dir);
}

static bool has_redis(const struct world *w)
{
    return w->redis && !w->without_redis;
}

static void open_hot(struct world *w)
{
    char socket[600];
    path_of(w, "redis.sock", socket, sizeof socket);
    struct dd_hot_options o = {.path = has_redis(w) ? socket : NULL,
                               .connect_timeout_ms = (int)unit_patience_ms(2000),
                               .timeout_ms = (int)unit_patience_ms(2000),
                               .retry_max_ms = 100,
                               .max_inflight = 4096,
                               .max_output_bytes = 8 << 20,
                               .memory_max_bytes = 16 << 20,
                               .store_id = dd_store_id(w->store),
                               .recent_ttl_ms_max = 1800000};
    ck_assert_ok(dd_hot_create(&o, &w->clock, w->stats, &w->hot));
    dd_staged_recall(w->store, w->hot);
    uint64_t incarnation, number;
    if (has_redis(w) && dd_hot_witness_get(w->hot, &incarnation, &number) == DD_OK)
        (void)dd_store_resume(w->store, incarnation, number);
    char saved[600];
    path_of(w, "deliveries", saved, sizeof saved);
    if (!has_redis(w)) {
        enum dd_err err = dd_hot_memory_load(w->hot, saved);
        ck_assert(err == DD_OK || err == DD_NOT_FOUND);
    }
}

void world_open(struct world *w)
{
    char data[600];
    path_of(w, "data", data, sizeof data);
    struct dd_store_options o = {.path = data,
                                 .block_cache_bytes = 8 << 20,
                                 .write_buffer_bytes = 1 << 20,
                                 .max_open_files = 100,
                                 .pool_threads = 1,
                                 .pool_queue = 64,
                                 .change_cells = 1024,
                                 .change_tables = 4,
                                 .batch_max = 64};
    ck_assert_ok(dd_stats_create(&w->stats));
    ck_assert_ok(dd_scenes_create(w->scene, w->scene_n, &w->scenes));
    ck_assert_ok(dd_store_open(&o, w->stats, &w->store));
    open_hot(w);
    for (unsigned i = 0; i < w->scene_n; i++) {
        enum dd_period_kind existing;
        ck_assert_ok(dd_store_register_scene(w->store, dd_scene_slice(&w->scene[i]), w->scene[i].period,
                                             w->scene[i].window, &existing));
    }
    if (w->redis && w->wheel_options.stage)
        ck_assert_ok(
            dd_wheel_create(&w->wheel_options, w->store, w->hot, w->scenes, &w->clock, w->stats, &w->wheel));
    ck_assert_ok(
        dd_dedup_create(&w->options, w->scenes, w->store, w->hot, w->wheel, &w->clock, w->stats, &w->dedup));
    ck_assert_ok(dd_loop_create(&w->loop));
    ck_assert_ok(dd_dedup_loop_create(w->dedup, w->loop, &w->dl));
    if (has_redis(w)) world_wait_hot(w, true);
}

void world_close(struct world *w, bool clean)
{
    while (dd_dedup_loop_inflight(w->dl))
        world_turn(w);
    dd_dedup_loop_destroy(w->dl);
    dd_dedup_destroy(w->dedup);
    dd_wheel_destroy(w->wheel);
    w->wheel = NULL;
    const struct dd_change *change = dd_store_change(w->store);
    char saved[600];
    path_of(w, "deliveries", saved, sizeof saved);
    if (clean && has_redis(w))
        ck_assert_int_ge(dd_hot_witness_put(w->hot, dd_change_incarnation(change), dd_change_number(change)),
                         DD_OK);
    if (clean && !has_redis(w)) ck_assert_ok(dd_hot_memory_save(w->hot, saved));
    dd_hot_destroy(w->hot);
    dd_store_close(w->store, clean);
    dd_loop_destroy(w->loop);
    dd_scenes_destroy(w->scenes);
    dd_stats_destroy(w->stats);
    w->store = NULL;
}

void world_turn(struct world *w)
{
    dd_loop_turn(w->loop, 10);
}

void world_redis_start(struct world *w)
{
    char socket[600], log[600];
    path_of(w, "redis.sock", socket, sizeof socket);
    path_of(w, "redis.log", log, sizeof log);
    w->redis = fork();
    ck_assert_int_ge(w->redis, 0);
    if (w->redis == 0) {
        execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket, "--dir", w->dir,
               "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--logfile", log,
               (char *)NULL);
        _exit(127);
    }
    int64_t deadline = mono_ms() + unit_patience_ms(30000);
    while (world_redis_cli(w, "ping") != 0)
        ck_assert_msg(mono_ms() < deadline, "redis-server did not start");
}

void world_redis_kill(struct world *w)
{
    kill(w->redis, SIGKILL);
    waitpid(w->redis, NULL, 0);
    w->redis = 0;
}

int world_redis_cli(struct world *w, const char *command)
{
    char line[2000];
    snprintf(line, sizeof line, "redis-cli -e -s %s/redis.sock %s >/dev/null 2>&1", w->dir, command);
    return system(line);
}

void world_wait_hot(struct world *w, bool up)
{
    int64_t deadline = mono_ms() + unit_patience_ms(30000);
    struct dd_hot_status s;
    do {
        ck_assert_msg(mono_ms() < deadline, "the hot tier did not come %s", up ? "up" : "down");
        world_turn(w);
        dd_hot_get_status(w->hot, &s);
    } while (s.up != up);
}

void world_wipe(struct world *w)
{
    char data[600];
    path_of(w, "data", data, sizeof data);
    unit_rmdir(strdup(data));
}

static void until(int64_t deadline_ms, const char *what)
{
    ck_assert_msg(mono_ms() < deadline_ms, "%s", what);
}

void world_wait_staging(struct world *w)
{
    int64_t deadline = mono_ms() + unit_patience_ms(30000);
    while (dd_wheel_staging(w->wheel) == DD_STAGING_OFF || dd_wheel_oldest_s(w->wheel) == INT64_MIN) {
        until(deadline, "staging did not begin");
        world_turn(w);
    }
}

void world_wait_no_slots(struct world *w)
{
    int64_t deadline = mono_ms() + unit_patience_ms(30000);
    struct dd_wheel_status s;
    do {
        until(deadline, "the slots were not emptied");
        sched_yield();
        dd_wheel_get_status(w->wheel, &s);
    } while (!s.known || s.slots);
}

void world_wait_flushed(struct world *w, uint64_t users)
{
    int64_t deadline = mono_ms() + unit_patience_ms(30000);
    struct dd_wheel_status s;
    do {
        until(deadline, "the slot was not flushed");
        sched_yield();
        dd_wheel_get_status(w->wheel, &s);
    } while (s.users_flushed < users);
}

static void on_flushed(void *arg)
{
    *(bool *)arg = true;
}

void world_flush(struct world *w, bool all)
{
    int64_t deadline = mono_ms() + unit_patience_ms(30000);
    bool flushed = false;
    w->flush = (struct dd_wheel_flush){.all = all, .loop = w->loop, .done = on_flushed, .arg = &flushed};
    ck_assert_err(dd_wheel_flush(w->wheel, &w->flush), DD_PENDING);
    while (!flushed) {
        until(deadline, "the flush did not end");
        world_turn(w);
    }
}

struct dd_period world_period(struct world *w)
{
    return dd_period_at(DD_PERIOD_MONTH, dd_clock_wall(&w->clock));
}

/* ---- the writer held ---- */

static enum dd_err hold(void *arg, struct dd_slice current, struct dd_buf *out)
{
    struct world_gate *g = arg;
    (void)current, (void)out;
    sem_post(&g->entered);
    while (sem_wait(&g->leave) != 0) {
    }
    return DD_NOT_FOUND;
}

static void ignore(void *arg)
{
    (void)arg;
}

void world_gate_shut(struct world *w, struct world_gate *g)
{
    /* The wheel's first turn writes to the store; behind the gate it would wait, and do nothing else. */
    if (w->wheel) world_flush(w, false);
    *g = (struct world_gate){.op = {.kind = DD_STORE_UPDATE,
                                    .scene = dd_slice_str("push"),
                                    .user = dd_slice_str("gate"),
                                    .period = world_period(w),
                                    .update = hold,
                                    .update_arg = g,
                                    .read_number = UINT64_MAX}};
    g->batch = (struct dd_store_batch){.ops = &g->op, .n = 1, .loop = w->loop, .done = ignore};
    sem_init(&g->entered, 0, 0);
    sem_init(&g->leave, 0, 0);
    ck_assert_err(dd_store_write(w->store, &g->batch), DD_PENDING);
    while (sem_wait(&g->entered) != 0) {
    }
}

void world_gate_open(struct world_gate *g)
{
    sem_post(&g->leave);
}

void world_wait_queued(struct world *w, unsigned n)
{
    int64_t deadline = mono_ms() + unit_patience_ms(30000);
    struct dd_store_status s;
    do {
        until(deadline, "nothing more was pushed to the writer");
        world_turn(w);
        dd_store_get_status(w->store, &s);
    } while (s.write_queue < n);
}

/* ---- calls ---- */

static void on_done(void *arg)
{
    struct world_call *p = arg;
    ck_assert(!p->done && !p->finished);
    p->done = true;
}

static void on_finished(void *arg)
{
    struct world_call *p = arg;
    ck_assert(p->done && !p->finished);
    p->finished = true;
}

static void run_until_finished(struct world *w, struct world_call *p)
{
    int64_t deadline = mono_ms() + unit_patience_ms(30000);
    while (!p->finished) {
        until(deadline, "a call did not finish");
        world_turn(w);
    }
}

static struct dd_item *make_items(struct world_call *p, const int *items, unsigned n)
{
    struct dd_item *out = dd_arena_calloc(&p->arena, n, sizeof *out);
    for (unsigned i = 0; i < n; i++) {
        char text[16];
        snprintf(text, sizeof text, "i%d", items[i]);
        out[i].id = out[i].echo = dd_arena_copy(&p->arena, dd_slice_str(text));
    }
    return out;
}

static void start_exposed(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                          int64_t ts_ms, struct world_call *p)
{
    *p = (struct world_call){0};
    p->event = (struct dd_exposed_event){.scene = dd_scenes_find(w->scenes, dd_slice_str(scene)),
                                         .user = dd_slice_str(user),
                                         .items = make_items(p, items, n),
                                         .n = n,
                                         .ts_ms = ts_ms};
    p->exposed = (struct dd_exposed_call){
        .events = &p->event, .n = 1, .arena = &p->arena, .done = on_done, .finished = on_finished, .arg = p};
    dd_dedup_exposed(w->dl, &p->exposed);
}

void world_exposed_start(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                         struct world_call *p)
{
    start_exposed(w, scene, user, items, n, DD_TS_NOW, p);
}

enum dd_err world_exposed_end(struct world *w, struct world_call *p)
{
    run_until_finished(w, p);
    w->last_durability = p->exposed.durability;
    dd_arena_free(&p->arena);
    return p->exposed.err == DD_OK ? p->event.result : p->exposed.err;
}

enum dd_err world_exposed(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                          int64_t ts_ms)
{
    struct world_call p;
    start_exposed(w, scene, user, items, n, ts_ms, &p);
    return world_exposed_end(w, &p);
}

static void start_filter(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                         unsigned limit, enum dd_claim claim, bool explain, struct world_call *p)
{
    *p = (struct world_call){0};
    p->filter = (struct dd_filter_call){.scene = dd_scenes_find(w->scenes, dd_slice_str(scene)),
                                        .user = dd_slice_str(user),
                                        .items = make_items(p, items, n),
                                        .n = n,
                                        .limit = limit,
                                        .claim = claim,
                                        .explain = explain,
                                        .max_seen = w->max_seen,
                                        .arena = &p->arena,
                                        .done = on_done,
                                        .finished = on_finished,
                                        .arg = p};
    dd_dedup_filter(w->dl, &p->filter);
}

static void end_filter(struct world *w, struct world_call *p, const int *items, struct world_answer *out)
{
    const struct dd_filter_call *c = &p->filter;
    run_until_finished(w, p);
    *out = (struct world_answer){.err = c->err, .partial = c->partial, .filtered = c->filtered};
    for (; c->err == DD_OK && out->n < c->chosen_n; out->n++)
        out->item[out->n] = items[c->chosen[out->n]];
    if (c->err == DD_OK) memcpy(out->reason, c->reason, c->n);
    dd_arena_free(&p->arena);
}

void world_filter_start(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                        struct world_call *p)
{
    ck_assert_uint_le(n, 64);
    start_filter(w, scene, user, items, n, 0, DD_CLAIM_NONE, false, p);
    memcpy(p->items, items, n * sizeof *items);
}

void world_filter_end(struct world *w, struct world_call *p, struct world_answer *out)
{
    end_filter(w, p, p->items, out);
}

void world_filter(struct world *w, const char *scene, const char *user, const int *items, unsigned n,
                  unsigned limit, enum dd_claim claim, bool explain, struct world_answer *out)
{
    struct world_call p;
    ck_assert_uint_le(n, 4096);
    start_filter(w, scene, user, items, n, limit, claim, explain, &p);
    end_filter(w, &p, items, out);
}
