/* Posting from other threads, stopping, turns and the cached time. */
#include <pthread.h>
#include <time.h>

#include "loop/loop.h"
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

#define POSTERS    4
#define PER_THREAD 5000

struct note {
    struct dd_task task;
    int thread, number;
};

static struct note notes[POSTERS][PER_THREAD];
static int next_number[POSTERS], notes_run;

static void run_note(void *arg)
{
    struct note *n = arg;
    ck_assert_int_eq(n->number, next_number[n->thread]++); /* the order of posting */
    if (++notes_run == POSTERS * PER_THREAD) dd_loop_stop(loop);
}

static void *post_notes(void *arg)
{
    int thread = (int)(intptr_t)arg;
    for (int i = 0; i < PER_THREAD; i++) {
        struct note *n = &notes[thread][i];
        *n = (struct note){{.run = run_note, .arg = n}, thread, i};
        dd_loop_post(loop, &n->task);
    }
    return NULL;
}

START_TEST(posts_from_threads_run_once_in_order)
{
    pthread_t threads[POSTERS];
    notes_run = 0;
    memset(next_number, 0, sizeof next_number);
    for (int i = 0; i < POSTERS; i++)
        pthread_create(&threads[i], NULL, post_notes, (void *)(intptr_t)i);
    dd_loop_run(loop);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(notes_run, POSTERS * PER_THREAD);
    for (int i = 0; i < POSTERS; i++)
        ck_assert_int_eq(next_number[i], PER_THREAD);
}
END_TEST

static struct dd_task again;
static int again_runs;

static void repost(void *arg)
{
    (void)arg;
    if (++again_runs < 3) dd_loop_post(loop, &again);
}

START_TEST(task_may_post_itself_and_runs_in_the_next_turn)
{
    again = (struct dd_task){.run = repost};
    again_runs = 0;
    dd_loop_post(loop, &again);
    for (int turns = 1; turns <= 3; turns++) {
        dd_loop_turn(loop, 1000);
        ck_assert_int_eq(again_runs, turns);
    }
    dd_loop_turn(loop, 0);
    ck_assert_int_eq(again_runs, 3);
}
END_TEST

static void *run_loop(void *arg)
{
    dd_loop_run(arg);
    return NULL;
}

START_TEST(stop_ends_an_idle_loop_from_another_thread)
{
    pthread_t thread;
    for (int round = 0; round < 50; round++) { /* also when stop comes before run */
        pthread_create(&thread, NULL, run_loop, loop);
        dd_loop_stop(loop);
        pthread_join(thread, NULL);
    }
}
END_TEST

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

START_TEST(turn_waits_no_longer_than_asked)
{
    int64_t start = clock_ns();
    dd_loop_turn(loop, 30);
    int64_t waited = clock_ns() - start;
    ck_assert_int_ge(waited, 20 * 1000000); /* libevent's clock is coarse: up to one jiffy early */
    ck_assert_int_lt(waited, unit_patience_ms(30000) * 1000000);
}
END_TEST

static int64_t first_ns, second_ns;

static void read_time_twice(void *arg)
{
    (void)arg;
    first_ns = dd_loop_now(loop).ns;
    for (int64_t until = clock_ns() + 2000000; clock_ns() < until;) {
    }
    second_ns = dd_loop_now(loop).ns;
}

START_TEST(time_stands_within_a_turn_and_moves_between_turns)
{
    struct dd_task task = {.run = read_time_twice};
    int64_t before = clock_ns();
    dd_loop_post(loop, &task);
    dd_loop_turn(loop, 1000);
    ck_assert_int_ge(first_ns, before);
    ck_assert_int_eq(first_ns, second_ns);
    int64_t earlier = second_ns;
    dd_loop_post(loop, &task);
    dd_loop_turn(loop, 1000);
    ck_assert_int_ge(first_ns, earlier + 2000000);
}
END_TEST

Suite *suite_loop(void)
{
    Suite *s = suite_create("loop");
    TCase *t = tcase_create("loop");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, posts_from_threads_run_once_in_order);
    tcase_add_test(t, task_may_post_itself_and_runs_in_the_next_turn);
    tcase_add_test(t, stop_ends_an_idle_loop_from_another_thread);
    tcase_add_test(t, turn_waits_no_longer_than_asked);
    tcase_add_test(t, time_stands_within_a_turn_and_moves_between_turns);
    suite_add_tcase(s, t);
    return s;
}
