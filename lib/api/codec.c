/* The three request shapes, and the rules between their fields. */
#include "api/codec.h"

#include "api/fields.h"

#define BIT(name) DD_FIELD_BIT(DD_FIELD_##name)

#define ONE_EVENT (BIT(USER) | BIT(ITEMS) | BIT(SCENE) | BIT(TS))

enum {
    EXPOSED = ONE_EVENT | BIT(EVENTS),
    DELIVERED = BIT(USER) | BIT(ITEMS) | BIT(SCENE),
    FILTER = BIT(USER) | BIT(CANDIDATES) | BIT(SCENE) | BIT(LIMIT) | BIT(CLAIM) | BIT(WINDOW) | BIT(EXPLAIN) |
             BIT(MIN) | BIT(MAX_SEEN)
};

/* The whole body: one object of that shape, with the needed fields, and nothing behind it. */
static bool read_body(struct dd_reader *r, unsigned shape, struct dd_fields *out)
{
    if (dd_json_peek(&r->json) != DD_JSON_OBJECT) {
        dd_reader_fail(r, "invalid_json", "the body must be a JSON object in UTF-8");
        return false;
    }
    return dd_fields_read(r, shape, out) && (dd_json_finish(&r->json) || dd_reader_fail_json(r));
}

/* An empty list may never have needed memory. */
static struct dd_item *items_of(const struct dd_reader *r, const struct dd_fields *f)
{
    return r->items ? r->items + f->items_first : NULL;
}

static enum dd_err verdict(const struct dd_reader *r, bool good)
{
    if (good) return DD_OK;
    return r->json.no_memory ? DD_NO_MEMORY : DD_INVALID;
}

/* ---- exposed ---- */

static void put_event(const struct dd_reader *r, const struct dd_fields *f, struct dd_exposed_event *out)
{
    *out = (struct dd_exposed_event){
        .scene = f->scene, .user = f->user, .items = items_of(r, f), .n = f->items_n, .ts_ms = f->ts_ms};
}

static bool put_events(struct dd_reader *r, const struct dd_fields *events, unsigned n,
                       struct dd_exposed_call *out)
{
    out->events = dd_arena_alloc(r->arena, n * sizeof *out->events);
    if (!out->events) return dd_reader_fail_memory(r);
    for (unsigned i = 0; i < n; i++)
        put_event(r, &events[i], &out->events[i]);
    out->n = n;
    return true;
}

static bool read_exposed(struct dd_reader *r, struct dd_exposed_call *out)
{
    struct dd_fields f;
    if (!read_body(r, EXPOSED, &f)) return false;
    if (!(f.seen & BIT(EVENTS)))
        return dd_fields_require(r, &f, BIT(USER) | BIT(ITEMS)) && put_events(r, &f, 1, out);
    if (f.seen & ONE_EVENT)
        return dd_fields_fail(r, DD_FIELD_EVENTS, "invalid_field",
                              "send one event or a list of events, not both");
    return put_events(r, r->events, r->events_n, out);
}

enum dd_err dd_codec_exposed(const struct dd_codec *c, struct dd_slice body, struct dd_arena *arena,
                             struct dd_exposed_call *out, bool *batch, struct dd_api_error *err)
{
    struct dd_reader r;
    dd_reader_init(&r, c, body, arena, err);
    *out = (struct dd_exposed_call){.arena = arena};
    bool good = read_exposed(&r, out);
    *batch = r.events_n > 0;
    return verdict(&r, good);
}

/* ---- filter ---- */

/* A claim records what it returns, and the record keeps the newest recent.max: more in one claim would be
 * forgotten while it is being made. */
static bool check_claim(struct dd_reader *r, const struct dd_fields *f)
{
    unsigned most = f->scene->recent_max < DD_CLAIM_MAX ? f->scene->recent_max : DD_CLAIM_MAX;
    if (f->claim == DD_CLAIM_NONE) return true;
    if (f->limit > most)
        return dd_fields_fail(r, DD_FIELD_LIMIT, "invalid_field",
                              "a claim returns at most recent.max of its scene, which is %u", most);
    if (!f->limit && f->items_n > most)
        return dd_fields_fail(r, DD_FIELD_LIMIT, "missing_field",
                              "a claim of more than %u candidates (recent.max of the scene) needs a limit",
                              most);
    return true;
}

static bool check_filter(struct dd_reader *r, const struct dd_fields *f)
{
    if (!dd_fields_require(r, f, BIT(USER) | BIT(CANDIDATES))) return false;
    if (f->window > f->scene->window)
        return dd_fields_fail(r, DD_FIELD_WINDOW, "invalid_field",
                              "must be 1 to %u (the scene's window), not %u", f->scene->window, f->window);
    if (f->max_seen && f->scene->policy.kind != DD_FILTER_COUNTING)
        return dd_fields_fail(r, DD_FIELD_MAX_SEEN, "invalid_field",
                              "only scenes that count know how often an item was seen (option filter: "
                              "counting), and %s is not one",
                              f->scene->name);
    return check_claim(r, f);
}

enum dd_err dd_codec_filter(const struct dd_codec *c, struct dd_slice body, struct dd_arena *arena,
                            struct dd_filter_call *out, struct dd_api_error *err)
{
    struct dd_reader r;
    struct dd_fields f;
    dd_reader_init(&r, c, body, arena, err);
    bool good = read_body(&r, FILTER, &f) && check_filter(&r, &f);
    if (!good) return verdict(&r, false);
    *out = (struct dd_filter_call){.scene = f.scene,
                                   .user = f.user,
                                   .items = items_of(&r, &f),
                                   .n = f.items_n,
                                   .limit = f.limit,
                                   .window = f.window,
                                   .max_seen = f.max_seen,
                                   .claim = f.claim,
                                   .explain = f.explain,
                                   .arena = arena};
    return DD_OK;
}

/* ---- delivered ---- */

enum dd_err dd_codec_delivered(const struct dd_codec *c, struct dd_slice body, struct dd_arena *arena,
                               struct dd_delivered_call *out, struct dd_api_error *err)
{
    struct dd_reader r;
    struct dd_fields f;
    struct dd_codec limits = *c;
    if (limits.max_items > DD_CLAIM_MAX) limits.max_items = DD_CLAIM_MAX;
    dd_reader_init(&r, &limits, body, arena, err);
    bool good = read_body(&r, DELIVERED, &f) && dd_fields_require(&r, &f, BIT(USER) | BIT(ITEMS));
    if (!good) return verdict(&r, false);
    *out = (struct dd_delivered_call){
        .scene = f.scene, .user = f.user, .items = items_of(&r, &f), .n = f.items_n, .arena = arena};
    return DD_OK;
}
