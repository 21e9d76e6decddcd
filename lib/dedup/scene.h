/* Scenes: surfaces with their own history, and the policy each carries.
 *
 * The set of scenes is made at start and does not change while the process runs.
 * Threads: read-only after dd_scenes_create, any thread. Ownership: the table owns its scenes; a `struct
 * dd_scene *` lives as long as the table. */
#ifndef DD_DEDUP_SCENE_H
#define DD_DEDUP_SCENE_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/period.h"
#include "filter/filter.h"

#define DD_SCENE_NAME_MAX 64

struct dd_scene {
    char name[DD_SCENE_NAME_MAX + 1];
    enum dd_period_kind period;
    unsigned window;                /* periods that count, the current one included */
    struct dd_filter_policy policy; /* its fpr is the share of one period */
    unsigned recent_max;
    int64_t recent_ttl_ms, cache_ttl_ms;
};

struct dd_scenes;

/* Copies the scenes; one of them is named "default". */
enum dd_err dd_scenes_create(const struct dd_scene *scenes, unsigned n, struct dd_scenes **out) DD_MUST_USE;
void dd_scenes_destroy(struct dd_scenes *s);

/* By name; an empty name is "default". NULL: no such scene. */
const struct dd_scene *dd_scenes_find(const struct dd_scenes *s, struct dd_slice name);
unsigned dd_scenes_count(const struct dd_scenes *s);
const struct dd_scene *dd_scenes_at(const struct dd_scenes *s, unsigned i);

static inline struct dd_slice dd_scene_slice(const struct dd_scene *s)
{
    return dd_slice_str(s->name);
}

#endif
