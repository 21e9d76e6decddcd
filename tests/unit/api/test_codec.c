/* What the codec accepts and what it makes of it. What it refuses: test_bad_requests.c. */
#include <stdio.h>

#include "api/codec.h"
#include "scenes.h"
#include "suites.h"

static struct dd_arena arena;
static struct dd_codec codec;
static struct dd_api_error err;

static void setup(void)
{
    codec = (struct dd_codec){
        .scenes = test_scenes(), .max_candidates = 10000, .max_items = 20, .max_events = 3};
}

static void teardown(void)
{
    dd_scenes_destroy((struct dd_scenes *)codec.scenes);
    dd_arena_free(&arena);
}

static struct dd_filter_call filter(const char *body)
{
    struct dd_filter_call c;
    enum dd_err e = dd_codec_filter(&codec, dd_slice_str(body), &arena, &c, &err);
    ck_assert_msg(e == DD_OK, "%s: %s %s: %s", body, err.code, err.field, err.message);
    return c;
}

static struct dd_exposed_call exposed(const char *body, bool *batch)
{
    struct dd_exposed_call c;
    enum dd_err e = dd_codec_exposed(&codec, dd_slice_str(body), &arena, &c, batch, &err);
    ck_assert_msg(e == DD_OK, "%s: %s %s: %s", body, err.code, err.field, err.message);
    return c;
}

static void is(struct dd_slice s, const char *text)
{
    ck_assert_msg(dd_slice_eq(s, dd_slice_str(text)), "\"%.*s\", not \"%s\"", (int)s.len, (const char *)s.ptr,
                  text);
}

START_TEST(filter_fields)
{
    struct dd_filter_call c = filter(
        "{\"user\":\"u1\",\"candidates\":[\"a\",7],\"scene\":\"push\",\"limit\":2,"
        "\"claim\":true,\"window\":1,\"explain\":true}");
    is(c.user, "u1");
    ck_assert_str_eq(c.scene->name, "push");
    ck_assert_uint_eq(c.n, 2);
    is(c.items[0].id, "a");
    is(c.items[0].echo, "\"a\"");
    is(c.items[1].id, "7");
    is(c.items[1].echo, "7");
    ck_assert_uint_eq(c.limit, 2);
    ck_assert_uint_eq(c.window, 1);
    ck_assert_int_eq(c.claim, DD_CLAIM_DELIVERED);
    ck_assert(c.explain);
    ck_assert_ptr_eq(c.arena, &arena);
}
END_TEST

START_TEST(filter_max_seen)
{
    struct dd_filter_call c = filter(
        "{\"max_seen\":14,\"scene\":\"likes\",\"user\":\"u\",\"candidates\":[1],\"claim\":true}");
    ck_assert_uint_eq(c.max_seen, 14);
    ck_assert_str_eq(c.scene->name, "likes");
    c = filter("{\"scene\":\"likes\",\"user\":\"u\",\"candidates\":[1]}");
    ck_assert_uint_eq(c.max_seen, 0);
}
END_TEST

START_TEST(filter_defaults)
{
    struct dd_filter_call c = filter(" { \"candidates\" : [ ] , \"user\" : \"u1\" } ");
    ck_assert_str_eq(c.scene->name, "default");
    ck_assert(c.n == 0 && c.limit == 0 && c.window == 0 && !c.explain && c.claim == DD_CLAIM_NONE);
}
END_TEST

START_TEST(claims)
{
    ck_assert_int_eq(filter("{\"user\":\"u\",\"candidates\":[1],\"claim\":false}").claim, DD_CLAIM_NONE);
    ck_assert_int_eq(filter("{\"user\":\"u\",\"candidates\":[1],\"claim\":\"exposed\"}").claim,
                     DD_CLAIM_EXPOSED);
    ck_assert_int_eq(filter("{\"user\":\"u\",\"candidates\":[1],\"claim\":\"e\\u0078posed\"}").claim,
                     DD_CLAIM_EXPOSED);
    /* Exactly recent.max, by the limit and by the number of candidates; and the scene may come last. */
    filter("{\"user\":\"u\",\"candidates\":[1],\"claim\":true,\"limit\":100}");
    filter("{\"user\":\"u\",\"claim\":true,\"candidates\":[1,2,3,4,5],\"scene\":\"push\"}");
    struct dd_filter_call c;
    ck_assert_err(dd_codec_filter(&codec,
                                  dd_slice_str("{\"user\":\"u\",\"claim\":true,\"candidates\":[1,2,3,4,5,6],"
                                               "\"scene\":\"push\"}"),
                                  &arena, &c, &err),
                  DD_INVALID);
    ck_assert_str_eq(err.field, "limit");
    /* The same list is fine without a claim. */
    filter("{\"user\":\"u\",\"candidates\":[1,2,3,4,5,6],\"scene\":\"push\"}");
}
END_TEST

