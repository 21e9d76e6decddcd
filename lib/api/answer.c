/* Every reply leaves through dd_api_answer, which counts it. The table below is the one place that says which
 * failure of lib/dedup is which HTTP status, and after how long a retry makes sense. */
#include <stdarg.h>
#include <stdio.h>

#include "api/internal.h"
#include "api/json.h"

static enum dd_status_class class_of(unsigned status)
{
    return status >= 500 ? DD_CLASS_5XX : status >= 400 ? DD_CLASS_4XX : DD_CLASS_2XX;
}

void dd_api_answer(const struct dd_api_origin *o, unsigned status, const char *content_type,
                   struct dd_slice body)
{
    const struct dd_api_metric *m = &o->api->metrics[o->endpoint][class_of(status)];
    int64_t ns = dd_clock_mono(o->api->options.clock).ns - o->start.ns;
    dd_count(m->requests, 1);
    dd_histogram_record(m->seconds, ns / 1000);
    dd_http_reply(o->req, status, content_type, body);
}

void dd_api_answer_error(const struct dd_api_origin *o, const struct dd_api_error *e, unsigned retry_s)
{
    struct dd_buf *out = dd_http_request_scratch(o->req);
    dd_buf_reset(out);
    dd_buf_add_str(out, "{\"error\":{\"code\":");
    dd_json_add_string(out, dd_slice_str(e->code));
    if (*e->field) {
        dd_buf_add_str(out, ",\"field\":");
        dd_json_add_string(out, dd_slice_str(e->field));
    }
    dd_buf_add_str(out, ",\"message\":");
    dd_json_add_string(out, dd_slice_str(e->message));
    dd_buf_add_str(out, "}}");
    char text[16];
    snprintf(text, sizeof text, "%u", retry_s);
    if (retry_s) dd_http_reply_header(o->req, "Retry-After", dd_slice_str(text));
    dd_api_answer(o, (unsigned)e->status, DD_API_JSON,
                  dd_buf_ok(out) ? dd_buf_slice(out) : dd_slice_of(NULL, 0));
}

void dd_api_answer_fail(const struct dd_api_origin *o, unsigned status, const char *code, const char *field,
                        const char *fmt, ...)
{
    struct dd_api_error e = {.status = (int)status, .code = code};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e.message, sizeof e.message, fmt, ap);
    va_end(ap);
    snprintf(e.field, sizeof e.field, "%s", field ? field : "");
    dd_api_answer_error(o, &e, 0);
}

void dd_api_answer_buf(const struct dd_api_origin *o, unsigned status, const char *content_type,
                       const struct dd_buf *body)
{
    if (dd_buf_ok(body))
        dd_api_answer(o, status, content_type, dd_buf_slice(body));
    else
        dd_api_answer_err(o, DD_NO_MEMORY);
}

#define LIMIT_RETRY_S 60

/* Retry times: a queue or a circuit is over in a second; a full disk takes a person; deliveries younger than
 * 60 s are not trimmed, so a user at the cap has room after that. */
static const struct {
    enum dd_err err;
    unsigned status, retry_s;
    const char *message;
} failures[] = {
    {DD_DISK_FULL, 507, 30,
     "the disk is nearly full and exposures are refused; /filter without claim \"exposed\" goes on"},
    {DD_TIMEOUT, 503, 1, "the deadline passed; what was sent may or may not have been recorded"},
    {DD_UNAVAILABLE, 503, 1, "the store or the hot tier is away; nothing was acknowledged"},
    {DD_BUSY, 503, 1, "a queue is full"},
    {DD_NO_MEMORY, 503, 1, "out of memory"},
    {DD_SHUTDOWN, 503, 1, "shutting down"},
    {DD_IO, 503, 1, "the store could not write or read; nothing was acknowledged"},
};

void dd_api_answer_cap(const struct dd_api_origin *o, enum dd_api_cap cap)
{
    static const char *const messages[] = {
        [DD_API_CAP_DELIVERIES] =
            "this user is at the cap of deliveries in this scene: none younger than 60 s is forgotten, and "
            "at most 1000 are kept; nothing was recorded",
        [DD_API_CAP_EXPOSURES] =
            "this user is at a cap of exposures: the scene's cap (items of one period) or "
            "ingest.pending_max (staged ones); nothing was recorded",
    };
    struct dd_api_error e = {.status = 429, .code = dd_err_name(DD_LIMIT)};
    snprintf(e.message, sizeof e.message, "%s", messages[cap]);
    dd_api_answer_error(o, &e, LIMIT_RETRY_S);
}

void dd_api_answer_err(const struct dd_api_origin *o, enum dd_err err)
{
    struct dd_api_error e = {.status = 500, .code = "internal"};
    const char *message = dd_err_text(err);
    unsigned retry_s = 0;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        if (failures[i].err != err) continue;
        e.status = (int)failures[i].status;
        e.code = dd_err_name(err);
        message = failures[i].message;
        retry_s = failures[i].retry_s;
    }
    snprintf(e.message, sizeof e.message, "%s", message);
    dd_api_answer_error(o, &e, retry_s);
}
