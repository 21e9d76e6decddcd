#include "dedup/history.h"
#include "dedup/internal.h"
#include "dedup/migrate_impl.h"

#include <stdlib.h>

#include "base/log.h"

static void register_counters(struct dd_dedup *d, struct dd_stats *stats)
{
#define COUNTER(field, name, help) d->count.field = dd_stats_counter(stats, "dedupd_dedup_" name, help)
    COUNTER(candidates, "candidates_total", "Candidates that /filter was asked about.");
    COUNTER(seen_delivered, "dropped_total{by=\"delivered\"}", "Candidates dropped, by what knew them.");
    COUNTER(seen_pending, "dropped_total{by=\"pending\"}", "Candidates dropped, by what knew them.");
    COUNTER(seen_history, "dropped_total{by=\"history\"}", "Candidates dropped, by what knew them.");
    COUNTER(seen_legacy, "dropped_total{by=\"legacy\"}", "Candidates dropped, by what knew them.");
    COUNTER(partial, "partial_total", "Answers made without part of the data.");
    COUNTER(cache_hit, "cache_total{result=\"hit\"}", "Cached filter sets looked up, by result.");
    COUNTER(cache_stale, "cache_total{result=\"stale\"}", "Cached filter sets looked up, by result.");
    COUNTER(cache_miss, "cache_total{result=\"miss\"}", "Cached filter sets looked up, by result.");
    COUNTER(cache_corrupt, "cache_total{result=\"corrupt\"}", "Cached filter sets looked up, by result.");
    COUNTER(blob_corrupt, "corrupt_sets_total", "Stored filter sets that failed verification when read.");
    COUNTER(exposed_items, "exposed_items_total", "Items whose exposure was accepted.");
    COUNTER(expired_items, "expired_items_total", "Items whose exposure was older than the window.");
    COUNTER(limited_items, "limited_items_total", "Items refused at a user's cap.");
    COUNTER(claimed, "claimed_items_total", "Deliveries recorded.");
    COUNTER(claim_lost, "claim_lost_total", "Deliveries that another request had recorded first.");
    COUNTER(deadline, "deadline_total", "Requests that reached their deadline.");
#undef COUNTER
}

static enum dd_err observe_period(void *arg, struct dd_period period)
{
    struct dd_clock *clock = arg;
    if (period.kind != DD_PERIOD_FOREVER) dd_clock_observe(clock, dd_period_start_ms(period));
    return DD_OK;
}

/* A clock that was ahead and was put right before this start has left sets in periods to come. They count:
 * the period does not go back over a restart either, and requests read both sides (dd_window_periods). */
static enum dd_err observe_periods(struct dd_dedup *d)
{
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < dd_scenes_count(d->scenes) && err == DD_OK; i++) {
        const struct dd_scene *scene = dd_scenes_at(d->scenes, i);
        err = dd_store_each_period(d->store, dd_scene_slice(scene), scene->period, observe_period, d->clock);
        if (err == DD_CORRUPT)
            err = DD_OK; /* damaged files (logged) must not keep the rest from being served */
    }
    int64_t behind_ms = dd_clock_behind_ms(d->clock);
    if (err == DD_OK && behind_ms > 0)
        dd_error("clock.behind",
                 "ms=%lld hint=\"the store holds exposures of a period that has not begun by this clock\"",
                 (long long)behind_ms);
    return err;
}

enum dd_err dd_dedup_create(const struct dd_dedup_options *o, const struct dd_scenes *scenes,
                            struct dd_store *store, struct dd_hot *hot, struct dd_wheel *wheel,
                            struct dd_clock *clock, struct dd_stats *stats, struct dd_dedup **out)
{
    struct dd_dedup *d = calloc(1, sizeof *d);
    if (!d) return DD_NO_MEMORY;
    if (dd_tally_create(&d->tally) != DD_OK) {
        free(d);
        return DD_NO_MEMORY;
    }
    d->options = *o;
    d->scenes = scenes;
    d->store = store;
    d->hot = hot;
    d->wheel = wheel;
    d->clock = clock;
    d->secret = dd_store_secret(store);
    d->change = dd_store_change(store);
    pthread_mutex_init(&d->loops_lock, NULL);
    register_counters(d, stats);
    enum dd_err err = dd_retired_init(&d->retired, store, scenes);
    if (err == DD_OK) err = observe_periods(d);
    if (err != DD_OK) {
        dd_dedup_destroy(d);
        return err;
    }
    *out = d;
    return DD_OK;
}

void dd_dedup_destroy(struct dd_dedup *d)
{
    if (!d) return;
    dd_retired_reset(&d->retired);
    dd_tally_destroy(d->tally);
    pthread_mutex_destroy(&d->loops_lock);
    free(d);
}

