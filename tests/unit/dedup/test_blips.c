/* Redis goes and comes back in the middle of things: between any two steps of a flush, and while a direct
 * write waits for its commit. No answer that says full offers what was acknowledged. */
#include <semaphore.h>
#include <time.h>

#include "hand.h"

static const int ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static struct world w;
static struct world_answer a;

static void ask(void)
{
    world_filter(&w, "default", "alice", ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_ok(a.err);
}

static bool offered(int item)
{
    for (unsigned i = 0; i < a.n; i++)
        if (a.item[i] == item) return true;
    return false;
}

/* Twice: the second answer may come from the cache that the first one filled. */
static void check_seen(int item, unsigned at)
{
    for (int i = 0; i < 2; i++) {
        ask();
        ck_assert_msg(!a.partial, "blip %u: partial", at);
        ck_assert_msg(!offered(item), "blip %u: offered", at);
        ck_assert_uint_eq(a.n, 9);
    }
}

static void blip(void)
{
    world_redis_kill(&w);
    world_wait_hot(&w, false);
    ask();
    ck_assert(a.partial);
    world_redis_start(&w);
    world_wait_hot(&w, true);
}

/* The wheel's own connection may have to wait for its next attempt. */
static void flush(void)
{
    for (int tries = 0; tries < 1000; tries++) {
        world_flush(&w, true);
        if (w.flush.err != DD_UNAVAILABLE) break;
        world_turn(&w);
    }
    ck_assert_ok(w.flush.err);
}

START_TEST(a_blip_between_any_two_steps_of_a_flush)
{
    struct hand h;
    unsigned at = (unsigned)_i;
    hand_init(&h, &w, DD_FILTER_BLOOM);
    hand_stage(&h, 3);
    ck_assert_ok(hand_walk(&h));
    if (at == 0) blip();
    hand_read(&h);
    if (at == 1) blip();
    ck_assert_ok(hand_commit(&h));
    check_seen(3, at);
    if (at == 2) blip();
    check_seen(3, at);
    hand_remove(&h);
    if (at == 3) blip();
    check_seen(3, at);
    hand_unlist(&h);
    if (at == 4) blip();
    check_seen(3, at);
    flush();
    ck_assert_uint_eq(w.flush.items, 0);
    check_seen(3, at);
    hand_free(&h);
}
END_TEST

static sem_t gate;

static enum dd_err stand_still(void *arg, struct dd_slice current, struct dd_buf *out)
{
    struct timespec until;
    (void)arg;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30;
    sem_timedwait(&gate, &until);
    dd_buf_add_slice(out, current);
    return DD_OK;
}

static void on_done(void *arg)
{
    if (arg) *(bool *)arg = true;
}

/* The writer stands still inside a commit until gate is posted. */
static void close_gate(struct dd_store_op *op, struct dd_store_batch *batch)
{
    sem_init(&gate, 0, 0);
    *op = (struct dd_store_op){.kind = DD_STORE_UPDATE,
                               .scene = dd_slice_str("default"),
                               .user = dd_slice_str("somebody"),
                               .period = world_period(&w),
                               .update = stand_still,
                               .read_number = UINT64_MAX};
    *batch = (struct dd_store_batch){.ops = op, .n = 1, .done = on_done};
    ck_assert_err(dd_store_write(w.store, batch), DD_PENDING);
}

START_TEST(a_direct_write_that_commits_after_redis_came_back)
{
    struct hand h;
    struct dd_store_op op;
    struct dd_store_batch batch;
    struct world_call call;
    hand_init(&h, &w, DD_FILTER_BLOOM);
    ask(); /* the cache holds the empty sets */
    world_redis_kill(&w);
    world_wait_hot(&w, false);
    close_gate(&op, &batch);
    world_exposed_start(&w, "default", "alice", &ten[3], 1, &call);
    world_redis_start(&w);
    world_wait_hot(&w, true);
    for (int i = 0; i < 3; i++) /* filled anew, before the commit */
        ask();
    ck_assert(offered(3) && !a.partial);
    ck_assert(!call.done);
    sem_post(&gate);
    ck_assert_ok(world_exposed_end(&w, &call));
    ck_assert_int_eq(w.last_durability, DD_DURABLE_WAL);
    check_seen(3, 0);
    hand_free(&h);
}
END_TEST

/* Redis dies while the wheel's batch waits for its commit, and is back before the commit is there. */
START_TEST(a_blip_while_the_wheels_batch_waits_for_its_commit)
{
    struct hand h;
    struct dd_store_op op;
    struct dd_store_batch batch;
    bool flushed = false;
    hand_init(&h, &w, DD_FILTER_BLOOM);
    hand_stage(&h, 3);
    close_gate(&op, &batch);
    w.flush = (struct dd_wheel_flush){.all = true, .loop = w.loop, .done = on_done, .arg = &flushed};
    ck_assert_err(dd_wheel_flush(w.wheel, &w.flush), DD_PENDING);
    blip(); /* meanwhile the wheel has read, and waits for the writer */
    check_seen(3, 0);
    sem_post(&gate);
    for (int turns = 0; !flushed && turns < 3000; turns++)
        world_turn(&w);
    ck_assert(flushed);
    check_seen(3, 1);
    flush();
    check_seen(3, 2);
    ck_assert_int_eq(world_redis_cli(&w, "EVAL \"if #redis.call('KEYS', 'dd:*:p:*') > 0 then "
                                         "return redis.error_reply('pending') end return 1\" 0"),
                     0);
    hand_free(&h);
}
END_TEST

Suite *suite_blips(void);
Suite *suite_blips(void)
{
    Suite *s = suite_create("dedup/blips");
    TCase *t = tcase_create("blips");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_blip_between_any_two_steps_of_a_flush, 0, 5);
    tcase_add_test(t, a_direct_write_that_commits_after_redis_came_back);
    tcase_add_test(t, a_blip_while_the_wheels_batch_waits_for_its_commit);
    suite_add_tcase(s, t);
    return s;
}
