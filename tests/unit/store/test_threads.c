/* Writers and readers at once; above all for the thread sanitizer. A cache that may keep anything ever read
 * is judged by the change table, as the service does, and must never miss an acknowledged item. */
#include "fixture.h"

#define P       month(100)
#define WRITERS 3
#define READERS 3
#define ITEMS   300
#define USERS   8

struct shared {
    struct dd_store *store;
    _Atomic uint32_t acknowledged[WRITERS]; /* items 0..n-1 of the writer are acknowledged */
    _Atomic unsigned running;
    _Atomic uint32_t missed;
};

struct worker {
    struct shared *shared;
    unsigned index;
    pthread_t thread;
};

/* Writer w adds item i to user (i mod USERS); the fingerprint names both. */
static uint32_t item_of(unsigned writer, uint32_t i)
{
    return writer * 1000000 + i;
}

static void user_name(char out[8], uint32_t i)
{
    snprintf(out, 8, "u%u", i % USERS);
}

static void *write_all(void *arg)
{
    struct worker *w = arg;
    char user[8];
    for (uint32_t i = 0; i < ITEMS; i++) {
        user_name(user, i);
        add(w->shared->store, user, P, item_of(w->index, i));
        atomic_store(&w->shared->acknowledged[w->index], i + 1);
    }
    atomic_fetch_sub(&w->shared->running, 1);
    return NULL;
}

struct cached {
    uint64_t number;
    struct dd_buf blob;
};

static void fill(struct shared *sh, const char *user, struct cached *c)
{
    struct dd_store_read r = {.scene = SCENE, .user = dd_slice_str(user), .periods = {P}, .n = 1};
    ck_assert_ok(dd_store_read_wait(sh->store, &r));
    ck_assert_ok(r.set[0].err);
    dd_buf_reset(&c->blob);
    dd_buf_add_slice(&c->blob, r.set[0].blob);
    c->number = r.number;
    dd_store_read_release(&r);
}

static bool blob_has(const struct dd_buf *blob, uint32_t fp)
{
    struct dd_filter_view v;
    uint8_t seen = 0;
    ck_assert_ok(dd_filter_view_open(&v, dd_buf_slice(blob)));
    dd_filter_view_test(&v, &fp, 1, &seen, 1);
    return seen;
}

static void *read_all(void *arg)
{
    struct worker *w = arg;
    struct shared *sh = w->shared;
    const struct dd_change *change = dd_store_change(sh->store);
    static _Thread_local struct cached cache[USERS];
    for (uint32_t round = 0; atomic_load(&sh->running) > 0; round++) {
        unsigned writer = round % WRITERS;
        uint32_t acknowledged = atomic_load(&sh->acknowledged[writer]);
        if (acknowledged == 0) continue;
        uint32_t i = (round * 7919u) % acknowledged;
        char user[8];
        user_name(user, i);
        struct cached *c = &cache[i % USERS];
        uint64_t hash = dd_hash_user_seed(dd_store_secret(sh->store), SCENE, dd_slice_str(user));
        if (!c->blob.data || c->number < dd_change_cell(change, P, hash)) fill(sh, user, c);
        if (!blob_has(&c->blob, item_of(writer, i))) atomic_fetch_add(&sh->missed, 1);
        struct dd_store_status st;
        if (round % 64 == 0) dd_store_get_status(sh->store, &st);
    }
    for (unsigned i = 0; i < USERS; i++)
        dd_buf_free(&cache[i].blob);
    return NULL;
}

START_TEST(threads_readers_with_a_cache_miss_nothing)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.write_buffer_bytes = 1 << 16;
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    static struct shared sh;
    sh = (struct shared){.store = f.store, .running = WRITERS};
    struct worker w[WRITERS + READERS];
    for (unsigned i = 0; i < WRITERS + READERS; i++) {
        w[i] = (struct worker){.shared = &sh, .index = i};
        ck_assert_int_eq(pthread_create(&w[i].thread, NULL, i < WRITERS ? write_all : read_all, &w[i]), 0);
    }
    for (unsigned i = 0; i < WRITERS + READERS; i++)
        pthread_join(w[i].thread, NULL);
    ck_assert_uint_eq(atomic_load(&sh.missed), 0);
    fixture_close(&f);
}
END_TEST

Suite *suite_threads(void)
{
    Suite *s = suite_create("store threads");
    TCase *t = tcase_create("threads");
    tcase_set_timeout(t, 2 * TEST_TIMEOUT);
    tcase_add_test(t, threads_readers_with_a_cache_miss_nothing);
    suite_add_tcase(s, t);
    return s;
}
