/* One user, for operators and for backends: what is known of him, his filter set to take away, forgetting
 * single items, erasing everything. The shape of calls is that of admin.h. */
#ifndef DD_DEDUP_USER_H
#define DD_DEDUP_USER_H

#include "dedup/admin.h"
#include "dedup/migrate.h"
#include "dedup/trace.h"
#include "filter/filter.h"

/* ---- looking ---- */

enum dd_inspect_cache { DD_CACHE_NONE, DD_CACHE_VALID, DD_CACHE_STALE };

struct dd_inspect_period {
    struct dd_period period;
    bool in_window;
    unsigned pending;           /* fingerprints staged and not yet in the store */
    bool stored, sound;         /* a set is there; it can be read */
    struct dd_filter_info info; /* of a sound one */
    enum dd_inspect_cache cache;
    int64_t cached_ms; /* when it was cached; 0: it is not */
};

struct dd_inspect_scene {
    const struct dd_scene *scene;
    bool configured;                    /* else the store knows it from earlier (retired.h) */
    const struct dd_hot_recent *recent; /* deliveries, oldest first */
    unsigned recent_n;
    const struct dd_inspect_period *period; /* newest first, only those that hold anything */
    unsigned period_n;
};

struct dd_inspect_call {
    /* in */
    struct dd_slice scene; /* empty: all, configured or known to the store from earlier */
    struct dd_slice user;
    struct dd_arena *arena;
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err
        err;      /* DD_OK; DD_NOT_FOUND: nothing is known of this user; DD_INVALID: there is no such scene;
                     DD_UNAVAILABLE: nothing was found,
                     but not everything could be asked; DD_IO, DD_BUSY, DD_NO_MEMORY */
    bool partial; /* Redis did not answer: deliveries are those in memory, pending is not known */
    const struct dd_inspect_scene *scenes; /* those in which anything is known */
    unsigned scene_n;
    struct dd_migrate_mark migration; /* of the scene that is migrated to, if there is one */
    bool traced;                      /* trace is set; then DD_NOT_FOUND is not the answer */
    struct dd_trace_state trace;
};

void dd_user_inspect(struct dd_dedup_loop *dl, struct dd_inspect_call *c);

/* ---- taking a filter set away ---- */

struct dd_export_call {
    /* in */
    const struct dd_scene *scene;
    struct dd_slice user;
    struct dd_period period; /* of the scene's kind */
    struct dd_arena *arena;
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err;      /* DD_OK; DD_NOT_FOUND: no such set; DD_CORRUPT: it cannot be read; DD_UNAVAILABLE,
                             DD_IO, DD_BUSY, DD_NO_MEMORY */
    bool partial;         /* Redis did not answer: staged exposures are not in it */
    struct dd_slice blob; /* in the arena; staged exposures are merged in */
    uint64_t seed;        /* of the user: fingerprint = upper half of XXH3-64(item, seed) */
    unsigned pending;     /* staged exposures among it */
};

void dd_user_export(struct dd_dedup_loop *dl, struct dd_export_call *c);

/* ---- erasing ---- */

/* Another store of the register that may know the user and was not asked. */
struct dd_erase_other {
    const char *store, *admin;
    int64_t seen_ms;
};

struct dd_erase_call {
    /* in */
    struct dd_slice scene; /* empty: all that were ever registered, configured or not */
    bool one_period;       /* only `period`; deliveries and cached sets of its scenes go too, since what they
                              hold may belong to it */
    struct dd_period period;
    struct dd_slice user;
    bool legacy; /* while users are migrated: his old key is deleted too; else it counts only from now on */
    struct dd_arena *arena;
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err; /* DD_OK also when there was nothing; DD_NOT_FOUND: no such scene; DD_INVALID: no scene
                        has such periods; DD_UNAVAILABLE, DD_DISK_FULL, DD_IO, DD_BUSY, DD_NO_MEMORY: call
                        again, some may be gone already */
    unsigned scenes; /* that were gone through */
    unsigned keys, sets,
        records; /* removed: keys of the hot tier, filter sets, records of history and trace */
    const struct dd_erase_other *others;
    unsigned others_n;
};

void dd_user_erase(struct dd_admin *a, struct dd_dedup_loop *dl, struct dd_erase_call *c);

/* ---- forgetting items ---- */

struct dd_forget_call {
    /* in */
    const struct dd_scene *scene;
    struct dd_slice user;
    const struct dd_item *items;
    unsigned n;
    struct dd_arena *arena;
    void (*done)(void *arg);
    void *arg;
    /* out */
    enum dd_err err; /* DD_OK; DD_UNSUPPORTED: an item stands in a Bloom layer, which cannot forget (nothing
                        was changed, unless the layer came to be meanwhile); DD_UNAVAILABLE, DD_DISK_FULL,
                        DD_IO, DD_BUSY, DD_NO_MEMORY: call again, some may be forgotten already */
    unsigned forgotten; /* items that were known: staged, stored or delivered */
};

void dd_user_forget(struct dd_admin *a, struct dd_dedup_loop *dl, struct dd_forget_call *c);

#endif
