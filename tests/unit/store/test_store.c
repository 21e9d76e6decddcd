/* Opening, reading, scenes, checkpoints. */
#include "fixture.h"

#define P month(100)

START_TEST(store_what_is_written_survives_reopening)
{
    struct fixture f;
    fixture_open(&f);
    char id[17];
    struct dd_secret secret = *dd_store_secret(f.store);
    strcpy(id, dd_store_id(f.store));
    ck_assert_uint_eq(strlen(id), 16);
    add(f.store, "anna", P, 1);
    add(f.store, "anna", P, 2);
    add(f.store, "anna", month(101), 3);
    for (int clean = 0; clean < 2; clean++) {
        fixture_reopen(&f, clean);
        ck_assert(has(f.store, "anna", P, 1) && has(f.store, "anna", P, 2));
        ck_assert(has(f.store, "anna", month(101), 3) && !has(f.store, "anna", P, 3));
        ck_assert(!has(f.store, "ann", P, 1));
        ck_assert_str_eq(dd_store_id(f.store), id);
        ck_assert_mem_eq(dd_store_secret(f.store), &secret, sizeof secret);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(store_two_stores_differ)
{
    struct fixture a, b;
    fixture_open(&a);
    fixture_open(&b);
    ck_assert_str_ne(dd_store_id(a.store), dd_store_id(b.store));
    ck_assert(memcmp(dd_store_secret(a.store), dd_store_secret(b.store), sizeof(struct dd_secret)) != 0);
    fixture_close(&a);
    fixture_close(&b);
}
END_TEST

START_TEST(store_resumes_the_last_clean_stop_only)
{
    struct fixture f;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    uint64_t incarnation = dd_change_incarnation(dd_store_change(f.store));
    uint64_t number = dd_change_number(dd_store_change(f.store));
    uint64_t user = dd_hash_user_seed(dd_store_secret(f.store), SCENE, dd_slice_str("anna"));

    fixture_reopen(&f, true);
    ck_assert(dd_change_incarnation(dd_store_change(f.store)) != incarnation);
    ck_assert(dd_store_resume(f.store, incarnation, number));
    ck_assert_uint_eq(dd_change_incarnation(dd_store_change(f.store)), incarnation);
    ck_assert_uint_eq(dd_change_cell(dd_store_change(f.store), P, user), number);
    ck_assert(!dd_store_resume(f.store, incarnation, number)); /* once */
    add(f.store, "anna", P, 2);
    ck_assert_uint_eq(dd_change_number(dd_store_change(f.store)), number + 1);

    fixture_reopen(&f, true); /* the witness remembers an older stop */
    ck_assert(!dd_store_resume(f.store, incarnation, number));
    ck_assert(!dd_store_resume(f.store, incarnation, number + 1)); /* used up */

    fixture_reopen(&f, true); /* or another life: same number, other id */
    ck_assert(!dd_store_resume(f.store, incarnation, 0));
    fixture_close(&f);
}
END_TEST

START_TEST(store_does_not_resume_after_a_crash_or_a_run_in_between)
{
    struct fixture f;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    uint64_t incarnation = dd_change_incarnation(dd_store_change(f.store));
    fixture_reopen(&f, true);
    fixture_reopen(&f, false); /* a run that did not ask and ended badly */
    ck_assert(!dd_store_resume(f.store, incarnation, 1));

    fixture_reopen(&f, true); /* asked too late: a commit came first */
    uint64_t old = dd_change_incarnation(dd_store_change(f.store));
    fixture_reopen(&f, true);
    add(f.store, "anna", P, 2);
    ck_assert(!dd_store_resume(f.store, old, 0));
    fixture_close(&f);
}
END_TEST

START_TEST(store_options_are_checked)
{
    struct fixture f;
    fixture_prepare(&f);
    struct dd_store_options o = f.options;
    o.batch_max = 0;
    ck_assert_err(dd_store_open(&o, f.stats, &f.store), DD_INVALID);
    o = f.options;
    o.change_cells = 1000;
    ck_assert_err(dd_store_open(&o, f.stats, &f.store), DD_INVALID);
    o = f.options;
    o.path = "/dev/null/x";
    ck_assert_err(dd_store_open(&o, f.stats, &f.store), DD_IO);
    fixture_close(&f);
}
END_TEST

START_TEST(store_opens_once_in_a_process)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_store *second;
    ck_assert_err(dd_store_open(&f.options, f.stats, &second), DD_LOCKED);
    add(f.store, "anna", P, 1); /* the first one is unharmed */
    fixture_close(&f);
}
END_TEST

static void put_meta(struct dd_store *s, const char *key, const void *value, size_t len)
{
    char *text = NULL;
    rocksdb_put_cf(s->rocks.db, s->rocks.write, s->rocks.family[DD_FAMILY_META], key, strlen(key), value, len,
                   &text);
    ck_assert_ptr_null(text);
}

START_TEST(store_refuses_a_newer_format_and_a_lost_secret)
{
    struct fixture f;
    struct dd_store *s;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    put_meta(f.store, "format", "\2\0\0\0", 4);
    dd_store_close(f.store, true);
    ck_assert_err(dd_store_open(&f.options, f.stats, &s), DD_UNSUPPORTED);
    ck_assert_err(dd_store_open(&f.options, f.stats, &s), DD_UNSUPPORTED); /* and let go of the lock */
    f.store = NULL;
    fixture_close(&f);

    fixture_open(&f);
    put_meta(f.store, "secret", "short", 5);
    dd_store_close(f.store, true);
    ck_assert_err(dd_store_open(&f.options, f.stats, &s), DD_CORRUPT);
    f.store = NULL;
    fixture_close(&f);
}
END_TEST

/* ---- reading on a loop ---- */

static void set_flag(void *arg)
{
    *(bool *)arg = true;
}

static void turn_until(struct dd_loop *loop, const bool *flag)
{
    for (int i = 0; i < 3000 && !*flag; i++)
        dd_loop_turn(loop, 10);
    ck_assert(*flag);
}

static bool read_has(const struct dd_store_read *r, unsigned i, uint32_t fp)
{
    struct dd_filter_view v;
    uint8_t seen = 0;
    ck_assert_ok(r->set[i].err);
    ck_assert_ok(dd_filter_view_open(&v, r->set[i].blob));
    dd_filter_view_test(&v, &fp, 1, &seen, 1);
    return seen;
}

START_TEST(store_reads_from_memory_at_once_and_from_disk_through_the_pool)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_loop *loop;
    ck_assert_ok(dd_loop_create(&loop));
    add(f.store, "anna", month(9), 9);
    add(f.store, "anna", month(10), 10);
    bool done = false;
    struct dd_store_read r = {.scene = SCENE,
                              .user = dd_slice_str("anna"),
                              .periods = {month(10), month(9), month(8)},
                              .n = 3,
                              .loop = loop,
                              .done = set_flag,
                              .arg = &done};
    ck_assert_err(dd_store_read(f.store, &r), DD_OK);
    ck_assert(read_has(&r, 0, 10) && read_has(&r, 1, 9));
    ck_assert_uint_eq(r.set[2].blob.len, 0);
    ck_assert_uint_eq(r.number, 2);
    dd_store_read_release(&r);

    fixture_reopen(&f, true); /* nothing is in memory now */
    ck_assert_err(dd_store_read(f.store, &r), DD_PENDING);
    turn_until(loop, &done);
    ck_assert_ok(r.err);
    ck_assert(read_has(&r, 0, 10) && read_has(&r, 1, 9));
    ck_assert_uint_eq(r.set[2].blob.len, 0);
    dd_store_read_release(&r);
    ck_assert_err(dd_store_read(f.store, &r), DD_OK); /* and now it is */
    dd_store_read_release(&r);
    ck_assert_uint_eq(dd_counter_get(f.store->reads_memory), 2);
    ck_assert_uint_eq(dd_counter_get(f.store->reads_pool), 1);
    dd_loop_destroy(loop);
    fixture_close(&f);
}
END_TEST

