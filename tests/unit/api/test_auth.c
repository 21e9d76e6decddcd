/* The file of tokens: what it may hold, whose a token is, and what a reload changes. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/auth.h"
#include "base/log.h"
#include "suites.h"

static char *dir;
static char path[4096];
static struct dd_auth *auth;

static void setup(void)
{
    dd_log_set_level(DD_LOG_ERROR);
    dir = unit_mkdir();
    snprintf(path, sizeof path, "%s/tokens", dir);
    auth = NULL;
}

static void teardown(void)
{
    dd_auth_destroy(auth);
    unit_rmdir(dir);
}

static void write_file(const void *text, size_t len)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, len, f), len);
    ck_assert_int_eq(fclose(f), 0);
}

static enum dd_err open_with(const char *text)
{
    write_file(text, strlen(text));
    dd_auth_destroy(auth);
    auth = NULL;
    return dd_auth_create(path, &auth);
}

static unsigned roles(const char *token)
{
    return dd_auth_roles(auth, dd_slice_str(token));
}

START_TEST(roles_of_tokens)
{
    ck_assert_ok(open_with("# who may what\n\n"
                           "data data-token-0123456789\n"
                           "  ops\tops-token-0123456789 \r\n"
                           "admin   admin-token-0123456789\n"
                           "data both-token-0123456789\n"
                           "ops both-token-0123456789"));
    ck_assert(dd_auth_has_tokens(auth));
    ck_assert_uint_eq(roles("data-token-0123456789"), DD_AUTH_DATA);
    ck_assert_uint_eq(roles("ops-token-0123456789"), DD_AUTH_OPS);
    ck_assert_uint_eq(roles("admin-token-0123456789"), DD_AUTH_ADMIN);
    ck_assert_uint_eq(roles("both-token-0123456789"), DD_AUTH_DATA | DD_AUTH_OPS);
}
END_TEST

START_TEST(nothing_else_is_a_token)
{
    char longest[258];
    ck_assert_ok(open_with("data data-token-0123456789\n"));
    ck_assert_uint_eq(roles("data-token-012345678"), 0); /* a prefix */
    ck_assert_uint_eq(roles("data-token-01234567890"), 0);
    ck_assert_uint_eq(roles("Data-token-0123456789"), 0);
    ck_assert_uint_eq(roles("data-token-0123456788"), 0);
    ck_assert_uint_eq(roles("#"), 0);
    ck_assert_uint_eq(dd_auth_roles(auth, dd_slice_of("data-token-0123456789\0", 22)), 0);
    ck_assert_uint_eq(dd_auth_roles(auth, dd_slice_of(NULL, 0)), 0);
    memset(longest, 'x', sizeof longest);
    ck_assert_uint_eq(dd_auth_roles(auth, dd_slice_of(longest, 257)), 0);
}
END_TEST

START_TEST(the_longest_token)
{
    char text[300] = "admin ";
    memset(text + 6, 'y', 256);
    text[262] = 0;
    ck_assert_ok(open_with(text));
    ck_assert_uint_eq(dd_auth_roles(auth, dd_slice_of(text + 6, 256)), DD_AUTH_ADMIN);
    ck_assert_uint_eq(dd_auth_roles(auth, dd_slice_of(text + 6, 255)), 0);
    text[262] = 'y';
    text[263] = 0;
    ck_assert_err(open_with(text), DD_INVALID);
}
END_TEST

START_TEST(refused_files)
{
    static const char *const bad[] = {"",
                                      "# nothing but a remark\n",
                                      "data\n",
                                      "root abcdefghijklmnop\n",
                                      "data abcdefghijklmnop more\n",
                                      "data abcdefghijklmn\xc3\xa9\n",
                                      "data abcdefghijklmnop\nops\n",
                                      "DATA abcdefghijklmnop\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        enum dd_err err = open_with(bad[i]);
        ck_assert_msg(err == DD_INVALID && !auth, "\"%s\": %s", bad[i], dd_err_name(err));
    }
    write_file("data abcdefgh\0ijklmnop\n", 23);
    ck_assert_err(dd_auth_create(path, &auth), DD_INVALID);
    unlink(path);
    ck_assert_err(dd_auth_create(path, &auth), DD_IO);
    ck_assert_err(dd_auth_create(dir, &auth), DD_IO);
}
END_TEST

START_TEST(limits)
{
    struct dd_buf text = {0};
    for (int i = 0; i < 100; i++)
        dd_buf_addf(&text, "data token-number-%010d\n", i);
    write_file(text.data, text.len);
    ck_assert_ok(dd_auth_create(path, &auth));
    ck_assert_uint_eq(roles("token-number-0000000099"), DD_AUTH_DATA);
    dd_buf_add_str(&text, "data token-number-0000000100\n");
    write_file(text.data, text.len);
    ck_assert_err(dd_auth_reload(auth), DD_INVALID);
    while (text.len <= 65536)
        dd_buf_add_str(&text, "# a remark\n");
    write_file(text.data, text.len);
    ck_assert_err(dd_auth_reload(auth), DD_TOO_LARGE);
    dd_buf_free(&text);
}
END_TEST

START_TEST(reload)
{
    ck_assert_ok(open_with("data old-token-0123456789\n"));
    for (int i = 0; i < 3; i++)
        ck_assert_ok(dd_auth_reload(auth));
    ck_assert_uint_eq(roles("old-token-0123456789"), DD_AUTH_DATA);
    write_file("ops new-token-0123456789\n", 25);
    ck_assert_ok(dd_auth_reload(auth));
    ck_assert_uint_eq(roles("old-token-0123456789"), 0);
    ck_assert_uint_eq(roles("new-token-0123456789"), DD_AUTH_OPS);
    /* A file that cannot be used changes nothing: neither locks everybody out nor lets everybody in. */
    write_file("", 0);
    ck_assert_err(dd_auth_reload(auth), DD_INVALID);
    unlink(path);
    ck_assert_err(dd_auth_reload(auth), DD_IO);
    ck_assert_uint_eq(roles("new-token-0123456789"), DD_AUTH_OPS);
    ck_assert_uint_eq(roles("old-token-0123456789"), 0);
}
END_TEST

START_TEST(without_a_file)
{
    ck_assert_ok(dd_auth_create("", &auth));
    ck_assert(!dd_auth_has_tokens(auth));
    ck_assert(!dd_auth_has_tokens(NULL));
    ck_assert_ok(dd_auth_reload(auth));
    ck_assert_uint_eq(roles("anything"), 0);
    ck_assert_uint_eq(roles(""), 0);
}
END_TEST

Suite *suite_auth(void)
{
    Suite *suite = suite_create("auth");
    TCase *t = tcase_create("auth");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, roles_of_tokens);
    tcase_add_test(t, nothing_else_is_a_token);
    tcase_add_test(t, the_longest_token);
    tcase_add_test(t, refused_files);
    tcase_add_test(t, limits);
    tcase_add_test(t, reload);
    tcase_add_test(t, without_a_file);
    suite_add_tcase(suite, t);
    return suite;
}
