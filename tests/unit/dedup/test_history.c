/* History and rebuild: whatever comes between the steps, the rebuilt set has all that was acknowledged. */
#include <stdio.h>

#include "dedup/history.h"
#include "dedup/internal.h"
#include "dedup/rebuild.h"
#include "hand.h"
#include "store/history.h"

#define MONTH_MS (31LL * 86400000)

static struct world w;
static struct hand h;
static struct dd_admin *admin;
static struct dd_history *history;
static struct dd_erase_call call;

static const int ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

static const struct dd_scene *scene(void)
{
    return dd_scenes_find(w.scenes, dd_slice_str("default"));
}

/* With every exposure of the current period in history. */
static void open_history(enum dd_history_mode mode)
{
    struct dd_history_options o = {.mode = mode, .data_dir = w.dir};
    ck_assert_ok(dd_history_open(&o, w.store, w.scenes, &w.clock, NULL, &history));
    w.dedup->options.history = history; /* as if it had been made with it */
    dd_clock_move(&w.clock, MONTH_MS);  /* the period after the one in which history began */
    ck_assert(dd_history_covers(history, scene(), world_period(&w)) == (mode == DD_HISTORY_ALL));
    ck_assert_ok(dd_admin_create(w.dedup, w.stats, &admin));
    call = (struct dd_erase_call){0};
}

static void close_history(void)
{
    world_calls_free();
    dd_admin_destroy(admin);
    dd_history_close(history);
}

static void begin_staged(void)
{
    hand_init(&h, &w, DD_FILTER_BLOOM);
    open_history(DD_HISTORY_ALL);
}

static void end_staged(void)
{
    close_history();
    hand_free(&h);
}

static void start_rebuild(const char *user)
{
    struct dd_rebuild_what what = {.user = dd_slice_str(user)};
    ck_assert_ok(dd_rebuild_start(admin, w.dl, &what));
}

static struct dd_rebuild_status end_rebuild(void)
{
    struct dd_rebuild_status s;
    do {
        world_turn(&w);
        dd_rebuild_get(admin, &s);
    } while (s.running);
    ck_assert_ok(s.err);
    return s;
}

static struct dd_rebuild_status rebuild(const char *user)
{
    start_rebuild(user);
    return end_rebuild();
}

/* How many of the ten are not seen. */
static unsigned unseen(const char *user)
{
    struct world_answer a;
    world_filter(&w, "default", user, ten, 10, 0, DD_CLAIM_NONE, false, &a);
    ck_assert_ok(a.err);
    ck_assert(!a.partial);
    return a.n;
}

static void expose(const char *user, int item)
{
    ck_assert_ok(world_exposed(&w, "default", user, &item, 1, DD_TS_NOW));
}

static bool count_record(void *arg, struct dd_slice suffix, struct dd_slice value)
{
    ck_assert_uint_eq(suffix.len, DD_HISTORY_SUFFIX_BYTES);
    ck_assert_uint_gt(value.len, 0);
    ++*(unsigned *)arg;
    return true;
}

static unsigned records(const char *user)
{
    unsigned n = 0;
    ck_assert_ok(dd_store_each_record(w.store, dd_slice_str("default"), dd_slice_str(user), world_period(&w),
                                      count_record, &n));
    return n;
}

/* ---- a flush in flight ---- */

static void walk(struct hand *hand)
{
    ck_assert_ok(hand_walk(hand));
}

static void commit(struct hand *hand)
{
    ck_assert_ok(hand_commit(hand));
}

typedef void (*step)(struct hand *hand);
static const step steps[] = {walk, hand_read, commit, hand_remove, hand_unlist};
#define STEPS (sizeof steps / sizeof *steps)

/* The rebuild falls between two steps, each in turn, and an exposure comes before or after it. */
START_TEST(a_rebuild_at_any_step_of_a_flush_loses_nothing)
{
    begin_staged();
    expose("alice", 0);
    for (unsigned at = 0; at <= STEPS; at++) {
        hand_stage(&h, 1 + (int)at);
        for (unsigned i = 0; i <= STEPS; i++) {
            if (i == at) ck_assert_uint_eq(rebuild("alice").replaced, 1);
            ck_assert_uint_eq(unseen("alice"), 8 - at);
            if (i < STEPS) steps[i](&h);
        }
    }
    ck_assert_uint_eq(records("alice"), 1 + STEPS + 1);
    end_staged();
}
END_TEST

/* ---- direct writes around the update ---- */