START_TEST(store_bad_reads_are_refused)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_store_read r = {.scene = SCENE, .user = dd_slice_of("", 0), .periods = {P}, .n = 1};
    ck_assert_err(dd_store_read(f.store, &r), DD_INVALID);
    r.user = dd_slice_str("anna");
    r.n = DD_WINDOW_MAX + 1;
    ck_assert_err(dd_store_read(f.store, &r), DD_INVALID);
    r.n = 0;
    ck_assert_err(dd_store_read(f.store, &r), DD_OK);
    fixture_close(&f);
}
END_TEST

static void wait_for_sem(void *arg)
{
    sem_wait(arg);
}

static void nothing(void *arg)
{
    (void)arg;
}

START_TEST(store_a_full_pool_is_busy)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.pool_threads = 1;
    f.options.pool_queue = 1;
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    add(f.store, "anna", P, 1);
    fixture_reopen(&f, true);
    struct dd_loop *loop;
    ck_assert_ok(dd_loop_create(&loop));
    sem_t hold;
    sem_init(&hold, 0, 0);
    bool done = false;
    struct dd_job job[2] = {{.run = wait_for_sem, .done = nothing, .arg = &hold, .loop = loop},
                            {.run = wait_for_sem, .done = set_flag, .arg = &hold, .loop = loop}};
    ck_assert_ok(dd_pool_submit(f.store->pool, &job[0]));
    while (dd_pool_queued(f.store->pool) > 0) { /* until the one thread has taken it */
    }
    job[1].arg = &hold;
    job[1].done = nothing;
    ck_assert_ok(dd_pool_submit(f.store->pool, &job[1]));
    struct dd_store_read r = {.scene = SCENE,
                              .user = dd_slice_str("anna"),
                              .periods = {P},
                              .n = 1,
                              .loop = loop,
                              .done = set_flag,
                              .arg = &done};
    ck_assert_err(dd_store_read(f.store, &r), DD_BUSY);
    sem_post(&hold);
    sem_post(&hold);
    while (dd_pool_queued(f.store->pool) > 0) {
    }
    enum dd_err err = DD_BUSY; /* the pool is free: the same read goes through */
    err = dd_store_read(f.store, &r);
    ck_assert(err == DD_PENDING);
    turn_until(loop, &done);
    ck_assert(read_has(&r, 0, 1));
    dd_store_read_release(&r);
    fixture_close(&f);
    dd_loop_destroy(loop);
    sem_destroy(&hold);
}
END_TEST

