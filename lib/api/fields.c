/* Reading one object of a request. The fields come in any order, each at most once, and what is wrong first
 * in the order of the body is what the answer names. Nothing here skips a value: an object nests as deep as
 * its shape. */
#include "api/fields.h"

#include <stdarg.h>
#include <stdio.h>

/* 9999-12-31T23:59:59.999Z */
#define TS_MAX_MS 253402300799999

/* In milliseconds 1970-01-02 to 1973-03-03, in seconds 1973 to 5138: no exposure was ever reported for the
 * former. */
#define TS_SECONDS_FROM 100000000
#define TS_SECONDS_TO   100000000000

#define EVENT_SHAPE                                                                                          \
    (DD_FIELD_BIT(DD_FIELD_USER) | DD_FIELD_BIT(DD_FIELD_ITEMS) | DD_FIELD_BIT(DD_FIELD_SCENE) |             \
     DD_FIELD_BIT(DD_FIELD_TS))

/* ---- items ---- */

static bool read_item_number(struct dd_reader *r, struct dd_item *out)
{
    struct dd_json_number n;
    if (!dd_json_read_number(&r->json, &n)) return dd_reader_fail_json(r);
    if (!n.is_integer)
        return dd_reader_fail(r, "invalid_field", "must be a string or an integer, not a fraction");
    if (!n.fits)
        return dd_reader_fail(r, "invalid_field",
                              "integers have 64 bits with sign; send larger ids as strings");
    /* JSON's grammar leaves one spelling for every integer but 0. */
    out->id = n.value == 0 ? dd_slice_of("0", 1) : n.raw;
    out->echo = n.raw;
    return true;
}

static inline bool take_text(struct dd_reader *r, const struct dd_json_string *s, struct dd_item *out)
{
    if (s->text.len == 0 || s->text.len > DD_ITEM_MAX_BYTES)
        return dd_reader_fail(r, "invalid_field", "must have 1 to %d bytes, not %zu", DD_ITEM_MAX_BYTES,
                              s->text.len);
    out->id = s->text;
    out->echo = s->raw;
    out->fp = 0;
    return true;
}

static bool read_item(struct dd_reader *r, struct dd_item *out)
{
    struct dd_json_string s;
    out->fp = 0;
    enum dd_json_type type = dd_json_peek(&r->json);
    if (type == DD_JSON_NUMBER) return read_item_number(r, out);
    if (type != DD_JSON_STRING) return dd_reader_fail_type(r, "a string or an integer");
    if (!dd_json_read_string(&r->json, &s)) return dd_reader_fail_json(r);
    return take_text(r, &s, out);
}

/* Room for one more item. The first guess is one item for every 8 bytes left, which ordinary ids never
 * exceed, so that the list is not copied while it grows. */
static bool make_room(struct dd_reader *r, unsigned max)
{
    if (r->items_n < r->items_cap) return true;
    size_t left = (size_t)(r->json.end - r->json.at) / 8 + 8;
    size_t cap = r->items_cap ? (size_t)r->items_cap * 2 : left;
    if (cap > max) cap = max;
    struct dd_item *items = dd_arena_alloc(r->arena, cap * sizeof *items);
    if (!items) return dd_reader_fail_memory(r);
    if (r->items_n) memcpy(items, r->items, r->items_n * sizeof *items);
    r->items = items;
    r->items_cap = (unsigned)cap;
    return true;
}

/* The plain strings that come next, as far as there is room. false: one of them is refused. */
static bool read_plain_items(struct dd_reader *r, unsigned max)
{
    struct dd_json_string s;
    unsigned room = r->items_cap < max ? r->items_cap : max;
    while (r->items_n < room && dd_json_take_plain(&r->json, r->item == 0, &s)) {
        if (!take_text(r, &s, &r->items[r->items_n])) return false;
        r->items_n++;
        r->item++;
    }
    return true;
}

static bool read_list(struct dd_reader *r, unsigned max, struct dd_fields *out)
{
    if (dd_json_peek(&r->json) != DD_JSON_ARRAY)
        return dd_reader_fail_type(r, "an array of strings or integers");
    dd_json_open(&r->json);
    out->items_first = r->items_n;
    for (r->item = 0; read_plain_items(r, max) && dd_json_next_element(&r->json, r->item == 0); r->item++) {
        if (r->items_n >= max) {
            r->item = -1;
            return dd_reader_fail(r, "too_many", "at most %u in one request", max);
        }
        if (!make_room(r, max) || !read_item(r, &r->items[r->items_n])) return false;
        r->items_n++;
    }
    if (r->err->status) return false;
    r->item = -1;
    if (r->json.error) return dd_reader_fail_json(r);
    out->items_n = r->items_n - out->items_first;
    return true;
}

