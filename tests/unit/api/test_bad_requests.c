/* The table of bad requests, through the codec alone; test_routes.c sends it over HTTP, the integration tests
 * to a whole server. */
#include "cases.h"
#include "read.h"
#include "scenes.h"
#include "suites.h"

static void check_row(const struct dd_codec *c, const json_t *row, unsigned *checked)
{
    enum shape shape = shape_of(case_text(row, "path"));
    bool for_codec = json_integer_value(json_object_get(row, "status")) == 400 && shape != SHAPE_COUNT &&
                     !json_object_get(row, "needs_clock");
    if (!for_codec) return;
    struct dd_buf body = {0};
    struct verdict v;
    case_body(row, &body);
    read_codec(c, shape, dd_buf_slice(&body), &v);
    const char *name = case_text(row, "name"), *field = case_text(row, "field");
    ck_assert_msg(!v.good, "%s: accepted", name);
    ck_assert_msg(strcmp(v.code, case_text(row, "code")) == 0, "%s: code %s", name, v.code);
    ck_assert_msg(strcmp(v.field, field ? field : "") == 0, "%s: field %s", name, v.field);
    verdict_free(&v);
    dd_buf_free(&body);
    ++*checked;
}

START_TEST(each_row)
{
    struct dd_codec codec = {
        .scenes = test_scenes(), .max_candidates = 10000, .max_items = 10000, .max_events = 1000};
    json_t *rows = cases_load(BAD_REQUESTS), *row;
    unsigned checked = 0;
    size_t i;
    json_array_foreach(rows, i, row) check_row(&codec, row, &checked);
    ck_assert_uint_ge(checked, 80);
    json_decref(rows);
    dd_scenes_destroy((struct dd_scenes *)codec.scenes);
}
END_TEST

/* Every body of the table, cut at every place: nothing is read beyond, nothing cut is accepted. */
START_TEST(cut_anywhere)
{
    static const char whole[] =
        "{\"user\":\"u\\u00e9\\ud83d\\ude00\",\"candidates\":[\"a\\n\",-12.5e+3,\"caf\xc3\xa9\"],"
        "\"claim\":\"exposed\",\"explain\":true,\"scene\":null}";
    struct dd_codec codec = {
        .scenes = test_scenes(), .max_candidates = 10, .max_items = 10, .max_events = 10};
    for (size_t n = 0; n < sizeof whole; n++)
        for (unsigned s = 0; s < SHAPE_COUNT; s++) {
            struct verdict v;
            read_codec(&codec, s, dd_slice_of(whole, n), &v);
            ck_assert_msg(!v.good, "%.*s", (int)n, whole);
            verdict_free(&v);
        }
    dd_scenes_destroy((struct dd_scenes *)codec.scenes);
}
END_TEST

Suite *suite_bad_requests(void)
{
    Suite *s = suite_create("bad requests");
    TCase *t = tcase_create("codec");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, each_row);
    tcase_add_test(t, cut_anywhere);
    suite_add_tcase(s, t);
    return s;
}