/* ---- scenes, walks, checkpoints, status ---- */

struct scenes {
    unsigned n;
    enum dd_period_kind kind;
    unsigned window;
};

static void see_scene(void *arg, struct dd_slice scene, enum dd_period_kind kind, unsigned window)
{
    struct scenes *seen = arg;
    seen->n++;
    if (!dd_slice_eq(scene, SCENE)) return;
    seen->kind = kind;
    seen->window = window;
}

START_TEST(store_remembers_scenes_and_keeps_their_kind)
{
    struct fixture f;
    fixture_open(&f);
    enum dd_period_kind existing = 0;
    ck_assert_ok(dd_store_register_scene(f.store, SCENE, DD_PERIOD_DAY, 7, &existing));
    ck_assert_ok(
        dd_store_register_scene(f.store, SCENE, DD_PERIOD_MONTH, 3, &existing)); /* nothing stored yet */
    ck_assert_ok(dd_store_register_scene(f.store, dd_slice_str("push"), DD_PERIOD_WEEK, 300, &existing));
    add(f.store, "anna", P, 1);
    ck_assert_err(dd_store_register_scene(f.store, SCENE, DD_PERIOD_DAY, 3, &existing), DD_INVALID);
    ck_assert_int_eq(existing, DD_PERIOD_MONTH);
    ck_assert_ok(dd_store_register_scene(f.store, SCENE, DD_PERIOD_MONTH, 6, &existing));
    fixture_reopen(&f, true);
    struct scenes seen = {0};
    dd_store_each_scene(f.store, see_scene, &seen);
    ck_assert_uint_eq(seen.n, 2);
    ck_assert_int_eq(seen.kind, DD_PERIOD_MONTH);
    ck_assert_uint_eq(seen.window, 6);
    fixture_close(&f);
}
END_TEST

struct walk {
    char seen[200];
    unsigned n, stop_at;
};

static bool walk_one(void *arg, struct dd_slice scene, struct dd_slice user, struct dd_period p,
                     struct dd_slice blob)
{
    struct walk *w = arg;
    ck_assert_uint_gt(blob.len, 0);
    size_t at = strlen(w->seen);
    snprintf(w->seen + at, sizeof w->seen - at, "%.*s/%.*s/%d ", (int)scene.len, (const char *)scene.ptr,
             (int)user.len, (const char *)user.ptr, p.ordinal);
    return ++w->n != w->stop_at;
}

