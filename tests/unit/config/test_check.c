/* What several options say together: Redis and its password, ingest, policies. */
#include <stdio.h>

#include "suites.h"
#include "support.h"

START_TEST(policy)
{
    const char *sets[] = {
        "scenes.push.window=2",    "scenes.push.fpr=0.01",       "scenes.push.filter=cuckoo",
        "scenes.push.capacity=64", "scenes.push.growth=1",       "scenes.push.max_layers=5",
        "scenes.push.cap=5000",    "scenes.push.on_full=rotate", NULL};
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_msg(l.err == DD_OK, "%s", (char *)l.errors.data);
    const struct dd_filter_policy *p = &dd_config_scene(l.cfg, dd_slice_str("push"))->policy;
    ck_assert(p->kind == DD_FILTER_CUCKOO && p->on_full == DD_ON_FULL_ROTATE);
    ck_assert(p->fpr == 0.005);
    ck_assert_uint_eq(p->capacity, 64);
    ck_assert_uint_eq(p->cap, 5000);
    ck_assert_uint_eq(p->growth, 1);
    ck_assert_uint_eq(p->max_layers, 5);
    ck_assert_uint_eq(p->fingerprint_bits, 0);
    ck_assert(l.cfg->scenes[0].policy.fpr == 0.001 / 3);
    loaded_free(&l);
}
END_TEST

/* A cap whose equal fingerprints alone would take more than half of a period's share. */
START_TEST(policy_refused)
{
    expect_set_error("scenes.push.cap=16000000", "scenes.push: ");
}
END_TEST

START_TEST(forever)
{
    struct loaded l = load_set("scenes.default.period=forever");
    ck_assert_ok(l.err);
    ck_assert_int_eq(l.cfg->scenes[0].window, 1);
    ck_assert(l.cfg->scenes[0].policy.fpr == 0.001);
    loaded_free(&l);
    const char *sets[] = {"scenes.default.window=3", "scenes.default.period=forever", NULL};
    l = load_all(NULL, NULL, sets);
    ck_assert_err(l.err, DD_INVALID);
    ck_assert_contains((char *)l.errors.data,
                       "scenes.default: window: 3 is out of range (allowed with period forever: 1)");
    loaded_free(&l);
}
END_TEST

static const struct {
    const char *mode, *url;
    int staged; /* -1: an error */
} modes[] = {{"auto", "", 0},    {"auto", "redis://h", 1},  {"direct", "", 0}, {"direct", "redis://h", 0},
             {"staged", "", -1}, {"staged", "redis://h", 1}};

START_TEST(ingest)
{
    char mode[40], url[40];
    snprintf(mode, sizeof mode, "ingest.mode=%s", modes[_i].mode);
    snprintf(url, sizeof url, "redis.url=%s", modes[_i].url);
    const char *sets[] = {mode, url, NULL};
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_int_eq(l.cfg ? (int)dd_config_is_staged(l.cfg) : -1, modes[_i].staged);
    if (!l.cfg) ck_assert_contains((char *)l.errors.data, "ingest.mode: staged needs redis.url\n");
    loaded_free(&l);
}
END_TEST

START_TEST(counting)
{
    char mode[40], url[40];
    snprintf(mode, sizeof mode, "ingest.mode=%s", modes[_i].mode);
    snprintf(url, sizeof url, "redis.url=%s", modes[_i].url);
    const char *sets[] = {mode, url, "scenes.likes.filter=counting", NULL};
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_int_eq(l.err == DD_OK, modes[_i].staged == 0);
    if (modes[_i].staged == 1)
        ck_assert_contains((char *)l.errors.data, "scenes.likes: filter: counting needs direct ingest");
    loaded_free(&l);
}
END_TEST

