/* Several loops on their own threads, as in production, with Redis killed and started again under them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "hot/staging.h"
#include "world.h"

#define USERS  12
#define IDS    60
#define ROUNDS 250

static struct world w;
static _Atomic unsigned full_winners[USERS][IDS];
static _Atomic unsigned in_memory, complete, progress;

static void turn_until_done(unsigned loop, const unsigned *done)
{
    int64_t begun = mono_ms();
    while (!*done) {
        dd_loop_turn(w.loop[loop], 20);
        ck_assert_int_lt(mono_ms() - begun, unit_patience_ms(10000));
    }
    ck_assert_uint_eq(*done, 1);
}

static void claim_once(unsigned loop, unsigned *seed, struct claimed *c)
{
    char user[8];
    unsigned u = (unsigned)rand_r(seed) % USERS, from = (unsigned)rand_r(seed) % (IDS - 3);
    snprintf(user, sizeof user, "u%u", u);
    claim_start(&w, loop, user, from, 3, c);
    turn_until_done(loop, &c->done);
    ck_assert_ok(c->c.err);
    if (c->c.in_memory) {
        atomic_fetch_add(&in_memory, 1);
        return;
    }
    for (unsigned i = 0; i < 3; i++)
        if (c->won[i]) atomic_fetch_add(&full_winners[u][from + i], 1);
}

static void fetch_once(unsigned loop, unsigned *seed, struct fetched *f)
{
    char user[8];
    snprintf(user, sizeof user, "u%u", (unsigned)rand_r(seed) % USERS);
    fetch_start(&w, loop, user, f);
    turn_until_done(loop, &f->done);
    if (f->complete) atomic_fetch_add(&complete, 1);
    dd_hot_cache_put(w.hl[loop], dd_slice_str("home"), dd_slice_str(user), month(0), 1, 1, 1, 60000,
                     dd_slice_str("set"));
}

static void *run_loop(void *arg)
{
    unsigned loop = *(unsigned *)arg, seed = loop + 1;
    struct claimed *c = calloc(1, sizeof *c);
    struct fetched *f = calloc(1, sizeof *f);
    for (unsigned round = 0; round < ROUNDS; round++) {
        claim_once(loop, &seed, c);
        fetch_once(loop, &seed, f);
        atomic_fetch_add(&progress, 1);
    }
    free(c);
    free(f);
    return NULL;
}

static void wait_progress(unsigned rounds)
{
    int64_t begun = mono_ms();
    while (atomic_load(&progress) < rounds) {
        struct dd_hot_status status;
        struct dd_hot_durability d;
        dd_hot_get_status(w.hot, &status);
        dd_hot_get_durability(w.hot, &d);
        ck_assert_int_lt(mono_ms() - begun, unit_patience_ms(60000));
    }
}

START_TEST(no_full_answer_shares_an_id)
{
    w = (struct world){.server = {.extra = {"--appendonly", "yes", "--appendfsync", "always"}}};
    server_start(&w.server);
    world_open(&w, LOOPS_MAX);
    wait_for(&w, world_is_up(&w));
    pthread_t threads[LOOPS_MAX];
    unsigned numbers[LOOPS_MAX];
    for (unsigned i = 0; i < LOOPS_MAX; i++) {
        numbers[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_loop, &numbers[i]), 0);
    }
    for (unsigned kills = 1; kills <= 2; kills++) {
        wait_progress(kills * ROUNDS);
        server_kill(&w.server);
        server_start(&w.server);
    }
    for (unsigned i = 0; i < LOOPS_MAX; i++)
        pthread_join(threads[i], NULL);
    for (unsigned u = 0; u < USERS; u++)
        for (unsigned i = 0; i < IDS; i++)
            ck_assert_msg(atomic_load(&full_winners[u][i]) <= 1, "u%u i%u was won %u times", u, i,
                          atomic_load(&full_winners[u][i]));
    ck_assert_uint_gt(atomic_load(&in_memory), 0);
    ck_assert_uint_gt(atomic_load(&complete), 0);
    wait_for(&w, world_is_up(&w));
    struct dd_hot_status status;
    dd_hot_get_status(w.hot, &status);
    ck_assert(status.recent_intact);
    world_close(&w);
}
END_TEST

Suite *suite_threads(void);
Suite *suite_threads(void)
{
    Suite *s = suite_create("hot threads");
    TCase *t = tcase_create("threads");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, no_full_answer_shares_an_id);
    suite_add_tcase(s, t);
    return s;
}
