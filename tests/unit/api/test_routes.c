/* The three calls over HTTP: what is asked of lib/dedup, how its answers look, and which failure is which
 * status. */
#include <limits.h>
#include <stdio.h>

#include "cases.h"
#include "served.h"
#include "suites.h"

static struct served s;
static struct reply r;

static void setup(void)
{
    served_start(&s, DD_API_DATA);
    r = (struct reply){.status = 0};
}

static void teardown(void)
{
    reply_free(&r);
    served_stop(&s);
}

static void ask(const char *path, const char *body)
{
    reply_free(&r);
    served_ask(&s, path, body, &r);
}

static void expect(int status, const char *body)
{
    ck_assert_msg(r.status == status, "%d, not %d: %s", r.status, status, (const char *)r.body.data);
    ck_assert_str_eq((const char *)r.body.data, body);
}

static const char *header(const char *name)
{
    static char value[256];
    return reply_header(&r, name, value, sizeof value);
}

START_TEST(exact_answers)
{
    ask("/exposed", "{\"user\":\"u\",\"items\":[\"a\",42]}");
    expect(200, "{\"accepted\":2,\"durability\":\"wal\"}");
    ck_assert_str_eq(header("Content-Type"), "application/json");
    ask("/filter", "{\"user\":\"u\",\"candidates\":[ \"b\" , \"caf\\u00e9\" , \"42\",9007199254740993]}");
    expect(200, "{\"items\":[\"b\",\"caf\\u00e9\",9007199254740993],\"filtered\":1,\"history\":\"full\"}");
    ask("/delivered", "{\"user\":\"u\",\"items\":[\"x\",\"x\",\"a\"]}");
    expect(200, "{\"accepted\":[\"x\"],\"duplicate\":[\"x\",\"a\"]}");
    ask("/filter", "{\"user\":\"u\",\"candidates\":[]}");
    expect(200, "{\"items\":[],\"filtered\":0,\"history\":\"full\"}");
    ck_assert_uint_eq(s.fake.calls, 3); /* nothing is asked about no candidates */
}
END_TEST

START_TEST(partial_answers_say_so)
{
    s.fake.partial = true;
    ask("/filter", "{\"user\":\"u\",\"candidates\":[1]}");
    expect(200, "{\"items\":[1],\"filtered\":0,\"history\":\"partial\"}");
    ask("/delivered", "{\"user\":\"u\",\"items\":[2]}");
    expect(200, "{\"accepted\":[2],\"duplicate\":[],\"history\":\"partial\"}");
}
END_TEST

START_TEST(explained)
{
    ask("/exposed", "{\"user\":\"u\",\"items\":[1]}");
    ask("/delivered", "{\"user\":\"u\",\"items\":[\"d\"]}");
    ask("/filter", "{\"user\":\"u\",\"candidates\":[3,1,\"d\",3,4],\"explain\":true,\"limit\":1}");
    expect(
        200,
        "{\"items\":[3],\"filtered\":3,\"history\":\"full\",\"explain\":[{\"item\":1,\"reason\":\"2026-11\"},"
        "{\"item\":\"d\",\"reason\":\"delivered\"},{\"item\":3,\"reason\":\"repeat\"}]}");
    ask("/filter", "{\"user\":\"u\",\"candidates\":[5],\"explain\":true}");
    expect(200, "{\"items\":[5],\"filtered\":0,\"history\":\"full\",\"explain\":[]}");
}
END_TEST

START_TEST(claim_exposed_says_durability)
{
    ask("/filter", "{\"user\":\"u\",\"candidates\":[1,2],\"limit\":1,\"claim\":\"exposed\"}");
    expect(200, "{\"items\":[1],\"filtered\":0,\"history\":\"full\",\"durability\":\"wal\"}");
    ask("/filter", "{\"user\":\"u\",\"candidates\":[1],\"claim\":\"exposed\"}");
    expect(200, "{\"items\":[],\"filtered\":1,\"history\":\"full\"}");
}
END_TEST

