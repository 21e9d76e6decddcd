#include "hot/keys.h"
#include "hot/resp.h"
#include "hot/value.h"
#include "unit.h"

static struct dd_slice text(const char *s)
{
    return dd_slice_str(s);
}

static void ck_assert_buf(struct dd_buf *b, const char *expected)
{
    ck_assert(dd_buf_ok(b));
    ck_assert_msg(dd_slice_eq(dd_buf_slice(b), text(expected)), "%.*s, not %s", (int)b->len, (char *)b->data,
                  expected);
    dd_buf_reset(b);
}

static const struct {
    const char *raw;
    size_t len;
    const char *escaped;
} escapes[] = {
    {"", 0, ""},
    {"user-1", 6, "user-1"},
    {"AZaz09_.~:@+=,-", 15, "AZaz09_.~:@+=,-"},
    {"a/b", 3, "a%2Fb"},
    {"{x}", 3, "%7Bx%7D"},
    {"%41", 3, "%2541"},
    {"a b\r\n", 5, "a%20b%0D%0A"},
    {"\0\xff", 2, "%00%FF"},
    {"caf\xc3\xa9", 5, "caf%C3%A9"},
    {"*?[]\"'`$&|;<>()!#^\\", 19, "%2A%3F%5B%5D%22%27%60%24%26%7C%3B%3C%3E%28%29%21%23%5E%5C"},
};

START_TEST(ids_are_escaped_and_read_back)
{
    struct dd_buf b = {0}, back = {0};
    dd_hot_escape(&b, dd_slice_of(escapes[_i].raw, escapes[_i].len));
    ck_assert_ok(dd_hot_unescape(dd_buf_slice(&b), &back));
    ck_assert(dd_slice_eq(dd_buf_slice(&back), dd_slice_of(escapes[_i].raw, escapes[_i].len)));
    ck_assert_buf(&b, escapes[_i].escaped);
    dd_buf_free(&b);
    dd_buf_free(&back);
}
END_TEST

START_TEST(every_byte_survives)
{
    struct dd_buf b = {0}, back = {0};
    uint8_t all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    dd_hot_escape(&b, dd_slice_of(all, 256));
    for (size_t i = 0; i < b.len; i++)
        ck_assert(b.data[i] > 0x20 && b.data[i] < 0x7f && !strchr("{}/ *?[]\"'", b.data[i]));
    ck_assert_ok(dd_hot_unescape(dd_buf_slice(&b), &back));
    ck_assert(dd_slice_eq(dd_buf_slice(&back), dd_slice_of(all, 256)));
    dd_buf_free(&b);
    dd_buf_free(&back);
}
END_TEST

static const char *const broken_escapes[] = {"%", "%4", "%4g", "%2f", "%41", "a/b", "{", " ", "\x80"};

START_TEST(broken_escapes_are_refused)
{
    struct dd_buf back = {0};
    ck_assert_err(dd_hot_unescape(text(broken_escapes[_i]), &back), DD_INVALID);
    dd_buf_free(&back);
}
END_TEST

START_TEST(keys_are_as_documented)
{
    struct dd_buf b = {0};
    struct dd_slice store = text("00aa11bb22cc33dd");
    struct dd_period month = {DD_PERIOD_MONTH, 2026 * 12 + 10};
    dd_hot_key_user(&b, text("home"), text("u/1"));
    ck_assert_buf(&b, "dd:{home/u%2F1}:");
    dd_hot_key_add_deliveries(&b);
    ck_assert_buf(&b, "d");
    dd_hot_key_add_pending(&b, store, month);
    ck_assert_buf(&b, "p:00aa11bb22cc33dd:2026-11");
    dd_hot_key_add_cached(&b, store);
    ck_assert_buf(&b, "c:00aa11bb22cc33dd");
    dd_hot_key_bucket(&b, store, 3600, 7200, 15);
    ck_assert_buf(&b, "dd:a:00aa11bb22cc33dd:3600-7200:15");
    dd_hot_key_slots(&b, store);
    ck_assert_buf(&b, "dd:s:00aa11bb22cc33dd");
    dd_hot_key_generation(&b, store);
    ck_assert_buf(&b, "dd:g:00aa11bb22cc33dd");
    dd_buf_free(&b);
}
END_TEST

START_TEST(parts_do_not_change_between_versions)
{
    ck_assert_uint_eq(dd_hot_part_of(text("home"), text("u1")), dd_hot_part_of(text("home"), text("u1")));
    unsigned users_of[DD_HOT_PARTS] = {0};
    struct dd_buf b = {0};
    for (int i = 0; i < 1600; i++) {
        dd_buf_reset(&b);
        dd_buf_addf(&b, "user%d", i);
        users_of[dd_hot_part_of(text("home"), dd_buf_slice(&b))]++;
    }
    for (unsigned p = 0; p < DD_HOT_PARTS; p++)
        ck_assert_msg(users_of[p] > 50 && users_of[p] < 170, "part %u has %u", p, users_of[p]);
    ck_assert_uint_eq(dd_hot_part_of(text("home"), text("u1")), 14);
    dd_buf_free(&b);
}
END_TEST