static bool read_items(struct dd_reader *r, struct dd_fields *out)
{
    if (!read_list(r, r->codec->max_items, out)) return false;
    return out->items_n > 0 || dd_reader_fail(r, "invalid_field", "must hold at least one item");
}

static bool read_candidates(struct dd_reader *r, struct dd_fields *out)
{
    return read_list(r, r->codec->max_candidates, out);
}

/* ---- the other fields ---- */

static bool read_user(struct dd_reader *r, struct dd_fields *out)
{
    return dd_read_text(r, DD_USER_MAX_BYTES, &out->user);
}

static bool read_scene(struct dd_reader *r, struct dd_fields *out)
{
    struct dd_slice name;
    if (!dd_read_text(r, DD_SCENE_NAME_MAX, &name)) return false;
    out->scene = dd_scenes_find(r->codec->scenes, name);
    return out->scene ||
           dd_reader_fail(r, "invalid_field", "there is no such scene; scenes are made in the configuration");
}

static bool read_ts(struct dd_reader *r, struct dd_fields *out)
{
    if (!dd_read_integer(r, &out->ts_ms)) return false;
    if (out->ts_ms < 0 || out->ts_ms > TS_MAX_MS)
        return dd_reader_fail(r, "invalid_field",
                              "must be milliseconds since 1970, from 0 to the end of the year 9999");
    if (out->ts_ms >= TS_SECONDS_FROM && out->ts_ms < TS_SECONDS_TO)
        return dd_reader_fail(r, "invalid_field",
                              "looks like seconds; send milliseconds since 1970 (multiply by 1000)");
    return true;
}

static bool read_limit(struct dd_reader *r, struct dd_fields *out)
{
    return dd_read_number_in(r, r->codec->max_candidates, &out->limit);
}

/* Its upper bound is the scene's, which may come later in the body. */
static bool read_window(struct dd_reader *r, struct dd_fields *out)
{
    return dd_read_number_in(r, DD_WINDOW_MAX, &out->window);
}

/* Only for scenes that count; which scene it is may come later in the body. */
static bool read_max_seen(struct dd_reader *r, struct dd_fields *out)
{
    return dd_read_number_in(r, DD_MAX_SEEN, &out->max_seen);
}

static bool read_explain(struct dd_reader *r, struct dd_fields *out)
{
    return dd_read_bool(r, &out->explain);
}

static bool read_claim(struct dd_reader *r, struct dd_fields *out)
{
    static const char must[] = "true, false or \"exposed\"";
    enum dd_json_type type = dd_json_peek(&r->json);
    if (type == DD_JSON_STRING) {
        struct dd_json_string s;
        if (!dd_json_read_string(&r->json, &s)) return dd_reader_fail_json(r);
        out->claim = DD_CLAIM_EXPOSED;
        return dd_slice_eq(s.text, dd_slice_str("exposed")) ||
               dd_reader_fail(r, "invalid_field", "must be %s", must);
    }
    bool claim = false;
    if (type != DD_JSON_TRUE && type != DD_JSON_FALSE) return dd_reader_fail_type(r, must);
    if (!dd_read_bool(r, &claim)) return false;
    out->claim = claim ? DD_CLAIM_DELIVERED : DD_CLAIM_NONE;
    return true;
}

static bool read_unsupported(struct dd_reader *r, struct dd_fields *out)
{
    (void)out;
    return dd_reader_fail(r, "unsupported", "is not supported by this version; leave it out");
}

static bool add_event(struct dd_reader *r, const struct dd_fields *event)
{
    if (r->events_n == r->events_cap) {
        size_t cap = r->events_cap ? (size_t)r->events_cap * 2 : 16;
        struct dd_fields *events = dd_arena_alloc(r->arena, cap * sizeof *events);
        if (!events) return dd_reader_fail_memory(r);
        if (r->events_n) memcpy(events, r->events, r->events_n * sizeof *events);
        r->events = events;
        r->events_cap = (unsigned)cap;
    }
    r->events[r->events_n++] = *event;
    return true;
}

static bool read_event(struct dd_reader *r)
{
    struct dd_fields event;
    if (dd_json_peek(&r->json) != DD_JSON_OBJECT) return dd_reader_fail_type(r, "an object");
    return dd_fields_read(r, EVENT_SHAPE, &event) &&
           dd_fields_require(r, &event, DD_FIELD_BIT(DD_FIELD_USER) | DD_FIELD_BIT(DD_FIELD_ITEMS)) &&
           add_event(r, &event);
}