START_TEST(expired_events_are_counted)
{
    ask("/exposed",
        "{\"events\":[{\"user\":\"u\",\"items\":[1,2],\"ts\":5},{\"user\":\"u\",\"items\":[3]}]}");
    expect(200, "{\"accepted\":1,\"durability\":\"wal\",\"expired\":2}");
}
END_TEST

START_TEST(limited_events)
{
    const char *batch = "{\"events\":[{\"user\":\"u\",\"items\":[1,2]},{\"user\":\"v\",\"items\":[3]}]}";
    s.fake.limit_event = 2;
    ask("/exposed", batch);
    expect(200, "{\"accepted\":2,\"durability\":\"wal\",\"rejected\":[{\"event\":1,\"code\":\"limit\"}]}");
    s.fake.limit_event = 1;
    ask("/exposed", "{\"user\":\"u\",\"items\":[1]}");
    ck_assert_int_eq(r.status, 429);
    ck_assert_str_eq(header("Retry-After"), "60");
    s.fake.limit_event = UINT_MAX;
    ask("/exposed", batch);
    ck_assert_int_eq(r.status, 429);
}
END_TEST

START_TEST(time_ahead_names_the_event)
{
    ask("/exposed", "{\"user\":\"u\",\"items\":[1],\"ts\":253402300799999}");
    ck_assert_int_eq(r.status, 400);
    ck_assert_ptr_nonnull(strstr((const char *)r.body.data, "\"code\":\"invalid_field\",\"field\":\"ts\""));
    ask("/exposed", "{\"events\":[{\"user\":\"u\",\"items\":[1]},{\"user\":\"u\",\"items\":[1],\"ts\":"
                    "253402300799999}]}");
    ck_assert_ptr_nonnull(strstr((const char *)r.body.data, "\"field\":\"events[1].ts\""));
    ck_assert_uint_eq(s.fake.n, 0);
}
END_TEST

static const struct {
    enum dd_err err;
    int status;
    const char *code, *retry;
} failures[] = {
    {DD_LIMIT, 429, "limit", "60"},      {DD_DISK_FULL, 507, "disk_full", "30"},
    {DD_TIMEOUT, 503, "timeout", "1"},   {DD_UNAVAILABLE, 503, "unavailable", "1"},
    {DD_BUSY, 503, "busy", "1"},         {DD_NO_MEMORY, 503, "no_memory", "1"},
    {DD_SHUTDOWN, 503, "shutdown", "1"}, {DD_IO, 503, "io", "1"},
    {DD_CORRUPT, 500, "internal", NULL},
};

START_TEST(failures_of_a_call)
{
    static const char *const calls[][2] = {{"/exposed", "{\"user\":\"u\",\"items\":[1]}"},
                                           {"/filter", "{\"user\":\"u\",\"candidates\":[1]}"},
                                           {"/delivered", "{\"user\":\"u\",\"items\":[1]}"}};
    char code[64];
    s.fake.err = failures[_i].err;
    snprintf(code, sizeof code, "{\"error\":{\"code\":\"%s\",\"message\":\"", failures[_i].code);
    for (size_t i = 0; i < 3; i++) {
        ask(calls[i][0], calls[i][1]);
        ck_assert_int_eq(r.status, failures[_i].status);
        ck_assert_msg(strncmp((const char *)r.body.data, code, strlen(code)) == 0, "%s",
                      (const char *)r.body.data);
        const char *retry = header("Retry-After");
        ck_assert_msg((retry != NULL) == (failures[_i].retry != NULL), "%s", calls[i][0]);
        if (retry) ck_assert_str_eq(retry, failures[_i].retry);
    }
    ck_assert_uint_eq(dd_api_inflight(s.api), 0);
}
END_TEST

