/* What several options say together: Redis and its password, ingest, policies. */
#include <stdio.h>

#include "suites.h"
#include "support.h"

START_TEST(policy)
{
    const char *sets[] = {"scenes.push.window=2",
                          "scenes.push.fpr=0.01",
                          "scenes.push.filter=cuckoo",
                          "scenes.push.capacity=64",
                          "scenes.push.growth=1",
                          "scenes.push.max_layers=5",
                          "scenes.push.cap=5000",
                          "scenes.push.on_full=rotate",
                          "scenes.push.fingerprint_bits=14",
                          "scenes.push.tightening=60",
                          NULL};
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_msg(l.err == DD_OK, "%s", (char *)l.errors.data);
    const struct dd_filter_policy *p = &dd_config_scene(l.cfg, dd_slice_str("push"))->policy;
    ck_assert(p->kind == DD_FILTER_CUCKOO && p->on_full == DD_ON_FULL_ROTATE);
    ck_assert(p->fpr == 0.005);
    ck_assert_uint_eq(p->capacity, 64);
    ck_assert_uint_eq(p->cap, 5000);
    ck_assert_uint_eq(p->growth, 1);
    ck_assert_uint_eq(p->max_layers, 5);
    ck_assert_uint_eq(p->fingerprint_bits, 14);
    ck_assert_uint_eq(p->tightening, 60);
    ck_assert(l.cfg->scenes[0].policy.fpr == 0.001 / 3);
    loaded_free(&l);
}
END_TEST

/* Every value that an option of a policy refuses, given as --set and in a file: the answer names the option
 * and what is allowed. */
static const struct {
    const char *field, *allowed;
    const char *values[16];
} refused[] = {
    {"fpr",
     "(allowed: 0.0001..0.05)",
     {"0", "-0.001", "-1", "1", "2", "0.06", "0.00009", "9223372036854775808", "1e300"}},
    {"capacity",
     "(allowed: 16..1000000)",
     {"0", "-1", "1", "2", "15", "1000001", "9223372036854775807", "9223372036854775808",
      "18446744073709551616", "-9223372036854775809", "16.5", "1e300"}},
    {"growth", "(allowed: 1..2)", {"0", "-1", "3", "1.5", "257", "9223372036854775808"}},
    {"tightening", "(allowed: 0..95)", {"-1", "96", "100", "256", "0.3", "9223372036854775808"}},
    {"max_layers", "(allowed: 0..64)", {"-1", "65", "256", "258", "9223372036854775808"}},
    {"fingerprint_bits", "(allowed: 0..32)", {"-1", "33", "256", "264", "9223372036854775808"}},
    {"cap", "(allowed: 100..16000000)", {"0", "-1", "1", "2", "99", "16000001", "9223372036854775808"}},
    {"window", "(allowed: 1..", {"0", "-1", "65", "9223372036854775808"}},
};

static void expect_refused(const char *field, const char *value, const char *allowed)
{
    char assignment[100], json[150], name[50];
    snprintf(assignment, sizeof assignment, "scenes.push.%s=%s", field, value);
    snprintf(json, sizeof json, "{\"scenes\": {\"push\": {\"%s\": %s}}}", field, value);
    snprintf(name, sizeof name, "scenes.push.%s: ", field);
    expect_set_error(assignment, name);
    expect_set_error(assignment, allowed);
    expect_json_error(json, DD_INVALID, name);
    expect_json_error(json, DD_INVALID, allowed);
}

START_TEST(value_refused)
{
    for (const char *const *v = refused[_i].values; *v; v++)
        expect_refused(refused[_i].field, *v, refused[_i].allowed);
}
END_TEST

