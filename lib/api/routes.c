/* From path and method to the endpoint. Paths are compared as they were sent: the few there are need no
 * decoding, and an encoded form of one is a 404 like any other unknown path. A name in braces stands for one
 * segment, which its endpoint decodes. */
#include <strings.h>

#include "api/internal.h"

struct route {
    const char *path;
    enum dd_http_method method; /* GET stands for HEAD too */
    unsigned listeners;         /* of enum dd_api_listener */
    enum dd_endpoint endpoint;
    void (*run)(struct dd_api_loop *al, const struct dd_api_origin *o);
    unsigned roles; /* that may call it, of enum dd_auth_role, or DD_API_OPEN; admin always may */
};

#define BOTH (DD_API_DATA | DD_API_ADMIN)

static const struct route routes[] = {
    {"/filter", DD_HTTP_POST, DD_API_DATA, DD_ENDPOINT_FILTER, dd_api_filter, DD_AUTH_DATA},
    {"/exposed", DD_HTTP_POST, DD_API_DATA, DD_ENDPOINT_EXPOSED, dd_api_exposed, DD_AUTH_DATA},
    {"/delivered", DD_HTTP_POST, DD_API_DATA, DD_ENDPOINT_DELIVERED, dd_api_delivered, DD_AUTH_DATA},
    {"/forget", DD_HTTP_POST, DD_API_DATA, DD_ENDPOINT_FORGET, dd_api_forget, DD_AUTH_DATA},
    {"/health", DD_HTTP_GET, BOTH, DD_ENDPOINT_HEALTH, dd_api_health, DD_AUTH_DATA | DD_AUTH_OPS},
    {"/health/live", DD_HTTP_GET, BOTH, DD_ENDPOINT_HEALTH, dd_api_health_live, DD_API_OPEN},
    {"/health/ready", DD_HTTP_GET, BOTH, DD_ENDPOINT_HEALTH, dd_api_health_ready, DD_API_OPEN},
    {"/stats", DD_HTTP_GET, BOTH, DD_ENDPOINT_STATS, dd_api_stats, DD_AUTH_OPS},
    {"/metrics", DD_HTTP_GET, BOTH, DD_ENDPOINT_METRICS, dd_api_metrics, DD_AUTH_OPS},
    {"/admin/flush", DD_HTTP_POST, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_flush, DD_AUTH_OPS},
    {"/admin/slots", DD_HTTP_GET, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_slots, DD_AUTH_OPS},
    {"/admin/checkpoint", DD_HTTP_POST, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_checkpoint, DD_AUTH_OPS},
    {"/admin/verify", DD_HTTP_POST, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_verify_start, DD_AUTH_OPS},
    {"/admin/verify", DD_HTTP_GET, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_verify, DD_AUTH_OPS},
    {"/admin/migration", DD_HTTP_GET, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_migration, DD_AUTH_OPS},
    {"/admin/migration", DD_HTTP_POST, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_migration_order, DD_AUTH_OPS},
    {"/admin/migration/verify", DD_HTTP_POST, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_migration_verify,
     DD_AUTH_ADMIN},
    {"/users/{user}", DD_HTTP_GET, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_user, DD_AUTH_ADMIN},
    {"/users/{user}", DD_HTTP_DELETE, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_user_erase, DD_AUTH_ADMIN},
    {"/users/{user}/trace", DD_HTTP_GET, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_trace_show, DD_AUTH_ADMIN},
    {"/users/{user}/trace", DD_HTTP_PUT, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_trace_start, DD_AUTH_ADMIN},
    {"/users/{user}/trace", DD_HTTP_DELETE, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_trace_stop,
     DD_AUTH_ADMIN},
    {"/admin/rebuild", DD_HTTP_POST, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_rebuild_start, DD_AUTH_ADMIN},
    {"/admin/rebuild", DD_HTTP_GET, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_rebuild, DD_AUTH_ADMIN},
    {"/users/{user}/filter", DD_HTTP_GET, DD_API_ADMIN, DD_ENDPOINT_ADMIN, dd_api_user_filter, DD_AUTH_ADMIN},
};

#define ROUTES (sizeof routes / sizeof *routes)

/* Of the template and of the path: the first segment, taken off both. */
static bool segment_matches(struct dd_slice *template, struct dd_slice *path)
{
    struct dd_slice want, got;
    bool more = dd_http_next_segment(template, &want), also = dd_http_next_segment(path, &got);
    if (!more || !also) return false;
    return want.len && want.ptr[0] == '{' ? got.len > 0 : dd_slice_eq(want, got);
}

