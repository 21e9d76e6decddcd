/* Which source wins, and --set. */
#include <stdio.h>

#include "suites.h"
#include "support.h"

START_TEST(precedence)
{
    static const char json[] = "{\"http\": {\"workers\": 1}, \"scenes\": {\"default\": {\"window\": 5}}}";
    const char *environment[] = {"DEDUPD_HTTP_WORKERS=2", "DEDUPD_SCENES_DEFAULT_WINDOW=6", NULL};
    const char *sets[] = {"http.workers=3", "scenes.default.window=7", "http.workers=4", NULL};
    static const int64_t workers[] = {0, 1, 2, 4}, windows[] = {3, 5, 6, 7};
    for (int n = 0; n < 4; n++) {
        struct loaded l = load_all(n > 0 ? json : NULL, n > 1 ? environment : NULL, n > 2 ? sets : NULL);
        ck_assert_ok(l.err);
        ck_assert_int_eq(l.cfg->http.workers, workers[n]);
        ck_assert_int_eq(l.cfg->scenes[0].window, windows[n]);
        loaded_free(&l);
    }
}
END_TEST

/* A lower source that is wrong is an error, although a higher one would win. */
START_TEST(no_hiding)
{
    const char *sets[] = {"http.workers=3", NULL};
    struct loaded l = load_all("{\"http\": {\"workers\": 999}}", NULL, sets);
    ck_assert_err(l.err, DD_INVALID);
    loaded_free(&l);
}
END_TEST

static const struct {
    const char *set, *text;
} bad[] = {
    {"", "--set: no value; write name=value\n"},
    {"http.workers", "--set: http.workers: no value; write name=value\n"},
    {"=3", "--set: unknown option\n"},
    {"http.workers=", "--set: http.workers: \"\" is not an integer (allowed: 0..256)\n"},
    {"http.workers=257", "--set: http.workers: 257 is out of range (allowed: 0..256)\n"},
    {" http.workers=1", "--set:  http.workers: unknown option; did you mean http.workers?\n"},
    {"http=1", "--set: http: is a section; write http.<option>=value\n"},
    {"scenes=1", "--set: scenes: is a section; write scenes.<option>=value\n"},
    {"scenes.push.recent=1", "--set: scenes.push.recent: unknown option"},
    {"scenes.=1", "--set: scenes.: unknown option; write scenes.<scene>.<option>\n"},
    {"scenes.push=1", "--set: scenes.push: unknown option; write scenes.<scene>.<option>\n"},
    {"scenes.window=1", "--set: scenes.window: unknown option; write scenes.<scene>.<option>\n"},
    {"scenes..window=1", "--set: scenes.: not a name"},
    {"scenes.push.windo=1", "--set: scenes.push.windo: unknown option; did you mean scenes.push.window?\n"},
    {"scenes.a/b.window=1", "--set: scenes.a/b: not a name"},
    {"http.listen=127.0.0.1", "is refused: the port is missing"},
    {"http.listen=", "is refused: at least one address is needed"},
    {"http.listen=1.2.3.4:1,", "is refused: there is an empty address"},
    {"data_dir=", "is refused: it must not be empty"},
};

START_TEST(refused)
{
    expect_set_error(bad[_i].set, bad[_i].text);
}
END_TEST

START_TEST(scenes)
{
    const char *sets[] = {"scenes.push.window=2",        "scenes.a.b.recent.max=9",
                          "scenes.push.recent.ttl_s=60", "scenes.window.window=4",
                          "scenes.a.recent.max=8",       "scenes.default.on_full=rotate",
                          "scenes.default.max_layers=5", NULL};
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_msg(l.err == DD_OK, "%s", (char *)l.errors.data);
    ck_assert_uint_eq(l.cfg->scene_count, 5);
    ck_assert_str_eq(l.cfg->scenes[0].name, "default");
    const struct dd_scene_config *push = dd_config_scene(l.cfg, dd_slice_str("push"));
    ck_assert_int_eq(push->window, 2);
    ck_assert_int_eq(push->recent.ttl_s, 60);
    ck_assert_int_eq(push->recent.max, 100);
    ck_assert_int_eq(dd_config_scene(l.cfg, dd_slice_str("a.b"))->recent.max, 9);
    ck_assert_int_eq(dd_config_scene(l.cfg, dd_slice_str("a"))->recent.max, 8);
    ck_assert_int_eq(dd_config_scene(l.cfg, dd_slice_str("window"))->window, 4);
    ck_assert_ptr_null(dd_config_scene(l.cfg, dd_slice_str("pus")));
    loaded_free(&l);
}
END_TEST

START_TEST(name_lengths)
{
    char set[200], name[66];
    memset(name, 'n', sizeof name);
    snprintf(set, sizeof set, "scenes.%.64s.window=2", name);
    struct loaded l = load_set(set);
    ck_assert_ok(l.err);
    ck_assert_uint_eq(strlen(l.cfg->scenes[1].name), 64);
    loaded_free(&l);
    snprintf(set, sizeof set, "scenes.%.65s.window=2", name);
    expect_set_error(set, "not a name");
    snprintf(set, sizeof set, "scenes.%.65s.windo=2", name);
    expect_set_error(set, "unknown option; write scenes.<scene>.<option>");
}
END_TEST

START_TEST(too_many_scenes)
{
    struct dd_buf json = {0};
    dd_buf_add_str(&json, "{\"scenes\":{\"s0\":{}");
    for (int i = 1; i < 1000; i++)
        dd_buf_addf(&json, ",\"s%d\":{}", i);
    dd_buf_add_str(&json, "}}");
    dd_buf_add_u8(&json, 0);
    expect_json_error((char *)json.data, DD_INVALID, "scenes: more than 1000\n");
    dd_buf_free(&json);
}
END_TEST

Suite *suite_load(void)
{
    Suite *s = suite_create("config load");
    TCase *tc = case_of(s, "sources");
    tcase_add_test(tc, precedence);
    tcase_add_test(tc, no_hiding);
    tcase_add_loop_test(tc, refused, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tc, scenes);
    tcase_add_test(tc, name_lengths);
    tcase_add_test(tc, too_many_scenes);
    return s;
}
