/* The reference: jansson reads the whole body into a tree (keys keep their order), and the rules of the three
 * shapes are applied to the tree, one after the other and without cleverness. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#include "read.h"
#include "unit.h"

struct object {
    const json_t *user, *items, *candidates;
    const struct dd_scene *scene;
    json_int_t ts, limit, window, max_seen;
    int claim;
    bool explain, has_ts, has_events;
};

struct ref {
    const struct dd_codec *c;
    struct verdict *out;
    char prefix[32]; /* "events[2]." */
    json_int_t total;
};

__attribute__((format(printf, 3, 4))) static bool no(struct ref *r, const char *code, const char *fmt, ...)
{
    va_list ap;
    char name[128];
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    r->out->code = code;
    snprintf(r->out->field, sizeof r->out->field, "%.31s%.63s", r->prefix, name);
    size_t n = strlen(r->prefix);
    if (!*name && n && r->out->field[n - 1] == '.') r->out->field[n - 1] = 0;
    return false;
}

static bool text_within(const json_t *v, size_t max)
{
    return json_is_string(v) && json_string_length(v) >= 1 && json_string_length(v) <= max;
}

static bool integer_within(const json_t *v, json_int_t min, json_int_t max)
{
    return json_is_integer(v) && json_integer_value(v) >= min && json_integer_value(v) <= max;
}

static bool list(struct ref *r, const char *name, const json_t *v, json_int_t max, bool may_be_empty)
{
    size_t i;
    json_t *item;
    if (!json_is_array(v)) return no(r, "invalid_field", "%s", name);
    json_array_foreach(v, i, item)
    {
        if (r->total >= max) return no(r, "too_many", "%s", name);
        if (!json_is_integer(item) && !text_within(item, 256))
            return no(r, "invalid_field", "%s[%zu]", name, i);
        r->total++;
    }
    return may_be_empty || json_array_size(v) || no(r, "invalid_field", "%s", name);
}

static bool time_(struct ref *r, const json_t *v, struct object *o)
{
    json_int_t ts = json_integer_value(v);
    if (!integer_within(v, 0, 253402300799999)) return no(r, "invalid_field", "ts");
    if (ts >= 100000000 && ts < 100000000000) return no(r, "invalid_field", "ts");
    o->ts = ts;
    o->has_ts = true;
    return true;
}

static bool claim(struct ref *r, const json_t *v, struct object *o)
{
    if (json_is_boolean(v))
        o->claim = json_is_true(v) ? 1 : 0;
    else if (json_is_string(v) && strcmp(json_string_value(v), "exposed") == 0)
        o->claim = 2;
    else
        return no(r, "invalid_field", "claim");
    return true;
}

static bool scene(struct ref *r, const json_t *v, struct object *o)
{
    if (!text_within(v, 64)) return no(r, "invalid_field", "scene");
    o->scene = dd_scenes_find(r->c->scenes, dd_slice_of(json_string_value(v), json_string_length(v)));
    return o->scene || no(r, "invalid_field", "scene");
}

static bool events(struct ref *r, const json_t *v);

static bool common_field(struct ref *r, const char *key, const json_t *v, struct object *o, bool *known)
{
    *known = true;
    if (strcmp(key, "scene") == 0) return scene(r, v, o);
    if (strcmp(key, "user") == 0) {
        o->user = v;
        return text_within(v, 128) || no(r, "invalid_field", "user");
    }
    *known = false;
    return true;
}

static bool filter_field(struct ref *r, const char *key, const json_t *v, struct object *o, bool *known)
{
    *known = true;
    if (strcmp(key, "candidates") == 0)
        return (o->candidates = v) && list(r, key, v, r->c->max_candidates, true);
    if (strcmp(key, "limit") == 0)
        return (o->limit = json_integer_value(v), integer_within(v, 1, r->c->max_candidates)) ||
               no(r, "invalid_field", "limit");
    if (strcmp(key, "window") == 0)
        return (o->window = json_integer_value(v), integer_within(v, 1, 64)) ||
               no(r, "invalid_field", "window");
    if (strcmp(key, "explain") == 0)
        return (o->explain = json_is_true(v), json_is_boolean(v)) || no(r, "invalid_field", "explain");
    if (strcmp(key, "claim") == 0) return claim(r, v, o);
    if (strcmp(key, "max_seen") == 0)
        return (o->max_seen = json_integer_value(v), integer_within(v, 1, 14)) ||
               no(r, "invalid_field", "max_seen");
    if (strcmp(key, "min") == 0) return no(r, "unsupported", "%s", key);
    *known = false;
    return true;
}

static bool event_field(struct ref *r, enum shape shape, const char *key, const json_t *v, struct object *o,
                        bool *known)
{
    json_int_t max = r->c->max_items;
    if (shape == SHAPE_DELIVERED && max > 1000) max = 1000;
    *known = true;
    if (strcmp(key, "items") == 0) return (o->items = v) && list(r, key, v, max, false);
    if (shape == SHAPE_EXPOSED && strcmp(key, "ts") == 0) return time_(r, v, o);
    if (shape == SHAPE_EXPOSED && !*r->prefix && strcmp(key, "events") == 0)
        return (o->has_events = true) && events(r, v);
    *known = false;
    return true;
}