static bool path_matches(const struct route *r, const struct dd_api_loop *al, struct dd_slice path)
{
    struct dd_slice template = dd_slice_str(r->path);
    if (!(r->listeners & al->listener)) return false;
    while (template.len && path.len)
        if (!segment_matches(&template, &path)) return false;
    return template.len == path.len;
}

static bool method_matches(const struct route *r, enum dd_http_method method)
{
    return r->method == method || (r->method == DD_HTTP_GET && method == DD_HTTP_HEAD);
}

/* NULL: none; *other is then a route of that path for another method, if there is one. */
static const struct route *find(const struct dd_api_loop *al, const struct dd_http_request *req,
                                const struct route **other)
{
    for (size_t i = 0; i < ROUTES; i++) {
        if (!path_matches(&routes[i], al, req->path)) continue;
        if (method_matches(&routes[i], req->method)) return &routes[i];
        *other = &routes[i];
    }
    return NULL;
}

/* The methods that the path takes, as "GET, HEAD, DELETE". */
static void list_methods(const struct dd_api_origin *o, const struct dd_api_loop *al, struct dd_buf *out)
{
    static const char *const names[] = {[DD_HTTP_GET] = "GET, HEAD",
                                        [DD_HTTP_POST] = "POST",
                                        [DD_HTTP_PUT] = "PUT",
                                        [DD_HTTP_DELETE] = "DELETE"};
    dd_buf_reset(out);
    for (size_t i = 0; i < ROUTES; i++) {
        if (!path_matches(&routes[i], al, o->req->path)) continue;
        if (out->len) dd_buf_add_str(out, ", ");
        dd_buf_add_str(out, names[routes[i].method]);
    }
}

static void answer_no_route(struct dd_api_origin *o, const struct dd_api_loop *al, const struct route *other)
{
    if (!other) {
        dd_api_answer_fail(o, 404, "not_found", NULL, "there is no such path on this listener");
        return;
    }
    struct dd_buf allow = {0};
    list_methods(o, al, &allow);
    o->endpoint = other->endpoint;
    dd_http_reply_header(o->req, "Allow", dd_buf_slice(&allow));
    dd_api_answer_fail(o, 405, "method_not_allowed", NULL, "%s takes %.*s", other->path, (int)allow.len,
                       allow.len ? (const char *)allow.data : "");
    dd_buf_free(&allow);
}

/* ---- content type ---- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* What stands before the separator, without blanks around it; takes it off *rest. */
static struct dd_slice take_part(struct dd_slice *rest, uint8_t separator)
{
    const uint8_t *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    struct dd_slice part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t taken = part.len + (end ? 1 : 0);
    *rest = dd_slice_of(rest->ptr + taken, rest->len - taken);
    while (part.len && is_blank(part.ptr[0])) {
        part.ptr++;
        part.len--;
    }
    while (part.len && is_blank(part.ptr[part.len - 1]))
        part.len--;
    return part;
}

static bool is_word(struct dd_slice text, const char *word)
{
    return text.len == strlen(word) && strncasecmp((const char *)text.ptr, word, text.len) == 0;
}

/* Absent, or application/json with any parameters, of which a charset must be UTF-8. */
static bool is_json(struct dd_slice type)
{
    if (!type.ptr) return true;
    if (!is_word(take_part(&type, ';'), "application/json")) return false;
    while (type.len) {
        struct dd_slice value = take_part(&type, ';'), name = take_part(&value, '=');
        if (!is_word(name, "charset")) continue;
        if (!is_word(value, "utf-8") && !is_word(value, "\"utf-8\"")) return false;
    }
    return true;
}

void dd_api_handle(void *ctx, struct dd_http_request *req)
{
    struct dd_api_loop *al = ctx;
    struct dd_api_origin o = {.api = al->api,
                              .req = req,
                              .endpoint = DD_ENDPOINT_OTHER,
                              .start = dd_clock_mono(al->api->options.clock)};
    const struct route *other = NULL, *r = find(al, req, &other);
    const struct route *near = r ? r : other;
    if (!dd_api_admit(&o, near ? near->roles : DD_API_ANYBODY)) return;
    if (!r) {
        answer_no_route(&o, al, other);
        return;
    }
    o.endpoint = r->endpoint;
    bool has_body = r->method == DD_HTTP_POST || r->method == DD_HTTP_PUT;
    if (has_body && !is_json(dd_http_request_header(req, "content-type"))) {
        dd_api_answer_fail(&o, 415, "unsupported_media_type", NULL, "send application/json in UTF-8");
        return;
    }
    r->run(al, &o);
}
