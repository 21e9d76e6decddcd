/* The timer wheel: never early, not late by more than a few ticks, every start runs once unless stopped. */
#include <stdlib.h>
#include <time.h>

#include "loop/loop.h"
#include "suites.h"

/* A timer that the wheel lost runs a rotation later, 2,048 ms. A machine that stands still makes any timer
 * late, so what counts is the turn before: one that began this long after the due time must have run it.
 * Turns wait for less than a rotation. 50 ms are a few ticks and the coarseness of libevent's clock. */
#define LATE_NS (50 * INT64_C(1000000))

static struct dd_loop *loop;

static void teardown(void)
{
    dd_loop_destroy(loop);
}

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* When the last turn of a loop and the one before began, at the latest. */
struct turns {
    int64_t last_ns, before_ns;
};

static struct turns turns;

static void setup(void)
{
    ck_assert_ok(dd_loop_create(&loop));
    turns = (struct turns){0};
}

static void turn(struct dd_loop *l, struct turns *t, int wait_ms)
{
    t->before_ns = t->last_ns;
    t->last_ns = clock_ns();
    dd_loop_turn(l, wait_ms);
}

/* Whether to go on; a lost timer is for the test to judge. */
static bool before(int64_t begun_ns, int64_t ms)
{
    return clock_ns() - begun_ns < unit_patience_ms(ms) * 1000000;
}

struct probe {
    struct dd_timer timer;
    struct turns *turns;
    int64_t due_ns, due_last_ns; /* it is due between these */
    int runs;
    int *remaining;
};

static void probe_run(void *arg)
{
    struct probe *p = arg;
    int64_t now = clock_ns();
    p->runs++;
    --*p->remaining;
    ck_assert_msg(now >= p->due_ns, "early by %lld ns", (long long)(p->due_ns - now));
    ck_assert_msg(p->turns->before_ns <= p->due_last_ns + LATE_NS, "not by a turn %lld ns after it was due",
                  (long long)(p->turns->before_ns - p->due_last_ns));
}

static void probe_start(struct probe *p, int64_t delay_ms)
{
    p->due_ns = clock_ns() + delay_ms * 1000000; /* before the loop's own reading: a lower bound */
    dd_timer_start(&p->timer, delay_ms);
    p->due_last_ns = clock_ns() + delay_ms * 1000000;
}

START_TEST(each_delay_runs_once_and_never_early)
{
    static const int64_t delays[] = {0, 1, 3, 4, 5, 17, 60, 255, 256, 257, 1000, 2044, 2048, 2052, 2500};
    enum { N = sizeof delays / sizeof *delays };
    struct probe probes[N];
    int remaining = N;
    for (int i = 0; i < N; i++) {
        probes[i] = (struct probe){.turns = &turns, .remaining = &remaining};
        dd_timer_init(&probes[i].timer, loop, probe_run, &probes[i]);
        ck_assert(!dd_timer_is_set(&probes[i].timer));
        probe_start(&probes[i], delays[i]);
        ck_assert(dd_timer_is_set(&probes[i].timer));
    }
    for (int64_t begun = clock_ns(); remaining && before(begun, 20000);)
        turn(loop, &turns, 1000);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(probes[i].runs, 1);
        ck_assert(!dd_timer_is_set(&probes[i].timer));
    }
}
END_TEST

START_TEST(an_idle_wheel_does_not_wake_the_loop)
{
    struct probe p = {.turns = &turns, .remaining = &(int){1}};
    dd_timer_init(&p.timer, loop, probe_run, &p);
    dd_timer_start(&p.timer, 600000);
    dd_timer_stop(&p.timer);
    turn(loop, &turns, 0);
    int64_t start = clock_ns();
    turn(loop, &turns, 100);
    ck_assert_int_ge(clock_ns() - start, 80 * 1000000); /* nothing but the limit ended the turn */
}
END_TEST

START_TEST(a_stopped_timer_does_not_run)
{
    int remaining = 2;
    struct probe a = {.turns = &turns, .remaining = &remaining},
                 b = {.turns = &turns, .remaining = &remaining};
    dd_timer_init(&a.timer, loop, probe_run, &a);
    dd_timer_init(&b.timer, loop, probe_run, &b);
    probe_start(&a, 8);
    probe_start(&b, 40);
    dd_timer_stop(&a.timer);
    dd_timer_stop(&a.timer);
    for (int64_t begun = clock_ns(); remaining > 1 && before(begun, 5000);)
        turn(loop, &turns, 100);
    ck_assert_int_eq(a.runs, 0);
    ck_assert_int_eq(b.runs, 1);
}
END_TEST

