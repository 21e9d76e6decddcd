#include <stdio.h>
#include <stdlib.h>

#include "config/redis_url.h"
#include "suites.h"
#include "support.h"

static const struct {
    const char *url, *host;
    int port;
    const char *path, *user, *password;
    int db;
} good[] = {
    {"", "", 0, "", "", "", 0},
    {"redis://h", "h", 6379, "", "", "", 0},
    {"redis://h/", "h", 6379, "", "", "", 0},
    {"redis://h:1", "h", 1, "", "", "", 0},
    {"redis://h:65535/65535", "h", 65535, "", "", "", 65535},
    {"redis://h:6380/7", "h", 6380, "", "", "", 7},
    {"redis://10.0.0.1:6380", "10.0.0.1", 6380, "", "", "", 0},
    {"redis://redis-0.redis_svc.ns:6380", "redis-0.redis_svc.ns", 6380, "", "", "", 0},
    {"redis://[::1]", "::1", 6379, "", "", "", 0},
    {"redis://[2001:db8::5]:6380/1", "2001:db8::5", 6380, "", "", "", 1},
    {"redis://u@h", "h", 6379, "", "u", "", 0},
    {"redis://u:p@h", "h", 6379, "", "u", "p", 0},
    {"redis://:p@h", "h", 6379, "", "", "p", 0},
    {"redis://u:@h", "h", 6379, "", "u", "", 0},
    {"redis://@h", "h", 6379, "", "", "", 0},
    {"redis://u:a:b@h", "h", 6379, "", "u", "a:b", 0},
    {"redis://u%3a%40:%2F%25%c3%A4@[::1]:1/2", "::1", 1, "", "u:@", "/%\xc3\xa4", 2},
    {"redis://u:p%20q@h", "h", 6379, "", "u", "p q", 0},
    {"unix:///run/redis.sock", "", 0, "/run/redis.sock", "", "", 0},
    {"unix:///run/a%20b?db=3", "", 0, "/run/a b", "", "", 3},
    {"unix://u:p@/run/r", "", 0, "/run/r", "u", "p", 0},
    {"unix://:p@/run/r@2:x", "", 0, "/run/r@2:x", "", "p", 0},
    {"unix:///a/b/../c", "", 0, "/a/b/../c", "", "", 0},
};

/* From a heap copy without a NUL, so that a sanitizer sees a read past the end. */
static enum dd_err parse(const char *text, struct dd_redis_url *out, char *why, size_t why_size)
{
    size_t n = strlen(text);
    char *copy = malloc(n ? n : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, n);
    enum dd_err err = dd_redis_url_parse(dd_slice_of(copy, n), out, why, why_size);
    free(copy);
    return err;
}

START_TEST(parsed)
{
    struct dd_redis_url u;
    char why[200] = "";
    ck_assert_msg(parse(good[_i].url, &u, why, sizeof why) == DD_OK, "%s: %s", good[_i].url, why);
    ck_assert_str_eq(u.host, good[_i].host);
    ck_assert_int_eq(u.port, good[_i].port);
    ck_assert_str_eq(u.path, good[_i].path);
    ck_assert_str_eq(u.user, good[_i].user);
    ck_assert_str_eq(u.password, good[_i].password);
    ck_assert_int_eq(u.db, good[_i].db);
    ck_assert_int_eq(dd_redis_url_is_set(&u), *good[_i].url != 0);
}
END_TEST

static const struct {
    const char *url, *why;
} bad[] = {
    {"h", "it must begin with"},
    {"h:6379", "it must begin with"},
    {"http://h", "it must begin with"},
    {"REDIS://h", "it must begin with"},
    {"redis:h", "it must begin with"},
    {"redis:/", "it must begin with"},
    {" redis://h", "it must begin with"},
    {"rediss://h", "TLS"},
    {"redis://", "the host"},
    {"redis:///0", "the host"},
    {"redis://:6379", "the host"},
    {"redis://u:p@", "the host"},
    {"redis://u:p@/1", "the host"},
    {"redis://h h", "the host"},
    {"redis://h%41", "the host"},
    {"redis://::1", "the host"},
    {"redis://::1:6379", "the host"},
    {"redis://[::1", "the host"},
    {"redis://[::1]x", "the host"},
    {"redis://[h]", "the host"},
    {"redis://[]", "the host"},
    {"redis://[127.0.0.1]", "the host"},
    {"redis://1.2.3", "the host"},
    {"redis://256.0.0.1", "the host"},
    {"redis://h:", "the port"},
    {"redis://h:0", "the port"},
    {"redis://h:65536", "the port"},
    {"redis://h:99999", "the port"},
    {"redis://h:655350", "the port"},
    {"redis://h:-1", "the port"},
    {"redis://h:+1", "the port"},
    {"redis://h:1x", "the port"},
    {"redis://h:1:2", "the port"},
    {"redis://h/x", "the database"},
    {"redis://h/-1", "the database"},
    {"redis://h/65536", "the database"},
    {"redis://h/123456", "the database"},
    {"redis://h/1/2", "the database"},
    {"redis://h/1?x", "the database"},
    {"redis://h/?db=1", "the database"},
    {"redis://h?db=1", "the host"},
    {"redis://u:p/q@h", "a / in user or password"},
    {"redis://u:p@q@h", "an @ in user or password"},
    {"redis://u:%@h", "the password"},
    {"redis://u:%4@h", "the password"},
    {"redis://u:%4g@h", "the password"},
    {"redis://u:%00@h", "the password"},
    {"redis://u:a b@h", "the password"},
    {"redis://%zz:p@h", "the user"},
    {"redis://u%00@h", "the user"},
    {"unix:", "it must begin with"},
    {"unix://", "the path"},
    {"unix:///", "the path"},
    {"unix://run/x", "a Unix socket has no host"},
    {"unix://u:p@h/x", "a Unix socket has no host"},
    {"unix:///a%00b", "the path"},
    {"unix:///a%2", "the path"},
    {"unix:///a?", "only ?db=N"},
    {"unix:///a?x=1", "only ?db=N"},
    {"unix:///a?db=", "the database"},
    {"unix:///a?db=1&x=2", "the database"},
};

