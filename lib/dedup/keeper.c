#include "dedup/keeper.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/wait.h"

#define TRACKED_MAX 1024 /* scenes ever registered that age out; more wait for a restart */

/* What is known of one scene: from which period on everything is kept, since when, and what was dropped. */
struct tracked {
    char scene[DD_SCENE_NAME_MAX + 1];
    enum dd_period_kind kind;
    int32_t first_kept, dropped_below;
    struct dd_mono since;
};

struct dd_keeper {
    struct dd_store *store;
    const struct dd_scenes *scenes;
    struct dd_clock *clock;
    int64_t hold_ms, tick_ms;
    struct dd_counter *expired;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
    struct tracked *tracked;
    unsigned tracked_n;
};

static struct tracked *find(struct dd_keeper *k, struct dd_slice scene, enum dd_period_kind kind)
{
    for (unsigned i = 0; i < k->tracked_n; i++)
        if (k->tracked[i].kind == kind && dd_slice_eq(scene, dd_slice_str(k->tracked[i].scene)))
            return &k->tracked[i];
    if (k->tracked_n == TRACKED_MAX || scene.len > DD_SCENE_NAME_MAX) return NULL;
    struct tracked *t = &k->tracked[k->tracked_n++];
    *t = (struct tracked){.kind = kind, .first_kept = INT32_MIN, .dropped_below = INT32_MIN};
    memcpy(t->scene, scene.ptr, scene.len);
    return t;
}

/* Notes what is to be kept now; the drop itself follows outside the visit. */
static void visit_scene(void *arg, struct dd_slice name, enum dd_period_kind kind, unsigned window)
{
    struct dd_keeper *k = arg;
    if (kind == DD_PERIOD_FOREVER) return;
    const struct dd_scene *configured = dd_scenes_find(k->scenes, name);
    if (configured && configured->window > window) window = configured->window;
    struct tracked *t = find(k, name, kind);
    if (!t) return;
    int32_t first_kept = dd_period_at(kind, dd_clock_wall(k->clock)).ordinal - (int32_t)window;
    if (first_kept == t->first_kept) return;
    t->first_kept = first_kept; /* also when the clock went back: then nothing more is dropped */
    t->since = dd_clock_mono(k->clock);
}

static void drop_due(struct dd_keeper *k, struct tracked *t)
{
    if (t->first_kept <= t->dropped_below) return;
    if (dd_mono_ms_between(t->since, dd_clock_mono(k->clock)) < k->hold_ms) return;
    enum dd_err err = dd_store_expire(k->store, dd_slice_str(t->scene), t->kind, t->first_kept);
    char text[DD_PERIOD_TEXT];
    dd_period_format((struct dd_period){t->kind, t->first_kept}, text);
    if (err != DD_OK) {
        dd_error("expiry.failed", "scene=%s before=%s error=%s", t->scene, text, dd_err_name(err));
        t->since = dd_clock_mono(k->clock); /* tried again after another hold */
        return;
    }
    dd_info("expiry.dropped", "scene=%s before=%s", t->scene, text);
    dd_count(k->expired, 1);
    t->dropped_below = t->first_kept;
}

static void look(struct dd_keeper *k)
{
    dd_store_each_scene(k->store, visit_scene, k);
    for (unsigned i = 0; i < k->tracked_n; i++)
        drop_due(k, &k->tracked[i]);
}

/* Waits for one tick; false when it is time to stop. */
static bool wait_tick(struct dd_keeper *k)
{
    struct timespec until = dd_until_ms(k->tick_ms);
    pthread_mutex_lock(&k->lock);
    while (!k->stop && dd_cond_wait_until(&k->wake, &k->lock, &until)) {
    }
    bool go_on = !k->stop;
    pthread_mutex_unlock(&k->lock);
    return go_on;
}

static void *run(void *arg)
{
    struct dd_keeper *k = arg;
    do {
        look(k);
    } while (wait_tick(k));
    return NULL;
}

enum dd_err dd_keeper_create(struct dd_store *store, const struct dd_scenes *scenes, struct dd_clock *clock,
                             int64_t hold_ms, int64_t tick_ms, struct dd_stats *stats, struct dd_keeper **out)
{
    struct dd_keeper *k = calloc(1, sizeof *k);
    if (k) k->tracked = calloc(TRACKED_MAX, sizeof *k->tracked);
    if (!k || !k->tracked) goto no_memory;
    k->store = store;
    k->scenes = scenes;
    k->clock = clock;
    k->hold_ms = hold_ms;
    k->tick_ms = tick_ms;
    k->expired = dd_stats_counter(stats, "dedupd_expiry_drops_total",
                                  "Times that old periods of a scene were dropped.");
    dd_cond_init(&k->wake);
    pthread_mutex_init(&k->lock, NULL);
    if (pthread_create(&k->thread, NULL, run, k)) {
        pthread_cond_destroy(&k->wake);
        pthread_mutex_destroy(&k->lock);
        goto no_memory;
    }
    *out = k;
    return DD_OK;
no_memory:
    if (k) free(k->tracked);
    free(k);
    return DD_NO_MEMORY;
}

void dd_keeper_destroy(struct dd_keeper *k)
{
    if (!k) return;
    pthread_mutex_lock(&k->lock);
    k->stop = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    dd_store_end_expiry(k->store);
    pthread_join(k->thread, NULL);
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->lock);
    free(k->tracked);
    free(k);
}
