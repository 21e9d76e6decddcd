/* POST /admin/flush and GET /admin/slots. */
#include <stdio.h>

#include "served.h"
#include "suites.h"

static struct served s;
static struct reply r;

static void setup(void)
{
    served_start(&s, DD_API_ADMIN);
    r = (struct reply){.status = 0};
}

static void teardown(void)
{
    reply_free(&r);
    served_stop(&s);
}

static int start_flush(const char *body)
{
    unsigned calls = s.fake.calls;
    int fd = served_send(&s, "POST", "/admin/flush", NULL, dd_slice_str(body));
    served_turn_until(&s, &s.fake.calls, calls + 1);
    return fd;
}

static void expect(int status, const char *body)
{
    ck_assert_msg(r.status == status, "%d: %s", r.status, (const char *)r.body.data);
    ck_assert_str_eq((const char *)r.body.data, body);
}

START_TEST(flush_answers_when_it_is_done)
{
    int fd = start_flush("");
    ck_assert(!s.fake.flush->all && s.fake.flush->loop == s.loop);
    ck_assert_uint_eq(dd_api_inflight(s.api), 1);
    s.fake.flush->slots = 2;
    s.fake.flush->users = 30;
    s.fake.flush->items = 400;
    s.fake.flush->err = DD_OK;
    s.fake.flush->done(s.fake.flush->arg);
    served_receive(&s, fd, &r);
    expect(200, "{\"slots\":2,\"users\":30,\"items\":400}");
    ck_assert_uint_eq(dd_api_inflight(s.api), 0);
}
END_TEST

START_TEST(flush_all)
{
    int fd = start_flush("{\"all\":true}");
    ck_assert(s.fake.flush->all);
    s.fake.flush->err = DD_UNAVAILABLE;
    s.fake.flush->done(s.fake.flush->arg);
    served_receive(&s, fd, &r);
    ck_assert_int_eq(r.status, 503);
}
END_TEST

START_TEST(flush_that_does_not_start)
{
    s.fake.flush_start = DD_UNSUPPORTED;
    served_receive(&s, start_flush("{}"), &r);
    expect(200, "{\"slots\":0,\"users\":0,\"items\":0}");
    reply_free(&r);
    s.fake.flush_start = DD_SHUTDOWN;
    served_receive(&s, start_flush("{\"all\":false}"), &r);
    ck_assert_int_eq(r.status, 503);
    ck_assert_uint_eq(dd_api_inflight(s.api), 0);
}
END_TEST

START_TEST(bad_flushes)
{
    static const struct {
        const char *body, *error;
    } rows[] = {
        {"{", "\"code\":\"invalid_json\""},
        {"[]", "\"code\":\"invalid_json\""},
        {"{\"all\":1}", "\"code\":\"invalid_field\",\"field\":\"all\""},
        {"{\"al\":true,\"x\":1}", "\"code\":\"unknown_field\",\"field\":\"al\""},
        {"{\"all\":true,\"all\":true}", "\"code\":\"invalid_json\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reply_free(&r);
        served_ask(&s, "/admin/flush", rows[i].body, &r);
        ck_assert_msg(r.status == 400 && strstr((const char *)r.body.data, rows[i].error), "%s: %s",
                      rows[i].body, (const char *)r.body.data);
    }
    ck_assert_uint_eq(s.fake.calls, 0);
}
END_TEST

START_TEST(slots_are_shown)
{
    s.fake.slot = (struct dd_wheel_slot_info){
        .slot = {1796032800, 1796036400}, .state = DD_SLOT_RETRYING, .users = 12};
    snprintf(s.fake.slot.last_error, sizeof s.fake.slot.last_error, "timeout");
    served_get(&s, "/admin/slots", &r);
    expect(200, "{\"slots\":[{\"slot\":\"2026-11-30T10:00:00Z\",\"start_s\":1796032800,\"end_s\":1796036400,"
                "\"state\":\"retrying\",\"users\":12,\"age_s\":7200,\"last_error\":\"timeout\"}]}");
}
END_TEST

START_TEST(not_on_the_data_listener)
{
    struct served data;
    served_start(&data, DD_API_DATA);
    served_ask(&data, "/admin/flush", "{}", &r);
    ck_assert_int_eq(r.status, 404);
    served_stop(&data);
}
END_TEST

Suite *suite_slots(void)
{
    Suite *suite = suite_create("slots");
    TCase *t = tcase_create("admin");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, flush_answers_when_it_is_done);
    tcase_add_test(t, flush_all);
    tcase_add_test(t, flush_that_does_not_start);
    tcase_add_test(t, bad_flushes);
    tcase_add_test(t, slots_are_shown);
    tcase_add_test(t, not_on_the_data_listener);
    suite_add_tcase(suite, t);
    return suite;
}