/* _i 0: the exposure is queued behind the rebuild's update, 1: before it, 2: before and behind. */
START_TEST(an_exposure_beside_the_update_is_kept)
{
    struct world_call before, behind;
    struct world_gate gate;
    int one = 1, two = 2;
    world_init(&w, false);
    open_history(DD_HISTORY_ALL);
    expose("alice", 0);
    world_gate_shut(&w, &gate);
    unsigned queued = 0;
    if (_i >= 1) {
        world_exposed_start(&w, "default", "alice", &one, 1, &before);
        world_wait_queued(&w, ++queued);
    }
    start_rebuild("alice");
    world_wait_queued(&w, ++queued);
    if (_i != 1) {
        world_exposed_start(&w, "default", "alice", &two, 1, &behind);
        world_wait_queued(&w, ++queued);
    }
    world_gate_open(&gate);
    if (_i >= 1) ck_assert_ok(world_exposed_end(&w, &before));
    if (_i != 1) ck_assert_ok(world_exposed_end(&w, &behind));
    ck_assert_uint_eq(end_rebuild().replaced, 1);
    ck_assert_uint_eq(unseen("alice"), _i == 2 ? 7 : 8);
    close_history();
    world_free(&w);
}
END_TEST

/* What is in the set and not in history goes when the set is replaced, and stays when it is united. */
static void merge_behind_its_back(int item)
{
    char text[16];
    snprintf(text, sizeof text, "i%d", item);
    uint64_t seed = dd_hash_user_seed(dd_store_secret(w.store), dd_slice_str("default"),
                                      dd_slice_str("alice"));
    uint32_t fp = dd_hash_fingerprint(seed, dd_slice_str(text));
    struct dd_buf operand = {0};
    ck_assert_ok(dd_filter_operand(&w.scene[0].policy, 0, &fp, 1, &operand));
    struct dd_store_op op = {.kind = DD_STORE_MERGE,
                             .scene = dd_slice_str("default"),
                             .user = dd_slice_str("alice"),
                             .period = world_period(&w),
                             .operand = dd_buf_slice(&operand),
                             .read_number = UINT64_MAX};
    struct dd_store_batch batch = {.ops = &op, .n = 1};
    ck_assert_ok(dd_store_write_wait(w.store, &batch));
    dd_buf_free(&operand);
}

START_TEST(covered_is_replaced_and_others_are_united)
{
    world_init(&w, false);
    open_history(DD_HISTORY_ALL);
    expose("alice", 0);
    merge_behind_its_back(5);
    ck_assert_uint_eq(unseen("alice"), 8);
    ck_assert_uint_eq(rebuild("alice").replaced, 1);
    ck_assert_uint_eq(unseen("alice"), 9);

    close_history(); /* and begins anew in this period, which is not covered */
    w.dedup->options.history = NULL;
    struct dd_history_options off = {.mode = DD_HISTORY_OFF, .data_dir = w.dir},
                              all = {.mode = DD_HISTORY_ALL, .data_dir = w.dir};
    ck_assert_ok(dd_history_open(&off, w.store, w.scenes, &w.clock, NULL, &history));
    dd_history_close(history);
    ck_assert_ok(dd_history_open(&all, w.store, w.scenes, &w.clock, NULL, &history));
    ck_assert(!dd_history_covers(history, scene(), world_period(&w)));
    w.dedup->options.history = history;
    ck_assert_ok(dd_admin_create(w.dedup, w.stats, &admin));
    merge_behind_its_back(5);
    ck_assert_uint_eq(rebuild("alice").united, 1);
    ck_assert_uint_eq(unseen("alice"), 8);
    close_history();
    world_free(&w);
}
END_TEST

/* ---- coverage ---- */

static bool covered_after(enum dd_history_mode mode, const char *gap)
{
    struct dd_history_options o = {.mode = mode, .data_dir = w.dir, .gap = gap};
    ck_assert_ok(dd_history_open(&o, w.store, w.scenes, &w.clock, NULL, &history));
    bool covered = dd_history_covers(history, scene(), world_period(&w));
    dd_history_close(history);
    return covered;
}

START_TEST(coverage_begins_and_ends)
{
    char path[600];
    world_init(&w, false);
    ck_assert(!covered_after(DD_HISTORY_ALL, NULL));
    dd_clock_move(&w.clock, MONTH_MS);
    ck_assert(covered_after(DD_HISTORY_ALL, NULL));
    ck_assert(covered_after(DD_HISTORY_ALL, "push"));
    ck_assert(!covered_after(DD_HISTORY_TRACED, NULL));
    ck_assert_msg(!covered_after(DD_HISTORY_ALL, NULL), "another mode came between");
    dd_clock_move(&w.clock, MONTH_MS);
    ck_assert(covered_after(DD_HISTORY_ALL, NULL));
    ck_assert(!covered_after(DD_HISTORY_ALL, "default"));
    ck_assert_msg(!covered_after(DD_HISTORY_ALL, NULL), "something else was written meanwhile");
    dd_clock_move(&w.clock, MONTH_MS);
    ck_assert(covered_after(DD_HISTORY_ALL, NULL));
    snprintf(path, sizeof path, "%s/history.lineage", w.dir);
    FILE *f = fopen(path, "w"); /* as of another store, or of an older state of this one */
    ck_assert(f && fputs("0123456789abcdef", f) >= 0 && fclose(f) == 0);
    ck_assert(!covered_after(DD_HISTORY_ALL, NULL));
    dd_clock_move(&w.clock, MONTH_MS);
    expose("alice", 1); /* the clock goes back: what was written to is not covered */
    dd_clock_move(&w.clock, -MONTH_MS);
    ck_assert_int_eq(remove(path), 0);
    ck_assert(!covered_after(DD_HISTORY_ALL, NULL));
    dd_clock_move(&w.clock, MONTH_MS);
    ck_assert(!covered_after(DD_HISTORY_ALL, NULL));
    dd_clock_move(&w.clock, MONTH_MS);
    ck_assert(covered_after(DD_HISTORY_ALL, NULL));
    world_free(&w);
}
END_TEST

