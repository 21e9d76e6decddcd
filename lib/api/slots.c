/* POST /admin/flush and GET /admin/slots: the time wheel, for operators. Where nothing is ever staged
 * (embedded, or without a wheel) every exposure is in the store already, so that a flush has nothing to do
 * and says so. */
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "api/internal.h"
#include "api/json.h"

/* ---- flush ---- */

struct flush {
    struct dd_api_origin origin;
    struct dd_wheel_flush call;
};

static void answer_flush(const struct dd_api_origin *o, const struct dd_wheel_flush *f)
{
    struct dd_buf *out = dd_http_request_scratch(o->req);
    dd_buf_reset(out);
    dd_buf_addf(out, "{\"slots\":%llu,\"users\":%llu,\"items\":%llu}", (unsigned long long)f->slots,
                (unsigned long long)f->users, (unsigned long long)f->items);
    dd_api_answer_buf(o, 200, DD_API_JSON, out);
}

static void flush_done(void *arg)
{
    struct flush *f = arg; /* in the request's memory: gone with the answer */
    struct dd_api *api = f->origin.api;
    if (f->call.err == DD_OK)
        answer_flush(&f->origin, &f->call);
    else
        dd_api_answer_err(&f->origin, f->call.err);
    atomic_fetch_sub_explicit(&api->inflight, 1, memory_order_release);
}

/* The body: none, or an object with nothing but "all". false: answered. */
static bool read_flush(const struct dd_api_origin *o, bool *all)
{
    struct dd_slice body = o->req->body;
    json_error_t e;
    const char *key;
    json_t *value;
    *all = false;
    if (!body.len) return true;
    json_t *v = json_loadb((const char *)body.ptr, body.len, JSON_REJECT_DUPLICATES, &e);
    bool good = json_is_object(v);
    if (!good) dd_api_answer_fail(o, 400, "invalid_json", NULL, "the body must be empty or a JSON object");
    json_object_foreach(v, key, value)
    {
        if (!good) break;
        bool known = strcmp(key, "all") == 0;
        good = known && json_is_boolean(value);
        *all = json_is_true(value);
        if (!known)
            dd_api_answer_fail(o, 400, "unknown_field", key, "there is no such field here; allowed are: all");
        else if (!good)
            dd_api_answer_fail(o, 400, "invalid_field", key, "must be true or false");
    }
    json_decref(v);
    return good;
}

void dd_api_flush(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    const struct dd_api_backend *backend = al->api->options.backend;
    struct dd_wheel *wheel = al->api->options.wheel;
    bool all;
    if (!read_flush(o, &all)) return;
    struct flush *f = dd_http_request_alloc(o->req, sizeof *f);
    if (!f) {
        dd_api_answer_err(o, DD_NO_MEMORY);
        return;
    }
    *f = (struct flush){.origin = *o};
    f->call = (struct dd_wheel_flush){
        .all = all, .loop = dd_http_request_loop(o->req), .done = flush_done, .arg = f};
    enum dd_err err = wheel ? backend->flush(wheel, &f->call) : DD_UNSUPPORTED;
    if (err == DD_PENDING)
        atomic_fetch_add_explicit(&al->api->inflight, 1, memory_order_relaxed);
    else if (err == DD_UNSUPPORTED)
        answer_flush(o, &f->call);
    else
        dd_api_answer_err(o, err);
}

/* ---- slots ---- */

static void add_slot(struct dd_buf *out, const struct dd_wheel_slot_info *s, int64_t now_s)
{
    static const char *const states[] = {[DD_SLOT_OPEN] = "open",
                                         [DD_SLOT_SEALED] = "sealed",
                                         [DD_SLOT_FLUSHING] = "flushing",
                                         [DD_SLOT_RETRYING] = "retrying"};
    char text[32] = "";
    time_t start = (time_t)s->slot.start_s;
    struct tm tm;
    if (gmtime_r(&start, &tm)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    dd_buf_addf(out, "{\"slot\":\"%s\",\"start_s\":%lld,\"end_s\":%lld,\"state\":\"%s\",", text,
                (long long)s->slot.start_s, (long long)s->slot.end_s, states[s->state]);
    dd_buf_addf(out, "\"users\":%llu,\"age_s\":%lld,\"last_error\":", (unsigned long long)s->users,
                (long long)(now_s - s->slot.start_s));
    dd_json_add_string(out, dd_slice_str(s->last_error));
    dd_buf_add_u8(out, '}');
}

void dd_api_slots(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    const struct dd_api *a = al->api;
    struct dd_wheel_slot_info *slots = dd_http_request_alloc(o->req, DD_WHEEL_SLOTS_SHOWN * sizeof *slots);
    if (!slots) {
        dd_api_answer_err(o, DD_NO_MEMORY);
        return;
    }
    unsigned n = 0;
    if (a->options.wheel) n = a->options.backend->slots(a->options.wheel, slots, DD_WHEEL_SLOTS_SHOWN);
    struct dd_buf *out = dd_http_request_scratch(o->req);
    dd_buf_reset(out);
    dd_buf_add_str(out, "{\"slots\":[");
    for (unsigned i = 0; i < n; i++) {
        if (i) dd_buf_add_u8(out, ',');
        add_slot(out, &slots[i], dd_clock_wall(a->options.clock).ms / 1000);
    }
    dd_buf_add_str(out, "]}");
    dd_api_answer_buf(o, 200, DD_API_JSON, out);
}