/* The answer goes out at done; the call's memory is in use until finished, and counts as in flight. */
START_TEST(answer_before_the_end)
{
    s.fake.hold = s.fake.hold_finish = true;
    int fd = served_send(&s, "POST", "/filter", NULL, dd_slice_str("{\"user\":\"u\",\"candidates\":[1,2]}"));
    served_turn_until(&s, &s.fake.calls, 1);
    ck_assert_uint_eq(dd_api_inflight(s.api), 1);
    fake_answer(&s.fake);
    served_receive(&s, fd, &r);
    expect(200, "{\"items\":[1,2],\"filtered\":0,\"history\":\"full\"}");
    ck_assert_uint_eq(dd_api_inflight(s.api), 1);
    fake_finish(&s.fake);
    ck_assert_uint_eq(dd_api_inflight(s.api), 0);
}
END_TEST

/* Two calls under way have memory of their own, and finished ones are used again. */
START_TEST(calls_do_not_share_memory)
{
    s.fake.hold = true;
    int first = served_send(&s, "POST", "/filter", NULL,
                            dd_slice_str("{\"user\":\"u\",\"candidates\":[\"fi\\u0072st\"]}"));
    served_turn_until(&s, &s.fake.calls, 1);
    struct fake held = s.fake;
    int second = served_send(&s, "POST", "/filter", NULL,
                             dd_slice_str("{\"user\":\"u\",\"candidates\":[\"s\\u0065cond\"]}"));
    served_turn_until(&s, &s.fake.calls, 2);
    ck_assert_uint_eq(dd_api_inflight(s.api), 2);
    fake_answer(&s.fake);
    served_receive(&s, second, &r);
    expect(200, "{\"items\":[\"s\\u0065cond\"],\"filtered\":0,\"history\":\"full\"}");
    fake_answer(&held);
    reply_free(&r);
    served_receive(&s, first, &r);
    expect(200, "{\"items\":[\"fi\\u0072st\"],\"filtered\":0,\"history\":\"full\"}");
    s.fake.hold = false;
    for (int i = 0; i < 50; i++) {
        ask("/filter", "{\"user\":\"u\",\"candidates\":[7]}");
        ck_assert_int_eq(r.status, 200);
    }
    ck_assert_uint_eq(dd_api_inflight(s.api), 0);
}
END_TEST

START_TEST(content_types)
{
    static const struct {
        const char *type;
        int status;
    } rows[] = {
        {"application/json", 200},
        {"Application/JSON", 200},
        {"application/json;charset=utf-8", 200},
        {"application/json ; Charset=\"UTF-8\"", 200},
        {"application/json; profile=x; charset=UTF-8; q=1", 200},
        {"application/json;", 200},
        {"application/json; charset=utf-16", 415},
        {"application/json; charset=", 415},
        {"application/json5", 415},
        {"application/jso", 415},
        {"text/json", 415},
        {"; charset=utf-8", 415},
        {"", 415},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[128];
        snprintf(line, sizeof line, "Content-Type: %s\r\n", rows[i].type);
        reply_free(&r);
        int fd = served_send(&s, "POST", "/filter", line,
                             dd_slice_str("{\"user\":\"u\",\"candidates\":[1]}"));
        served_receive(&s, fd, &r);
        ck_assert_msg(r.status == rows[i].status, "%s: %d", rows[i].type, r.status);
    }
}
END_TEST

START_TEST(allow_header)
{
    int fd = served_send(&s, "DELETE", "/health", NULL, dd_slice_of(NULL, 0));
    served_receive(&s, fd, &r);
    ck_assert_int_eq(r.status, 405);
    ck_assert_str_eq(header("Allow"), "GET, HEAD");
}
END_TEST

START_TEST(a_query_is_no_part_of_the_path)
{
    ask("/filter?trace=1", "{\"user\":\"u\",\"candidates\":[1]}");
    ck_assert_int_eq(r.status, 200);
}
END_TEST

