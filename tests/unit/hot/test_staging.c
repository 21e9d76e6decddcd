#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "hot/staging.h"
#include "world.h"

#define STORE "00aa11bb22cc33dd"
#define SLOT  ((struct dd_hot_slot){3600, 7200})

static struct world w;
static struct dd_hot_staging *staging;
static struct fetched seen;

static void open_world(void)
{
    w = (struct world){0};
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, world_is_up(&w));
    ck_assert_ok(dd_hot_staging_open(w.hot, &staging));
}

static void close_world(void)
{
    if (w.server.pid) kill(w.server.pid, SIGCONT);
    dd_hot_staging_close(staging);
    world_close(&w);
}

struct staged {
    struct dd_hot_stage st;
    struct dd_hot_stage_entry entry[64];
    uint32_t fps[64][16];
    char users[64][16];
    unsigned done;
};

static void stage_done(void *arg)
{
    ((struct staged *)arg)->done++;
}

static void prepare(struct staged *s, unsigned n)
{
    *s = (struct staged){
        .st = {.n = n, .slot_start_s = 3600, .slot_end_s = 7200, .pending_max = 1000, .done = stage_done}};
    s->st.arg = s;
    s->st.entries = s->entry;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < 16; k++)
            s->fps[i][k] = i * 100 + k;
        s->entry[i] = (struct dd_hot_stage_entry){
            .scene = dd_slice_str("home"),
            .user = dd_slice_of(s->users[i], (size_t)snprintf(s->users[i], 16, "u%u", i)),
            .period = month(0),
            .fps = s->fps[i],
            .n = 3};
    }
}

static void run(struct staged *s)
{
    ck_assert_err(dd_hot_stage(w.hl[0], &s->st), DD_PENDING);
    wait_for(&w, s->done);
    ck_assert_uint_eq(s->done, 1);
}

static void stage_users(unsigned n)
{
    static struct staged s;
    prepare(&s, n);
    run(&s);
    for (unsigned i = 0; i < n; i++)
        ck_assert_ok(s.entry[i].result);
}

/* Walks over everything and copies the users; returns how many. */
static unsigned walk_all(struct dd_hot_user *out, unsigned most)
{
    static struct dd_buf bytes;
    struct dd_hot_walk walk = {.slot = SLOT};
    unsigned total = 0;
    while (!walk.ended) {
        struct dd_hot_user *users;
        unsigned n;
        ck_assert_ok(dd_hot_staging_walk(staging, &walk, 10, &users, &n));
        for (unsigned i = 0; i < n; i++) {
            ck_assert_uint_lt(total, most);
            out[total] = users[i];
            uint8_t *copy = malloc(400);
            memcpy(copy, users[i].member.ptr, users[i].member.len);
            out[total].member.ptr = copy;
            out[total].scene.ptr = memcpy(copy + 150, users[i].scene.ptr, users[i].scene.len);
            out[total].user.ptr = memcpy(copy + 250, users[i].user.ptr, users[i].user.len);
            total++;
        }
    }
    dd_buf_free(&bytes);
    return total;
}

static void free_users(struct dd_hot_user *users, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        free((void *)(uintptr_t)users[i].member.ptr);
}

START_TEST(staged_exposures_are_seen)
{
    stage_users(2);
    fetch(&w, 0, "u1", &seen);
    ck_assert(seen.complete);
    ck_assert_str_eq(seen.pending[0], "100 101 102");
    ck_assert_str_eq(ask(&w.server, "SMEMBERS", "dd:s:" STORE, NULL), "3600-7200");
    ck_assert_str_eq(ask(&w.server, "OBJECT", "ENCODING", "dd:{home/u1}:p:" STORE ":2026-11", NULL),
                     "intset");
    ck_assert_str_eq(ask(&w.server, "TTL", "dd:{home/u1}:p:" STORE ":2026-11", NULL), "-1");
    uint64_t entries;
    ck_assert_ok(dd_hot_staging_slot_size(staging, SLOT, &entries));
    ck_assert_uint_eq(entries, 2);
}
END_TEST