/* What JSON has no number for. */
START_TEST(not_a_number_refused)
{
    static const char *const values[] = {"NaN", "nan", "inf", "-inf", "0x10", "", " 1", "1e400", "-1e400"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char assignment[60];
        snprintf(assignment, sizeof assignment, "scenes.push.fpr=%s", values[i]);
        expect_set_error(assignment, "(allowed: 0.0001..0.05)");
        snprintf(assignment, sizeof assignment, "scenes.push.capacity=%s", values[i]);
        expect_set_error(assignment, "(allowed: 16..1000000)");
    }
    expect_json_error("{\"scenes\": {\"push\": {\"fpr\": \"NaN\"}}}", DD_INVALID, "(allowed: 0.0001..0.05)");
    expect_json_error("{\"scenes\": {\"push\": {\"capacity\": null}}}", DD_INVALID, "(allowed: 16..1000000)");
}
END_TEST

/* Options that are good one by one and not together; each error names the option to change. */
static const struct {
    const char *sets[4], *text;
} unfit[] = {
    {{"max_layers=5"}, "scenes.push.max_layers: 5; must be 0 with grow"},
    {{"on_full=rotate"}, "scenes.push.max_layers: 0; must be 0 with grow, 2 to 64 with rotate"},
    {{"on_full=rotate", "max_layers=1"}, "scenes.push.max_layers: 1; must be"},
    {{"on_full=saturate"}, "scenes.push.max_layers: 0; must be"},
    {{"tightening=9"}, "scenes.push.tightening: 9 percent is outside 10 to 95 (0: the default)"},
    {{"fingerprint_bits=12"}, "scenes.push.fingerprint_bits: 12; must be 0, or 4 to 32 for cuckoo"},
    {{"filter=compact", "fingerprint_bits=15"}, "scenes.push.fingerprint_bits: 15; must be"},
    {{"filter=cuckoo", "fingerprint_bits=3"}, "scenes.push.fingerprint_bits: 3; must be"},
    {{"capacity=5000", "cap=4000"}, "scenes.push.cap: 4000 is outside capacity (5000) to 16000000"},
    {{"fpr=0.0001", "cap=200000"},
     "scenes.push.cap: 200000 is too many items: at most 71582 with this fpr and window"},
    {{"window=12", "cap=200000"},
     "scenes.push.cap: 200000 is too many items: at most 178956 with this fpr and window"},
    {{"fpr=0.0001", "capacity=80000"}, "scenes.push.capacity: 80000 is more than the 71582 items"},
};

START_TEST(unfit_refused)
{
    char text[4][60];
    const char *sets[5] = {NULL};
    for (unsigned i = 0; i < 4 && unfit[_i].sets[i]; i++) {
        snprintf(text[i], sizeof text[i], "scenes.push.%s", unfit[_i].sets[i]);
        sets[i] = text[i];
    }
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_err(l.err, DD_INVALID);
    ck_assert_contains((char *)l.errors.data, unfit[_i].text);
    loaded_free(&l);
}
END_TEST

/* What the reference allows for fpr and window can be set alone: a cap that nobody set is lowered. */
static const struct {
    const char *sets[3];
    int64_t cap;
} fitted[] = {{{"fpr=0.0001"}, 71582},
              {{"window=12"}, 178956},
              {{"period=week", "window=12"}, 178956},
              {{"window=64", "fpr=0.0001"}, 3355},
              {{"window=64", "fpr=0.0001", "cap=3355"}, 3355},
              {{"fpr=0.05"}, 200000}};

START_TEST(cap_fitted)
{
    char text[3][60];
    const char *sets[4] = {NULL};
    for (unsigned i = 0; i < 3 && fitted[_i].sets[i]; i++) {
        snprintf(text[i], sizeof text[i], "scenes.push.%s", fitted[_i].sets[i]);
        sets[i] = text[i];
    }
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_msg(l.err == DD_OK, "%s", (char *)l.errors.data);
    const struct dd_scene_config *s = dd_config_scene(l.cfg, dd_slice_str("push"));
    ck_assert_int_eq(s->cap, fitted[_i].cap);
    ck_assert_uint_eq(s->policy.cap, fitted[_i].cap);
    bool lowered = fitted[_i].cap < 200000 && !fitted[_i].sets[2];
    ck_assert_int_eq(s->cap_lowered_from, lowered ? 200000 : 0);
    loaded_free(&l);
}
END_TEST

