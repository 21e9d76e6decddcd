/* Scenes that the store knows and the configuration does not (any more). No request can name them, but what
 * they hold is there until it leaves their window: operators see it, an erase removes it, it expires.
 *
 * Threads: made once at the start; read-only afterwards, any thread. */
#ifndef DD_DEDUP_RETIRED_H
#define DD_DEDUP_RETIRED_H

#include "dedup/scene.h"
#include "store/store.h"

struct dd_retired {
    struct dd_scene *scene; /* no policy, which is not recorded */
    unsigned n;
};

/* Blocks. Warns once if any of them holds a set, and names those that do. DD_OK, DD_NO_MEMORY. */
enum dd_err dd_retired_init(struct dd_retired *r, struct dd_store *store,
                            const struct dd_scenes *scenes) DD_MUST_USE;
void dd_retired_reset(struct dd_retired *r);
/* NULL: none of that name. */
const struct dd_scene *dd_retired_find(const struct dd_retired *r, struct dd_slice name);

#endif