static const struct {
    const char *name;
    enum dd_err err;
    int64_t start, end;
} slots[] = {
    {"0-3600", DD_OK, 0, 3600},
    {"1796000000-1796003600", DD_OK, 1796000000, 1796003600},
    {"999999999999998-999999999999999", DD_OK, 999999999999998, 999999999999999},
    {"", DD_INVALID, 0, 0},
    {"5", DD_INVALID, 0, 0},
    {"5-", DD_INVALID, 0, 0},
    {"-5", DD_INVALID, 0, 0},
    {"5-5", DD_INVALID, 0, 0},
    {"6-5", DD_INVALID, 0, 0},
    {"05-6", DD_INVALID, 0, 0},
    {"5-06", DD_INVALID, 0, 0},
    {"5-6 ", DD_INVALID, 0, 0},
    {" 5-6", DD_INVALID, 0, 0},
    {"5-6-7", DD_INVALID, 0, 0},
    {"5-1000000000000000", DD_INVALID, 0, 0},
    {"5-99999999999999999999999999", DD_INVALID, 0, 0},
};

START_TEST(slot_names)
{
    int64_t start = -1, end = -1;
    ck_assert_err(dd_hot_slot_parse(text(slots[_i].name), &start, &end), slots[_i].err);
    if (slots[_i].err) return;
    ck_assert_int_eq(start, slots[_i].start);
    ck_assert_int_eq(end, slots[_i].end);
    struct dd_buf b = {0};
    dd_hot_slot_name(&b, start, end);
    ck_assert_buf(&b, slots[_i].name);
    dd_buf_free(&b);
}
END_TEST

START_TEST(members_are_written_and_read)
{
    struct dd_buf b = {0}, bytes = {0};
    struct dd_period month = {DD_PERIOD_MONTH, 2026 * 12 + 10}, got;
    size_t scene_len, user_len;
    dd_hot_member(&b, text("home"), dd_slice_of("a/\0b", 4), month);
    ck_assert_ok(dd_hot_member_parse(dd_buf_slice(&b), &bytes, &scene_len, &user_len, &got));
    ck_assert_uint_eq(scene_len, 4);
    ck_assert_uint_eq(user_len, 4);
    ck_assert(dd_slice_eq(dd_buf_slice(&bytes), dd_slice_of("homea/\0b", 8)));
    ck_assert(dd_period_eq(got, month));
    ck_assert_buf(&b, "home/a%2F%00b/2026-11");
    dd_buf_free(&b);
    dd_buf_free(&bytes);
}
END_TEST

static const char *const broken_members[] = {"",
                                             "home",
                                             "home/u",
                                             "home/u/",
                                             "/u/2026-11",
                                             "home//2026-11",
                                             "home/u/2026-13",
                                             "home/u/2026-11/x",
                                             "ho me/u/2026-11",
                                             "home/%/2026-11"};

START_TEST(broken_members_are_refused)
{
    struct dd_buf bytes = {0};
    struct dd_period period;
    size_t scene_len, user_len;
    ck_assert_err(dd_hot_member_parse(text(broken_members[_i]), &bytes, &scene_len, &user_len, &period),
                  DD_INVALID);
    dd_buf_free(&bytes);
}
END_TEST

START_TEST(cached_values_are_checked)
{
    uint8_t bytes[DD_HOT_VALUE_HEADER + 3];
    struct dd_hot_value v = {.incarnation = 0x1122334455667788,
                             .number = UINT64_MAX - 1,
                             .filled_ms = 1796000000000},
                        got;
    dd_hot_value_header(&v, bytes);
    memcpy(bytes + DD_HOT_VALUE_HEADER, "abc", 3);
    ck_assert_ok(dd_hot_value_decode(dd_slice_of(bytes, sizeof bytes), &got));
    ck_assert(got.incarnation == v.incarnation && got.number == v.number && got.filled_ms == v.filled_ms);
    ck_assert(dd_slice_eq(got.blob, text("abc")));
    ck_assert_ok(dd_hot_value_decode(dd_slice_of(bytes, DD_HOT_VALUE_HEADER), &got));
    ck_assert_uint_eq(got.blob.len, 0);
    for (size_t n = 0; n < DD_HOT_VALUE_HEADER; n++)
        ck_assert_err(dd_hot_value_decode(dd_slice_of(bytes, n), &got), DD_CORRUPT);
    bytes[0] = 2;
    ck_assert_err(dd_hot_value_decode(dd_slice_of(bytes, sizeof bytes), &got), DD_CORRUPT);
}
END_TEST

START_TEST(commands_are_written)
{
    struct dd_buf b = {0};
    dd_resp_begin(&b, 4, "ZADD");
    dd_resp_arg_pair(&b, text("ke"), text("y"));
    dd_resp_arg_i64(&b, INT64_MIN);
    dd_resp_arg(&b, dd_slice_of("a\0\r\n", 4));
    const char expected[] =
        "*4\r\n$4\r\nZADD\r\n$3\r\nkey\r\n$20\r\n-9223372036854775808\r\n$4\r\na\0\r\n\r\n";
    ck_assert(dd_slice_eq(dd_buf_slice(&b), dd_slice_of(expected, sizeof expected - 1)));
    dd_buf_free(&b);
}
END_TEST

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

Suite *suite_keys(void);
Suite *suite_keys(void)
{
    Suite *s = suite_create("hot keys");
    TCase *t = tcase_create("keys");
    tcase_add_loop_test(t, ids_are_escaped_and_read_back, 0, COUNT(escapes));
    tcase_add_test(t, every_byte_survives);
    tcase_add_loop_test(t, broken_escapes_are_refused, 0, COUNT(broken_escapes));
    tcase_add_test(t, keys_are_as_documented);
    tcase_add_test(t, parts_do_not_change_between_versions);
    tcase_add_loop_test(t, slot_names, 0, COUNT(slots));
    tcase_add_test(t, members_are_written_and_read);
    tcase_add_loop_test(t, broken_members_are_refused, 0, COUNT(broken_members));
    tcase_add_test(t, cached_values_are_checked);
    tcase_add_test(t, commands_are_written);
    suite_add_tcase(s, t);
    return s;
}
