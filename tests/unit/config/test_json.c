/* The file: syntax, shape, and that every error says where it is. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suites.h"
#include "support.h"

static const struct {
    const char *json, *text;
} bad[] = {
    {"", "line 1"},
    {"  \n\n", "line 3"},
    {"[]", "must be an object"},
    {"null", "line 1"},
    {"{", "line 1"},
    {"{\n\"http\": {\n\"workers\": 1,\n}}", "line 4"},
    {"{\"http\": {\"workers\": 1 \"listen\": \"x\"}}", "(after http.workers)\n"}, /* a comma is missing */
    {"{} {}", "line 1"},
    {"{\"data_dir\": \"\\u0000\"}", "line 1"},
    {"{\"data_dir\": \"\xff\"}", "line 1"},
    {"{\"http\": {\"workers\": 01}}", "line 1"},
    {"{\"http\": {\"workers\": 1,\n \"workers\": 2}}", "line 2, column 10: duplicate object key"},
    {"{\"http\": {}, \"http\": {}}", "duplicate object key"},
    {"{\"scenes\": {\"a\": {},\n\"a\": {}}}", "line 2"},
    {"{\"scenes\": {\"default\": {\n\"fpr\": NaN}}}",
     "line 2, column 10: invalid token near 'NaN' (after fpr)\n"},
    {"{\"scenes\": {\"default\": {\"capacity\": Infinity}}}", "(after capacity)\n"},
    {"{\"scenes\": {\"default\": {\"fpr\": 1e999}}}", "(after fpr)\n"},
    {"{\"http\": 3}", "http: must be an object"},
    {"{\"http\": null}", "http: must be an object"},
    {"{\"http\": []}", "http: must be an object"},
    {"{\"http\": {\"workers\": {\"a\": 1}}}", "http.workers: an object is not an integer (allowed: 0..256)"},
    {"{\"http.workers\": 1}", "http.workers: a key with dots: nest objects instead"},
    {"{\"scenes\": 3}", "scenes: must be an object"},
    {"{\"scenes\": []}", "scenes: must be an object"},
    {"{\"scenes\": {\"a\": 3}}", "scenes.a: must be an object"},
    {"{\"scenes\": {\"a\": {\"recent\": 3}}}", "scenes.a.recent: must be an object"},
    {"{\"scenes\": {\"a b\": {}}}", "scenes.a b: not a name"},
    {"{\"scenes\": {\"\": {}}}", "scenes.: not a name"},
    {"{\"scenes\": {\"a/b\": {}}}", "not a name"},
    {"{\"\": 1}", ": unknown option"},
    {"{\"a\\nb\": 1}", ": a?b: unknown option\n"},
};

START_TEST(refused)
{
    expect_json_error(bad[_i].json, DD_INVALID, bad[_i].text);
    expect_json_error(bad[_i].json, DD_INVALID, "test.json: "); /* each line says which file */
}
END_TEST

static const struct {
    const char *json, *text;
} unknown[] = {
    {"{\"http\": {\"wokers\": 1}}", "http.wokers: unknown option; did you mean http.workers?"},
    {"{\"htp\": {}}", "htp: unknown option; did you mean http?"},
    {"{\"workers\": 1}", "workers: unknown option; did you mean http.workers?"},
    {"{\"datadir\": \"x\"}", "datadir: unknown option; did you mean data_dir?"},
    {"{\"scenes\": {\"push\": {\"windw\": 1}}}",
     "scenes.push.windw: unknown option; did you mean scenes.push.window?"},
    {"{\"scenes\": {\"push\": {\"recent\": {\"maxx\": 1}}}}", "did you mean scenes.push.recent.max?"},
    {"{\"scenes\": {\"push\": {\"xyzzy\": 1}}}", "scenes.push.xyzzy: unknown option\n"},
    {"{\"completely\": 1}", "completely: unknown option\n"},
    {"{\"store\": {\"cluster_nodes\": 1}}", "store.cluster_nodes: unknown option\n"},
};

START_TEST(unknown_keys)
{
    expect_json_error(unknown[_i].json, DD_INVALID, unknown[_i].text);
}
END_TEST

START_TEST(long_keys)
{
    struct dd_buf json = {0};
    dd_buf_add_str(&json, "{\"http\":{\"");
    for (int i = 0; i < 5000; i++)
        dd_buf_add_u8(&json, 'k');
    dd_buf_add_str(&json, "\":1}}");
    dd_buf_add_u8(&json, 0);
    expect_json_error((char *)json.data, DD_INVALID, "kkk...: unknown option\n");
    dd_buf_free(&json);
}
END_TEST

