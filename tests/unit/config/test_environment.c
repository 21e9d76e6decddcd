/* Environment variables, those of scenes too. */
#include "suites.h"
#include "support.h"

static struct loaded load_env(const char *entry)
{
    const char *environment[] = {entry, NULL};
    return load_all(NULL, environment, NULL);
}

START_TEST(sets_options)
{
    const char *environment[] = {"HOME=/",
                                 "DEDUPD_HTTP_WORKERS=3",
                                 "DEDUPD_DATA_DIR=/a=b",
                                 "DEDUPD_WHEEL_PAUSED=true",
                                 "DEDUPDX=1",
                                 "DEDUPD",
                                 "DEDUPD_REDIS_URL=",
                                 NULL};
    struct loaded l = load_all(NULL, environment, NULL);
    ck_assert_ok(l.err);
    ck_assert_int_eq(l.cfg->http.workers, 3);
    ck_assert_str_eq(l.cfg->data_dir, "/a=b");
    ck_assert(l.cfg->wheel.paused);
    loaded_free(&l);
}
END_TEST

static const struct {
    const char *entry, *text;
} bad[] = {
    {"DEDUPD_HTTP_WORKERS=300", "DEDUPD_HTTP_WORKERS: http.workers: 300 is out of range (allowed: 0..256)\n"},
    {"DEDUPD_HTTP_WORKERS=", "DEDUPD_HTTP_WORKERS: http.workers: \"\" is not an integer"},
    {"DEDUPD_HTTP_WOKERS=3", "DEDUPD_HTTP_WOKERS: names no option\n"},
    {"DEDUPD_=3", "DEDUPD_: names no option\n"},
    {"DEDUPD_http_workers=3", "DEDUPD_http_workers: names no option\n"},
    {"DEDUPD_SCENES_PUSH=3", "DEDUPD_SCENES_PUSH: names no option of a scene\n"},
    {"DEDUPD_SCENES__WINDOW=3", "names no option of a scene\n"},
    {"DEDUPD_SCENES_WINDOW=3", "names no option of a scene\n"},
    {"DEDUPD_SCENES_PUSH_WINDOW=65", "DEDUPD_SCENES_PUSH_WINDOW: scenes.push.window: 65 is out of range"},
    {"DEDUPD_SCENES_A B_WINDOW=3", "scenes.a b: not a name"},
    {"DEDUPD_SCENES_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_WINDOW=3",
     "not a name"},
};

START_TEST(refused)
{
    struct loaded l = load_env(bad[_i].entry);
    ck_assert_err(l.err, DD_INVALID);
    ck_assert_contains((char *)l.errors.data, bad[_i].text);
    loaded_free(&l);
}
END_TEST

START_TEST(lengthy_names)
{
    static char entry[5000] = "DEDUPD_SCENES_";
    memset(entry + 14, 'A', 4000);
    memcpy(entry + 4014, "_WINDOW=3", 10);
    struct loaded l = load_env(entry);
    ck_assert_err(l.err, DD_INVALID);
    loaded_free(&l);
}
END_TEST

/* What Kubernetes sets for services called dedupd and dedupd-admin. */
START_TEST(service_links)
{
    const char *environment[] = {"DEDUPD_SERVICE_HOST=10.0.0.1",
                                 "DEDUPD_SERVICE_PORT=8080",
                                 "DEDUPD_SERVICE_PORT_HTTP=8080",
                                 "DEDUPD_PORT=tcp://10.0.0.1:8080",
                                 "DEDUPD_PORT_8080_TCP=tcp://10.0.0.1:8080",
                                 "DEDUPD_PORT_8080_TCP_PROTO=tcp",
                                 "DEDUPD_PORT_8080_TCP_PORT=8080",
                                 "DEDUPD_PORT_8080_TCP_ADDR=10.0.0.1",
                                 "DEDUPD_ADMIN_SERVICE_HOST=10.0.0.1",
                                 "DEDUPD_ADMIN_PORT_8081_TCP_ADDR=10.0.0.1",
                                 NULL};
    struct loaded l = load_all(NULL, environment, NULL);
    ck_assert_msg(l.err == DD_OK, "%s", (char *)l.errors.data);
    loaded_free(&l);
}
END_TEST

START_TEST(scenes)
{
    const char *environment[] = {"DEDUPD_SCENES_HOME_PAGE_RECENT_MAX=7", "DEDUPD_SCENES_PUSH_WINDOW=2",
                                 "DEDUPD_SCENES_DEFAULT_CACHE_TTL_S=5", NULL};
    struct loaded l = load_all("{\"scenes\": {\"Home.Page\": {\"window\": 5}}}", environment, NULL);
    ck_assert_ok(l.err);
    ck_assert_uint_eq(l.cfg->scene_count, 3);
    const struct dd_scene_config *home = dd_config_scene(l.cfg, dd_slice_str("Home.Page"));
    ck_assert_int_eq(home->recent.max, 7);
    ck_assert_int_eq(home->window, 5);
    ck_assert_int_eq(dd_config_scene(l.cfg, dd_slice_str("push"))->window, 2);
    ck_assert_int_eq(dd_config_scene(l.cfg, dd_slice_str("default"))->cache.ttl_s, 5);
    loaded_free(&l);
}
END_TEST

START_TEST(ambiguous_scene)
{
    const char *environment[] = {"DEDUPD_SCENES_A_B_WINDOW=2", NULL};
    struct loaded l = load_all("{\"scenes\": {\"a.b\": {}, \"a-b\": {}}}", environment, NULL);
    ck_assert_err(l.err, DD_INVALID);
    ck_assert_contains((char *)l.errors.data, "DEDUPD_SCENES_A_B_WINDOW: means several scenes");
    loaded_free(&l);
}
END_TEST

Suite *suite_environment(void)
{
    Suite *s = suite_create("config environment");
    TCase *tc = case_of(s, "variables");
    tcase_add_test(tc, sets_options);
    tcase_add_loop_test(tc, refused, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tc, lengthy_names);
    tcase_add_test(tc, service_links);
    tcase_add_test(tc, scenes);
    tcase_add_test(tc, ambiguous_scene);
    return s;
}