/* Errors are valid JSON whatever the client put into a field's name. */
START_TEST(hostile_field_names)
{
    ask("/filter", "{\"\\u0001\\\"\\\\</script>\xc3\xa9\":1}");
    json_error_t e;
    json_t *v = json_loadb((const char *)r.body.data, r.body.len, 0, &e);
    ck_assert_msg(v != NULL, "%s: %s", e.text, (const char *)r.body.data);
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(v, "error"), "field")),
                     "\x01\"\\</script>\xc3\xa9");
    json_decref(v);
}
END_TEST

static void send_row(const json_t *row)
{
    struct dd_buf body = {0}, headers = {0};
    const char *key;
    json_t *value;
    case_body(row, &body);
    bool has_body = json_object_get(row, "body") || json_object_get(row, "body_base64") ||
                    json_object_get(row, "body_parts");
    json_object_foreach(json_object_get(row, "headers"), key, value)
        dd_buf_addf(&headers, "%s: %s\r\n", key, json_string_value(value));
    dd_buf_add_u8(&headers, 0);
    if (has_body) dd_buf_reserve(&body, 1); /* an empty body is one too: Content-Length: 0 */
    reply_free(&r);
    int fd = served_send(&s, case_text(row, "method"), case_text(row, "path"), (const char *)headers.data,
                         has_body ? dd_buf_slice(&body) : dd_slice_of(NULL, 0));
    served_receive(&s, fd, &r);
    dd_buf_free(&body);
    dd_buf_free(&headers);
}

static void check_row(const json_t *row)
{
    const char *name = case_text(row, "name"), *field = case_text(row, "field"),
               *code = case_text(row, "code");
    json_error_t e;
    send_row(row);
    ck_assert_msg(r.status == json_integer_value(json_object_get(row, "status")), "%s: %d %s", name, r.status,
                  (const char *)r.body.data);
    if (!code) return; /* HEAD */
    json_t *v = json_loadb((const char *)r.body.data, r.body.len, JSON_REJECT_DUPLICATES, &e);
    const json_t *error = json_object_get(v, "error");
    ck_assert_msg(error && case_text(error, "message") && strcmp(case_text(error, "code"), code) == 0,
                  "%s: %s", name, (const char *)r.body.data);
    const char *got = case_text(error, "field");
    ck_assert_msg(strcmp(got ? got : "", field ? field : "") == 0, "%s: %s", name, (const char *)r.body.data);
    json_decref(v);
}

START_TEST(bad_requests)
{
    json_t *rows = cases_load(BAD_REQUESTS), *row;
    size_t i;
    json_array_foreach(rows, i, row) check_row(row);
    ck_assert_uint_ge(json_array_size(rows), 80);
    json_decref(rows);
    ck_assert_uint_eq(s.fake.n, 0); /* nothing was written */
    ck_assert_uint_eq(dd_api_inflight(s.api), 0);
}
END_TEST

Suite *suite_routes(void)
{
    Suite *suite = suite_create("routes");
    TCase *t = tcase_create("over HTTP");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, exact_answers);
    tcase_add_test(t, partial_answers_say_so);
    tcase_add_test(t, explained);
    tcase_add_test(t, claim_exposed_says_durability);
    tcase_add_test(t, expired_events_are_counted);
    tcase_add_test(t, limited_events);
    tcase_add_test(t, time_ahead_names_the_event);
    tcase_add_loop_test(t, failures_of_a_call, 0, (int)(sizeof failures / sizeof *failures));
    tcase_add_test(t, answer_before_the_end);
    tcase_add_test(t, calls_do_not_share_memory);
    tcase_add_test(t, content_types);
    tcase_add_test(t, allow_header);
    tcase_add_test(t, a_query_is_no_part_of_the_path);
    tcase_add_test(t, hostile_field_names);
    tcase_add_test(t, bad_requests);
    suite_add_tcase(suite, t);
    return suite;
}
