/* Which role may call which path, and how the others are turned away. */
#include <stdio.h>
#include <unistd.h>

#include "api/auth.h"
#include "base/log.h"
#include "served.h"
#include "suites.h"

#define BODY "{\"user\":\"u\",\"items\":[1]}"

static struct served s;
static struct reply r;
static struct dd_auth *auth;

static void open_auth(void)
{
    char *dir = unit_mkdir(), path[4096];
    snprintf(path, sizeof path, "%s/tokens", dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("data token-of-data-callers\nops token-of-operators\nadmin token-of-administrators\n", f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_ok(dd_auth_create(path, &auth));
    unit_rmdir(dir);
}

static void setup(void)
{
    dd_log_set_level(DD_LOG_ERROR);
    open_auth();
    r = (struct reply){.status = 0};
}

static void teardown(void)
{
    reply_free(&r);
    served_stop(&s);
    dd_auth_destroy(auth);
}

static int ask(const char *method, const char *path, const char *header)
{
    char lines[400] = "";
    if (header) snprintf(lines, sizeof lines, "%s\r\n", header);
    struct dd_slice body = strcmp(method, "POST") == 0 ? dd_slice_str(BODY) : dd_slice_of(NULL, 0);
    reply_free(&r);
    served_receive(&s, served_send(&s, method, path, lines, body), &r);
    return r.status;
}

static int ask_with(const char *method, const char *path, const char *token)
{
    char header[300];
    snprintf(header, sizeof header, "Authorization: Bearer %s", token);
    return ask(method, path, token ? header : NULL);
}

static const char *challenge(void)
{
    static char value[256];
    const char *found = reply_header(&r, "WWW-Authenticate", value, sizeof value);
    return found ? found : "(none)";
}

/* What each role gets from a path: 1 admitted (whatever its answer is then), 0 refused. */
struct row {
    const char *method, *path;
    enum dd_api_listener listener;
    int none, data, ops, admin;
};

static const struct row rows[] = {
    {"POST", "/filter", DD_API_DATA, 0, 1, 0, 1},
    {"POST", "/exposed", DD_API_DATA, 0, 1, 0, 1},
    {"POST", "/delivered", DD_API_DATA, 0, 1, 0, 1},
    {"POST", "/forget", DD_API_DATA, 0, 1, 0, 1},
    {"GET", "/health", DD_API_DATA, 0, 1, 1, 1},
    {"HEAD", "/health", DD_API_DATA, 0, 1, 1, 1},
    {"GET", "/health/live", DD_API_DATA, 1, 1, 1, 1},
    {"GET", "/health/ready", DD_API_DATA, 1, 1, 1, 1},
    {"GET", "/stats", DD_API_DATA, 0, 0, 1, 1},
    {"GET", "/metrics", DD_API_DATA, 0, 0, 1, 1},
    {"GET", "/nowhere", DD_API_DATA, 0, 1, 1, 1},
    {"GET", "/filter", DD_API_DATA, 0, 1, 0, 1}, /* 405 is for those who may call it */
    {"GET", "/health/live", DD_API_ADMIN, 1, 1, 1, 1},
    {"GET", "/health", DD_API_ADMIN, 0, 1, 1, 1},
    {"GET", "/metrics", DD_API_ADMIN, 0, 0, 1, 1},
    {"POST", "/admin/flush", DD_API_ADMIN, 0, 0, 1, 1},
    {"GET", "/admin/slots", DD_API_ADMIN, 0, 0, 1, 1},
    {"POST", "/admin/checkpoint", DD_API_ADMIN, 0, 0, 1, 1},
    {"POST", "/admin/verify", DD_API_ADMIN, 0, 0, 1, 1},
    {"GET", "/admin/verify", DD_API_ADMIN, 0, 0, 1, 1},
    {"GET", "/users/u1", DD_API_ADMIN, 0, 0, 0, 1},
    {"DELETE", "/users/u1", DD_API_ADMIN, 0, 0, 0, 1},
    {"GET", "/users/u1/filter", DD_API_ADMIN, 0, 0, 0, 1},
    {"GET", "/users/u1/trace", DD_API_ADMIN, 0, 0, 0, 1},
    {"DELETE", "/users/u1/trace", DD_API_ADMIN, 0, 0, 0, 1},
    {"GET", "/admin/rebuild", DD_API_ADMIN, 0, 0, 0, 1},
    {"GET", "/admin/migration", DD_API_ADMIN, 0, 0, 1, 1},
    {"POST", "/admin/migration/verify", DD_API_ADMIN, 0, 0, 0, 1},
};

static void check(const struct row *row, const char *who, const char *token, int admitted, int refusal)
{
    int status = ask_with(row->method, row->path, token);
    bool refused = status == 401 || status == 403;
    ck_assert_msg(admitted ? !refused : status == refusal, "%s %s by %s: %d", row->method, row->path, who,
                  status);
    ck_assert_msg(refused == (strcmp(challenge(), "(none)") != 0), "%s %s by %s: challenge %s", row->method,
                  row->path, who, challenge());
}

START_TEST(roles_and_paths)
{
    const struct row *row = &rows[_i];
    served_start_guarded(&s, row->listener, auth);
    check(row, "nobody", NULL, row->none, 401);
    check(row, "data", "token-of-data-callers", row->data, 403);
    check(row, "ops", "token-of-operators", row->ops, 403);
    check(row, "admin", "token-of-administrators", row->admin, 403);
    check(row, "a stranger", "token-of-data-caller", row->none, 401);
}
END_TEST

START_TEST(how_a_token_is_sent)
{
    served_start_guarded(&s, DD_API_DATA, auth);
    ck_assert_int_eq(ask("POST", "/exposed", "authorization: bearer token-of-data-callers"), 200);
    ck_assert_int_eq(ask("POST", "/exposed", "Authorization:BEARER   token-of-data-callers  "), 200);
    static const char *const wrong[] = {"Authorization: Basic token-of-data-callers",
                                        "Authorization: Bearertoken-of-data-callers",
                                        "Authorization: Bearer",
                                        "Authorization: Bearer ",
                                        "Authorization: token-of-data-callers",
                                        "Authorization: Bearer token-of-data-callers, x",
                                        "Authorization: Bearer \"token-of-data-callers\"",
                                        "Authorization:",
                                        "X-Authorization: Bearer token-of-data-callers",
                                        "Cookie: token=token-of-data-callers"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(ask("POST", "/exposed", wrong[i]) == 401, "%s: %d", wrong[i], r.status);
    ck_assert_uint_eq(s.fake.calls, 2);
    ck_assert_int_eq(
        ask("POST", "/exposed",
            "Authorization: Bearer token-of-data-callers\r\nAuthorization: Bearer token-of-data-callers"),
        400);
}
END_TEST

START_TEST(refusals_say_why)
{
    served_start_guarded(&s, DD_API_DATA, auth);
    ask("POST", "/exposed", NULL);
    ck_assert_str_eq(challenge(), "Bearer realm=\"dedupd\"");
    ck_assert_ptr_nonnull(strstr((const char *)r.body.data, "\"code\":\"unauthorized\""));
    ask_with("POST", "/exposed", "no-such-token");
    ck_assert_str_eq(challenge(), "Bearer realm=\"dedupd\", error=\"invalid_token\"");
    ck_assert_ptr_null(strstr((const char *)r.body.data, "no-such-token"));
    ask_with("POST", "/exposed", "token-of-operators");
    ck_assert_str_eq(challenge(), "Bearer realm=\"dedupd\", error=\"insufficient_scope\"");
    ck_assert_ptr_nonnull(strstr((const char *)r.body.data, "\"code\":\"forbidden\""));
    ck_assert_uint_eq(s.fake.calls, 0);
}
END_TEST

START_TEST(without_tokens_this_machine_is_served)
{
    served_start_guarded(&s, DD_API_DATA, NULL);
    ck_assert_int_eq(ask("POST", "/exposed", NULL), 200);
    ck_assert_int_eq(ask_with("POST", "/exposed", "whatever"), 200);
    ck_assert_int_eq(ask("GET", "/stats", NULL), 200);
}
END_TEST

Suite *suite_guard(void)
{
    Suite *suite = suite_create("guard");
    TCase *t = tcase_create("guard");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, roles_and_paths, 0, sizeof rows / sizeof *rows);
    tcase_add_test(t, how_a_token_is_sent);
    tcase_add_test(t, refusals_say_why);
    tcase_add_test(t, without_tokens_this_machine_is_served);
    suite_add_tcase(suite, t);
    return suite;
}
