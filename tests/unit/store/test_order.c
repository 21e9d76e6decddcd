/* Groups, and the orders that the change table lives by, each forced. The writer is held inside an update,
 * which stands between "RocksDB has what came before in the group" and "the number is published". */
#include "fixture.h"

#define P    month(100)
#define MANY 100

struct order {
    struct dd_store *store;
    unsigned n;
    unsigned seen[4 * MANY];
};

struct request {
    struct dd_store_batch batch;
    struct dd_store_op op;
    struct dd_buf operand;
    struct order *order;
    unsigned index;
    char user[16];
    bool raised; /* the cell stood at the commit's number when done ran */
};

static void record_done(void *arg)
{
    struct request *r = arg;
    struct order *o = r->order;
    o->seen[o->n++] = r->index;
    const struct dd_change *c = dd_store_change(o->store);
    uint64_t user = dd_hash_user_seed(dd_store_secret(o->store), SCENE, r->op.user);
    r->raised = dd_change_number(c) == r->batch.number && dd_change_cell(c, P, user) == r->batch.number;
}

static void request_init(struct request *r, struct order *o, unsigned i)
{
    memset(r, 0, sizeof *r);
    snprintf(r->user, sizeof r->user, "u%u", i);
    r->operand = operand_of(i);
    r->order = o;
    r->index = i;
    r->op = (struct dd_store_op){.kind = DD_STORE_MERGE,
                                 .scene = SCENE,
                                 .user = dd_slice_str(r->user),
                                 .period = P,
                                 .operand = dd_buf_slice(&r->operand),
                                 .read_number = UINT64_MAX};
    r->batch = (struct dd_store_batch){.ops = &r->op, .n = 1, .done = record_done, .arg = r};
}

/* The writer is idle again once a write of ours has come back. */
static void drain(struct dd_store *s)
{
    enum dd_err err;
    while ((err = erase_set(s, "drain", month(1))) == DD_BUSY) {
    }
    ck_assert_ok(err);
}

START_TEST(order_a_group_is_one_commit_in_the_order_of_writing)
{
    struct fixture f;
    fixture_open(&f);
    struct order o = {.store = f.store};
    static struct request r[MANY];
    struct gate g;
    gate_shut(&g, f.store, "gate");
    for (unsigned i = 0; i < MANY; i++) {
        request_init(&r[i], &o, i);
        ck_assert_err(dd_store_write(f.store, &r[i].batch), DD_PENDING);
    }
    gate_open(&g);
    drain(f.store);
    ck_assert_uint_eq(o.n, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_uint_eq(o.seen[i], i);
        ck_assert_ok(r[i].batch.err);
        ck_assert_ok(r[i].op.result);
        ck_assert(r[i].raised);
        /* Groups of batch_max = 32; the gate's own group wrote nothing and took no number. */
        ck_assert_uint_eq(r[i].batch.number, 1 + i / 32);
        ck_assert(has(f.store, r[i].user, P, i));
        dd_buf_free(&r[i].operand);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(order_a_full_queue_is_busy_and_loses_nothing)
{
    struct fixture f;
    fixture_open(&f);
    f.store->writer.queue_max = 3 * MANY;
    struct order o = {.store = f.store};
    static struct request r[4 * MANY];
    struct gate g;
    gate_shut(&g, f.store, "gate");
    unsigned accepted = 0;
    for (unsigned i = 0; i < 4 * MANY; i++) {
        request_init(&r[i], &o, i);
        enum dd_err err = dd_store_write(f.store, &r[i].batch);
        ck_assert(err == DD_PENDING || err == DD_BUSY);
        accepted += err == DD_PENDING;
    }
    ck_assert_uint_eq(accepted, 3 * MANY);
    gate_open(&g);
    drain(f.store);
    ck_assert_uint_eq(o.n, accepted);
    for (unsigned i = 0; i < 4 * MANY; i++)
        dd_buf_free(&r[i].operand);
    fixture_close(&f);
}
END_TEST

struct late_opener {
    struct dd_store *store;
    struct gate *gate;
};

static bool is_stopping(void *arg)
{
    struct dd_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    bool stopping = w->stopping;
    pthread_mutex_unlock(&w->lock);
    return stopping;
}

static void *open_when_closing(void *arg)
{
    struct late_opener *l = arg;
    wait_until(is_stopping, &l->store->writer);
    gate_open(l->gate);
    return NULL;
}

START_TEST(order_closing_finishes_what_is_queued)
{
    struct fixture f;
    fixture_open(&f);
    struct order o = {.store = f.store};
    static struct request r[MANY];
    struct gate g;
    gate_shut(&g, f.store, "gate");
    for (unsigned i = 0; i < MANY; i++) {
        request_init(&r[i], &o, i);
        ck_assert_err(dd_store_write(f.store, &r[i].batch), DD_PENDING);
    }
    struct late_opener l = {f.store, &g};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, open_when_closing, &l), 0);
    fixture_reopen(&f, true);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(o.n, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_ok(r[i].batch.err);
        ck_assert(has(f.store, r[i].user, P, i));
        dd_buf_free(&r[i].operand);
    }
    fixture_close(&f);
}
END_TEST

/* [merge anna, update held]: the merge is in RocksDB, the number is not published. A reader that fills a
 * cache now has read the item and carries the old number; once done has run, that number is below the cell.
 */
