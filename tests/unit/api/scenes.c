#include "scenes.h"

#include "unit.h"

struct dd_scenes *test_scenes(void)
{
    static const struct dd_scene scenes[] = {
        {.name = "default",
         .period = DD_PERIOD_MONTH,
         .window = 3,
         .recent_max = 100,
         .recent_ttl_ms = 3600000},
        {.name = "push", .period = DD_PERIOD_DAY, .window = 1, .recent_max = 5, .recent_ttl_ms = 3600000},
        {.name = "likes",
         .period = DD_PERIOD_MONTH,
         .window = 2,
         .policy = {.kind = DD_FILTER_COUNTING},
         .recent_max = 100,
         .recent_ttl_ms = 3600000},
    };
    struct dd_scenes *made = NULL;
    ck_assert_ok(dd_scenes_create(scenes, 3, &made));
    return made;
}