static bool object(struct ref *r, enum shape shape, const json_t *v, struct object *o)
{
    const char *key;
    json_t *value;
    *o = (struct object){.scene = dd_scenes_find(r->c->scenes, dd_slice_str("default"))};
    json_object_foreach((json_t *)v, key, value)
    {
        bool known = false;
        if (!common_field(r, key, value, o, &known)) return false;
        if (!known && shape == SHAPE_FILTER && !filter_field(r, key, value, o, &known)) return false;
        if (!known && shape != SHAPE_FILTER && !event_field(r, shape, key, value, o, &known)) return false;
        size_t cut = strlen(key);
        for (cut = cut > 63 ? 63 : cut; key[cut] && cut && (key[cut] & 0xc0) == 0x80; cut--)
            continue;
        if (!known) return no(r, "unknown_field", "%.*s", (int)cut, key);
    }
    return true;
}

static bool needs(struct ref *r, const struct object *o, enum shape shape)
{
    if (!o->user) return no(r, "missing_field", "user");
    if (shape == SHAPE_FILTER) return o->candidates || no(r, "missing_field", "candidates");
    return o->items || no(r, "missing_field", "items");
}

/* ---- saying what was read, in the words of read_codec.c ---- */

static void say_list(struct dd_buf *out, const json_t *v)
{
    size_t i;
    json_t *item;
    dd_buf_addf(out, " items=%zu", json_array_size(v));
    json_array_foreach(v, i, item)
    {
        char text[32];
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(item));
        size_t n = json_is_string(item) ? json_string_length(item) : strlen(text);
        dd_buf_addf(out, " %zu:", n);
        dd_buf_add(out, json_is_string(item) ? json_string_value(item) : text, n);
    }
}

static void say_user(struct dd_buf *out, const json_t *v)
{
    dd_buf_addf(out, " user=%zu:", json_string_length(v));
    dd_buf_add(out, json_string_value(v), json_string_length(v));
}

static void say_event(struct dd_buf *out, const struct object *o)
{
    dd_buf_addf(out, "scene=%s ts=%lld", o->scene->name, o->has_ts ? (long long)o->ts : (long long)DD_TS_NOW);
    say_user(out, o->user);
    say_list(out, o->items);
    dd_buf_add_u8(out, '\n');
}

static bool events(struct ref *r, const json_t *v)
{
    size_t i;
    json_t *event;
    struct object o;
    if (!json_is_array(v)) return no(r, "invalid_field", "events");
    json_array_foreach(v, i, event)
    {
        if (i == r->c->max_events) return no(r, "too_many", "events");
        snprintf(r->prefix, sizeof r->prefix, "events[%zu].", i);
        if (!json_is_object(event)) return no(r, "invalid_field", "%s", "");
        if (!object(r, SHAPE_EXPOSED, event, &o) || !needs(r, &o, SHAPE_EXPOSED)) return false;
        say_event(&r->out->said, &o);
        r->prefix[0] = 0;
    }
    return json_array_size(v) || no(r, "invalid_field", "events");
}

/* ---- the three shapes ---- */

static bool whole_filter(struct ref *r, const struct object *o)
{
    json_int_t most = o->scene->recent_max;
    if (o->window > o->scene->window) return no(r, "invalid_field", "window");
    if (o->max_seen && o->scene->policy.kind != DD_FILTER_COUNTING) return no(r, "invalid_field", "max_seen");
    if (o->claim && o->limit > most) return no(r, "invalid_field", "limit");
    if (o->claim && !o->limit && (json_int_t)json_array_size(o->candidates) > most)
        return no(r, "missing_field", "limit");
    dd_buf_addf(&r->out->said, "scene=%s limit=%lld window=%lld max_seen=%lld claim=%d explain=%d",
                o->scene->name, (long long)o->limit, (long long)o->window, (long long)o->max_seen, o->claim,
                o->explain);
    say_user(&r->out->said, o->user);
    say_list(&r->out->said, o->candidates);
    return true;
}

static bool whole(struct ref *r, enum shape shape, const json_t *v)
{
    struct object o;
    if (!json_is_object(v)) return no(r, "invalid_json", "%s", "");
    if (!object(r, shape, v, &o)) return false;
    if (o.has_events && (o.user || o.items || o.has_ts || json_object_get(v, "scene")))
        return no(r, "invalid_field", "events");
    if (o.has_events) return true;
    if (!needs(r, &o, shape)) return false;
    if (shape == SHAPE_FILTER) return whole_filter(r, &o);
    if (shape == SHAPE_EXPOSED) {
        say_event(&r->out->said, &o);
        return true;
    }
    dd_buf_addf(&r->out->said, "scene=%s", o.scene->name);
    say_user(&r->out->said, o.user);
    say_list(&r->out->said, o.items);
    return true;
}

void read_reference(const struct dd_codec *c, enum shape shape, struct dd_slice body, struct verdict *out)
{
    *out = (struct verdict){.good = false};
    struct ref r = {.c = c, .out = out};
    json_error_t e;
    /* jansson 2.14 reads past a NUL that follows a number ("[1\0,2]" is [1,2] to it); no JSON holds that
     * byte. */
    bool nul = body.len && memchr(body.ptr, 0, body.len);
    json_t *v = nul ? NULL : json_loadb((const char *)body.ptr, body.len, JSON_REJECT_DUPLICATES, &e);
    out->good = v ? whole(&r, shape, v) : no(&r, "invalid_json", "%s", "");
    json_decref(v);
}