static void enter_loop(struct dd_dedup_loop *dl)
{
    pthread_mutex_lock(&dl->d->loops_lock);
    dl->next = dl->d->loops;
    dl->d->loops = dl;
    pthread_mutex_unlock(&dl->d->loops_lock);
}

static void leave_loop(struct dd_dedup_loop *dl)
{
    pthread_mutex_lock(&dl->d->loops_lock);
    struct dd_dedup_loop **at = &dl->d->loops;
    while (*at != dl)
        at = &(*at)->next;
    *at = dl->next;
    pthread_mutex_unlock(&dl->d->loops_lock);
}

enum dd_err dd_dedup_loop_create(struct dd_dedup *d, struct dd_loop *loop, struct dd_dedup_loop **out)
{
    struct dd_dedup_loop *dl = calloc(1, sizeof *dl);
    if (!dl) return DD_NO_MEMORY;
    dl->d = d;
    dl->loop = loop;
    enum dd_err err = dd_hot_loop_create(d->hot, loop, &dl->hot);
    if (err == DD_OK && d->migrate && d->migrate->o.dual)
        err = dd_legacy_loop_create(d->migrate->legacy, dl->hot, loop, &dl->legacy);
    if (err != DD_OK) {
        dd_hot_loop_destroy(dl->hot);
        free(dl);
        return err;
    }
    enter_loop(dl);
    *out = dl;
    return DD_OK;
}

void dd_dedup_loop_destroy(struct dd_dedup_loop *dl)
{
    if (!dl) return;
    leave_loop(dl);
    dd_legacy_loop_destroy(dl->legacy);
    dd_hot_loop_destroy(dl->hot);
    free(dl);
}

unsigned dd_dedup_loop_inflight(const struct dd_dedup_loop *dl)
{
    return dl->inflight;
}

struct dd_migrate *dd_dedup_migrate(struct dd_dedup *d)
{
    return d->migrate;
}

unsigned dd_window_periods(struct dd_clock *clock, const struct dd_scene *scene, unsigned window, bool *cut,
                           struct dd_period out[DD_WINDOW_MAX])
{
    struct dd_period newest = dd_period_at(scene->period, dd_clock_period_now(clock));
    struct dd_period shown = dd_period_at(scene->period, dd_clock_wall(clock));
    if (newest.kind == DD_PERIOD_FOREVER) window = 1;
    int32_t oldest = (shown.ordinal < newest.ordinal ? shown.ordinal : newest.ordinal) - (int32_t)window + 1;
    unsigned n = 0;
    int32_t o = newest.ordinal;
    for (; o >= oldest && o >= 0 && n < DD_WINDOW_MAX; o--)
        out[n++] = (struct dd_period){scene->period, o};
    if (cut) *cut = o >= oldest && o >= 0;
    return n;
}

/* A slot that began at t holds exposures of the period at t and of the one before: nothing older is staged.
 */
unsigned dd_window_pending(const struct dd_dedup *d, const struct dd_period *period, unsigned n)
{
    int64_t oldest_s = d->wheel ? dd_wheel_oldest_s(d->wheel) : INT64_MAX;
    if (oldest_s == INT64_MAX) return 0;
    if (oldest_s == INT64_MIN || period[0].kind == DD_PERIOD_FOREVER) return n;
    int32_t oldest = dd_period_at(period[0].kind, (struct dd_wall){oldest_s * 1000}).ordinal;
    if (oldest > period[0].ordinal) oldest = period[0].ordinal;
    unsigned count = 0;
    while (count < n && period[count].ordinal >= oldest - 1)
        count++;
    return count;
}

const char *dd_durability_name(enum dd_durability durability)
{
    static const char *const names[] = {[DD_DURABLE_SYNC] = "sync",
                                        [DD_DURABLE_WAL] = "wal",
                                        [DD_DURABLE_STAGED] = "staged",
                                        [DD_DURABLE_VOLATILE] = "volatile"};
    return names[durability];
}

void dd_dedup_get_status(struct dd_dedup *d, struct dd_dedup_status *out)
{
    *out = (struct dd_dedup_status){.clock_behind_ms = dd_clock_behind_ms(d->clock)};
    dd_store_get_status(d->store, &out->store);
    dd_hot_get_status(d->hot, &out->hot);
    if (d->wheel) dd_wheel_get_status(d->wheel, &out->wheel);
    bool staged = out->hot.up && out->wheel.staging != DD_STAGING_OFF &&
                  dd_history_mode(d->options.history) !=
                      DD_HISTORY_ALL; /* which needs the store in any case */
    out->writable = out->store.writable || staged;
    if (d->migrate && d->migrate->o.dual) dd_legacy_get_status(d->migrate->legacy, &out->legacy);
    bool old = !out->legacy.asked || out->legacy.up;
    out->full = (out->hot.embedded || out->hot.up) && out->hot.recent_intact && !out->wheel.blind && old;
}
