#include "dedup/scene.h"

#include <stdlib.h>

struct dd_scenes {
    unsigned n;
    struct dd_scene scene[];
};

enum dd_err dd_scenes_create(const struct dd_scene *scenes, unsigned n, struct dd_scenes **out)
{
    struct dd_scenes *s = malloc(sizeof *s + n * sizeof *scenes);
    if (!s) return DD_NO_MEMORY;
    s->n = n;
    if (n) memcpy(s->scene, scenes, n * sizeof *scenes);
    if (!dd_scenes_find(s, dd_slice_str("default"))) {
        free(s);
        return DD_INVALID;
    }
    *out = s;
    return DD_OK;
}

void dd_scenes_destroy(struct dd_scenes *s)
{
    free(s);
}

/* Linear: a deployment has a handful of scenes, and a comparison of short names beats a hash of them. */
const struct dd_scene *dd_scenes_find(const struct dd_scenes *s, struct dd_slice name)
{
    if (!name.len) name = dd_slice_str("default");
    for (unsigned i = 0; i < s->n; i++)
        if (dd_slice_eq(name, dd_slice_str(s->scene[i].name))) return &s->scene[i];
    return NULL;
}

unsigned dd_scenes_count(const struct dd_scenes *s)
{
    return s->n;
}

const struct dd_scene *dd_scenes_at(const struct dd_scenes *s, unsigned i)
{
    return &s->scene[i];
}
