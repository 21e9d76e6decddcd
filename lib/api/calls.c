/* POST /exposed, /filter and /delivered: read the body, start the call, format its answer.
 *
 * The reply is sent in `done`; the memory goes back in `finished`. Answers are formatted by hand into the
 * request's scratch buffer: an item's `echo` is already JSON, so an answer is little more than a copy. */
#include <stdio.h>

#include "api/internal.h"

static void finished(void *arg)
{
    dd_api_call_release(arg);
}

/* A call for the request; NULL: answered already. */
static struct dd_api_call *take(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_api_call *c = dd_api_call_take(al, o);
    if (!c) dd_api_answer_err(o, DD_NO_MEMORY);
    return c;
}

/* The body was refused. */
static void refuse(struct dd_api_call *c, enum dd_err err, const struct dd_api_error *e)
{
    dd_api_answer_error(&c->origin, e, err == DD_NO_MEMORY ? 1 : 0);
    dd_api_call_release(c);
}

static struct dd_buf *scratch(struct dd_api_call *c)
{
    struct dd_buf *out = dd_http_request_scratch(c->origin.req);
    dd_buf_reset(out);
    return out;
}

static void send(struct dd_api_call *c, const struct dd_buf *out)
{
    dd_api_answer_buf(&c->origin, 200, DD_API_JSON, out);
}

static void answer_failed(struct dd_api_call *c, enum dd_err err, enum dd_api_cap cap)
{
    if (err == DD_LIMIT)
        dd_api_answer_cap(&c->origin, cap);
    else
        dd_api_answer_err(&c->origin, err);
}

static void add_durability(struct dd_buf *out, enum dd_durability d)
{
    dd_buf_add_str(out, "\"durability\":\"");
    dd_buf_add_str(out, dd_durability_name(d));
    dd_buf_add_u8(out, '"');
}

/* ---- exposed ---- */

/* An event time too far ahead: the one thing that only lib/dedup, which has the clock, can refuse. */
static void refuse_time(struct dd_api_call *c)
{
    char field[32];
    snprintf(field, sizeof field, c->batch ? "events[%u].ts" : "ts", c->u.exposed.bad_event);
    dd_api_answer_fail(&c->origin, 400, "invalid_field", field,
                       "is too far in the future by the server's clock; nothing was written");
}

/* The events of a batch that hit a cap; the others were taken. */
static void add_rejected(struct dd_buf *out, const struct dd_exposed_call *x)
{
    bool first = true;
    dd_buf_add_str(out, ",\"rejected\":[");
    for (unsigned i = 0; i < x->n; i++) {
        if (x->events[i].result == DD_OK || x->events[i].result == DD_EXPIRED) continue;
        dd_buf_add_str(out, first ? "{\"event\":" : ",{\"event\":");
        dd_buf_add_i64(out, i);
        dd_buf_add_str(out, ",\"code\":\"");
        dd_buf_add_str(out, dd_err_name(x->events[i].result));
        dd_buf_add_str(out, "\"}");
        first = false;
    }
    dd_buf_add_u8(out, ']');
}

static void exposed_done(void *arg)
{
    struct dd_api_call *c = arg;
    const struct dd_exposed_call *x = &c->u.exposed;
    if (x->err == DD_INVALID) {
        refuse_time(c);
        return;
    }
    /* Nothing was taken at all: a status says that louder than a list. */
    bool nothing = x->err == DD_OK && x->limited && !x->accepted && !x->expired;
    if (x->err != DD_OK || nothing) {
        answer_failed(c, nothing ? DD_LIMIT : x->err, DD_API_CAP_EXPOSURES);
        return;
    }
    struct dd_buf *out = scratch(c);
    dd_buf_add_str(out, "{\"accepted\":");
    dd_buf_add_i64(out, x->accepted);
    dd_buf_add_u8(out, ',');
    add_durability(out, x->durability);
    if (x->expired) {
        dd_buf_add_str(out, ",\"expired\":");
        dd_buf_add_i64(out, x->expired);
    }
    if (x->limited) add_rejected(out, x);
    dd_buf_add_u8(out, '}');
    send(c, out);
}

void dd_api_exposed(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_api_error e;
    struct dd_api_call *c = take(al, o);
    if (!c) return;
    enum dd_err err = dd_codec_exposed(&al->api->codec, o->req->body, &c->arena, &c->u.exposed, &c->batch,
                                       &e);
    if (err != DD_OK) {
        refuse(c, err, &e);
        return;
    }
    c->u.exposed.done = exposed_done;
    c->u.exposed.finished = finished;
    c->u.exposed.arg = c;
    al->api->options.backend->exposed(al->dl, &c->u.exposed);
}

/* ---- filter ---- */