START_TEST(fingerprints_are_signed)
{
    static struct staged s;
    prepare(&s, 1);
    uint32_t fps[4] = {0, 0x7fffffff, 0x80000000, 0xffffffff};
    s.entry[0].fps = fps;
    s.entry[0].n = 4;
    run(&s);
    fetch(&w, 0, "u0", &seen);
    ck_assert_str_eq(seen.pending[0], "-2147483648 -1 0 2147483647");
    struct dd_hot_user u = {.scene = dd_slice_str("home"), .user = dd_slice_str("u0"), .period = month(0)};
    ck_assert_ok(dd_hot_staging_read(staging, &u, 1));
    ck_assert_uint_eq(u.n, 4);
    ck_assert_ok(dd_hot_staging_remove(staging, &u, 1));
    fetch(&w, 0, "u0", &seen);
    ck_assert_str_eq(seen.pending[0], "");
}
END_TEST

START_TEST(the_cap_refuses_and_growth_ends)
{
    static struct staged s;
    unsigned size = 0;
    for (unsigned round = 0; round < 6; round++) {
        prepare(&s, 2);
        s.st.pending_max = 6;
        for (unsigned k = 0; k < 3; k++)
            s.fps[0][k] = round * 3 + k;
        run(&s);
        ck_assert_err(s.entry[0].result, round < 2 ? DD_OK : DD_LIMIT);
        ck_assert_ok(s.entry[1].result);
        size = (unsigned)atoi(ask(&w.server, "SCARD", "dd:{home/u0}:p:" STORE ":2026-11", NULL));
    }
    ck_assert_uint_eq(size, 9);
    /* flushed: there is room again */
    ask(&w.server, "DEL", "dd:{home/u0}:p:" STORE ":2026-11", NULL);
    for (int round = 0; round < 2; round++) {
        uint64_t before = counted(&w, "dedupd_hot_commands_total");
        prepare(&s, 2);
        s.st.pending_max = 6;
        run(&s);
        ck_assert(s.entry[0].result == DD_OK && s.entry[1].result == DD_OK);
        /* asked for once more, then no longer taken for full */
        ck_assert_uint_eq(counted(&w, "dedupd_hot_commands_total") - before, round == 0 ? 8 : 7);
    }
}
END_TEST

START_TEST(wrong_types_hurt_one_entry)
{
    static struct staged s;
    ask(&w.server, "SET", "dd:{home/u1}:p:" STORE ":2026-11", "x", NULL);
    prepare(&s, 3);
    run(&s);
    ck_assert(s.entry[0].result == DD_OK && s.entry[1].result == DD_UNAVAILABLE &&
              s.entry[2].result == DD_OK);
    ask(&w.server, "DEL", "dd:s:" STORE, NULL);
    ask(&w.server, "SET", "dd:s:" STORE, "x", NULL);
    prepare(&s, 1);
    run(&s);
    ck_assert_err(s.entry[0].result, DD_UNAVAILABLE);
}
END_TEST

START_TEST(a_full_redis_stages_nothing)
{
    static struct staged s;
    prepare(&s, 2);
    ask(&w.server, "CONFIG", "SET", "maxmemory", "1", NULL);
    run(&s);
    ck_assert(s.entry[0].result == DD_UNAVAILABLE && s.entry[1].result == DD_UNAVAILABLE);
}
END_TEST

START_TEST(bad_calls_and_outages)
{
    static struct staged s;
    prepare(&s, 0);
    ck_assert_err(dd_hot_stage(w.hl[0], &s.st), DD_INVALID);
    prepare(&s, 2);
    s.entry[1].n = 0;
    ck_assert_err(dd_hot_stage(w.hl[0], &s.st), DD_INVALID);
    prepare(&s, 2);
    kill(w.server.pid, SIGSTOP);
    run(&s);
    ck_assert(s.entry[0].result == DD_UNAVAILABLE && s.entry[1].result == DD_UNAVAILABLE);
    prepare(&s, 2);
    ck_assert_err(dd_hot_stage(w.hl[0], &s.st), DD_UNAVAILABLE);
    ck_assert_uint_eq(s.done, 0);
}
END_TEST