START_TEST(redis)
{
    struct loaded l = load_set("redis.url=redis://u:p%40ss@[::1]:7000/3");
    ck_assert_ok(l.err);
    ck_assert(dd_redis_url_is_set(&l.cfg->redis.server));
    ck_assert_str_eq(l.cfg->redis.server.host, "::1");
    ck_assert_str_eq(l.cfg->redis.server.password, "p@ss");
    loaded_free(&l);
    l = load_set("redis.url=");
    ck_assert(!dd_redis_url_is_set(&l.cfg->redis.server));
    loaded_free(&l);
}
END_TEST

static const struct {
    const char *content, *url, *password; /* NULL password: an error */
} files[] = {
    {"sesame\n", "redis://h", "sesame"},
    {"sesame", "redis://u@h", "sesame"},
    {"sesame\r\n", "unix:///run/redis.sock", "sesame"},
    {" p@:/% \n", "redis://h", " p@:/% "},
    {"sesame\n", "", ""}, /* embedded: not read */
    {"", "redis://h", NULL},
    {"\n", "redis://h", NULL},
    {"two\nlines\n", "redis://h", NULL},
    {"sesame\n", "redis://u:p@h", NULL},
};

static struct loaded load_password(const char *path, const char *content, size_t length, const char *url)
{
    char file_set[700], url_set[100];
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(content, 1, length, f), length);
    ck_assert_int_eq(fclose(f), 0);
    snprintf(file_set, sizeof file_set, "redis.password_file=%s", path);
    snprintf(url_set, sizeof url_set, "redis.url=%s", url);
    const char *sets[] = {file_set, url_set, NULL};
    return load_all(NULL, NULL, sets);
}

START_TEST(password_file)
{
    char *dir = unit_mkdir(), path[600];
    snprintf(path, sizeof path, "%s/password", dir);
    struct loaded l = load_password(path, files[_i].content, strlen(files[_i].content), files[_i].url);
    if (files[_i].password) {
        ck_assert_ok(l.err);
        ck_assert_str_eq(l.cfg->redis.server.password, files[_i].password);
    } else {
        ck_assert_err(l.err, DD_INVALID);
        ck_assert_contains((char *)l.errors.data, "redis.password_file: ");
        ck_assert_lacks((char *)l.errors.data, "lines");
    }
    loaded_free(&l);
    unit_rmdir(dir);
}
END_TEST

START_TEST(password_lengths)
{
    static const size_t lengths[] = {512, 513, 514, 515, 5000};
    char *dir = unit_mkdir(), path[600], text[5000];
    memset(text, 'x', sizeof text);
    snprintf(path, sizeof path, "%s/password", dir);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct loaded l = load_password(path, text, lengths[i], "redis://h");
        ck_assert_int_eq(l.err == DD_OK, i == 0);
        if (l.cfg) ck_assert_uint_eq(strlen(l.cfg->redis.server.password), 512);
        loaded_free(&l);
    }
    struct loaded l = load_password(path, "a\0b", 3, "redis://h");
    ck_assert_err(l.err, DD_INVALID);
    loaded_free(&l);
    unit_rmdir(dir);
}
END_TEST

START_TEST(password_file_missing)
{
    const char *sets[] = {"redis.password_file=/nowhere/at/all", "redis.url=redis://h", NULL};
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_err(l.err, DD_IO);
    ck_assert_contains((char *)l.errors.data,
                       "redis.password_file: /nowhere/at/all cannot be read: No such file or directory\n");
    loaded_free(&l);
}
END_TEST

Suite *suite_check(void)
{
    Suite *s = suite_create("config check");
    TCase *tc = case_of(s, "together");
    tcase_add_test(tc, policy);
    tcase_add_test(tc, policy_refused);
    tcase_add_test(tc, forever);
    tcase_add_loop_test(tc, ingest, 0, (int)(sizeof modes / sizeof *modes));
    tcase_add_loop_test(tc, counting, 0, (int)(sizeof modes / sizeof *modes));
    tcase_add_test(tc, redis);
    tcase_add_loop_test(tc, password_file, 0, (int)(sizeof files / sizeof *files));
    tcase_add_test(tc, password_lengths);
    tcase_add_test(tc, password_file_missing);
    return s;
}
