/* proto/examples, played in order over HTTP against the model. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "served.h"
#include "suites.h"

/* A string in angle brackets stands for any value. */
static bool matches(const json_t *want, const json_t *got)
{
    const char *text = json_string_value(want), *key;
    json_t *value;
    size_t i;
    if (text && text[0] == '<' && text[strlen(text) - 1] == '>') return got != NULL;
    if (!got || json_typeof(want) != json_typeof(got)) return false;
    if (json_is_object(want)) {
        json_object_foreach((json_t *)want, key,
                            value) if (!matches(value, json_object_get(got, key))) return false;
        return json_object_size(want) == json_object_size(got);
    }
    if (json_is_array(want)) {
        json_array_foreach(want, i, value) if (!matches(value, json_array_get(got, i))) return false;
        return json_array_size(want) == json_array_size(got);
    }
    return json_equal(want, got);
}

static int send_example(struct served *s, const json_t *request)
{
    struct dd_buf body = {0}, headers = {0};
    const char *key;
    json_t *value;
    case_body(request, &body);
    json_object_foreach(json_object_get(request, "headers"), key, value)
        dd_buf_addf(&headers, "%s: %s\r\n", key, json_string_value(value));
    dd_buf_add_u8(&headers, 0);
    int fd = served_send(s, case_text(request, "method"), case_text(request, "path"),
                         (const char *)headers.data, dd_buf_slice(&body));
    dd_buf_free(&body);
    dd_buf_free(&headers);
    return fd;
}

static void check_headers(const char *name, const json_t *headers, const struct reply *r)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)headers, key, value)
    {
        char text[256];
        const char *got = reply_header(r, key, text, sizeof text);
        ck_assert_msg(got && strcmp(got, json_string_value(value)) == 0, "%s: %s: %s", name, key,
                      got ? got : "none");
    }
}

static void play(struct served *s, const json_t *example)
{
    const json_t *response = json_object_get(example, "response"), *body = json_object_get(response, "body");
    const char *name = case_text(example, "name");
    struct reply r;
    json_error_t e;
    served_receive(s, send_example(s, json_object_get(example, "request")), &r);
    ck_assert_msg(r.status == json_integer_value(json_object_get(response, "status")), "%s: %d %s", name,
                  r.status, (const char *)r.body.data);
    check_headers(name, json_object_get(response, "headers"), &r);
    json_t *got = json_loadb((const char *)r.body.data, r.body.len, JSON_REJECT_DUPLICATES, &e);
    ck_assert_msg(!body || matches(body, got), "%s: %.2000s", name, (const char *)r.body.data);
    json_decref(got);
    reply_free(&r);
}

START_TEST(examples)
{
    struct served s;
    struct dirent **files;
    unsigned played = 0;
    int n = scandir(EXAMPLES, &files, NULL, alphasort);
    ck_assert_int_gt(n, 0);
    served_start(&s, DD_API_DATA);
    for (int i = 0; i < n; i++) {
        char path[512];
        snprintf(path, sizeof path, EXAMPLES "/%s", files[i]->d_name);
        json_t *list = strstr(path, ".json") ? cases_load(path) : json_array(), *example;
        size_t k;
        json_array_foreach(list, k, example) play(&s, example);
        played += (unsigned)k;
        json_decref(list);
        free(files[i]);
    }
    free(files);
    served_stop(&s);
    ck_assert_uint_ge(played, 30);
}
END_TEST

Suite *suite_golden(void)
{
    Suite *suite = suite_create("golden");
    TCase *t = tcase_create("proto/examples");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, examples);
    suite_add_tcase(suite, t);
    return suite;
}
