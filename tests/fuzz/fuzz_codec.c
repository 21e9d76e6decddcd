/* Any bytes as the body of each of the three calls: nothing is read outside the body, and what is accepted
 * keeps the limits. The first byte says which call; the rest is the body. */
#include <stdint.h>
#include <stdlib.h>

#include "api/codec.h"
#include "api/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) abort();
}

static struct dd_scenes *make_scenes(void)
{
    static const struct dd_scene scenes[] = {
        {.name = "default", .period = DD_PERIOD_MONTH, .window = 3, .recent_max = 100},
        {.name = "push", .period = DD_PERIOD_DAY, .window = 1, .recent_max = 5},
        {.name = "likes",
         .period = DD_PERIOD_MONTH,
         .window = 2,
         .policy = {.kind = DD_FILTER_COUNTING},
         .recent_max = 100},
    };
    struct dd_scenes *made = NULL;
    require(dd_scenes_create(scenes, 3, &made) == DD_OK);
    return made;
}

/* An echo is one JSON token, and reading it again gives the id. */
static void check_item(const struct dd_item *item, struct dd_arena *arena)
{
    struct dd_json j;
    struct dd_json_string s;
    struct dd_json_number n;
    require(item->id.len >= 1 && item->id.len <= DD_ITEM_MAX_BYTES);
    dd_json_init(&j, item->echo, arena);
    if (dd_json_peek(&j) == DD_JSON_STRING)
        require(dd_json_read_string(&j, &s) && dd_json_finish(&j) && dd_slice_eq(s.text, item->id));
    else
        require(dd_json_read_number(&j, &n) && dd_json_finish(&j) && n.fits);
}

static void check_items(const struct dd_item *items, unsigned n, unsigned max, struct dd_arena *arena)
{
    require(n <= max);
    for (unsigned i = 0; i < n; i++)
        check_item(&items[i], arena);
}

static void check_user(struct dd_slice user)
{
    require(user.len >= 1 && user.len <= DD_USER_MAX_BYTES);
}

static void check_error(const struct dd_api_error *e)
{
    require(e->status == 400 && e->code && *e->message);
    require(memchr(e->field, 0, sizeof e->field) && memchr(e->message, 0, sizeof e->message));
}

static enum dd_err read_exposed(const struct dd_codec *c, struct dd_slice body, struct dd_arena *arena,
                                struct dd_api_error *e)
{
    struct dd_exposed_call x;
    bool batch;
    enum dd_err err = dd_codec_exposed(c, body, arena, &x, &batch, e);
    if (err != DD_OK) return err;
    require(x.n >= 1 && x.n <= c->max_events && (batch || x.n == 1));
    for (unsigned i = 0; i < x.n; i++) {
        check_user(x.events[i].user);
        check_items(x.events[i].items, x.events[i].n, c->max_items, arena);
        require(x.events[i].n >= 1 && x.events[i].scene);
    }
    return DD_OK;
}

static enum dd_err read_filter(const struct dd_codec *c, struct dd_slice body, struct dd_arena *arena,
                               struct dd_api_error *e)
{
    struct dd_filter_call f;
    enum dd_err err = dd_codec_filter(c, body, arena, &f, e);
    if (err != DD_OK) return err;
    check_user(f.user);
    check_items(f.items, f.n, c->max_candidates, arena);
    require(f.scene && f.window <= f.scene->window && f.limit <= c->max_candidates);
    if (f.max_seen) require(f.max_seen <= DD_MAX_SEEN && f.scene->policy.kind == DD_FILTER_COUNTING);
    if (f.claim != DD_CLAIM_NONE) require((f.limit ? f.limit : f.n) <= f.scene->recent_max);
    return DD_OK;
}

static enum dd_err read_delivered(const struct dd_codec *c, struct dd_slice body, struct dd_arena *arena,
                                  struct dd_api_error *e)
{
    struct dd_delivered_call d;
    enum dd_err err = dd_codec_delivered(c, body, arena, &d, e);
    if (err != DD_OK) return err;
    check_user(d.user);
    check_items(d.items, d.n, c->max_items, arena);
    require(d.scene && d.n >= 1);
    return DD_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dd_arena arena = {0};
    struct dd_api_error e = {0};
    if (size == 0) return 0;
    struct dd_scenes *scenes = make_scenes();
    struct dd_codec c = {.scenes = scenes, .max_candidates = 50, .max_items = 40, .max_events = 8};
    struct dd_slice body = dd_slice_of(data + 1, size - 1);
    enum dd_err err = data[0] % 3 == 0   ? read_exposed(&c, body, &arena, &e)
                      : data[0] % 3 == 1 ? read_filter(&c, body, &arena, &e)
                                         : read_delivered(&c, body, &arena, &e);
    require(err == DD_OK || err == DD_INVALID);
    if (err != DD_OK) check_error(&e);
    dd_arena_free(&arena);
    dd_scenes_destroy(scenes);
    return 0;
}