static void add_reason(struct dd_buf *out, const struct dd_filter_call *f, uint8_t reason)
{
    char period[DD_PERIOD_TEXT];
    struct dd_period p = f->newest;
    switch (reason) {
    case DD_REASON_REPEAT:
        dd_buf_add_str(out, "repeat");
        return;
    case DD_REASON_DELIVERED:
        dd_buf_add_str(out, "delivered");
        return;
    case DD_REASON_PENDING:
        dd_buf_add_str(out, "pending");
        return;
    case DD_REASON_LEGACY:
        dd_buf_add_str(out, "legacy");
        return;
    default:
        p.ordinal -= reason - DD_REASON_PERIOD;
        dd_buf_add_str(out, dd_period_format(p, period));
    }
}

static void add_explain(struct dd_buf *out, const struct dd_filter_call *f)
{
    bool first = true;
    dd_buf_add_str(out, ",\"explain\":[");
    for (unsigned i = 0; i < f->n; i++) {
        if (f->reason[i] == DD_REASON_UNSEEN) continue;
        dd_buf_add_str(out, first ? "{\"item\":" : ",{\"item\":");
        dd_buf_add_slice(out, f->items[i].echo);
        dd_buf_add_str(out, ",\"reason\":\"");
        add_reason(out, f, f->reason[i]);
        dd_buf_add_str(out, "\"}");
        first = false;
    }
    dd_buf_add_u8(out, ']');
}

/* The chosen items with commas between them. Neighbours in the request that stay neighbours, as most do, are
 * copied in one piece with the commas that the request has. */
static void add_chosen(struct dd_buf *out, const struct dd_filter_call *f)
{
    for (unsigned i = 0, next; i < f->chosen_n; i = next) {
        struct dd_slice run = f->items[f->chosen[i]].echo;
        for (next = i + 1; next < f->chosen_n; next++) {
            struct dd_slice echo = f->items[f->chosen[next]].echo;
            if (echo.ptr != run.ptr + run.len + 1 || run.ptr[run.len] != ',') break;
            run.len += 1 + echo.len;
        }
        if (i) dd_buf_add_u8(out, ',');
        dd_buf_add_slice(out, run);
    }
}

static void filter_done(void *arg)
{
    struct dd_api_call *c = arg;
    const struct dd_filter_call *f = &c->u.filter;
    if (f->err != DD_OK) {
        answer_failed(c, f->err, DD_API_CAP_DELIVERIES);
        return;
    }
    struct dd_buf *out = scratch(c);
    dd_buf_add_str(out, "{\"items\":[");
    add_chosen(out, f);
    dd_buf_add_str(out, "],\"filtered\":");
    dd_buf_add_i64(out, f->filtered);
    dd_buf_add_str(out, f->partial ? ",\"history\":\"partial\"" : ",\"history\":\"full\"");
    if (f->claim == DD_CLAIM_EXPOSED && f->chosen_n) {
        dd_buf_add_u8(out, ',');
        add_durability(out, f->durability);
    }
    if (f->explain) add_explain(out, f);
    dd_buf_add_u8(out, '}');
    send(c, out);
}

void dd_api_filter(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_api_error e;
    struct dd_api_call *c = take(al, o);
    if (!c) return;
    struct dd_filter_call *f = &c->u.filter;
    enum dd_err err = dd_codec_filter(&al->api->codec, o->req->body, &c->arena, f, &e);
    if (err != DD_OK) {
        refuse(c, err, &e);
        return;
    }
    f->done = filter_done;
    f->finished = finished;
    f->arg = c;
    if (f->n) {
        al->api->options.backend->filter(al->dl, f);
        return;
    }
    filter_done(c); /* no candidates: nothing to ask, and the answer is whole */
    finished(c);
}

/* ---- delivered ---- */

static void add_items(struct dd_buf *out, const struct dd_delivered_call *d, bool won)
{
    bool first = true;
    for (unsigned i = 0; i < d->n; i++) {
        if (!d->won[i] == won) continue;
        if (!first) dd_buf_add_u8(out, ',');
        dd_buf_add_slice(out, d->items[i].echo);
        first = false;
    }
}

static void delivered_done(void *arg)
{
    struct dd_api_call *c = arg;
    const struct dd_delivered_call *d = &c->u.delivered;
    if (d->err != DD_OK) {
        answer_failed(c, d->err, DD_API_CAP_DELIVERIES);
        return;
    }
    struct dd_buf *out = scratch(c);
    dd_buf_add_str(out, "{\"accepted\":[");
    add_items(out, d, true);
    dd_buf_add_str(out, "],\"duplicate\":[");
    add_items(out, d, false);
    dd_buf_add_str(out, d->partial ? "],\"history\":\"partial\"}" : "]}");
    send(c, out);
}

void dd_api_delivered(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_api_error e;
    struct dd_api_call *c = take(al, o);
    if (!c) return;
    struct dd_delivered_call *d = &c->u.delivered;
    enum dd_err err = dd_codec_delivered(&al->api->codec, o->req->body, &c->arena, d, &e);
    if (err != DD_OK) {
        refuse(c, err, &e);
        return;
    }
    d->done = delivered_done;
    d->finished = finished;
    d->arg = c;
    al->api->options.backend->delivered(al->dl, d);
}