/* ---- erase ---- */

static void on_done(void *arg)
{
    *(bool *)arg = true;
}

/* The record is queued, then the erase begins: it may take the record away and leave what is staged. So the
 * exposure is not acknowledged. */
START_TEST(an_exposure_that_meets_an_erase_is_sent_again)
{
    struct world_call exposure;
    struct dd_arena arena = {0};
    struct world_gate gate;
    bool done = false;
    int item = 1;
    begin_staged();
    expose("alice", 0);
    world_gate_shut(&w, &gate);
    world_exposed_start(&w, "default", "alice", &item, 1, &exposure);
    world_wait_queued(&w, 1);
    call = (struct dd_erase_call){
        .user = dd_slice_str("alice"), .arena = &arena, .done = on_done, .arg = &done};
    dd_user_erase(admin, w.dl, &call);
    world_gate_open(&gate);
    ck_assert_err(world_exposed_end(&w, &exposure), DD_BUSY);
    while (!done)
        world_turn(&w);
    ck_assert_ok(call.err);
    expose("alice", 2);
    expose("bob", 2);
    unsigned before = unseen("alice");
    ck_assert_uint_eq(rebuild("alice").replaced, 1);
    world_flush(&w, true);
    ck_assert_uint_le(unseen("alice"), before);
    dd_arena_free(&arena);
    end_staged();
}
END_TEST

START_TEST(erase_takes_the_records)
{
    begin_staged();
    expose("alice", 1);
    expose("alice", 2);
    expose("bob", 1);
    world_flush(&w, true);
    ck_assert_uint_eq(records("alice"), 2);
    ck_assert_ok(world_erase(&w, admin, "", "alice", &call));
    ck_assert_uint_eq(call.records, 2);
    ck_assert_uint_eq(records("alice"), 0);
    ck_assert_uint_eq(records("bob"), 1);
    ck_assert_uint_eq(rebuild("alice").replaced, 0);
    ck_assert_uint_eq(unseen("alice"), 10);
    end_staged();
}
END_TEST

START_TEST(forget_takes_the_items_out_of_the_records)
{
    int both[] = {1, 2};
    unsigned forgotten;
    begin_staged();
    ck_assert_ok(world_exposed(&w, "default", "alice", both, 2, DD_TS_NOW));
    expose("alice", 1);
    ck_assert_ok(world_forget(&w, admin, "alice", both, 1, &forgotten));
    ck_assert_uint_eq(forgotten, 1);
    ck_assert_uint_eq(records("alice"), 1);
    ck_assert_uint_eq(rebuild("alice").replaced, 1);
    ck_assert_uint_eq(unseen("alice"), 9);
    end_staged();
}
END_TEST

/* Whoever stands between enter and leave disturbs only those who overlap. */
START_TEST(calm)
{
    struct dd_slice u = dd_slice_str("alice");
    world_init(&w, false);
    open_history(DD_HISTORY_ALL);
    uint64_t since = dd_history_calm(history, u);
    ck_assert(dd_history_stayed_calm(history, u, since));
    dd_history_enter(history, u);
    uint64_t amid = dd_history_calm(history, u);
    ck_assert(!dd_history_stayed_calm(history, u, since));
    ck_assert(!dd_history_stayed_calm(history, u, amid));
    dd_history_leave(history, u);
    ck_assert(!dd_history_stayed_calm(history, u, since));
    ck_assert(!dd_history_stayed_calm(history, u, amid));
    ck_assert(dd_history_stayed_calm(history, u, dd_history_calm(history, u)));
    close_history();
    world_free(&w);
}
END_TEST

Suite *suite_history(void);
Suite *suite_history(void)
{
    Suite *s = suite_create("dedup/history");
    TCase *t = tcase_create("history");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_rebuild_at_any_step_of_a_flush_loses_nothing);
    tcase_add_loop_test(t, an_exposure_beside_the_update_is_kept, 0, 3);
    tcase_add_test(t, covered_is_replaced_and_others_are_united);
    tcase_add_test(t, coverage_begins_and_ends);
    tcase_add_test(t, an_exposure_that_meets_an_erase_is_sent_again);
    tcase_add_test(t, erase_takes_the_records);
    tcase_add_test(t, forget_takes_the_items_out_of_the_records);
    tcase_add_test(t, calm);
    suite_add_tcase(s, t);
    return s;
}
