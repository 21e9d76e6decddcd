#include "fixture.h"

static struct dd_key key_of(struct dd_period p, const char *scene, const char *user)
{
    struct dd_key k;
    ck_assert_ok(dd_key_encode(&k, p, dd_slice_str(scene), dd_slice_str(user)));
    return k;
}

START_TEST(keys_round_trip)
{
    static const struct {
        struct dd_period p;
        const char *scene, *user;
    } rows[] = {
        {{DD_PERIOD_DAY, 0}, "a", "b"},
        {{DD_PERIOD_MONTH, 24323}, "default", "user 1"},
        {{DD_PERIOD_FOREVER, 0}, "\xff\xff", "\xff"},
        {{DD_PERIOD_QUARTER, INT32_MAX}, "s", "\x01\x02"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dd_key k = key_of(rows[i].p, rows[i].scene, rows[i].user);
        struct dd_period p;
        struct dd_slice scene, user;
        ck_assert_ok(dd_key_decode(dd_key_slice(&k), &p, &scene, &user));
        ck_assert(dd_period_eq(p, rows[i].p));
        ck_assert(dd_slice_eq(scene, dd_slice_str(rows[i].scene)));
        ck_assert(dd_slice_eq(user, dd_slice_str(rows[i].user)));
    }
}
END_TEST

START_TEST(keys_bad_input_is_refused)
{
    uint8_t long_bytes[256];
    memset(long_bytes, 'x', sizeof long_bytes);
    struct dd_slice ok = dd_slice_str("x"), empty = dd_slice_of("", 0),
                    too_long = dd_slice_of(long_bytes, 256);
    struct dd_key k;
    ck_assert_err(dd_key_encode(&k, month(1), empty, ok), DD_INVALID);
    ck_assert_err(dd_key_encode(&k, month(1), ok, empty), DD_INVALID);
    ck_assert_err(dd_key_encode(&k, month(1), too_long, ok), DD_INVALID);
    ck_assert_err(dd_key_encode(&k, month(1), ok, too_long), DD_INVALID);
    ck_assert_err(dd_key_encode(&k, month(-1), ok, ok), DD_INVALID);
    ck_assert_err(dd_key_encode(&k, (struct dd_period){0, 1}, ok, ok), DD_INVALID);
    ck_assert_err(dd_key_encode(&k, (struct dd_period){6, 1}, ok, ok), DD_INVALID);
    ck_assert_ok(dd_key_encode(&k, month(1), dd_slice_of(long_bytes, 255), dd_slice_of(long_bytes, 255)));
    ck_assert_uint_eq(k.len, DD_KEY_MAX);
}
END_TEST

START_TEST(keys_only_whole_keys_decode)
{
    struct dd_key k = key_of(month(7), "home", "anna");
    struct dd_period p;
    struct dd_slice scene, user;
    for (size_t len = 0; len < k.len; len++)
        ck_assert_err(dd_key_decode(dd_slice_of(k.bytes, len), &p, &scene, &user), DD_CORRUPT);
    k.bytes[k.len] = 'x';
    ck_assert_err(dd_key_decode(dd_slice_of(k.bytes, k.len + 1), &p, &scene, &user), DD_CORRUPT);
    k.bytes[0] = 9;
    ck_assert_err(dd_key_decode(dd_key_slice(&k), &p, &scene, &user), DD_CORRUPT);
}
END_TEST

static bool in_range(struct dd_key k, struct dd_key start, struct dd_key end)
{
    return dd_slice_cmp(dd_key_slice(&k), dd_key_slice(&start)) >= 0 &&
           dd_slice_cmp(dd_key_slice(&k), dd_key_slice(&end)) < 0;
}

START_TEST(keys_a_range_holds_its_scene_and_period_only)
{
    static const char *scenes[] = {"a", "b", "\xff\xff", "\xff\xff\xff", "aa"};
    static const char *users[] = {"\x01", "u", "\xff\xff\xff\xff"};
    for (int i = 0; i < 5; i++) {
        struct dd_key start, end;
        ck_assert_ok(dd_key_range(month(0xff), dd_slice_str(scenes[i]), &start, &end));
        for (int j = 0; j < 5; j++) {
            for (int u = 0; u < 3; u++) {
                ck_assert(in_range(key_of(month(0xff), scenes[j], users[u]), start, end) == (i == j));
                ck_assert(!in_range(key_of(month(0xfe), scenes[j], users[u]), start, end));
                ck_assert(!in_range(key_of(month(0x100), scenes[j], users[u]), start, end));
                ck_assert(!in_range(key_of((struct dd_period){DD_PERIOD_DAY, 0xff}, scenes[j], users[u]),
                                    start, end));
            }
        }
    }
}
END_TEST

START_TEST(keys_are_ordered_by_time)
{
    struct dd_key before = key_of(month(0xff), "z", "z"), after = key_of(month(0x100), "a", "a");
    ck_assert(dd_slice_cmp(dd_key_slice(&before), dd_key_slice(&after)) < 0);
}
END_TEST

Suite *suite_keys(void)
{
    Suite *s = suite_create("store keys");
    TCase *t = tcase_create("keys");
    tcase_add_test(t, keys_round_trip);
    tcase_add_test(t, keys_bad_input_is_refused);
    tcase_add_test(t, keys_only_whole_keys_decode);
    tcase_add_test(t, keys_a_range_holds_its_scene_and_period_only);
    tcase_add_test(t, keys_are_ordered_by_time);
    suite_add_tcase(s, t);
    return s;
}
