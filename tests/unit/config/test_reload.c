#include "suites.h"
#include "support.h"

struct diffed {
    struct loaded running, now;
    struct dd_buf applied, restart; /* end in NUL */
};

static struct diffed diff(const char *before, const char *after)
{
    struct diffed d = {load_json(before), load_json(after), {0}, {0}};
    ck_assert_msg(d.running.err == DD_OK, "%s", (char *)d.running.errors.data);
    ck_assert_msg(d.now.err == DD_OK, "%s", (char *)d.now.errors.data);
    ck_assert_ok(dd_config_reload_diff(d.running.cfg, d.now.cfg, &d.applied, &d.restart));
    dd_buf_add_u8(&d.applied, 0);
    dd_buf_add_u8(&d.restart, 0);
    return d;
}

static void diffed_free(struct diffed *d)
{
    loaded_free(&d->running);
    loaded_free(&d->now);
    dd_buf_free(&d->applied);
    dd_buf_free(&d->restart);
}

START_TEST(nothing)
{
    struct diffed d = diff("{\"scenes\": {\"a\": {\"window\": 2}}}",
                           "{\"scenes\": {\"a\": {\"window\": 2}}}");
    ck_assert_str_eq((char *)d.applied.data, "");
    ck_assert_str_eq((char *)d.restart.data, "");
    diffed_free(&d);
}
END_TEST

/* Exactly these: a reader of the log relies on it, and so does whoever passes the values on. */
START_TEST(reloadable)
{
    struct diffed d = diff(
        "{}", "{\"log\": {\"level\": \"debug\"}, \"wheel\": {\"rate_users_s\": 5, \"paused\": true},"
              "\"clock\": {\"offset_s\": -3}}");
    ck_assert_str_eq((char *)d.applied.data,
                     "log.level=debug wheel.rate_users_s=5 wheel.paused=true clock.offset_s=-3");
    ck_assert_str_eq((char *)d.restart.data, "");
    ck_assert(d.running.cfg->log.level == DD_LOG_DEBUG);
    ck_assert_int_eq(d.running.cfg->wheel.rate_users_s, 5);
    ck_assert(d.running.cfg->wheel.paused);
    ck_assert_int_eq(d.running.cfg->clock.offset_s, -3);
    diffed_free(&d);
}
END_TEST

START_TEST(restart)
{
    struct diffed d = diff("{}",
                           "{\"http\": {\"workers\": 2}, \"data_dir\": \"/x\", \"wheel\": {\"paused\": true},"
                           "\"redis\": {\"url\": \"redis://u:sesame@h\"}}");
    ck_assert_str_eq((char *)d.applied.data, "wheel.paused=true");
    ck_assert_str_eq((char *)d.restart.data, "data_dir http.workers redis.url");
    ck_assert_int_eq(d.running.cfg->http.workers, 0);
    ck_assert_str_eq(d.running.cfg->data_dir, "/var/lib/dedupd");
    diffed_free(&d);
}
END_TEST

START_TEST(scenes)
{
    struct diffed d = diff("{\"scenes\": {\"a\": {}, \"b\": {\"window\": 2}}}",
                           "{\"scenes\": {\"b\": {\"window\": 3, \"recent\": {\"max\": 4}}, \"c\": {}}}");
    ck_assert_str_eq((char *)d.applied.data, "");
    ck_assert_str_eq((char *)d.restart.data, "scenes.a scenes.b.window scenes.b.recent.max scenes.c");
    ck_assert_int_eq(dd_config_scene(d.running.cfg, dd_slice_str("b"))->window, 2);
    diffed_free(&d);
}
END_TEST

/* A second signal finds nothing left to apply, and the same things waiting. */
START_TEST(again)
{
    struct diffed d = diff("{}", "{\"http\": {\"workers\": 2}, \"wheel\": {\"paused\": true}}");
    dd_buf_reset(&d.applied);
    dd_buf_reset(&d.restart);
    ck_assert_ok(dd_config_reload_diff(d.running.cfg, d.now.cfg, &d.applied, &d.restart));
    dd_buf_add_u8(&d.restart, 0);
    ck_assert_uint_eq(d.applied.len, 0);
    ck_assert_str_eq((char *)d.restart.data, "http.workers");
    diffed_free(&d);
}
END_TEST

Suite *suite_reload(void)
{
    Suite *s = suite_create("config reload");
    TCase *tc = case_of(s, "reload");
    tcase_add_test(tc, nothing);
    tcase_add_test(tc, reloadable);
    tcase_add_test(tc, restart);
    tcase_add_test(tc, scenes);
    tcase_add_test(tc, again);
    return s;
}