/* A cap whose equal fingerprints alone would take more than half of a period's share. */
START_TEST(policy_refused)
{
    expect_set_error("scenes.push.cap=16000000", "scenes.push.cap: 16000000 is too many items");
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
                       "scenes.default.window: 3 is out of range (allowed with period forever: 1)");
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

/* Counting scenes are written directly, whatever the others do. */
START_TEST(counting)
{
    char mode[40], url[40];
    snprintf(mode, sizeof mode, "ingest.mode=%s", modes[_i].mode);
    snprintf(url, sizeof url, "redis.url=%s", modes[_i].url);
    const char *sets[] = {mode, url, "scenes.likes.filter=counting", NULL};
    struct loaded l = load_all(NULL, NULL, sets);
    ck_assert_int_eq(l.err == DD_OK, modes[_i].staged >= 0);
    if (l.cfg)
        ck_assert_int_eq(dd_config_scene(l.cfg, dd_slice_str("likes"))->policy.kind, DD_FILTER_COUNTING);
    loaded_free(&l);
}
END_TEST

/* What a migration needs, and what it says when that is missing. */
static const struct {
    const char *sets[5], *complaint; /* NULL: fine */
} migrations[] = {
    {{"migrate.mode=off", "migrate.scene=none"}, NULL},
    {{"migrate.mode=dual", "redis.url=redis://h:1/0"}, NULL},
    {{"migrate.mode=dual", "migrate.source=unix:///s"}, NULL},
    {{"migrate.mode=dual"}, "migrate.mode: dual needs migrate.source or redis.url\n"},
    {{"migrate.mode=done"}, "migrate.mode: done needs migrate.source or redis.url\n"},
    {{"migrate.mode=dual", "migrate.source=unix:///s", "migrate.scene=none"},
     "migrate.scene: there is no scene \"none\"\n"},
    {{"migrate.mode=dual", "migrate.source=unix:///s", "migrate.scene=c", "scenes.c.filter=counting"},
     "migrate.scene: a scene with filter counting"},
    {{"migrate.source=http://h"}, "migrate.source: "},
    {{"migrate.key=seen"}, "migrate.key: "},
    {{"migrate.key={user}{user}"}, "migrate.key: "},
    {{"migrate.type=hash"}, "migrate.type: "},
};

START_TEST(migrate)
{
    struct loaded l = load_all(NULL, NULL, migrations[_i].sets);
    ck_assert_int_eq(l.err == DD_OK, !migrations[_i].complaint);
    if (migrations[_i].complaint) ck_assert_contains((char *)l.errors.data, migrations[_i].complaint);
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
    tcase_add_loop_test(tc, cap_fitted, 0, (int)(sizeof fitted / sizeof *fitted));
    tcase_add_test(tc, policy_refused);
    tcase_add_test(tc, forever);
    tcase_add_loop_test(tc, value_refused, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tc, not_a_number_refused);
    tcase_add_loop_test(tc, unfit_refused, 0, (int)(sizeof unfit / sizeof *unfit));
    tcase_add_loop_test(tc, ingest, 0, (int)(sizeof modes / sizeof *modes));
    tcase_add_loop_test(tc, counting, 0, (int)(sizeof modes / sizeof *modes));
    tcase_add_loop_test(tc, migrate, 0, (int)(sizeof migrations / sizeof *migrations));
    tcase_add_test(tc, redis);
    tcase_add_loop_test(tc, password_file, 0, (int)(sizeof files / sizeof *files));
    tcase_add_test(tc, password_lengths);
    tcase_add_test(tc, password_file_missing);
    return s;
}
