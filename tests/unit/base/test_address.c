#include <stdlib.h>

#include "base/address.h"
#include "unit.h"

START_TEST(list)
{
    static const struct {
        enum dd_address_kind kind;
        const char *host;
        int port;
        const char *path;
    } want[] = {{DD_ADDRESS_INET, "127.0.0.1", 8080, ""},
                {DD_ADDRESS_INET, "::1", 0, ""},
                {DD_ADDRESS_UNIX, "", 0, "/run/dedupd.sock"},
                {DD_ADDRESS_INET, "10.0.0.1", 65535, ""}};
    struct dd_slice rest = dd_slice_str("127.0.0.1:8080,[::1]:0 ,\tunix:/run/dedupd.sock, 10.0.0.1:65535");
    char why[200];
    struct dd_address a;
    for (size_t i = 0; i < 4; i++) {
        ck_assert_ok(dd_address_next(&rest, &a, why, sizeof why));
        ck_assert(a.kind == want[i].kind);
        ck_assert_str_eq(a.host, want[i].host);
        ck_assert_int_eq(a.port, want[i].port);
        ck_assert_str_eq(a.path, want[i].path);
    }
    ck_assert_err(dd_address_next(&rest, &a, why, sizeof why), DD_NOT_FOUND);
}
END_TEST

static const struct {
    const char *text, *why;
} bad[] = {
    {",", "there is an empty address"},
    {"localhost:8080", "the host must be an IPv4 address, or an IPv6 address in brackets, not a name"},
    {"1.2.3.4:1,", "there is an empty address"},
    {"1.2.3.4:1, ", "there is an empty address"},
    {",a:1", "there is an empty address"},
    {"1.2.3.4:1,,b:2", "there is an empty address"},
    {"a", "the port is missing"},
    {"127.0.0.1", "the port is missing"},
    {"[::1]", "the port is missing"},
    {"8080", "the host"},
    {":8080", "the host"},
    {"*:8080", "the host"},
    {"::1:8080", "the host"},
    {"[::1:8080", "the host"},
    {"[::1]8080", "the host"},
    {"[::1%lo]:8080", "the host"},
    {"[localhost]:8080", "the host"},
    {"1.2.3.4.5:80", "the host"},
    {"1.2.3.400:80", "the host"},
    {"a b:80", "the host"},
    {"a:", "the port must"},
    {"a:x", "the port must"},
    {"a:65536", "the port must"},
    {"a:-1", "the port must"},
    {"a:1 2", "the port must"},
    {"a:000080", "the port must"},
    {"unix:", "the path"},
    {"unix:/", "the path"},
    {"unix:run/x", "the path"},
    {"unix:7", "the path"},
    {"http://a:80", "the port must"},
};

START_TEST(refused)
{
    size_t n = strlen(bad[_i].text);
    char *copy = malloc(n), why[200] = "";
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bad[_i].text, n);
    struct dd_slice rest = dd_slice_of(copy, n);
    struct dd_address a;
    enum dd_err err;
    while ((err = dd_address_next(&rest, &a, why, sizeof why)) == DD_OK) {
    }
    ck_assert_msg(err == DD_INVALID, "%s: %s", bad[_i].text, dd_err_name(err));
    ck_assert_msg(!strncmp(why, bad[_i].why, strlen(bad[_i].why)), "%s: %s", bad[_i].text, why);
    free(copy);
}
END_TEST

START_TEST(path_lengths)
{
    char text[200] = "unix:/", why[200];
    struct dd_address a;
    memset(text + 6, 'x', 107);
    struct dd_slice rest = dd_slice_of(text, 5 + 107);
    ck_assert_ok(dd_address_next(&rest, &a, why, sizeof why));
    ck_assert_uint_eq(strlen(a.path), 107);
    rest = dd_slice_of(text, 5 + 108);
    ck_assert_err(dd_address_next(&rest, &a, why, sizeof why), DD_INVALID);
}
END_TEST

START_TEST(empty_lists)
{
    struct dd_address a;
    char why[200];
    struct dd_slice none = {0}, blank = dd_slice_str("  \t");
    ck_assert_err(dd_address_next(&none, &a, why, sizeof why), DD_NOT_FOUND);
    ck_assert_err(dd_address_next(&blank, &a, why, sizeof why), DD_NOT_FOUND);
}
END_TEST

Suite *suite_address(void);
Suite *suite_address(void)
{
    Suite *s = suite_create("address");
    TCase *tc = tcase_create("address");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, list);
    tcase_add_loop_test(tc, refused, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tc, path_lengths);
    tcase_add_test(tc, empty_lists);
    suite_add_tcase(s, tc);
    return s;
}
