#include "cases.h"

#include "unit.h"

json_t *cases_load(const char *path)
{
    json_error_t e;
    json_t *list = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
    ck_assert_msg(json_is_array(list), "%s:%d: %s", path, e.line, e.text);
    return list;
}

const char *case_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static unsigned base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);
    ck_assert_msg(c && at, "not base64: %c", c);
    return (unsigned)(at - digits);
}

static void add_base64(struct dd_buf *out, const char *text)
{
    unsigned bits = 0, n = 0;
    for (; *text && *text != '='; text++) {
        bits = bits << 6 | base64_digit(*text);
        n += 6;
        if (n < 8) continue;
        n -= 8;
        dd_buf_add_u8(out, (uint8_t)(bits >> n));
    }
}

static void add_parts(struct dd_buf *out, const json_t *parts)
{
    size_t i;
    json_t *part;
    json_array_foreach(parts, i, part)
    {
        const char *text = json_string_value(json_array_get(part, 0));
        for (json_int_t times = json_integer_value(json_array_get(part, 1)); times > 0; times--)
            dd_buf_add_str(out, text);
    }
}

void case_body(const json_t *request, struct dd_buf *out)
{
    const json_t *body = json_object_get(request, "body"), *parts = json_object_get(request, "body_parts");
    const char *text = case_text(request, "body_text"), *base64 = case_text(request, "body_base64");
    if (json_is_string(body)) text = json_string_value(body);
    if (text) {
        dd_buf_add_str(out, text);
    } else if (base64) {
        add_base64(out, base64);
    } else if (parts) {
        add_parts(out, parts);
    } else if (body) {
        char *made = json_dumps(body, JSON_COMPACT);
        dd_buf_add_str(out, made);
        free(made);
    }
}
