/* PUT, GET and DELETE /users/{user}/trace: what one user was shown, in plain text. */
#include "api/json.h"
#include "api/operator.h"

#define DAYS_DEFAULT  7
#define LIMIT_DEFAULT 100

static struct dd_buf *scratch(struct dd_api_call *c)
{
    struct dd_buf *out = dd_http_request_scratch(c->origin.req);
    dd_buf_reset(out);
    return out;
}

static void answer(struct dd_api_call *c, const struct dd_buf *out)
{
    dd_api_answer_buf(&c->origin, 200, DD_API_JSON, out);
    dd_api_call_release(c);
}

/* true: it failed and has been answered. */
static bool answer_failed(struct dd_api_call *c)
{
    enum dd_err err = c->u.trace.err;
    if (err == DD_OK) return false;
    if (err == DD_NOT_FOUND)
        dd_api_answer_fail(&c->origin, 404, "not_found", NULL, "this user is not traced");
    else if (err == DD_LIMIT)
        dd_api_answer_fail(&c->origin, 409, "limit", NULL, "%d users are traced already; stop one first",
                           DD_TRACE_USERS_MAX);
    else
        dd_api_answer_err(&c->origin, err);
    dd_api_call_release(c);
    return true;
}

void dd_api_add_trace(struct dd_buf *out, const struct dd_trace_state *t)
{
    if (t->scene[0])
        dd_buf_addf(out, "\"scene\":\"%s\",", t->scene);
    else
        dd_buf_add_str(out, "\"scene\":null,");
    dd_buf_addf(out, "\"days\":%u,\"max_entries\":%u,\"started_ms\":%lld,\"until_ms\":%lld,", t->days,
                t->max_entries, (long long)t->started_ms, (long long)t->until_ms);
    dd_buf_addf(out, "\"active\":%s,\"entries\":%llu", t->active ? "true" : "false",
                (unsigned long long)t->entries);
}

static void add_user(struct dd_buf *out, const struct dd_trace_call *x)
{
    dd_buf_add_str(out, "{\"user\":");
    dd_json_add_string(out, x->user);
    dd_buf_add_u8(out, ',');
}

/* A call with user and scene; NULL: answered. */
static struct dd_api_call *take(struct dd_api_loop *al, const struct dd_api_origin *o, unsigned allowed,
                                struct dd_operator_params *p)
{
    struct dd_api_call *c = dd_operator_take(al, o);
    if (!c || !dd_operator_params(c, allowed, p)) return NULL;
    if (!p->scene_name.len || p->scene) return c;
    dd_operator_no_scene(c);
    return NULL;
}

static void start(struct dd_api_loop *al, struct dd_api_call *c, const struct dd_operator_params *p,
                  enum dd_trace_verb verb, void (*done)(void *arg))
{
    c->u.trace.verb = verb;
    c->u.trace.user = p->user;
    c->u.trace.scene = p->scene_name;
    c->u.trace.arena = &c->arena;
    c->u.trace.done = done;
    c->u.trace.arg = c;
    dd_trace_call(al->api->options.admin, al->dl, &c->u.trace);
}

/* ---- PUT ---- */

static void start_done(void *arg)
{
    struct dd_api_call *c = arg;
    if (answer_failed(c)) return;
    struct dd_buf *out = scratch(c);
    add_user(out, &c->u.trace);
    dd_api_add_trace(out, &c->u.trace.state);
    dd_buf_add_u8(out, '}');
    answer(c, out);
}

/* 0: answered. */
static unsigned read_days(const struct dd_api_origin *o)
{
    static const char *const allowed[] = {"days", NULL};
    json_t *body = dd_operator_body(o, allowed);
    if (!body) return 0;
    const json_t *value = json_object_get(body, "days");
    json_int_t days = value ? json_integer_value(value) : DAYS_DEFAULT;
    json_decref(body);
    if (days >= 1 && days <= DD_TRACE_DAYS_MAX) return (unsigned)days;
    dd_api_answer_fail(o, 400, "invalid_field", "days", "must be a number from 1 to %d", DD_TRACE_DAYS_MAX);
    return 0;
}

