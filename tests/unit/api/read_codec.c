#include <stdlib.h>

#include "read.h"
#include "unit.h"

enum shape shape_of(const char *path)
{
    static const char *const paths[] = {"/exposed", "/filter", "/delivered"};
    unsigned s = 0;
    while (s < SHAPE_COUNT && strcmp(path, paths[s]) != 0)
        s++;
    return s;
}

void verdict_free(struct verdict *v)
{
    dd_buf_free(&v->said);
}

static void say_slice(struct dd_buf *out, struct dd_slice s)
{
    dd_buf_addf(out, "%zu:", s.len);
    dd_buf_add_slice(out, s);
}

static void say_items(struct dd_buf *out, const struct dd_item *items, unsigned n)
{
    dd_buf_addf(out, " items=%u", n);
    for (unsigned i = 0; i < n; i++) {
        dd_buf_add_u8(out, ' ');
        say_slice(out, items[i].id);
    }
}

static void say_exposed(struct dd_buf *out, const struct dd_exposed_call *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        const struct dd_exposed_event *e = &c->events[i];
        dd_buf_addf(out, "scene=%s ts=%lld user=", e->scene->name, (long long)e->ts_ms);
        say_slice(out, e->user);
        say_items(out, e->items, e->n);
        dd_buf_add_u8(out, '\n');
    }
}

static void say_filter(struct dd_buf *out, const struct dd_filter_call *c)
{
    dd_buf_addf(out, "scene=%s limit=%u window=%u max_seen=%u claim=%d explain=%d user=", c->scene->name,
                c->limit, c->window, c->max_seen, (int)c->claim, c->explain);
    say_slice(out, c->user);
    say_items(out, c->items, c->n);
}

static void say_delivered(struct dd_buf *out, const struct dd_delivered_call *c)
{
    dd_buf_addf(out, "scene=%s user=", c->scene->name);
    say_slice(out, c->user);
    say_items(out, c->items, c->n);
}

void read_codec(const struct dd_codec *c, enum shape shape, struct dd_slice body, struct verdict *out)
{
    struct dd_arena arena = {0};
    struct dd_api_error err;
    struct dd_exposed_call exposed;
    struct dd_filter_call filter;
    struct dd_delivered_call delivered;
    bool batch;
    enum dd_err e = DD_OK;
    uint8_t *copy = malloc(body.len ? body.len : 1);
    if (body.len) memcpy(copy, body.ptr, body.len);
    body.ptr = copy;
    *out = (struct verdict){.good = false};
    if (shape == SHAPE_EXPOSED) e = dd_codec_exposed(c, body, &arena, &exposed, &batch, &err);
    if (shape == SHAPE_FILTER) e = dd_codec_filter(c, body, &arena, &filter, &err);
    if (shape == SHAPE_DELIVERED) e = dd_codec_delivered(c, body, &arena, &delivered, &err);
    if (e == DD_OK && shape == SHAPE_EXPOSED) say_exposed(&out->said, &exposed);
    if (e == DD_OK && shape == SHAPE_FILTER) say_filter(&out->said, &filter);
    if (e == DD_OK && shape == SHAPE_DELIVERED) say_delivered(&out->said, &delivered);
    out->good = e == DD_OK;
    if (e != DD_OK) {
        ck_assert_int_eq(err.status, 400);
        out->code = err.code;
        memcpy(out->field, err.field, sizeof out->field);
    }
    dd_arena_free(&arena);
    free(copy);
}