START_TEST(a_slot_is_walked_flushed_and_dropped)
{
    static struct dd_hot_user users[64];
    stage_users(50);
    const struct dd_hot_slot *slots;
    unsigned n;
    ck_assert_ok(dd_hot_staging_slots(staging, &slots, &n));
    ck_assert(n == 1 && slots[0].start_s == 3600 && slots[0].end_s == 7200);
    n = walk_all(users, 64);
    ck_assert_uint_eq(n, 50);
    ck_assert_ok(dd_hot_staging_read(staging, users, n));
    uint32_t sum = 0;
    for (unsigned i = 0; i < n; i++) {
        ck_assert(users[i].err == DD_OK && users[i].n == 3);
        sum += users[i].fps[0] + users[i].fps[1] + users[i].fps[2];
    }
    ck_assert_uint_eq(sum, 100 * 3 * (49 * 50 / 2) + 3 * 50);
    bool dropped = true;
    ck_assert_ok(dd_hot_staging_drop_slot(staging, SLOT, &dropped));
    ck_assert(!dropped);
    /* what is staged between reading and removal stays */
    static struct staged late;
    prepare(&late, 1);
    late.fps[0][2] = 77;
    run(&late);
    ck_assert_ok(dd_hot_staging_remove(staging, users, n));
    ck_assert_ok(dd_hot_staging_remove(staging, users, n));
    fetch(&w, 0, "u0", &seen);
    ck_assert_str_eq(seen.pending[0], "77");
    fetch(&w, 0, "u9", &seen);
    ck_assert_str_eq(seen.pending[0], "");
    ck_assert_ok(dd_hot_staging_unlist(staging, SLOT, users, n));
    ck_assert_ok(dd_hot_staging_drop_slot(staging, SLOT, &dropped));
    ck_assert(dropped);
    ck_assert_ok(dd_hot_staging_slots(staging, &slots, &n));
    ck_assert_uint_eq(n, 0);
    free_users(users, 50);
}
END_TEST

START_TEST(a_forgotten_script_is_loaded_again)
{
    stage_users(1);
    struct dd_hot_user u = {.scene = dd_slice_str("home"), .user = dd_slice_str("u0"), .period = month(0)};
    for (int round = 0; round < 3; round++) {
        bool dropped;
        stage_users(1);
        ck_assert_ok(dd_hot_staging_read(staging, &u, 1));
        ck_assert_uint_eq(u.n, 3);
        ask(&w.server, "SCRIPT", "FLUSH", NULL);
        ck_assert_ok(dd_hot_staging_remove(staging, &u, 1));
        ask(&w.server, "SCRIPT", "FLUSH", NULL);
        ck_assert_ok(dd_hot_staging_drop_slot(staging, SLOT, &dropped));
        ck_assert(!dropped);
    }
    fetch(&w, 0, "u0", &seen);
    ck_assert_str_eq(seen.pending[0], "");
}
END_TEST

START_TEST(more_than_ten_thousand_of_one_user)
{
    ask(&w.server, "EVAL", "for i=1,25000 do redis.call('SADD',KEYS[1],i) end", "1",
        "dd:{home/u}:p:" STORE ":2026-11", NULL);
    ask(&w.server, "EVAL", "for i=1,10000 do redis.call('SADD',KEYS[1],i) end", "1",
        "dd:{home/v}:p:" STORE ":2026-11", NULL);
    struct dd_hot_user u[3] = {
        {.scene = dd_slice_str("home"), .user = dd_slice_str("u"), .period = month(0)},
        {.scene = dd_slice_str("home"), .user = dd_slice_str("v"), .period = month(0)},
        {.scene = dd_slice_str("home"), .user = dd_slice_str("none"), .period = month(0)}};
    ck_assert_ok(dd_hot_staging_read(staging, u, 3));
    ck_assert(u[0].n >= 25000 && u[1].n == 10000 && u[2].n == 0 && u[2].err == DD_OK);
    ask(&w.server, "SADD", "dd:{home/u}:p:" STORE ":2026-11", "-1", NULL);
    ask(&w.server, "CONFIG", "SET", "maxmemory", "1", NULL); /* removal works in a full Redis */
    ck_assert_ok(dd_hot_staging_remove(staging, u, 3));
    ck_assert_str_eq(ask(&w.server, "SMEMBERS", "dd:{home/u}:p:" STORE ":2026-11", NULL), "-1");
    ck_assert_str_eq(ask(&w.server, "EXISTS", "dd:{home/v}:p:" STORE ":2026-11", NULL), "0");
}
END_TEST