START_TEST(refused)
{
    struct dd_redis_url u;
    char why[200] = "";
    ck_assert_msg(parse(bad[_i].url, &u, why, sizeof why) == DD_INVALID, "%s", bad[_i].url);
    ck_assert_msg(!strncmp(why, bad[_i].why, strlen(bad[_i].why)), "%s: %s", bad[_i].url, why);
}
END_TEST

static enum dd_err parse_padded(const char *head, size_t n, const char *tail)
{
    char url[2000], why[200];
    struct dd_redis_url u;
    size_t at = strlen(head);
    memcpy(url, head, at);
    memset(url + at, 'x', n);
    memcpy(url + at + n, tail, strlen(tail) + 1);
    return parse(url, &u, why, sizeof why);
}

START_TEST(lengths)
{
    ck_assert_ok(parse_padded("redis://", 128, "@h"));
    ck_assert_err(parse_padded("redis://", 129, "@h"), DD_INVALID);
    ck_assert_ok(parse_padded("redis://u:", 512, "@h"));
    ck_assert_err(parse_padded("redis://u:", 513, "@h"), DD_INVALID);
    ck_assert_ok(parse_padded("redis://", 255, ""));
    ck_assert_err(parse_padded("redis://", 256, ""), DD_INVALID);
    ck_assert_ok(parse_padded("unix:///", 106, ""));
    ck_assert_err(parse_padded("unix:///", 107, ""), DD_INVALID);
}
END_TEST

/* A NUL in the middle of the slice ends nothing; its length does. */
START_TEST(slices)
{
    struct dd_redis_url u;
    char why[200];
    ck_assert_err(dd_redis_url_parse(dd_slice_of("redis://h\0x", 11), &u, why, sizeof why), DD_INVALID);
    ck_assert_err(dd_redis_url_parse(dd_slice_of("redis://a\0b:c@h", 15), &u, why, sizeof why), DD_INVALID);
    ck_assert_err(dd_redis_url_parse(dd_slice_of("unix:///a\0b", 11), &u, why, sizeof why), DD_INVALID);
    ck_assert_err(dd_redis_url_parse(dd_slice_of("unix:///a%41", 11), &u, why, sizeof why), DD_INVALID);
    ck_assert_ok(dd_redis_url_parse(dd_slice_of("redis://h:12", 11), &u, why, sizeof why));
    ck_assert_int_eq(u.port, 1);
}
END_TEST

static const struct {
    const char *url, *masked;
} masks[] = {
    {"", ""},
    {"redis://h:1/2", "redis://h:1/2"},
    {"redis://u:p@h:1/2", "redis://u:***@h:1/2"},
    {"redis://u:a:b@h", "redis://u:***@h"},
    {"redis://:p@h", "redis://:***@h"},
    {"redis://p@h", "redis://***@h"},
    {"redis://u:@h", "redis://u:@h"},
    {"redis://@h", "redis://@h"},
    {"unix://u:p@/r", "unix://u:***@/r"},
    {"p@h", "***@h"},
};

START_TEST(masked)
{
    struct dd_buf out = {0};
    dd_redis_url_mask(dd_slice_str(masks[_i].url), &out);
    dd_buf_add_u8(&out, 0);
    ck_assert_str_eq((char *)out.data, masks[_i].masked);
    dd_buf_free(&out);
}
END_TEST

/* Any cut and any changed byte of a good URL: no crash, and outputs that end. */
START_TEST(mangled)
{
    char url[] = "redis://us%41er:p%40ss@[2001:db8::5]:6380/12", why[200];
    struct dd_redis_url u;
    size_t n = sizeof url - 1;
    for (size_t i = 0; i < n; i++) {
        char kept = url[i];
        for (int c = 0; c < 256; c++) {
            url[i] = (char)c;
            if (dd_redis_url_parse(dd_slice_of(url, n), &u, why, sizeof why) != DD_OK) ck_assert(*why);
        }
        url[i] = 0;
        enum dd_err err = parse(url, &u, why, sizeof why);
        ck_assert(err == DD_OK || err == DD_INVALID);
        url[i] = kept;
    }
}
END_TEST

Suite *suite_redis_url(void)
{
    Suite *s = suite_create("config redis url");
    TCase *tc = case_of(s, "url");
    tcase_add_loop_test(tc, parsed, 0, (int)(sizeof good / sizeof *good));
    tcase_add_loop_test(tc, refused, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(tc, lengths);
    tcase_add_test(tc, slices);
    tcase_add_loop_test(tc, masked, 0, (int)(sizeof masks / sizeof *masks));
    tcase_add_test(tc, mangled);
    return s;
}
