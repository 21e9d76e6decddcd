/* POST /admin/checkpoint, POST and GET /admin/verify: the whole store, for operators. */
#include "api/json.h"
#include "api/operator.h"

/* ---- checkpoint ---- */

static void answer_checkpoint(struct dd_api_call *c)
{
    const struct dd_checkpoint_call *x = &c->u.checkpoint;
    struct dd_buf *out = dd_http_request_scratch(c->origin.req);
    dd_buf_reset(out);
    dd_buf_add_str(out, "{\"path\":");
    dd_json_add_string(out, dd_slice_str(x->path));
    dd_buf_addf(out, ",\"flushed\":%s,", x->flush_err == DD_OK ? "true" : "false");
    if (x->flush_err != DD_OK) dd_buf_addf(out, "\"flush_error\":\"%s\",", dd_err_name(x->flush_err));
    if (x->pending_known)
        dd_buf_addf(out, "\"pending\":{\"users\":%llu,\"items\":%llu}}", (unsigned long long)x->pending_users,
                    (unsigned long long)x->pending_items);
    else
        dd_buf_add_str(out, "\"pending\":null}");
    dd_api_answer_buf(&c->origin, 200, DD_API_JSON, out);
}

static void checkpoint_done(void *arg)
{
    struct dd_api_call *c = arg;
    enum dd_err err = c->u.checkpoint.err;
    if (err == DD_OK)
        answer_checkpoint(c);
    else if (err == DD_EXISTS)
        dd_api_answer_fail(&c->origin, 409, "exists", "path", "is there already; name a new directory");
    else if (err == DD_INVALID)
        dd_api_answer_fail(&c->origin, 400, "invalid_field", "path",
                           "is among the store's own files (in data_dir, or db in it); name another place");
    else if (err == DD_IO)
        dd_api_answer_fail(&c->origin, 400, "invalid_field", "path",
                           "no checkpoint could be made there: its parent must exist and be writable for the "
                           "server (the log says more)");
    else
        dd_api_answer_err(&c->origin, err);
    dd_api_call_release(c);
}

/* Into the arena; NULL: answered. */
static const char *read_path(struct dd_api_call *c)
{
    static const char *const allowed[] = {"path", NULL};
    json_t *body = dd_operator_body(&c->origin, allowed);
    if (!body) return NULL;
    const char *path = json_string_value(json_object_get(body, "path")), *copy = NULL;
    if (!path || path[0] != '/' || strlen(path) > 4000) {
        dd_api_answer_fail(&c->origin, 400, path ? "invalid_field" : "missing_field", "path",
                           "must be the absolute path of a new directory on the server's machine");
    } else {
        copy = (const char *)dd_arena_copy(&c->arena, dd_slice_of(path, strlen(path) + 1)).ptr;
        if (!copy) dd_api_answer_err(&c->origin, DD_NO_MEMORY);
    }
    json_decref(body);
    return copy;
}

void dd_api_checkpoint(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_api_call *c = dd_operator_take(al, o);
    if (!c) return;
    const char *path = read_path(c);
    if (!path) {
        dd_api_call_release(c);
        return;
    }
    c->u.checkpoint = (struct dd_checkpoint_call){.path = path, .done = checkpoint_done, .arg = c};
    dd_checkpoint(al->api->options.admin, al->dl, &c->u.checkpoint);
}

/* ---- verification ---- */

static void add_bad(struct dd_buf *out, const struct dd_verify_report *r)
{
    char text[DD_PERIOD_TEXT];
    dd_buf_add_str(out, "\"bad\":[");
    for (unsigned i = 0; i < r->shown; i++) {
        dd_buf_add_str(out, i ? ",{\"user\":" : "{\"user\":");
        dd_json_add_string(out, dd_slice_str(r->bad[i].user));
        dd_buf_add_str(out, ",\"scene\":");
        dd_json_add_string(out, dd_slice_str(r->bad[i].scene));
        dd_buf_addf(out, ",\"period\":\"%s\"}", dd_period_format(r->bad[i].period, text));
    }
    dd_buf_add_u8(out, ']');
}

static void answer_verify(const struct dd_api_origin *o, unsigned status, const struct dd_verify_status *v)
{
    const struct dd_verify_report *r = &v->report;
    struct dd_buf *out = dd_http_request_scratch(o->req);
    dd_buf_reset(out);
    dd_buf_addf(out, "{\"running\":%s,\"quarantine\":%s,\"started_ms\":%lld,\"ended_ms\":%lld,",
                v->running ? "true" : "false", v->quarantine ? "true" : "false", (long long)v->started_ms,
                (long long)v->ended_ms);
    dd_buf_addf(out, "\"result\":\"%s\",\"sets\":%llu,\"sets_estimate\":%llu,\"bytes\":%llu,",
                v->running ? "running" : dd_err_name(v->err), (unsigned long long)r->sets,
                (unsigned long long)v->sets_estimate, (unsigned long long)r->bytes);
    dd_buf_addf(out, "\"corrupt\":%llu,\"damaged\":%llu,\"unreadable\":%llu,\"quarantined\":%llu,",
                (unsigned long long)r->corrupt, (unsigned long long)r->damaged,
                (unsigned long long)r->unreadable, (unsigned long long)r->quarantined);
    add_bad(out, r);
    dd_buf_add_u8(out, '}');
    dd_api_answer_buf(o, status, DD_API_JSON, out);
}

/* false: answered. */
static bool read_quarantine(const struct dd_api_origin *o, bool *quarantine)
{
    static const char *const allowed[] = {"quarantine", NULL};
    json_t *body = dd_operator_body(o, allowed);
    if (!body) return false;
    json_t *value = json_object_get(body, "quarantine");
    bool good = !value || json_is_boolean(value);
    *quarantine = json_is_true(value);
    if (!good) dd_api_answer_fail(o, 400, "invalid_field", "quarantine", "must be true or false");
    json_decref(body);
    return good;
}

void dd_api_verify_start(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_admin *admin = al->api->options.admin;
    struct dd_verify_status v;
    bool quarantine;
    if (!read_quarantine(o, &quarantine)) return;
    enum dd_err err = admin ? dd_verify_start(admin, al->dl, quarantine) : DD_UNAVAILABLE;
    if (err == DD_OK) {
        dd_verify_get(admin, &v);
        answer_verify(o, 202, &v);
    } else if (err == DD_EXISTS) {
        dd_api_answer_fail(o, 409, "exists", NULL, "a verification is running; GET shows how far it is");
    } else {
        dd_api_answer_err(o, err);
    }
}

void dd_api_verify(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_admin *admin = al->api->options.admin;
    struct dd_verify_status v = {0};
    if (admin) dd_verify_get(admin, &v);
    if (v.ever)
        answer_verify(o, 200, &v);
    else
        dd_api_answer_fail(o, 404, "not_found", NULL,
                           "no verification has run since the start; POST starts one");
}