START_TEST(echo_and_identity)
{
    struct dd_filter_call c = filter(
        "{\"user\":\"u\\u00e9\",\"candidates\":[9007199254740993,-0,0,\"0\",\"caf\\u00e9\","
        "\"caf\xc3\xa9\",\"a\\/b\",-9223372036854775808]}");
    static const struct {
        const char *id, *echo;
    } want[] = {
        {"9007199254740993", "9007199254740993"},
        {"0", "-0"},
        {"0", "0"},
        {"0", "\"0\""},
        {"caf\xc3\xa9", "\"caf\\u00e9\""},
        {"caf\xc3\xa9", "\"caf\xc3\xa9\""},
        {"a/b", "\"a\\/b\""},
        {"-9223372036854775808", "-9223372036854775808"},
    };
    is(c.user, "u\xc3\xa9");
    ck_assert_uint_eq(c.n, sizeof want / sizeof *want);
    for (unsigned i = 0; i < c.n; i++) {
        is(c.items[i].id, want[i].id);
        is(c.items[i].echo, want[i].echo);
    }
}
END_TEST

START_TEST(longest_ids)
{
    char body[1024], user[129], item[257];
    memset(user, 'u', 128);
    memset(item, 'i', 256);
    user[128] = item[256] = 0;
    snprintf(body, sizeof body, "{\"user\":\"%s\",\"candidates\":[\"%s\"]}", user, item);
    struct dd_filter_call c = filter(body);
    is(c.user, user);
    is(c.items[0].id, item);
}
END_TEST

START_TEST(many_candidates)
{
    struct dd_buf body = {0};
    dd_buf_add_str(&body, "{\"user\":\"u\",\"candidates\":[0");
    for (int i = 1; i < 10000; i++)
        dd_buf_addf(&body, ",%d", i);
    dd_buf_add_str(&body, "]}");
    struct dd_filter_call c;
    ck_assert_ok(dd_codec_filter(&codec, dd_buf_slice(&body), &arena, &c, &err));
    ck_assert_uint_eq(c.n, 10000);
    for (unsigned i = 0; i < c.n; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        is(c.items[i].id, text);
    }
    dd_buf_free(&body);
}
END_TEST

/* One-digit items: more than one for every eight bytes, so that the list has to grow. */
START_TEST(list_grows)
{
    struct dd_buf body = {0};
    dd_buf_add_str(&body, "{\"user\":\"u\",\"candidates\":[0");
    for (int i = 1; i < 5000; i++)
        dd_buf_addf(&body, ",%d", i % 10);
    dd_buf_add_str(&body, "]}");
    struct dd_filter_call c;
    ck_assert_ok(dd_codec_filter(&codec, dd_buf_slice(&body), &arena, &c, &err));
    ck_assert_uint_eq(c.n, 5000);
    for (unsigned i = 0; i < c.n; i++)
        ck_assert(c.items[i].id.len == 1 && c.items[i].id.ptr[0] == '0' + i % 10);
    dd_buf_free(&body);
}
END_TEST

START_TEST(one_event)
{
    bool batch = true;
    struct dd_exposed_call c = exposed("{\"ts\":1764500000000,\"items\":[\"a\"],\"user\":\"u1\"}", &batch);
    ck_assert(!batch && c.n == 1 && c.events[0].n == 1 && c.events[0].ts_ms == 1764500000000);
    ck_assert_str_eq(c.events[0].scene->name, "default");
    is(c.events[0].user, "u1");
    is(c.events[0].items[0].id, "a");
    ck_assert(exposed("{\"user\":\"u\",\"items\":[1]}", &batch).events[0].ts_ms == DD_TS_NOW);
}
END_TEST

START_TEST(times_that_are_milliseconds)
{
    static const int64_t times[] = {0, 99999999, 100000000000, 1764500000000, 253402300799999};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char body[128];
        bool batch;
        snprintf(body, sizeof body, "{\"user\":\"u\",\"items\":[1],\"ts\":%lld}", (long long)times[i]);
        ck_assert_int_eq(exposed(body, &batch).events[0].ts_ms, times[i]);
    }
}
END_TEST

START_TEST(batch_of_events)
{
    bool batch = false;
    struct dd_exposed_call c = exposed("{\"events\":[{\"user\":\"u1\",\"items\":[\"a\",\"b\"]},"
                                       "{\"items\":[1,2,3],\"scene\":\"push\",\"user\":\"u2\",\"ts\":5},"
                                       "{\"user\":\"u1\",\"items\":[\"c\"]}]}",
                                       &batch);
    ck_assert(batch && c.n == 3);
    ck_assert(c.events[0].n == 2 && c.events[1].n == 3 && c.events[2].n == 1);
    is(c.events[0].items[1].id, "b");
    is(c.events[1].items[0].id, "1");
    is(c.events[1].items[2].id, "3");
    is(c.events[2].items[0].id, "c");
    is(c.events[1].user, "u2");
    ck_assert_str_eq(c.events[1].scene->name, "push");
    ck_assert(c.events[1].ts_ms == 5 && c.events[2].ts_ms == DD_TS_NOW);
}
END_TEST

