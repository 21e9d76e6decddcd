/* The pool: every accepted job runs on a pool thread and is done on its loop, the queue has an end, destroy
 * finishes. */
#include <pthread.h>
#include <stdatomic.h>

#include "loop/pool.h"
#include "suites.h"

static struct dd_loop *loop;

static void setup(void)
{
    ck_assert_ok(dd_loop_create(&loop));
}

static void teardown(void)
{
    dd_loop_destroy(loop);
}

struct work {
    struct dd_job job;
    pthread_t loop_thread;
    int runs, dones;
    int *remaining;
};

static void work_run(void *arg)
{
    struct work *w = arg;
    w->runs++;
    ck_assert(!pthread_equal(pthread_self(), w->loop_thread));
}

static void work_done(void *arg)
{
    struct work *w = arg;
    ck_assert_int_eq(w->runs, 1);
    ck_assert(pthread_equal(pthread_self(), w->loop_thread));
    w->dones++;
    --*w->remaining;
}

static void work_init(struct work *w, int *remaining)
{
    *w = (struct work){.loop_thread = pthread_self(), .remaining = remaining};
    w->job = (struct dd_job){.run = work_run, .done = work_done, .arg = w, .loop = loop};
}

START_TEST(jobs_run_once_and_are_done_on_their_loop)
{
    enum { N = 2000 };
    static struct work works[N];
    struct dd_pool *pool;
    int remaining = N;
    ck_assert_ok(dd_pool_create(4, N, &pool));
    for (int i = 0; i < N; i++) {
        work_init(&works[i], &remaining);
        ck_assert_ok(dd_pool_submit(pool, &works[i].job));
    }
    for (int turns = 0; remaining && turns < 10000; turns++)
        dd_loop_turn(loop, 100);
    ck_assert_int_eq(remaining, 0);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(works[i].dones, 1);
    ck_assert_uint_eq(dd_pool_queued(pool), 0);
    dd_pool_destroy(pool);
}
END_TEST

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool entered, open;
};

static void gate_run(void *arg)
{
    struct gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->entered = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void gate_done(void *arg)
{
    (void)arg;
}

static void gate_wait_entered(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->entered)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void gate_release(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

START_TEST(a_full_queue_is_busy_and_destroy_finishes_the_queue)
{
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct dd_job blocker = {.run = gate_run, .done = gate_done, .arg = &gate, .loop = loop};
    struct work works[4];
    struct dd_pool *pool;
    int remaining = 3;
    ck_assert_ok(dd_pool_create(1, 3, &pool));
    ck_assert_ok(dd_pool_submit(pool, &blocker));
    gate_wait_entered(&gate);
    for (int i = 0; i < 4; i++) {
        work_init(&works[i], &remaining);
        ck_assert_err(dd_pool_submit(pool, &works[i].job), i < 3 ? DD_OK : DD_BUSY);
    }
    ck_assert_uint_eq(dd_pool_queued(pool), 3);
    gate_release(&gate);
    dd_pool_destroy(pool);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(works[i].runs, 1);
    dd_loop_turn(loop, 0);
    ck_assert_int_eq(remaining, 0);
    ck_assert_int_eq(works[3].runs, 0);
}
END_TEST

START_TEST(arguments_are_checked)
{
    struct dd_pool *pool;
    ck_assert_err(dd_pool_create(0, 1, &pool), DD_INVALID);
    ck_assert_err(dd_pool_create(65, 1, &pool), DD_INVALID);
    ck_assert_err(dd_pool_create(1, 0, &pool), DD_INVALID);
    dd_pool_destroy(NULL);
}
END_TEST

/* Several loops, each in its thread, sharing one pool: what production does, and what the thread sanitizer is
 * for. */
#define LOOPS 3
#define EACH  500

struct side {
    struct dd_pool *pool;
    struct dd_loop *loop;
    struct dd_job jobs[EACH];
    struct dd_task begin;
    int done;
    atomic_int ran;
};

static void side_run(void *arg)
{
    struct side *s = arg;
    atomic_fetch_add(&s->ran, 1);
}

static void side_done(void *arg)
{
    struct side *s = arg;
    if (++s->done == EACH) dd_loop_stop(s->loop);
}

static void side_begin(void *arg)
{
    struct side *s = arg;
    for (int i = 0; i < EACH; i++) {
        s->jobs[i] = (struct dd_job){.run = side_run, .done = side_done, .arg = s, .loop = s->loop};
        ck_assert_ok(dd_pool_submit(s->pool, &s->jobs[i]));
    }
}

static void *side_thread(void *arg)
{
    struct side *s = arg;
    dd_loop_run(s->loop);
    return NULL;
}

START_TEST(several_loops_share_a_pool)
{
    static struct side sides[LOOPS];
    struct dd_pool *pool;
    pthread_t threads[LOOPS];
    ck_assert_ok(dd_pool_create(3, LOOPS * EACH, &pool));
    for (int i = 0; i < LOOPS; i++) {
        struct side *s = &sides[i];
        s->pool = pool;
        ck_assert_ok(dd_loop_create(&s->loop));
        s->begin = (struct dd_task){.run = side_begin, .arg = s};
        dd_loop_post(s->loop, &s->begin);
        pthread_create(&threads[i], NULL, side_thread, s);
    }
    for (int i = 0; i < LOOPS; i++)
        pthread_join(threads[i], NULL);
    dd_pool_destroy(pool);
    for (int i = 0; i < LOOPS; i++) {
        ck_assert_int_eq(sides[i].done, EACH);
        ck_assert_int_eq(atomic_load(&sides[i].ran), EACH);
        dd_loop_destroy(sides[i].loop);
    }
}
END_TEST

Suite *suite_pool(void)
{
    Suite *s = suite_create("pool");
    TCase *t = tcase_create("pool");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, jobs_run_once_and_are_done_on_their_loop);
    tcase_add_test(t, a_full_queue_is_busy_and_destroy_finishes_the_queue);
    tcase_add_test(t, arguments_are_checked);
    tcase_add_test(t, several_loops_share_a_pool);
    suite_add_tcase(s, t);
    return s;
}
