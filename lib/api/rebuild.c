/* POST and GET /admin/rebuild: filter sets made anew from history. */
#include "api/json.h"
#include "api/operator.h"

typedef unsigned long long ull;

static void add_name(struct dd_buf *out, const char *name, const char *text, unsigned len)
{
    dd_buf_addf(out, "\"%s\":", name);
    if (len)
        dd_json_add_string(out, dd_slice_of(text, len));
    else
        dd_buf_add_str(out, "null");
    dd_buf_add_u8(out, ',');
}

static void answer(const struct dd_api_origin *o, unsigned status, const struct dd_rebuild_status *r)
{
    struct dd_buf *out = dd_http_request_scratch(o->req);
    dd_buf_reset(out);
    dd_buf_addf(out, "{\"running\":%s,\"result\":\"%s\",", r->running ? "true" : "false",
                r->running ? "running" : dd_err_name(r->err));
    add_name(out, "user", r->user, r->user_len);
    add_name(out, "scene", r->scene, r->scene_len);
    dd_buf_addf(out, "\"started_ms\":%lld,\"ended_ms\":%lld,\"total\":%llu,\"done\":%llu,",
                (long long)r->started_ms, (long long)r->ended_ms, (ull)r->total, (ull)r->done);
    dd_buf_addf(out, "\"replaced\":%llu,\"united\":%llu,\"without_history\":%llu,\"left\":%llu,",
                (ull)r->replaced, (ull)r->united, (ull)r->empty, (ull)r->left);
    dd_buf_addf(out, "\"failed\":%llu,\"items\":%llu}", (ull)r->failed, (ull)r->items);
    dd_api_answer_buf(o, status, DD_API_JSON, out);
}

static bool fail(const struct dd_api_origin *o, const char *field, const char *message)
{
    dd_api_answer_fail(o, 400, "invalid_field", field, "%s", message);
    return false;
}

/* The text of a member: empty when it is not there. false: answered. */
static bool read_name(const struct dd_api_origin *o, const json_t *body, const char *name, size_t max,
                      struct dd_slice *out)
{
    const json_t *value = json_object_get(body, name);
    *out = dd_slice_of(json_string_value(value), json_string_length(value));
    if (!value || (json_is_string(value) && out->len >= 1 && out->len <= max)) return true;
    return fail(o, name, "must be a string, not empty and not too long");
}

/* Slices of body. false: answered. */
static bool read_what(const struct dd_api_origin *o, const json_t *body, struct dd_rebuild_what *out)
{
    const json_t *all = json_object_get(body, "all");
    if (!read_name(o, body, "user", DD_USER_MAX_BYTES, &out->user)) return false;
    if (!read_name(o, body, "scene", DD_SCENE_NAME_MAX, &out->scene)) return false;
    if (all && !json_is_boolean(all)) return fail(o, "all", "must be true or false");
    bool one = out->user.len || out->scene.len;
    if (one == json_is_true(all)) return fail(o, "all", "give user, scene or both; or all, as true");
    if (out->scene.len && !dd_scenes_find(o->api->options.scenes, out->scene))
        return fail(o, "scene", "there is no such scene; scenes are made in the configuration");
    return true;
}

static void start(struct dd_api_loop *al, const struct dd_api_origin *o, const struct dd_rebuild_what *what)
{
    struct dd_admin *admin = al->api->options.admin;
    struct dd_rebuild_status r;
    enum dd_err err = admin ? dd_rebuild_start(admin, al->dl, what) : DD_UNAVAILABLE;
    if (err == DD_OK) {
        dd_rebuild_get(admin, &r);
        answer(o, 202, &r);
    } else if (err == DD_EXISTS) {
        dd_api_answer_fail(o, 409, "exists", NULL, "a rebuild is running; GET shows how far it is");
    } else {
        dd_api_answer_err(o, err);
    }
}

void dd_api_rebuild_start(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    static const char *const allowed[] = {"user", "scene", "all", NULL};
    struct dd_rebuild_what what;
    json_t *body = dd_operator_body(o, allowed);
    if (!body) return;
    if (read_what(o, body, &what)) start(al, o, &what);
    json_decref(body);
}

void dd_api_rebuild(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_admin *admin = al->api->options.admin;
    struct dd_rebuild_status r = {0};
    if (admin) dd_rebuild_get(admin, &r);
    if (r.ever)
        answer(o, 200, &r);
    else
        dd_api_answer_fail(o, 404, "not_found", NULL, "no rebuild has run since the start; POST starts one");
}