void dd_api_trace_start(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_operator_params p;
    struct dd_api_call *c = take(al, o, DD_PARAM_SCENE, &p);
    if (!c) return;
    c->u.trace = (struct dd_trace_call){.days = read_days(o)};
    if (c->u.trace.days)
        start(al, c, &p, DD_TRACE_START, start_done);
    else
        dd_api_call_release(c);
}

/* ---- GET ---- */

static void add_cursor(struct dd_buf *out, struct dd_slice cursor)
{
    dd_buf_add_u8(out, '"');
    for (size_t i = 0; i < cursor.len; i++)
        dd_buf_addf(out, "%02x", cursor.ptr[i]);
    dd_buf_add_u8(out, '"');
}

static void add_entry(struct dd_buf *out, const struct dd_trace_entry *e)
{
    dd_buf_addf(out, "{\"at_ms\":%lld,\"ts_ms\":%lld,\"what\":\"%s\",\"source\":\"%s\",\"scene\":",
                (long long)e->at_ms, (long long)e->ts_ms,
                e->what == DD_TRACE_EXPOSED ? "exposed" : "delivered",
                e->source == DD_TRACE_BY_CLAIM ? "claim" : "request");
    dd_json_add_string(out, e->scene);
    dd_buf_add_str(out, ",\"item\":");
    dd_json_add_string(out, e->item);
    dd_buf_add_u8(out, '}');
}

static void show_done(void *arg)
{
    struct dd_api_call *c = arg;
    const struct dd_trace_call *x = &c->u.trace;
    if (answer_failed(c)) return;
    struct dd_buf *out = scratch(c);
    add_user(out, x);
    dd_api_add_trace(out, &x->state);
    dd_buf_add_str(out, ",\"items\":[");
    for (unsigned i = 0; i < x->n; i++) {
        if (i) dd_buf_add_u8(out, ',');
        add_entry(out, &x->entry[i]);
    }
    dd_buf_add_str(out, "],\"next\":");
    if (x->more)
        add_cursor(out, x->entry[x->n - 1].cursor);
    else
        dd_buf_add_str(out, "null");
    dd_buf_add_u8(out, '}');
    answer(c, out);
}

static int digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* false: not what add_cursor writes. */
static bool read_cursor(struct dd_slice text, uint8_t out[DD_TRACE_CURSOR_BYTES])
{
    if (text.len != 2 * DD_TRACE_CURSOR_BYTES) return false;
    for (size_t i = 0; i < DD_TRACE_CURSOR_BYTES; i++) {
        int high = digit(text.ptr[2 * i]), low = digit(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void dd_api_trace_show(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_operator_params p;
    uint8_t cursor[DD_TRACE_CURSOR_BYTES];
    struct dd_api_call *c = take(al, o, DD_PARAM_SCENE | DD_PARAM_PAGE, &p);
    if (!c) return;
    c->u.trace = (struct dd_trace_call){.limit = p.limit ? p.limit : LIMIT_DEFAULT};
    if (p.before.len && !read_cursor(p.before, cursor)) {
        dd_api_answer_fail(o, 400, "invalid_field", "before", "must be the \"next\" of an earlier answer");
        dd_api_call_release(c);
        return;
    }
    if (p.before.len) c->u.trace.before = dd_arena_copy(&c->arena, dd_slice_of(cursor, sizeof cursor));
    start(al, c, &p, DD_TRACE_SHOW, show_done);
}

/* ---- DELETE ---- */

static void stop_done(void *arg)
{
    struct dd_api_call *c = arg;
    if (answer_failed(c)) return;
    struct dd_buf *out = scratch(c);
    add_user(out, &c->u.trace);
    dd_buf_addf(out, "\"removed\":%llu}", (unsigned long long)c->u.trace.removed);
    answer(c, out);
}

void dd_api_trace_stop(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_operator_params p;
    struct dd_api_call *c = take(al, o, 0, &p);
    if (!c) return;
    c->u.trace = (struct dd_trace_call){0};
    start(al, c, &p, DD_TRACE_STOP, stop_done);
}
