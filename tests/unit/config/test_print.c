/* --print-config reads back as itself; the committed pages are what the table says. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "config/load.h"
#include "suites.h"
#include "support.h"

/* Runs from the root of the repository, as make does. */
static void expect_file(const char *path, struct dd_buf *want)
{
    struct dd_buf got = {0};
    ck_assert_msg(dd_file_read(path, 1 << 20, &got, NULL) == DD_OK, "%s: cannot be read", path);
    ck_assert_msg(dd_slice_eq(dd_buf_slice(&got), dd_buf_slice(want)), "%s is out of date: make docs", path);
    dd_buf_free(&got);
    dd_buf_free(want);
}

START_TEST(committed_defaults)
{
    struct loaded l = load_all(NULL, NULL, NULL);
    struct dd_buf text = {0};
    ck_assert_ok(dd_config_print(l.cfg, &text));
    expect_file("config/dedupd.json", &text);
    loaded_free(&l);
}
END_TEST

START_TEST(committed_reference)
{
    struct dd_buf text = {0};
    ck_assert_ok(dd_config_reference(&text));
    expect_file("config/README.md", &text);
}
END_TEST

/* Every option of both tables has its line. */
START_TEST(reference_is_whole)
{
    struct dd_buf text = {0};
    char cell[DD_OPTION_TEXT_MAX];
    ck_assert_ok(dd_config_reference(&text));
    dd_buf_add_u8(&text, 0);
    for (size_t i = 0; i < dd_config_table.count; i++) {
        snprintf(cell, sizeof cell, "\n| `%s` | `DEDUPD_", dd_config_table.rows[i].name);
        ck_assert_contains((char *)text.data, cell);
        ck_assert_contains((char *)text.data, dd_config_table.rows[i].text);
    }
    for (size_t i = 0; i < dd_scene_table.count; i++) {
        snprintf(cell, sizeof cell, "\n| `scenes.*.%s` | `DEDUPD_SCENES_*_", dd_scene_table.rows[i].name);
        ck_assert_contains((char *)text.data, cell);
    }
    dd_buf_free(&text);
}
END_TEST

static const char *const round_trips[] = {
    "{}",
    "{\"redis\": {\"url\": \"redis://u:sesame@h:1/2\"}}",
    "{\"redis\": {\"url\": \"redis://:sesame@h\"}, \"ingest\": {\"mode\": \"direct\"}}",
    "{\"redis\": {\"url\": \"unix://sesame@/run/x\"}}",
    "{\"data_dir\": \"/h\u00e4m/\\\"q\\\\\"}",
    "{\"scenes\": {\"z\": {\"fpr\": 0.0123456789012345678}, \"a.b\": {\"period\": \"forever\"}, \"default\": "
    "{\"window\": 1}}}",
    "{\"log\": {\"level\": \"warn\"}, \"clock\": {\"offset_s\": -86400}, \"store\": {\"max_open_files\": "
    "-1}}",
};

START_TEST(round_trip)
{
    struct loaded l = load_json(round_trips[_i]);
    ck_assert_msg(l.err == DD_OK, "%s", (char *)l.errors.data);
    char *once = printed(l.cfg);
    ck_assert_lacks(once, "sesame");
    struct loaded again = load_json(once);
    ck_assert_msg(again.err == DD_OK, "%s", (char *)again.errors.data);
    char *twice = printed(again.cfg);
    ck_assert_str_eq(once, twice);
    free(once);
    free(twice);
    loaded_free(&again);
    loaded_free(&l);
}
END_TEST

START_TEST(values)
{
    const char *sets[] = {"http.workers=9",
                          "scenes.x.fpr=0.002",
                          "scenes.y.fpr=0.0123456789",
                          "scenes.z.fpr=0.05",
                          "wheel.paused=true",
                          "redis.url=redis://u:sesame@h",
                          NULL};
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_ok(l.err);
    char *text = printed(l.cfg);
    ck_assert_contains(text, "\"workers\": 9,\n");
    ck_assert_contains(text, "\"fpr\": 0.002,\n");
    ck_assert_contains(text, "\"fpr\": 0.0123456789,\n");
    ck_assert_contains(text, "\"fpr\": 0.05,\n");
    ck_assert_contains(text, "\"paused\": true,\n");
    ck_assert_contains(text, "\"url\": \"redis://u:***@h\",\n");
    free(text);
    loaded_free(&l);
}
END_TEST

Suite *suite_print(void)
{
    Suite *s = suite_create("config print");
    TCase *tc = case_of(s, "pages");
    tcase_add_test(tc, committed_defaults);
    tcase_add_test(tc, committed_reference);
    tcase_add_test(tc, reference_is_whole);
    tcase_add_loop_test(tc, round_trip, 0, (int)(sizeof round_trips / sizeof *round_trips));
    tcase_add_test(tc, values);
    return s;
}