static bool read_events(struct dd_reader *r, struct dd_fields *out)
{
    (void)out;
    const char *field = r->field;
    bool good = true, too_many = false;
    if (dd_json_peek(&r->json) != DD_JSON_ARRAY) return dd_reader_fail_type(r, "an array of objects");
    dd_json_open(&r->json);
    while (good && !too_many && dd_json_next_element(&r->json, r->events_n == 0)) {
        too_many = r->events_n == r->codec->max_events;
        r->event = (int)r->events_n;
        r->field = NULL;
        good = too_many || read_event(r);
    }
    if (!good) return false;
    r->event = -1;
    r->field = field;
    if (r->json.error) return dd_reader_fail_json(r);
    if (too_many)
        return dd_reader_fail(r, "too_many", "at most %u events in one request", r->codec->max_events);
    return r->events_n > 0 || dd_reader_fail(r, "invalid_field", "must hold at least one event");
}

/* ---- objects ---- */

static const struct {
    const char *name;
    bool (*read)(struct dd_reader *r, struct dd_fields *out);
} fields[DD_FIELD_COUNT] = {
    [DD_FIELD_USER] = {"user", read_user},
    [DD_FIELD_ITEMS] = {"items", read_items},
    [DD_FIELD_CANDIDATES] = {"candidates", read_candidates},
    [DD_FIELD_SCENE] = {"scene", read_scene},
    [DD_FIELD_TS] = {"ts", read_ts},
    [DD_FIELD_EVENTS] = {"events", read_events},
    [DD_FIELD_LIMIT] = {"limit", read_limit},
    [DD_FIELD_CLAIM] = {"claim", read_claim},
    [DD_FIELD_WINDOW] = {"window", read_window},
    [DD_FIELD_EXPLAIN] = {"explain", read_explain},
    [DD_FIELD_MIN] = {"min", read_unsupported},
    [DD_FIELD_MAX_SEEN] = {"max_seen", read_max_seen},
};

static enum dd_field find_field(unsigned shape, struct dd_slice key)
{
    unsigned f = 0;
    while (f < DD_FIELD_COUNT && !(shape & DD_FIELD_BIT(f) && dd_slice_eq(key, dd_slice_str(fields[f].name))))
        f++;
    return f;
}

static bool fail_unknown(struct dd_reader *r, unsigned shape, struct dd_slice key)
{
    char name[64], allowed[128] = "";
    size_t cut = key.len < sizeof name ? key.len : sizeof name - 1;
    while (cut < key.len && cut > 0 && (key.ptr[cut] & 0xc0) == 0x80)
        cut--; /* at the end of a character */
    snprintf(name, sizeof name, "%.*s", (int)cut, (const char *)key.ptr);
    for (unsigned f = 0; f < DD_FIELD_COUNT; f++) {
        if (!(shape & DD_FIELD_BIT(f)) || fields[f].read == read_unsupported) continue;
        size_t n = strlen(allowed);
        snprintf(allowed + n, sizeof allowed - n, "%s%s", n ? ", " : "", fields[f].name);
    }
    r->field = name;
    dd_reader_fail(r, "unknown_field", "there is no such field here; allowed are: %s", allowed);
    r->field = NULL; /* name ends here */
    return false;
}

bool dd_fields_read(struct dd_reader *r, unsigned shape, struct dd_fields *out)
{
    struct dd_slice key;
    *out = (struct dd_fields){.ts_ms = DD_TS_NOW};
    dd_json_open(&r->json);
    for (bool first = true; dd_json_next_member(&r->json, first, &key); first = false) {
        enum dd_field f = find_field(shape, key);
        if (f == DD_FIELD_COUNT) return fail_unknown(r, shape, key);
        r->field = fields[f].name;
        if (out->seen & DD_FIELD_BIT(f))
            return dd_reader_fail(r, "invalid_json", "stands twice in the same object");
        out->seen |= DD_FIELD_BIT(f);
        if (!fields[f].read(r, out)) return false;
        r->field = NULL;
    }
    if (r->json.error) return dd_reader_fail_json(r);
    if (!out->scene) out->scene = dd_scenes_find(r->codec->scenes, dd_slice_str("default"));
    return true;
}

bool dd_fields_require(struct dd_reader *r, const struct dd_fields *f, unsigned needed)
{
    unsigned missing = needed & ~f->seen;
    if (!missing) return true;
    r->field = fields[__builtin_ctz(missing)].name;
    return dd_reader_fail(r, "missing_field", "is required");
}

bool dd_fields_fail(struct dd_reader *r, enum dd_field f, const char *code, const char *fmt, ...)
{
    char message[192];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    r->field = fields[f].name;
    return dd_reader_fail(r, code, "%s", message);
}
