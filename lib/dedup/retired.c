#include "dedup/retired.h"

#include <stdlib.h>

#include "base/log.h"

/* Their own is not recorded: the most that recent.ttl_s may be. */
#define RECENT_TTL_MS 604800000

struct gather {
    const struct dd_scenes *scenes;
    struct dd_buf found; /* struct dd_scene */
};

static void visit_scene(void *arg, struct dd_slice name, enum dd_period_kind kind, unsigned window)
{
    struct gather *g = arg;
    struct dd_scene s = {.period = kind, .window = window, .recent_ttl_ms = RECENT_TTL_MS};
    if (dd_scenes_find(g->scenes, name) || name.len > DD_SCENE_NAME_MAX) return;
    memcpy(s.name, name.ptr, name.len);
    dd_buf_add(&g->found, &s, sizeof s);
}

static enum dd_err found_one(void *arg, struct dd_period period)
{
    (void)period;
    *(bool *)arg = true;
    return DD_EXISTS; /* enough */
}

/* A store that cannot be listed (logged) may hold some. */
static bool holds_any(struct dd_store *store, const struct dd_scene *s)
{
    bool any = false;
    enum dd_err err = dd_store_each_period(store, dd_scene_slice(s), s->period, found_one, &any);
    return any || (err != DD_OK && err != DD_EXISTS);
}

static void warn(const struct dd_retired *r, struct dd_store *store)
{
    struct dd_buf names = {0};
    for (unsigned i = 0; i < r->n; i++)
        if (holds_any(store, &r->scene[i]))
            dd_buf_addf(&names, "%s%s", names.len ? "," : "", r->scene[i].name);
    if (names.len)
        dd_warn("scene.not_configured",
                "scenes=%.*s hint=\"the store holds sets of scenes that are not in the configuration: no "
                "request sees them, they expire with their windows\"",
                names.len > 600 ? 600 : (int)names.len, (const char *)names.data);
    dd_buf_free(&names);
}

enum dd_err dd_retired_init(struct dd_retired *r, struct dd_store *store, const struct dd_scenes *scenes)
{
    struct gather g = {.scenes = scenes};
    dd_store_each_scene(store, visit_scene, &g);
    if (!dd_buf_ok(&g.found)) {
        dd_buf_free(&g.found);
        return DD_NO_MEMORY;
    }
    r->scene = (struct dd_scene *)(void *)g.found.data; /* r's from here */
    r->n = (unsigned)(g.found.len / sizeof *r->scene);
    warn(r, store);
    return DD_OK;
}

void dd_retired_reset(struct dd_retired *r)
{
    free(r->scene);
    *r = (struct dd_retired){.n = 0};
}

const struct dd_scene *dd_retired_find(const struct dd_retired *r, struct dd_slice name)
{
    for (unsigned i = 0; i < r->n; i++)
        if (dd_slice_eq(name, dd_scene_slice(&r->scene[i]))) return &r->scene[i];
    return NULL;
}