START_TEST(strange_keys_are_left_alone)
{
    static struct dd_hot_user users[8];
    stage_users(1);
    ask(&w.server, "SADD", "dd:s:" STORE, "junk", "10-5", NULL);
    ask(&w.server, "SADD", "dd:a:" STORE ":3600-7200:3", "junk", "home/u/2026-13", NULL);
    ask(&w.server, "SET", "dd:a:" STORE ":3600-7200:4", "x", NULL);
    ask(&w.server, "DEL", "dd:{home/u0}:p:" STORE ":2026-11", NULL);
    ask(&w.server, "SET", "dd:{home/u0}:p:" STORE ":2026-11", "x", NULL);
    const struct dd_hot_slot *slots;
    unsigned n;
    uint64_t entries;
    ck_assert_ok(dd_hot_staging_slots(staging, &slots, &n));
    ck_assert_uint_eq(n, 1);
    ck_assert_ok(dd_hot_staging_slot_size(staging, SLOT, &entries));
    ck_assert_uint_eq(entries, 3);
    n = walk_all(users, 8);
    ck_assert_uint_eq(n, 1);
    ck_assert_ok(dd_hot_staging_read(staging, users, n));
    ck_assert(users[0].err == DD_CORRUPT && users[0].n == 0);
    ck_assert_ok(dd_hot_staging_remove(staging, users, n));
    free_users(users, n);
}
END_TEST

START_TEST(a_stalled_redis_is_an_error_in_time)
{
    static struct dd_hot_user users[4];
    stage_users(2);
    unsigned n = walk_all(users, 4);
    ck_assert_ok(dd_hot_staging_read(staging, users, n));
    kill(w.server.pid, SIGSTOP);
    int64_t begun = mono_ms();
    ck_assert_err(dd_hot_staging_remove(staging, users, n), DD_UNAVAILABLE);
    ck_assert_int_lt(mono_ms() - begun, unit_patience_ms(10000));
    ck_assert_str_eq(dd_hot_staging_error(staging), "redis: no answer in time");
    ck_assert_err(dd_hot_staging_remove(staging, users, n), DD_UNAVAILABLE);
    kill(w.server.pid, SIGCONT);
    begun = mono_ms();
    enum dd_err err;
    do {
        err = dd_hot_staging_remove(staging, users, n);
        world_turn(&w);
    } while (err == DD_UNAVAILABLE && mono_ms() - begun < unit_patience_ms(10000));
    ck_assert_ok(err);
    free_users(users, n);
}
END_TEST

START_TEST(a_killed_redis_is_an_error_and_comes_back)
{
    stage_users(1);
    const struct dd_hot_slot *slots;
    unsigned n;
    ck_assert_ok(dd_hot_staging_slots(staging, &slots, &n));
    server_kill(&w.server);
    ck_assert_err(dd_hot_staging_slots(staging, &slots, &n), DD_UNAVAILABLE);
    wait_for(&w, !world_is_up(&w));
    server_start(&w.server);
    int64_t begun = mono_ms();
    while (dd_hot_staging_slots(staging, &slots, &n) != DD_OK && mono_ms() - begun < unit_patience_ms(10000))
        world_turn(&w);
    ck_assert_uint_eq(n, 0);
    wait_for(&w, world_is_up(&w));
    struct dd_hot_durability d;
    dd_hot_get_durability(w.hot, &d);
    ck_assert(d.restarts == 1 && d.losses == 1 && !d.aof && !dd_hot_durability_is_firm(&d));
}
END_TEST

