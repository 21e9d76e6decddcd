/* Segments, parameters and percent-decoding. */
#include "http/http.h"
#include "suites.h"

static void check_decode(const char *raw, size_t raw_len, bool param, const char *expected,
                         size_t expected_len)
{
    struct dd_buf out = {0};
    dd_buf_add_str(&out, "<");
    struct dd_slice in = dd_slice_of(raw, raw_len);
    enum dd_err err = param ? dd_http_decode_param(in, &out) : dd_http_decode_segment(in, &out);
    if (expected) {
        ck_assert_ok(err);
        ck_assert_uint_eq(out.len, 1 + expected_len);
        ck_assert_mem_eq(out.data + 1, expected, expected_len);
    } else {
        ck_assert_err(err, DD_INVALID);
        ck_assert_uint_eq(out.len, 1);
    }
    dd_buf_free(&out);
}

#define DECODES(raw, param, expected)                                                                        \
    check_decode(raw, sizeof(raw) - 1, param, expected, sizeof(expected) - 1)
#define FAILS(raw) check_decode(raw, sizeof(raw) - 1, false, NULL, 0)

START_TEST(decoding)
{
    DECODES("", false, "");
    DECODES("abc", false, "abc");
    DECODES("a%20b", false, "a b");
    DECODES("%2F%2f", false, "//");
    DECODES("%00x", false, "\0x");
    DECODES("%25%41", false, "%A");
    DECODES("a+b", false, "a+b");
    DECODES("a+b%2B", true, "a b+");
    FAILS("%");
    FAILS("a%2");
    FAILS("%g0");
    FAILS("%0g");
    FAILS("%%20");
    FAILS("abc% 20");
}
END_TEST

static void check_next(struct dd_slice *rest, const char *expected)
{
    struct dd_slice segment;
    bool more = dd_http_next_segment(rest, &segment);
    ck_assert_int_eq(more, expected != NULL);
    if (more) ck_assert(dd_slice_eq(segment, dd_slice_str(expected)));
}

START_TEST(segments)
{
    struct dd_slice rest = dd_slice_str("/users/a%2Fb//x/");
    check_next(&rest, "users");
    check_next(&rest, "a%2Fb");
    check_next(&rest, "");
    check_next(&rest, "x");
    check_next(&rest, "");
    check_next(&rest, NULL);
    rest = dd_slice_str("*");
    check_next(&rest, NULL);
    rest = dd_slice_str("/");
    check_next(&rest, "");
    check_next(&rest, NULL);
}
END_TEST

START_TEST(params)
{
    static const char *const expected[][2] = {{"a", "1"}, {"b", ""}, {"", "c"}, {"d", "e=f"}, {"g", ""}};
    struct dd_slice rest = dd_slice_str("a=1&&b&=c&d=e=f&g=&"), name, value;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ck_assert(dd_http_next_param(&rest, &name, &value));
        ck_assert(dd_slice_eq(name, dd_slice_str(expected[i][0])));
        ck_assert(dd_slice_eq(value, dd_slice_str(expected[i][1])));
    }
    ck_assert(!dd_http_next_param(&rest, &name, &value));
}
END_TEST

Suite *suite_uri(void)
{
    Suite *s = suite_create("http paths");
    TCase *t = tcase_create("uri");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, decoding);
    tcase_add_test(t, segments);
    tcase_add_test(t, params);
    suite_add_tcase(s, t);
    return s;
}
