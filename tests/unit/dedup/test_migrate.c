/* Migration: interleavings of a request, a migration and an erase, forced. The migrator's steps are done by
 * hand, on a world without hot tier whose old keys are in a Redis. */
#include "dedup/migrate_impl.h"

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "dedup/filter_impl.h"
#include "store/store_impl.h"
#include "world.h"

static struct world w;
static struct dd_migrate *m;
static const struct dd_slice alice = {(const uint8_t *)"alice", 5};
static const int items[] = {1, 2, 3};

static void begin_on(enum dd_migrate_after after)
{
    char path[600];
    world_redis_start(&w);
    snprintf(path, sizeof path, "%s/redis.sock", w.dir);
    struct dd_hot_options server = {.path = path, .connect_timeout_ms = 2000, .timeout_ms = 2000};
    struct dd_migrate_options o = {.scene = dd_scenes_find(w.scenes, dd_slice_str("default")),
                                   .legacy = {.server = &server, .key = "old:{user}"},
                                   .dual = true,
                                   .margin_ms = 0,
                                   .after = after};
    dd_dedup_loop_destroy(w.dl);
    ck_assert_ok(dd_migrate_create(&o, w.dedup, w.stats, &m));
    ck_assert_ok(dd_dedup_loop_create(w.dedup, w.loop, &w.dl));
    struct world_answer a;
    do { /* until the connection stands */
        world_turn(&w);
        world_filter(&w, "default", "nobody", items, 1, 0, DD_CLAIM_NONE, false, &a);
    } while (a.partial);
}

static void begin(enum dd_migrate_after after)
{
    world_init(&w, false);
    begin_on(after);
}

static void end(void)
{
    dd_dedup_loop_destroy(w.dl);
    dd_migrate_destroy(m);
    ck_assert_ok(dd_dedup_loop_create(w.dedup, w.loop, &w.dl));
    world_free(&w);
}

/* Item i1, an hour old. */
static void seed(void)
{
    char command[100];
    snprintf(command, sizeof command, "ZADD old:alice %lld i1", (WORLD_START_MS - 3600000) / 1000);
    ck_assert_int_eq(world_redis_cli(&w, command), 0);
}

static void expect(const struct world_answer *a, unsigned n, int first)
{
    ck_assert_ok(a->err);
    ck_assert(!a->partial);
    ck_assert_uint_eq(a->n, n);
    ck_assert_int_eq(a->item[0], first);
}

static void ask(unsigned n, int first)
{
    struct world_answer a;
    world_filter(&w, "default", "alice", items, 3, 0, DD_CLAIM_NONE, false, &a);
    expect(&a, n, first);
}

static void migrate(void)
{
    ck_assert_ok(dd_migrate_take(m, alice, NULL));
    ck_assert_ok(dd_migrate_flush(m, NULL));
}

static void erase(void)
{
    unsigned keys = 0;
    struct dd_store_op op = {.kind = DD_STORE_ERASE, .scene = dd_slice_str("default"), .user = alice};
    op.period = dd_period_at(DD_PERIOD_MONTH, dd_clock_wall(&w.clock));
    struct dd_store_batch batch = {.ops = &op, .n = 1, .sync = true};
    ck_assert_ok(dd_migrate_erase(m, op.scene, alice, false, &keys));
    ck_assert_ok(dd_store_write_wait(w.store, &batch));
}

/* The request has looked at the sets, then its user is migrated and his key emptied, then the question
 * reaches the old store. */
START_TEST(moved_between_the_two_reads)
{
    struct world_call call;
    struct world_answer a;
    begin(DD_AFTER_DELETE);
    seed();
    world_filter_start(&w, "default", "alice", items, 3, &call);
    ck_assert(!call.done);
    migrate();
    ck_assert_int_ne(world_redis_cli(&w, "RENAME old:alice other"), 0); /* no such key */
    world_filter_end(&w, &call, &a);
    expect(&a, 2, 2);
    end();
}
END_TEST

static void hold_pool(void *arg)
{
    while (sem_wait(arg) != 0) {
    }
}

static void ignore(void *arg)
{
    (void)arg;
}

/* The sets that were in memory have been judged and an older one is still being read from its file when the
 * user is migrated, his key emptied, and the old store answers. */