START_TEST(a_firm_redis_keeps_everything)
{
    close_world();
    w = (struct world){.server = {.extra = {"--appendonly", "yes", "--appendfsync", "always"}}};
    server_start(&w.server);
    world_open(&w, 1);
    wait_for(&w, world_is_up(&w));
    ck_assert_ok(dd_hot_staging_open(w.hot, &staging));
    stage_users(5);
    struct claimed c;
    claim(&w, 0, "u1", 1, 3, &c);
    server_kill(&w.server);
    wait_for(&w, !world_is_up(&w));
    server_start(&w.server);
    wait_for(&w, world_is_up(&w));
    fetch(&w, 0, "u1", &seen);
    ck_assert(seen.complete && seen.intact);
    ck_assert_str_eq(seen.pending[0], "100 101 102");
    ck_assert_str_eq(seen.recent, "i1 i2 i3");
    struct dd_hot_durability d;
    dd_hot_get_durability(w.hot, &d);
    ck_assert(d.restarts == 1 && d.losses == 0 && dd_hot_durability_is_firm(&d));
    ck_assert_str_eq(d.warnings, "");
}
END_TEST

START_TEST(an_erased_user_is_gone)
{
    stage_users(2);
    struct claimed c;
    claim(&w, 0, "u1", 1, 3, &c);
    dd_hot_cache_put(w.hl[0], dd_slice_str("home"), dd_slice_str("u1"), month(0), 1, 1, 1, 60000,
                     dd_slice_str("x"));
    fetch(&w, 0, "u1", &seen);
    ck_assert_str_eq(seen.cached[0], "1/1/x");
    struct dd_period periods[2] = {month(0), month(1)};
    unsigned removed;
    ck_assert_ok(
        dd_hot_erase(w.hot, staging, dd_slice_str("home"), dd_slice_str("u1"), periods, 2, &removed));
    ck_assert_uint_eq(removed, 3);
    ck_assert_str_eq(ask(&w.server, "KEYS", "*u1*", NULL), "");
    fetch(&w, 0, "u0", &seen);
    ck_assert_str_eq(seen.pending[0], "0 1 2");
    ck_assert_err(dd_hot_erase(w.hot, NULL, dd_slice_str("home"), dd_slice_str("u1"), periods, 2, &removed),
                  DD_INVALID);
}
END_TEST

START_TEST(embedded_has_no_staging)
{
    struct world e = {0};
    static struct staged s;
    struct dd_hot_staging *none;
    struct dd_hot_durability d;
    struct claimed c;
    unsigned removed;
    world_open(&e, 1);
    prepare(&s, 1);
    ck_assert_err(dd_hot_stage(e.hl[0], &s.st), DD_UNAVAILABLE);
    ck_assert_err(dd_hot_staging_open(e.hot, &none), DD_UNSUPPORTED);
    dd_hot_get_durability(e.hot, &d);
    ck_assert(!d.known);
    claim(&e, 0, "u1", 1, 3, &c);
    ck_assert_ok(dd_hot_erase(e.hot, NULL, dd_slice_str("home"), dd_slice_str("u1"), NULL, 0, &removed));
    ck_assert_uint_eq(removed, 1);
    world_close(&e);
}
END_TEST

Suite *suite_staging(void);
Suite *suite_staging(void)
{
    Suite *s = suite_create("hot staging");
    TCase *t = tcase_create("staging");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, open_world, close_world);
    tcase_add_test(t, staged_exposures_are_seen);
    tcase_add_test(t, fingerprints_are_signed);
    tcase_add_test(t, the_cap_refuses_and_growth_ends);
    tcase_add_test(t, wrong_types_hurt_one_entry);
    tcase_add_test(t, a_full_redis_stages_nothing);
    tcase_add_test(t, bad_calls_and_outages);
    tcase_add_test(t, a_slot_is_walked_flushed_and_dropped);
    tcase_add_test(t, a_forgotten_script_is_loaded_again);
    tcase_add_test(t, more_than_ten_thousand_of_one_user);
    tcase_add_test(t, strange_keys_are_left_alone);
    tcase_add_test(t, a_stalled_redis_is_an_error_in_time);
    tcase_add_test(t, a_killed_redis_is_an_error_and_comes_back);
    tcase_add_test(t, a_firm_redis_keeps_everything);
    tcase_add_test(t, an_erased_user_is_gone);
    tcase_add_test(t, embedded_has_no_staging);
    suite_add_tcase(s, t);
    return s;
}