/* One run shows all that is wrong. */
START_TEST(all_errors)
{
    struct loaded l = load_json("{\"http\": {\"workers\": 999, \"wat\": 1}, \"log\": {\"level\": \"loud\"}}");
    ck_assert_err(l.err, DD_INVALID);
    ck_assert_contains((char *)l.errors.data, "http.workers: 999 is out of range (allowed: 0..256)\n");
    ck_assert_contains((char *)l.errors.data, "http.wat: unknown option\n");
    ck_assert_contains((char *)l.errors.data,
                       "log.level: \"loud\" is none of the choices (allowed: debug, info, warn, error)\n");
    loaded_free(&l);
}
END_TEST

/* 1.0 and 1e3 are the integers that they say; JSON has only numbers. */
START_TEST(taken)
{
    struct loaded l = load_json(
        "{\"http\": {\"workers\": 4.0, \"max_items\": 1e3, \"protected\": false,"
        "\"listen\": \"[::1]:0, unix:/run/d.sock\"}, \"store\": {\"max_open_files\": -1},"
        "\"clock\": {\"offset_s\": -3153600000}, \"scenes\": {\"a.b-C_1\": {\"fpr\": 0.01}}}");
    ck_assert_ok(l.err);
    ck_assert_int_eq(l.cfg->http.workers, 4);
    ck_assert_int_eq(l.cfg->http.max_items, 1000);
    ck_assert(!l.cfg->http.protected);
    ck_assert_str_eq(l.cfg->http.listen, "[::1]:0, unix:/run/d.sock");
    ck_assert_int_eq(l.cfg->store.max_open_files, -1);
    ck_assert_int_eq(l.cfg->clock.offset_s, -3153600000);
    ck_assert_uint_eq(l.cfg->scene_count, 2);
    ck_assert(dd_config_scene(l.cfg, dd_slice_str("a.b-C_1"))->fpr == 0.01);
    loaded_free(&l);
}
END_TEST

static void expect_unreadable(const char *path, enum dd_err err, const char *text)
{
    struct dd_buf errors = {0};
    struct dd_config *cfg;
    struct dd_config_sources from = {.file = path};
    ck_assert_err(dd_config_load(&from, &cfg, &errors), err);
    ck_assert_ptr_null(cfg);
    dd_buf_add_u8(&errors, 0);
    ck_assert_contains((char *)errors.data, path);
    ck_assert_contains((char *)errors.data, text);
    dd_buf_free(&errors);
}

START_TEST(unreadable)
{
    char *dir = unit_mkdir(), path[600];
    snprintf(path, sizeof path, "%s/none.json", dir);
    expect_unreadable(path, DD_IO, "cannot be read: No such file or directory");
    expect_unreadable(dir, DD_IO, "cannot be read: Is a directory");
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chmod(path, 0), 0);
    if (geteuid() != 0) expect_unreadable(path, DD_IO, "cannot be read: Permission denied");
    unit_rmdir(dir);
}
END_TEST

START_TEST(too_large)
{
    char *dir = unit_mkdir(), path[600];
    snprintf(path, sizeof path, "%s/large.json", dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(truncate(path, 1048577), 0);
    expect_unreadable(path, DD_INVALID, "is larger than 1048576 bytes");
    unit_rmdir(dir);
}
END_TEST

/* Wherever the syntax breaks inside or after the URL, the password is not told. */
START_TEST(passwords)
{
    static const char *const files[] = {"{\"redis\": {\"url\": \"redis://u:sesame@h\n\"}}",
                                        "{\"redis\": {\"url\": \"redis://u:sesame@h",
                                        "{\"redis\": {\"url\": \"redis://u:sesame@h\" x}}",
                                        "{\"redis\": {\"url\": \"redis://u:se/sesame@h\"}}",
                                        "{\"redis\": {\"url\": \"redis://u:sesame\"}}",
                                        "{\"redis\": {\"url\": \"u:sesame@h\"}}",
                                        "{\"redis\": {\"url\": \"sesame\"}}"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct loaded l = load_json(files[i]);
        ck_assert_err(l.err, DD_INVALID);
        ck_assert_lacks((char *)l.errors.data, "sesame");
        loaded_free(&l);
    }
}
END_TEST

Suite *suite_json(void)
{
    Suite *s = suite_create("config json");
    TCase *tc = case_of(s, "file");
    tcase_add_loop_test(tc, refused, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_loop_test(tc, unknown_keys, 0, (int)(sizeof unknown / sizeof *unknown));
    tcase_add_test(tc, long_keys);
    tcase_add_test(tc, all_errors);
    tcase_add_test(tc, taken);
    tcase_add_test(tc, unreadable);
    tcase_add_test(tc, too_large);
    tcase_add_test(tc, passwords);
    return s;
}