START_TEST(delivered_fields)
{
    struct dd_delivered_call c;
    ck_assert_ok(dd_codec_delivered(
        &codec, dd_slice_str("{\"user\":\"u\",\"items\":[3,\"x\"],\"scene\":\"push\"}"), &arena, &c, &err));
    ck_assert_uint_eq(c.n, 2);
    is(c.items[1].id, "x");
    ck_assert_str_eq(c.scene->name, "push");
}
END_TEST

/* Limits come from the options, and count over all events. */
START_TEST(limits)
{
    bool batch;
    struct dd_exposed_call x;
    const char *events = "{\"events\":[{\"user\":\"u\",\"items\":[1]},{\"user\":\"u\",\"items\":[1]},"
                         "{\"user\":\"u\",\"items\":[1]},{\"user\":\"u\",\"items\":[1]}]}";
    ck_assert_err(dd_codec_exposed(&codec, dd_slice_str(events), &arena, &x, &batch, &err), DD_INVALID);
    ck_assert_str_eq(err.code, "too_many");
    ck_assert_str_eq(err.field, "events");
    ck_assert_ptr_nonnull(strstr(err.message, "at most 3 "));
    codec.max_items = 3;
    const char *items = "{\"events\":[{\"user\":\"u\",\"items\":[1,2]},{\"user\":\"u\",\"items\":[1,2]}]}";
    ck_assert_err(dd_codec_exposed(&codec, dd_slice_str(items), &arena, &x, &batch, &err), DD_INVALID);
    ck_assert_str_eq(err.field, "events[1].items");
    codec.max_items = 4;
    ck_assert_ok(dd_codec_exposed(&codec, dd_slice_str(items), &arena, &x, &batch, &err));
}
END_TEST

/* Names that do not fit the error's path are cut at the end of a character. */
START_TEST(long_unknown_field)
{
    char body[512] = "{\"";
    for (int i = 0; i < 80; i++)
        strcat(body, "\xc3\xa9");
    strcat(body, "\":1}");
    struct dd_filter_call c;
    ck_assert_err(dd_codec_filter(&codec, dd_slice_str(body), &arena, &c, &err), DD_INVALID);
    ck_assert_str_eq(err.code, "unknown_field");
    size_t n = strlen(err.field);
    ck_assert(n > 32 && n % 2 == 0 && n < sizeof err.field);
}
END_TEST

START_TEST(messages_say_what_is_allowed)
{
    static const struct {
        const char *body, *message;
    } rows[] = {
        {"{\"user\":\"u\",\"candidates\":[1],\"colour\":1}",
         "there is no such field here; allowed are: user, candidates, scene, limit, claim, window, explain, "
         "max_seen"},
        {"{\"user\":\"\",\"candidates\":[1]}", "must have 1 to 128 bytes, not 0"},
        {"{\"user\":\"u\",\"candidates\":[1],\"limit\":0}", "must be 1 to 10000, not 0"},
        {"{\"user\":\"u\",\"candidates\":[1],\"window\":9}", "must be 1 to 3 (the scene's window), not 9"},
        {"{\"user\":\"u\",\"candidates\":[1],\"max_seen\":15}", "must be 1 to 14, not 15"},
        {"{\"max_seen\":1,\"user\":\"u\",\"candidates\":[1],\"scene\":\"push\"}",
         "only scenes that count know how often an item was seen (option filter: counting), and push is not "
         "one"},
        {"{\"user\":\"u\",\"candidates\":[1.5]}", "must be a string or an integer, not a fraction"},
        {"{\"user\":\"u\",}", "not valid JSON at byte 12: expected a key in quotes here"},
        {"{\"user\":\"u", "not valid JSON at byte 10: a string is not closed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dd_filter_call c;
        ck_assert_err(dd_codec_filter(&codec, dd_slice_str(rows[i].body), &arena, &c, &err), DD_INVALID);
        ck_assert_str_eq(err.message, rows[i].message);
        ck_assert_int_eq(err.status, 400);
    }
}
END_TEST

Suite *suite_codec(void)
{
    Suite *s = suite_create("codec");
    TCase *t = tcase_create("accepted");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, filter_fields);
    tcase_add_test(t, filter_defaults);
    tcase_add_test(t, filter_max_seen);
    tcase_add_test(t, claims);
    tcase_add_test(t, echo_and_identity);
    tcase_add_test(t, longest_ids);
    tcase_add_test(t, many_candidates);
    tcase_add_test(t, list_grows);
    tcase_add_test(t, one_event);
    tcase_add_test(t, times_that_are_milliseconds);
    tcase_add_test(t, batch_of_events);
    tcase_add_test(t, delivered_fields);
    tcase_add_test(t, limits);
    tcase_add_test(t, long_unknown_field);
    tcase_add_test(t, messages_say_what_is_allowed);
    suite_add_tcase(s, t);
    return s;
}
