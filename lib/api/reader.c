#include "api/reader.h"

#include <stdarg.h>
#include <stdio.h>

void dd_reader_init(struct dd_reader *r, const struct dd_codec *c, struct dd_slice body,
                    struct dd_arena *arena, struct dd_api_error *err)
{
    *r = (struct dd_reader){.codec = c, .arena = arena, .err = err, .event = -1, .item = -1};
    *err = (struct dd_api_error){0};
    dd_json_init(&r->json, body, arena);
}

/* ---- failing ---- */

static void put_path(const struct dd_reader *r, char *out, size_t size)
{
    char event[24] = "", item[16] = "";
    const char *field = r->field ? r->field : "";
    if (r->event >= 0) snprintf(event, sizeof event, "events[%d]%s", r->event, *field ? "." : "");
    if (r->item >= 0) snprintf(item, sizeof item, "[%d]", r->item);
    snprintf(out, size, "%s%s%s", event, field, item);
}

bool dd_reader_fail(struct dd_reader *r, const char *code, const char *fmt, ...)
{
    if (r->err->status) return false;
    va_list ap;
    va_start(ap, fmt);
    r->err->status = 400;
    r->err->code = code;
    put_path(r, r->err->field, sizeof r->err->field);
    vsnprintf(r->err->message, sizeof r->err->message, fmt, ap);
    va_end(ap);
    return false;
}

bool dd_reader_fail_json(struct dd_reader *r)
{
    if (!r->json.no_memory)
        return dd_reader_fail(r, "invalid_json", "not valid JSON at byte %zu: %s", dd_json_offset(&r->json),
                              r->json.error);
    dd_reader_fail(r, "no_memory", "out of memory; try again");
    r->err->status = 503;
    return false;
}

bool dd_reader_fail_memory(struct dd_reader *r)
{
    r->json.no_memory = true;
    return dd_reader_fail_json(r);
}

/* The value next is of another type than it must be, or is none. */
bool dd_reader_fail_type(struct dd_reader *r, const char *must)
{
    if (dd_json_peek(&r->json) != DD_JSON_NONE) return dd_reader_fail(r, "invalid_field", "must be %s", must);
    dd_json_fail(&r->json, r->json.at == r->json.end ? "the text ends too early" : "expected a value here");
    return dd_reader_fail_json(r);
}

/* ---- values ---- */

bool dd_read_text(struct dd_reader *r, size_t max, struct dd_slice *out)
{
    struct dd_json_string s;
    if (dd_json_peek(&r->json) != DD_JSON_STRING) return dd_reader_fail_type(r, "a string");
    if (!dd_json_read_string(&r->json, &s)) return dd_reader_fail_json(r);
    if (s.text.len == 0 || s.text.len > max)
        return dd_reader_fail(r, "invalid_field", "must have 1 to %zu bytes, not %zu", max, s.text.len);
    *out = s.text;
    return true;
}

bool dd_read_integer(struct dd_reader *r, int64_t *out)
{
    struct dd_json_number n;
    if (dd_json_peek(&r->json) != DD_JSON_NUMBER) return dd_reader_fail_type(r, "an integer");
    if (!dd_json_read_number(&r->json, &n)) return dd_reader_fail_json(r);
    if (!n.is_integer)
        return dd_reader_fail(r, "invalid_field", "must be an integer, without fraction or exponent");
    if (!n.fits) return dd_reader_fail(r, "invalid_field", "must be an integer of 64 bits with sign");
    *out = n.value;
    return true;
}

bool dd_read_number_in(struct dd_reader *r, unsigned max, unsigned *out)
{
    int64_t v;
    if (!dd_read_integer(r, &v)) return false;
    if (v < 1 || v > max)
        return dd_reader_fail(r, "invalid_field", "must be 1 to %u, not %lld", max, (long long)v);
    *out = (unsigned)v;
    return true;
}

bool dd_read_bool(struct dd_reader *r, bool *out)
{
    enum dd_json_type type = dd_json_peek(&r->json);
    if (type != DD_JSON_TRUE && type != DD_JSON_FALSE) return dd_reader_fail_type(r, "true or false");
    if (!dd_json_read_literal(&r->json, &type)) return dd_reader_fail_json(r);
    *out = type == DD_JSON_TRUE;
    return true;
}
