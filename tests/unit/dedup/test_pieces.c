/* The pure pieces: index, tally, window, scenes. */
#include "dedup/index.h"
#include "dedup/internal.h"
#include "unit.h"

#include <stdio.h>

static struct dd_item items[300];
static char texts[300][16];
static struct dd_arena arena;
static struct dd_index ix;

static void build(unsigned n, unsigned distinct)
{
    for (unsigned i = 0; i < n; i++) {
        snprintf(texts[i], sizeof texts[i], "i%u", i % distinct);
        items[i] = (struct dd_item){.id = dd_slice_str(texts[i])};
    }
    ck_assert_ok(dd_index_build(&ix, items, n, 77, &arena));
}

START_TEST(repeats_are_marked_at_their_later_places)
{
    build(300, 100);
    for (unsigned i = 0; i < 300; i++)
        ck_assert_uint_eq(ix.reason[i], i < 100 ? DD_REASON_UNSEEN : DD_REASON_REPEAT);
    dd_arena_free(&arena);
}
END_TEST

START_TEST(marks_find_their_item_and_the_smallest_reason_stays)
{
    build(200, 200);
    ck_assert_uint_eq(dd_index_mark_id(&ix, dd_slice_str("i42"), DD_REASON_PERIOD + 2), 1);
    ck_assert_uint_eq(dd_index_mark_id(&ix, dd_slice_str("i42"), DD_REASON_DELIVERED), 0);
    ck_assert_uint_eq(dd_index_mark_id(&ix, dd_slice_str("i42"), DD_REASON_PERIOD), 0);
    ck_assert_uint_eq(ix.reason[42], DD_REASON_DELIVERED);
    ck_assert_uint_eq(dd_index_mark_id(&ix, dd_slice_str("i200"), DD_REASON_DELIVERED), 0);
    ck_assert_uint_eq(dd_index_mark_fp(&ix, items[7].fp, DD_REASON_PENDING), 1);
    ck_assert_uint_eq(ix.reason[7], DD_REASON_PENDING);
    for (unsigned i = 0; i < 200; i++)
        if (i != 42 && i != 7) ck_assert_uint_eq(ix.reason[i], DD_REASON_UNSEEN);
    dd_arena_free(&arena);
}
END_TEST

START_TEST(equal_fingerprints_of_different_items_are_both_marked)
{
    build(2, 2);
    ix.fps[1] = ix.fps[0]; /* as if they collided: the table is probed by fingerprint */
    ix.slot[(items[0].fp + 1) & ix.mask] = 2;
    ck_assert_uint_eq(dd_index_mark_fp(&ix, items[0].fp, DD_REASON_PENDING), 2);
    dd_arena_free(&arena);
}
END_TEST

START_TEST(the_tally_is_due_at_an_eighth_of_the_cap)
{
    struct dd_tally *t;
    ck_assert_ok(dd_tally_create(&t));
    ck_assert(!dd_tally_is_due(t, 5, 100, 800));
    dd_tally_add(t, 5, 100);
    ck_assert(dd_tally_is_due(t, 5, 1, 800));
    ck_assert(!dd_tally_is_due(t, 6, 1, 800));
    dd_tally_restart(t, 5);
    ck_assert(!dd_tally_is_due(t, 5, 100, 800));
    ck_assert(dd_tally_is_due(t, 5, UINT32_MAX, 800));
    dd_tally_destroy(t);
}
END_TEST

START_TEST(the_window_covers_both_sides_of_a_clock_that_went_back)
{
    struct dd_scene scene = {.period = DD_PERIOD_MONTH, .window = 3};
    struct dd_period p[DD_WINDOW_MAX];
    struct dd_clock clock;
    char text[DD_PERIOD_TEXT];
    bool cut;
    dd_clock_init_manual(&clock, 1793491200000); /* 2026-11-01 */
    ck_assert_uint_eq(dd_window_periods(&clock, &scene, 3, &cut, p), 3);
    ck_assert_str_eq(dd_period_format(p[0], text), "2026-11");
    ck_assert_str_eq(dd_period_format(p[2], text), "2026-09");
    dd_clock_move(&clock, -1000);
    ck_assert_uint_eq(dd_window_periods(&clock, &scene, 3, &cut, p), 4);
    ck_assert_str_eq(dd_period_format(p[0], text), "2026-11");
    ck_assert_str_eq(dd_period_format(p[3], text), "2026-08");
    ck_assert(!cut);
    scene.period = DD_PERIOD_FOREVER;
    ck_assert_uint_eq(dd_window_periods(&clock, &scene, 1, &cut, p), 1);
    ck_assert(!cut);
    scene.period = DD_PERIOD_DAY;
    dd_clock_move(&clock, -400LL * 86400000);
    ck_assert_uint_eq(dd_window_periods(&clock, &scene, 60, &cut, p), DD_WINDOW_MAX);
    ck_assert(cut);
}
END_TEST

START_TEST(scenes_are_found_by_name_and_default_must_exist)
{
    struct dd_scene two[2] = {{.name = "push"}, {.name = "default"}};
    struct dd_scenes *s;
    ck_assert_ok(dd_scenes_create(two, 2, &s));
    ck_assert_str_eq(dd_scenes_find(s, dd_slice_of(NULL, 0))->name, "default");
    ck_assert_str_eq(dd_scenes_find(s, dd_slice_str("push"))->name, "push");
    ck_assert_ptr_null(dd_scenes_find(s, dd_slice_str("pus")));
    dd_scenes_destroy(s);
    ck_assert_err(dd_scenes_create(two, 1, &s), DD_INVALID);
}
END_TEST

Suite *suite_pieces(void);
Suite *suite_pieces(void)
{
    Suite *s = suite_create("dedup/pieces");
    TCase *t = tcase_create("pieces");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, repeats_are_marked_at_their_later_places);
    tcase_add_test(t, marks_find_their_item_and_the_smallest_reason_stays);
    tcase_add_test(t, equal_fingerprints_of_different_items_are_both_marked);
    tcase_add_test(t, the_tally_is_due_at_an_eighth_of_the_cap);
    tcase_add_test(t, the_window_covers_both_sides_of_a_clock_that_went_back);
    tcase_add_test(t, scenes_are_found_by_name_and_default_must_exist);
    suite_add_tcase(s, t);
    return s;
}