START_TEST(moved_while_a_file_is_read)
{
    struct world_call call;
    struct world_answer a;
    sem_t gate;
    int long_ago = 77;
    world_init(&w, false);
    ck_assert_ok(
        world_exposed(&w, "default", "alice", &long_ago, 1, dd_clock_wall(&w.clock).ms - 40LL * 86400000));
    world_close(&w, true); /* nothing is in memory afterwards */
    world_open(&w);
    begin_on(DD_AFTER_DELETE);
    seed();
    ck_assert_int_eq(sem_init(&gate, 0, 0), 0);
    struct dd_job job = {.run = hold_pool, .done = ignore, .arg = &gate, .loop = w.loop};
    ck_assert_ok(dd_pool_submit(w.store->pool, &job));
    world_filter_start(&w, "default", "alice", items, 3, &call);
    migrate();
    const struct dd_filter_state *s = call.filter.state;
    while (s->dual_pending)
        world_turn(&w);
    ck_assert(!call.done);
    sem_post(&gate);
    world_filter_end(&w, &call, &a);
    expect(&a, 2, 2);
    end();
    sem_destroy(&gate);
}
END_TEST

START_TEST(before_and_after)
{
    struct dd_migrate_mark mark;
    begin(DD_AFTER_KEEP);
    seed();
    ask(2, 2);
    migrate();
    ck_assert_ok(dd_mark_get(m, alice, &mark));
    ck_assert(mark.migrated && !mark.erased);
    ck_assert_uint_eq(mark.entries, 1);
    ck_assert_int_eq(world_redis_cli(&w, "DEL old:alice"), 0);
    ask(2, 2);
    end();
}
END_TEST

/* Read, erased, written: what was read is stripped, and the mark of the erase stays. */
START_TEST(erased_between_read_and_write)
{
    struct dd_migrate_mark mark;
    begin(DD_AFTER_DELETE);
    seed();
    ck_assert_ok(dd_migrate_take(m, alice, NULL));
    erase();
    ck_assert_ok(dd_migrate_flush(m, NULL));
    ck_assert_ok(dd_mark_get(m, alice, &mark));
    ck_assert(mark.erased && !mark.migrated);
    ask(3, 1);
    migrate(); /* what is older than the erase is not taken */
    ck_assert_ok(dd_mark_get(m, alice, &mark));
    ck_assert(mark.erased && mark.migrated);
    ck_assert_uint_eq(mark.entries, 0);
    ask(3, 1);
    end();
}
END_TEST

/* Entries of the old key after an erase are new ones. */
START_TEST(seen_after_the_erase)
{
    char command[100];
    begin(DD_AFTER_KEEP);
    seed();
    erase();
    ask(3, 1);
    snprintf(command, sizeof command, "ZADD old:alice %lld i1", WORLD_START_MS + 1);
    ck_assert_int_eq(world_redis_cli(&w, command), 0);
    ask(2, 2);
    dd_clock_move(&w.clock, 60000);
    migrate();
    ck_assert_int_eq(world_redis_cli(&w, "DEL old:alice"), 0);
    ask(2, 2);
    end();
}
END_TEST

/* A mark that was lost with the log costs another migration; one that is no mark reads as none. */
START_TEST(marks)
{
    static const uint8_t foreign[34] = {9, 3};
    struct dd_migrate_mark in = {true, true, 123, 456, 7, 8}, out;
    struct dd_buf b = {0};
    dd_mark_encode(&in, &b);
    out = dd_mark_decode(dd_buf_slice(&b));
    ck_assert(out.migrated && out.erased);
    ck_assert_int_eq(out.mark_ms, 123);
    ck_assert_int_eq(out.erased_ms, 456);
    ck_assert_uint_eq(out.entries + out.skipped, 15);
    out = dd_mark_decode(dd_slice_of(b.data, b.len - 1));
    ck_assert(!out.migrated && !out.erased);
    out = dd_mark_decode(dd_slice_of(foreign, sizeof foreign));
    ck_assert(!out.migrated && !out.erased);
    dd_buf_free(&b);
}
END_TEST

Suite *suite_migrate(void);
Suite *suite_migrate(void)
{
    Suite *s = suite_create("migrate");
    TCase *tc = tcase_create("migrate");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, moved_between_the_two_reads);
    tcase_add_test(tc, moved_while_a_file_is_read);
    tcase_add_test(tc, before_and_after);
    tcase_add_test(tc, erased_between_read_and_write);
    tcase_add_test(tc, seen_after_the_erase);
    tcase_add_test(tc, marks);
    suite_add_tcase(s, tc);
    return s;
}