START_TEST(store_each_visits_all_in_order)
{
    struct fixture f;
    fixture_open(&f);
    add(f.store, "b", month(2), 1);
    add(f.store, "a", month(2), 1);
    add(f.store, "b", month(1), 1);
    struct walk all = {.stop_at = 99}, two = {.stop_at = 2};
    ck_assert_ok(dd_store_each(f.store, walk_one, &all));
    ck_assert_str_eq(all.seen, "home/b/1 home/a/2 home/b/2 ");
    ck_assert_ok(dd_store_each(f.store, walk_one, &two));
    ck_assert_uint_eq(two.n, 2);
    fixture_close(&f);
}
END_TEST

START_TEST(store_a_checkpoint_opens_as_a_store_of_that_moment)
{
    struct fixture f, copy;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    char path[700];
    snprintf(path, sizeof path, "%s/copy", f.dir);
    ck_assert_ok(dd_store_checkpoint(f.store, path));
    ck_assert_err(dd_store_checkpoint(f.store, path), DD_EXISTS);
    ck_assert_err(dd_store_checkpoint(f.store, "/nonexistent/x"), DD_IO);
    add(f.store, "anna", P, 2);
    uint64_t incarnation = dd_change_incarnation(dd_store_change(f.store));

    ck_assert_ok(dd_stats_create(&copy.stats));
    copy.options = test_options(path);
    ck_assert_ok(dd_store_open(&copy.options, copy.stats, &copy.store));
    ck_assert(has(copy.store, "anna", P, 1) && !has(copy.store, "anna", P, 2));
    ck_assert_str_eq(dd_store_id(copy.store), dd_store_id(f.store));
    ck_assert(!dd_store_resume(copy.store, incarnation, 1));
    add(copy.store, "anna", P, 3);
    dd_store_close(copy.store, true);
    dd_stats_destroy(copy.stats);
    ck_assert(!has(f.store, "anna", P, 3));
    fixture_close(&f);
}
END_TEST

START_TEST(store_status_counts)
{
    struct fixture f;
    fixture_open(&f);
    struct dd_store_status st;
    for (uint32_t i = 0; i < 10; i++)
        add(f.store, "anna", month((int32_t)i), i);
    flush_memtable(f.store);
    dd_store_get_status(f.store, &st);
    ck_assert(st.writable && !st.guard);
    ck_assert_int_eq(st.last_error, DD_OK);
    ck_assert_uint_eq(st.commits, 10);
    ck_assert_uint_eq(st.number, 10);
    ck_assert_uint_eq(st.keys_estimate, 10);
    ck_assert_uint_gt(st.disk_bytes, 0);
    ck_assert_uint_gt(st.free_bytes, 0);
    ck_assert_uint_eq(st.write_queue, 0);
    ck_assert_uint_eq(st.corrupt, 0);
    fixture_close(&f);
}
END_TEST

Suite *suite_store(void)
{
    Suite *s = suite_create("store");
    TCase *t = tcase_create("store");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, store_what_is_written_survives_reopening);
    tcase_add_test(t, store_two_stores_differ);
    tcase_add_test(t, store_resumes_the_last_clean_stop_only);
    tcase_add_test(t, store_does_not_resume_after_a_crash_or_a_run_in_between);
    tcase_add_test(t, store_options_are_checked);
    tcase_add_test(t, store_opens_once_in_a_process);
    tcase_add_test(t, store_refuses_a_newer_format_and_a_lost_secret);
    tcase_add_test(t, store_reads_from_memory_at_once_and_from_disk_through_the_pool);
    tcase_add_test(t, store_bad_reads_are_refused);
    tcase_add_test(t, store_a_full_pool_is_busy);
    tcase_add_test(t, store_remembers_scenes_and_keeps_their_kind);
    tcase_add_test(t, store_each_visits_all_in_order);
    tcase_add_test(t, store_a_checkpoint_opens_as_a_store_of_that_moment);
    tcase_add_test(t, store_status_counts);
    suite_add_tcase(s, t);
    return s;
}