START_TEST(order_a_fill_between_commit_and_publication_is_judged_stale)
{
    struct fixture f;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    struct order o = {.store = f.store};
    struct request r;
    request_init(&r, &o, 2);
    strcpy(r.user, "anna");
    r.op.user = dd_slice_str(r.user);

    struct gate first, second;
    gate_shut(&first, f.store, "gate");
    ck_assert_err(dd_store_write(f.store, &r.batch), DD_PENDING); /* one group with the second gate */
    sem_init(&second.entered, 0, 0);
    sem_init(&second.leave, 0, 0);
    second.op = first.op;
    second.op.update_arg = &second;
    second.batch = (struct dd_store_batch){.ops = &second.op, .n = 1, .done = first.batch.done};
    ck_assert_err(dd_store_write(f.store, &second.batch), DD_PENDING);
    gate_open(&first);
    sem_wait(&second.entered);

    const struct dd_change *c = dd_store_change(f.store);
    uint64_t user = dd_hash_user_seed(dd_store_secret(f.store), SCENE, dd_slice_str("anna"));
    struct dd_store_read fill = {.scene = SCENE, .user = dd_slice_str("anna"), .periods = {P}, .n = 1};
    ck_assert_ok(dd_store_read_wait(f.store, &fill));
    ck_assert(has(f.store, "anna", P, 2));
    ck_assert_uint_eq(fill.number, 1);
    ck_assert_uint_eq(dd_change_cell(c, P, user),
                      1);      /* not raised before the number, not before the commit */
    ck_assert_uint_eq(o.n, 0); /* nor acknowledged */
    dd_store_read_release(&fill);

    gate_open(&second);
    drain(f.store);
    ck_assert_uint_eq(o.n, 1);
    ck_assert(r.raised);
    ck_assert_uint_gt(dd_change_cell(c, P, user), fill.number);
    dd_buf_free(&r.operand);
    fixture_close(&f);
}
END_TEST

/* Reader loads the number and reads; writer commits; reader fills: stale. */
START_TEST(order_a_late_fill_is_judged_stale)
{
    struct fixture f;
    fixture_open(&f);
    const struct dd_change *c = dd_store_change(f.store);
    uint64_t user = dd_hash_user_seed(dd_store_secret(f.store), SCENE, dd_slice_str("anna"));
    struct dd_store_read fill = {.scene = SCENE, .user = dd_slice_str("anna"), .periods = {P}, .n = 1};
    ck_assert_ok(dd_store_read_wait(f.store, &fill));
    dd_store_read_release(&fill);
    ck_assert_uint_ge(fill.number, dd_change_cell(c, P, user));
    add(f.store, "anna", P, 1);
    ck_assert_uint_lt(fill.number, dd_change_cell(c, P, user));
    ck_assert_ok(dd_store_read_wait(f.store, &fill));
    dd_store_read_release(&fill);
    ck_assert_uint_ge(fill.number, dd_change_cell(c, P, user));
    fixture_close(&f);
}
END_TEST

static void post_done(void *arg)
{
    *(bool *)arg = true;
}

START_TEST(order_done_runs_on_the_loop_that_was_named)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_loop *loop;
    ck_assert_ok(dd_loop_create(&loop));
    struct dd_buf operand = operand_of(5);
    bool done = false;
    struct dd_store_op op = {.scene = SCENE,
                             .user = dd_slice_str("anna"),
                             .period = P,
                             .operand = dd_buf_slice(&operand),
                             .read_number = UINT64_MAX};
    struct dd_store_batch b = {
        .ops = &op, .n = 1, .sync = true, .loop = loop, .done = post_done, .arg = &done};
    ck_assert_err(dd_store_write(f.store, &b), DD_PENDING);
    drain(f.store);
    ck_assert(!done);
    for (int i = 0; i < 100 && !done; i++)
        dd_loop_turn(loop, 100);
    ck_assert(done);
    ck_assert_ok(b.err);
    dd_buf_free(&operand);
    fixture_close(&f);
    dd_loop_destroy(loop);
}
END_TEST

/* A small wait gathers requests that arrive one after the other. */
START_TEST(order_waiting_makes_bigger_groups)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.batch_wait_us = 5000000;
    f.options.batch_max = 10;
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    struct order o = {.store = f.store};
    struct request r[10];
    for (unsigned i = 0; i < 10; i++) {
        request_init(&r[i], &o, i);
        ck_assert_err(dd_store_write(f.store, &r[i].batch), DD_PENDING);
    }
    dd_store_close(f.store, true);
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_uint_eq(r[i].batch.number, 1);
        dd_buf_free(&r[i].operand);
    }
    f.store = NULL;
    fixture_close(&f);
}
END_TEST

Suite *suite_order(void)
{
    Suite *s = suite_create("store order");
    TCase *t = tcase_create("order");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, order_a_group_is_one_commit_in_the_order_of_writing);
    tcase_add_test(t, order_a_full_queue_is_busy_and_loses_nothing);
    tcase_add_test(t, order_closing_finishes_what_is_queued);
    tcase_add_test(t, order_a_fill_between_commit_and_publication_is_judged_stale);
    tcase_add_test(t, order_a_late_fill_is_judged_stale);
    tcase_add_test(t, order_done_runs_on_the_loop_that_was_named);
    tcase_add_test(t, order_waiting_makes_bigger_groups);
    suite_add_tcase(s, t);
    return s;
}