START_TEST(starting_again_moves_the_due_time)
{
    int remaining = 1;
    struct probe p = {.turns = &turns, .remaining = &remaining};
    dd_timer_init(&p.timer, loop, probe_run, &p);
    probe_start(&p, 8);
    probe_start(&p, 80);
    for (int64_t begun = clock_ns(); remaining && before(begun, 5000);)
        turn(loop, &turns, 100);
    ck_assert_int_eq(p.runs, 1); /* probe_run checked that it was not early */
}
END_TEST

/* Two timers of one tick: whichever runs first stops the other and starts itself again, once. */
struct pair {
    struct dd_timer timer;
    struct pair *other;
    int runs, restarts;
};

static void pair_run(void *arg)
{
    struct pair *p = arg;
    p->runs++;
    dd_timer_stop(&p->other->timer);
    if (p->restarts++ == 0) dd_timer_start(&p->timer, 0);
}

START_TEST(a_running_timer_may_stop_another_and_restart_itself)
{
    struct pair a = {.other = NULL}, b = {.other = &a};
    a.other = &b;
    dd_timer_init(&a.timer, loop, pair_run, &a);
    dd_timer_init(&b.timer, loop, pair_run, &b);
    dd_timer_start(&a.timer, 4);
    dd_timer_start(&b.timer, 4);
    for (int64_t begun = clock_ns(); a.runs + b.runs < 2 && before(begun, 5000);)
        turn(loop, &turns, 100);
    turn(loop, &turns, 20);
    ck_assert_int_eq(a.runs, 2);
    ck_assert_int_eq(b.runs, 0);
}
END_TEST

/* Thousands of random starts and stops, against the model: exactly those not stopped run. */
START_TEST(random_starts_and_stops)
{
    enum { N = 3000 };
    struct probe *probes = calloc(N, sizeof *probes);
    ck_assert_ptr_nonnull(probes);
    int remaining = 0;
    unsigned seed = 7;
    for (int i = 0; i < N; i++) {
        probes[i] = (struct probe){.turns = &turns, .remaining = &remaining};
        dd_timer_init(&probes[i].timer, loop, probe_run, &probes[i]);
    }
    for (int i = 0; i < 4 * N; i++) {
        struct probe *p = &probes[rand_r(&seed) % N];
        if (rand_r(&seed) % 4 == 0) {
            remaining -= dd_timer_is_set(&p->timer);
            dd_timer_stop(&p->timer);
        } else {
            remaining += !dd_timer_is_set(&p->timer);
            probe_start(p, rand_r(&seed) % 700);
        }
        if (i % 100 == 0) turn(loop, &turns, 0);
    }
    for (int64_t begun = clock_ns(); remaining && before(begun, 20000);)
        turn(loop, &turns, 100);
    ck_assert_int_eq(remaining, 0);
    for (int i = 0; i < N; i++)
        ck_assert(!dd_timer_is_set(&probes[i].timer));
    free(probes);
}
END_TEST

/* A timer nearly a whole rotation ahead is found again after an earlier one ran, wherever in the bitmap the
 * wheel stands: 64 loops, each started one tick after the one before. */
START_TEST(a_timer_a_rotation_ahead_at_every_position)
{
    enum { N = 64 };
    static struct {
        struct dd_loop *loop;
        struct turns turns;
        struct probe near, far;
    } w[N];
    int remaining = 2 * N;
    for (int i = 0; i < N; i++) {
        ck_assert_ok(dd_loop_create(&w[i].loop));
        w[i].turns = (struct turns){0};
        w[i].near = w[i].far = (struct probe){.turns = &w[i].turns, .remaining = &remaining};
        dd_timer_init(&w[i].near.timer, w[i].loop, probe_run, &w[i].near);
        dd_timer_init(&w[i].far.timer, w[i].loop, probe_run, &w[i].far);
        probe_start(&w[i].near, 4);
        probe_start(&w[i].far, 2036);
        turn(w[i].loop, &w[i].turns, 5);
    }
    for (int64_t begun = clock_ns(); remaining && before(begun, 20000);)
        for (int i = 0; i < N; i++)
            turn(w[i].loop, &w[i].turns, i ? 0 : 4);
    ck_assert_int_eq(remaining, 0);
    for (int i = 0; i < N; i++)
        dd_loop_destroy(w[i].loop);
}
END_TEST

Suite *suite_timer(void)
{
    Suite *s = suite_create("timer");
    TCase *t = tcase_create("timer");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, each_delay_runs_once_and_never_early);
    tcase_add_test(t, an_idle_wheel_does_not_wake_the_loop);
    tcase_add_test(t, a_stopped_timer_does_not_run);
    tcase_add_test(t, starting_again_moves_the_due_time);
    tcase_add_test(t, a_running_timer_may_stop_another_and_restart_itself);
    tcase_add_test(t, random_starts_and_stops);
    tcase_add_test(t, a_timer_a_rotation_ahead_at_every_position);
    suite_add_tcase(s, t);
    return s;
}
