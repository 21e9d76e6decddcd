#include "api/operator.h"

struct dd_api_call *dd_operator_take(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    if (!al->api->options.admin) {
        dd_api_answer_err(o, DD_UNAVAILABLE);
        return NULL;
    }
    struct dd_api_call *c = dd_api_call_take(al, o);
    if (!c) dd_api_answer_err(o, DD_NO_MEMORY);
    return c;
}

void dd_operator_no_scene(struct dd_api_call *c)
{
    dd_api_answer_fail(&c->origin, 400, "invalid_field", "scene",
                       "there is no such scene; scenes are made in the configuration");
    dd_api_call_release(c);
}

typedef enum dd_err (*decoder)(struct dd_slice raw, struct dd_buf *out);

/* Decodes into the arena. DD_INVALID: a broken escape. */
static enum dd_err decode(struct dd_api_call *c, decoder with, struct dd_slice raw, struct dd_slice *out)
{
    struct dd_buf text = {0};
    enum dd_err err = with(raw, &text);
    *out = dd_arena_copy(&c->arena, dd_buf_slice(&text));
    if (err == DD_OK && out->len != text.len) err = DD_NO_MEMORY;
    dd_buf_free(&text);
    return err;
}

static bool fail(struct dd_api_call *c, enum dd_err err, const char *field, const char *message)
{
    if (err == DD_NO_MEMORY)
        dd_api_answer_err(&c->origin, err);
    else
        dd_api_answer_fail(&c->origin, 400, "invalid_field", field, "%s", message);
    dd_api_call_release(c);
    return false;
}

static bool read_user(struct dd_api_call *c, struct dd_operator_params *out)
{
    struct dd_slice path = c->origin.req->path, segment;
    bool there = dd_http_next_segment(&path, &segment); /* "users" */
    there = there && dd_http_next_segment(&path, &segment);
    enum dd_err err = there ? decode(c, dd_http_decode_segment, segment, &out->user) : DD_INVALID;
    if (err != DD_OK) return fail(c, err, "user", "is not percent-encoded as it should be");
    if (out->user.len >= 1 && out->user.len <= DD_USER_MAX_BYTES) return true;
    return fail(c, DD_INVALID, "user", "must have 1 to 128 bytes");
}

static bool read_scene(struct dd_api_call *c, struct dd_slice raw, struct dd_operator_params *out)
{
    enum dd_err err = decode(c, dd_http_decode_param, raw, &out->scene_name);
    if (err != DD_OK) return fail(c, err, "scene", "is not percent-encoded as it should be");
    if (out->scene_name.len) out->scene = dd_scenes_find(c->al->api->options.scenes, out->scene_name);
    return out->scene_name.len || fail(c, DD_INVALID, "scene", "must not be empty");
}

static bool read_period(struct dd_api_call *c, struct dd_slice raw, struct dd_operator_params *out)
{
    struct dd_slice text;
    enum dd_err err = decode(c, dd_http_decode_param, raw, &text);
    if (err == DD_OK) err = dd_period_parse(text, &out->period);
    out->has_period = true;
    return err == DD_OK ||
           fail(c, err, "period", "must be like 2026-11, 2026-Q4, 2026-W48, 2026-11-30 or forever");
}

static bool read_limit(struct dd_api_call *c, struct dd_slice value, struct dd_operator_params *out)
{
    unsigned n = 0;
    for (size_t i = 0; i < value.len; i++) {
        unsigned digit = value.ptr[i] - (unsigned)'0';
        n = digit <= 9 && i < 4 ? 10 * n + digit : 10000;
        if (n == 10000) break;
    }
    out->limit = n;
    return (n >= 1 && n <= 1000) || fail(c, DD_INVALID, "limit", "must be a number from 1 to 1000");
}

static bool read_page_param(struct dd_api_call *c, struct dd_slice name, struct dd_slice value,
                            struct dd_operator_params *out, bool *taken)
{
    *taken = true;
    if (dd_slice_eq(name, dd_slice_str("limit")))
        return out->limit ? fail(c, DD_INVALID, "limit", "stands twice") : read_limit(c, value, out);
    if (dd_slice_eq(name, dd_slice_str("before"))) {
        out->before = value;
        return true;
    }
    *taken = false;
    return true;
}

static bool read_param(struct dd_api_call *c, unsigned allowed, struct dd_slice name, struct dd_slice value,
                       struct dd_operator_params *out)
{
    if ((allowed & DD_PARAM_SCENE) && dd_slice_eq(name, dd_slice_str("scene")))
        return out->scene_name.len ? fail(c, DD_INVALID, "scene", "stands twice") : read_scene(c, value, out);
    if ((allowed & DD_PARAM_PERIOD) && dd_slice_eq(name, dd_slice_str("period")))
        return out->has_period ? fail(c, DD_INVALID, "period", "stands twice") : read_period(c, value, out);
    if ((allowed & DD_PARAM_LEGACY) && dd_slice_eq(name, dd_slice_str("legacy"))) {
        out->legacy = dd_slice_eq(value, dd_slice_str("delete"));
        return out->legacy || fail(c, DD_INVALID, "legacy", "can only be delete");
    }
    bool taken = false;
    if ((allowed & DD_PARAM_PAGE) && !read_page_param(c, name, value, out, &taken)) return false;
    if (taken) return true;
    dd_api_answer_fail(
        &c->origin, 400, "unknown_field", NULL, "there is no such parameter; allowed are: scene%s%s",
        allowed & DD_PARAM_PERIOD ? ", period" : "", allowed & DD_PARAM_PAGE ? ", limit, before" : "");
    dd_api_call_release(c);
    return false;
}

bool dd_operator_params(struct dd_api_call *c, unsigned allowed, struct dd_operator_params *out)
{
    struct dd_slice query = c->origin.req->query, name, value;
    *out = (struct dd_operator_params){0};
    if (!read_user(c, out)) return false;
    while (dd_http_next_param(&query, &name, &value))
        if (!read_param(c, allowed, name, value, out)) return false;
    return true;
}

static const char *unknown_member(json_t *object, const char *const *allowed)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        const char *const *a = allowed;
        while (*a && strcmp(*a, key) != 0)
            a++;
        if (!*a) return key;
    }
    return NULL;
}

json_t *dd_operator_body(const struct dd_api_origin *o, const char *const *allowed)
{
    struct dd_slice body = o->req->body;
    json_error_t e;
    json_t *v = body.len ? json_loadb((const char *)body.ptr, body.len, JSON_REJECT_DUPLICATES, &e)
                         : json_object();
    const char *unknown = json_is_object(v) ? unknown_member(v, allowed) : NULL;
    if (json_is_object(v) && !unknown) return v;
    if (unknown)
        dd_api_answer_fail(o, 400, "unknown_field", unknown, "there is no such field here");
    else
        dd_api_answer_fail(o, 400, "invalid_json", NULL, "the body must be a JSON object in UTF-8");
    json_decref(v);
    return NULL;
}
