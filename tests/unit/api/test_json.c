/* The scanner alone: every kind of token, good and bad, from tables. */
#include "api/json.h"
#include "api/utf8.h"
#include "suites.h"

static struct dd_arena arena;

static void teardown(void)
{
    dd_arena_free(&arena);
}

/* A copy that ends where the text ends, so that reading past it is seen by the sanitizers. */
static struct dd_slice exact(const char *text, size_t n)
{
    return dd_arena_copy(&arena, dd_slice_of(text, n));
}

struct text_case {
    const char *json, *text; /* text NULL: refused */
};

static const struct text_case texts[] = {
    {"\"\"", ""},
    {"\"a\"", "a"},
    {"\"abcdefg\"", "abcdefg"},
    {"\"abcdefgh\"", "abcdefgh"},
    {"\"abcdefghijklmnop\"", "abcdefghijklmnop"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
    {"\"abcdefgh\\u0041ijklmnopq\"", "abcdefghAijklmnopq"},
    {"\"\\u00e9\"", "\xc3\xa9"},
    {"\"\\u00E9\\u20ac\"", "\xc3\xa9\xe2\x82\xac"},
    {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
    {"\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf"},
    {"\"\\ud7ff\\ue000\"", "\xed\x9f\xbf\xee\x80\x80"},
    {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
    {"\"\x7f\"", "\x7f"},
    {"\"abcdefgh\xc3\xa9\\n\xc3\xa9\"", "abcdefgh\xc3\xa9\n\xc3\xa9"},
    {"\"", NULL},
    {"\"abcdefghij", NULL},
    {"\"a\\", NULL},
    {"\"a\\\"", NULL},
    {"\"a\\u00", NULL},
    {"\"\\u00g0\"", NULL},
    {"\"\\u 041\"", NULL},
    {"\"\\U0041\"", NULL},
    {"\"\\u0000\"", NULL},
    {"\"\\ud800\"", NULL},
    {"\"\\ud800\\ud800\"", NULL},
    {"\"\\ud800x\"", NULL},
    {"\"\\udc00\\ud800\"", NULL},
    {"\"\\'\"", NULL},
    {"\"\x1f\"", NULL},
    {"\"abcdefgh\n\"", NULL},
    {"\"\x80\"", NULL},
    {"\"\xc3\"", NULL},
    {"\"\xc3", NULL},
    {"\"\xc1\xbf\"", NULL},
    {"\"\xe0\x9f\xbf\"", NULL},
    {"\"\xed\xa0\x80\"", NULL},
    {"\"\xf0\x8f\xbf\xbf\"", NULL},
    {"\"\xf4\x90\x80\x80\"", NULL},
    {"\"\xf5\x80\x80\x80\"", NULL},
    {"\"\xff\"", NULL},
};

START_TEST(strings)
{
    const struct text_case *t = &texts[_i];
    struct dd_json j;
    struct dd_json_string s;
    struct dd_slice body = exact(t->json, strlen(t->json));
    dd_json_init(&j, body, &arena);
    ck_assert_int_eq(dd_json_peek(&j), DD_JSON_STRING);
    bool good = dd_json_read_string(&j, &s) && dd_json_finish(&j);
    ck_assert_msg(good == (t->text != NULL), "%s: %s", t->json, j.error ? j.error : "accepted");
    if (!good) return;
    ck_assert_msg(dd_slice_eq(s.text, dd_slice_str(t->text)), "%s", t->json);
    ck_assert(dd_slice_eq(s.raw, body));
    bool in_place = s.text.ptr == body.ptr + 1;
    ck_assert_msg(in_place == !strchr(t->json, '\\'), "%s is copied only if it has escapes", t->json);
}
END_TEST

/* Each byte that matters, at each place of the eight that are looked at together. */
START_TEST(every_place_of_a_word)
{
    static const char special[] = {'"', '\\', '\n', '\0', '\x1f', '\xc3', '\xff'};
    for (size_t place = 0; place < 20; place++)
        for (size_t k = 0; k < sizeof special; k++) {
            char text[32] = "\"";
            memset(text + 1, 'a', 22);
            text[23] = '"';
            text[1 + place] = special[k];
            struct dd_json j;
            struct dd_json_string s;
            dd_json_init(&j, exact(text, 24), &arena);
            bool good = dd_json_read_string(&j, &s);
            if (special[k] == '"')
                ck_assert(good && s.text.len == place);
            else
                ck_assert_msg(!good && dd_json_offset(&j) >= place + 1 && dd_json_offset(&j) <= place + 2,
                              "byte %d at %zu", special[k], place);
        }
}
END_TEST

START_TEST(nul_bytes)
{
    struct dd_json j;
    struct dd_json_string s;
    dd_json_init(&j, exact("\"a\0b\"", 5), &arena);
    ck_assert(!dd_json_read_string(&j, &s));
    ck_assert_str_eq(j.error, "the byte NUL is not allowed");
    dd_json_init(&j, exact("1\0", 2), &arena);
    struct dd_json_number n;
    ck_assert(dd_json_read_number(&j, &n) && !dd_json_finish(&j));
}
END_TEST

struct number_case {
    const char *json;
    int good, is_integer, fits;
    int64_t value;
};

static const struct number_case numbers[] = {
    {"0", 1, 1, 1, 0},
    {"-0", 1, 1, 1, 0},
    {"7", 1, 1, 1, 7},
    {"-12", 1, 1, 1, -12},
    {"9007199254740993", 1, 1, 1, 9007199254740993},
    {"9223372036854775807", 1, 1, 1, INT64_MAX},
    {"-9223372036854775808", 1, 1, 1, INT64_MIN},
    {"9223372036854775808", 1, 1, 0, 0},
    {"-9223372036854775809", 1, 1, 0, 0},
    {"18446744073709551617", 1, 1, 0, 0},
    {"99999999999999999999999999", 1, 1, 0, 0},
    {"0.5", 1, 0, 0, 0},
    {"-0.0", 1, 0, 0, 0},
    {"1e5", 1, 0, 0, 0},
    {"1E+05", 1, 0, 0, 0},
    {"1.25e-3", 1, 0, 0, 0},
    {"00", 0, 0, 0, 0},
    {"-01", 0, 0, 0, 0},
    {"-", 0, 0, 0, 0},
    {"-a", 0, 0, 0, 0},
    {"1.", 0, 0, 0, 0},
    {"1.e1", 0, 0, 0, 0},
    {"1e", 0, 0, 0, 0},
    {"1e+", 0, 0, 0, 0},
    {"1a", 0, 0, 0, 0},
    {"0x1", 0, 0, 0, 0},
    {"1 2", 0, 0, 0, 0},
};

START_TEST(numbers_)
{
    const struct number_case *t = &numbers[_i];
    struct dd_json j;
    struct dd_json_number n = {.fits = false};
    dd_json_init(&j, exact(t->json, strlen(t->json)), &arena);
    ck_assert_int_eq(dd_json_peek(&j), DD_JSON_NUMBER);
    bool good = dd_json_read_number(&j, &n) && dd_json_finish(&j);
    ck_assert_msg(good == (t->good != 0), "%s", t->json);
    if (!good) return;
    ck_assert_msg(n.is_integer == (t->is_integer != 0) && n.fits == (t->fits != 0), "%s", t->json);
    if (n.fits) ck_assert_int_eq(n.value, t->value);
    ck_assert(dd_slice_eq(n.raw, dd_slice_str(t->json)));
}
END_TEST

/* Reads any value, to the depth that C's stack allows; counts scalars. */
static unsigned walk(struct dd_json *j)
{
    unsigned n = 0;
    struct dd_slice key;
    struct dd_json_string s;
    struct dd_json_number number;
    enum dd_json_type type = dd_json_peek(j);
    switch (type) {
    case DD_JSON_OBJECT:
        dd_json_open(j);
        for (bool first = true; dd_json_next_member(j, first, &key); first = false)
            n += walk(j);
        return n;
    case DD_JSON_ARRAY:
        dd_json_open(j);
        for (bool first = true; dd_json_next_element(j, first); first = false)
            n += walk(j);
        return n;
    case DD_JSON_STRING:
        return dd_json_read_string(j, &s);
    case DD_JSON_NUMBER:
        return dd_json_read_number(j, &number);
    case DD_JSON_NONE:
        dd_json_fail(j, "no value");
        return 0;
    default:
        return dd_json_read_literal(j, &type);
    }
}

static const struct {
    const char *json;
    int scalars; /* -1: refused */
} texts_whole[] = {
    {"[]", 0},
    {"{}", 0},
    {" [ ] ", 0},
    {"\t{\r\n}\n", 0},
    {"[1,\"a\",true,false,null]", 5},
    {"{\"a\":1,\"b\":[2,{\"c\":3}]}", 3},
    {" { \"a\" : [ 1 , 2 ] , \"b\" : { } } ", 2},
    {"[[[[[[1]]]]]]", 1},
    {"", -1},
    {" ", -1},
    {"[", -1},
    {"{", -1},
    {"]", -1},
    {"[1", -1},
    {"[1,", -1},
    {"[1,]", -1},
    {"[,1]", -1},
    {"[1 2]", -1},
    {"[1}", -1},
    {"{]", -1},
    {"{\"a\"}", -1},
    {"{\"a\":}", -1},
    {"{\"a\":1,}", -1},
    {"{,\"a\":1}", -1},
    {"{\"a\":1 \"b\":2}", -1},
    {"{\"a\" 1}", -1},
    {"{1:1}", -1},
    {"{a:1}", -1},
    {"[tru]", -1},
    {"[truE]", -1},
    {"[nul", -1},
    {"[falsee]", -1},
    {"[1]]", -1},
    {"[1],", -1},
    {"[1]\v", -1},
    {"\f[1]", -1},
    {"\xef\xbb\xbf[1]", -1},
    {"[undefined]", -1},
    {"[//\n1]", -1},
};

START_TEST(whole_texts)
{
    struct dd_json j;
    const char *text = texts_whole[_i].json;
    dd_json_init(&j, exact(text, strlen(text)), &arena);
    unsigned n = walk(&j);
    bool good = dd_json_finish(&j);
    ck_assert_msg(good == (texts_whole[_i].scalars >= 0), "%s: %s", text, good ? "accepted" : j.error);
    if (good) ck_assert_int_eq((int)n, texts_whole[_i].scalars);
}
END_TEST

/* Every character, written and read back; and the ranges just outside. */
START_TEST(utf8_round_trip)
{
    for (uint32_t c = 1; c <= 0x10ffff; c++) {
        uint8_t bytes[4];
        if (c >= 0xd800 && c <= 0xdfff) continue;
        size_t n = dd_utf8_put(bytes, c);
        if (dd_utf8_length(bytes, bytes + n) != n || (n > 1 && dd_utf8_length(bytes, bytes + n - 1) != 0))
            ck_abort_msg("U+%04X", c);
    }
}
END_TEST

START_TEST(written_strings_read_back)
{
    static const char hard[] = "plain \" \\ \n \x01 \x7f caf\xc3\xa9 \xf0\x9f\x98\x80 end";
    struct dd_buf out = {0};
    dd_json_add_string(&out, dd_slice_str(hard));
    struct dd_json j;
    struct dd_json_string s;
    dd_json_init(&j, dd_buf_slice(&out), &arena);
    ck_assert(dd_json_read_string(&j, &s) && dd_json_finish(&j));
    ck_assert(dd_slice_eq(s.text, dd_slice_str(hard)));
    dd_buf_reset(&out);
    dd_json_add_string(&out, dd_slice_str("a\xc3"
                                          "b\xff"));
    ck_assert(dd_slice_eq(dd_buf_slice(&out), dd_slice_str("\"a\xef\xbf\xbd"
                                                           "b\xef\xbf\xbd\"")));
    dd_buf_free(&out);
}
END_TEST

#define LOOP(t, test, table) tcase_add_loop_test(t, test, 0, (int)(sizeof(table) / sizeof *(table)))

Suite *suite_json(void)
{
    Suite *s = suite_create("json");
    TCase *t = tcase_create("scanner");
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_set_timeout(t, 60);
    LOOP(t, strings, texts);
    LOOP(t, numbers_, numbers);
    LOOP(t, whole_texts, texts_whole);
    tcase_add_test(t, every_place_of_a_word);
    tcase_add_test(t, nul_bytes);
    tcase_add_test(t, utf8_round_trip);
    tcase_add_test(t, written_strings_read_back);
    suite_add_tcase(s, t);
    return s;
}
