/* The wheel's thread, its mark, and what others ask of it. Emptying a slot is wheel_flush.c.
 *
 * Back-off: a tick that failed is followed by the next one after twice the time, from tick_ms up to a minute;
 * a request of an operator is tried at once. */
#include "dedup/wheel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/wait.h"
#include "dedup/wheel_impl.h"

#define BACKOFF_MAX_MS 60000
#define CLOCK_AHEAD_S  60 /* flushing the open slot moves the next one ahead by a second each time */

/* ---- the mark and the open slot ---- */

static int64_t floor_to(int64_t t, int64_t unit)
{
    return t - ((t % unit) + unit) % unit;
}

static int64_t now_s(struct dd_wheel *w)
{
    return dd_clock_period_now(w->clock).ms / 1000;
}

struct dd_hot_slot dd_wheel_open_slot(struct dd_wheel *w)
{
    int64_t mark = atomic_load(&w->sealed_s), now = now_s(w), slot_s = w->options.slot_s;
    int64_t begin = floor_to(now > mark ? now : mark, slot_s);
    return (struct dd_hot_slot){.start_s = begin > mark ? begin : mark, .end_s = begin + slot_s};
}

/* Sequentially consistent with raise_mark: an acknowledgement that reads the old mark comes before the walk.
 */
bool dd_wheel_is_open(const struct dd_wheel *w, struct dd_hot_slot slot)
{
    return slot.start_s >= atomic_load(&w->sealed_s);
}

static void raise_mark(struct dd_wheel *w, int64_t to_s)
{
    int64_t mark = atomic_load(&w->sealed_s);
    while (mark < to_s && !atomic_compare_exchange_weak(&w->sealed_s, &mark, to_s)) {
    }
}

static void seal_ended(struct dd_wheel *w)
{
    raise_mark(w, floor_to(now_s(w) - w->options.grace_s, w->options.slot_s));
}

/* What was listed in one run of Redis says nothing about another: until the next list everything may be
 * pending. The run is stored after the start: who reads it equal also reads this start or a later one. */
int64_t dd_wheel_oldest_s(const struct dd_wheel *w)
{
    if (w->staging && atomic_load(&w->listed_run) != dd_hot_run(w->hot)) return INT64_MIN;
    return atomic_load(&w->oldest_s);
}

/* ---- slots ---- */

static bool is_sealed(const struct dd_wheel *w, struct dd_hot_slot slot)
{
    return !dd_wheel_is_open(w, slot);
}

/* Publishes from which slot on pending may hold anything. `open` was taken before the list was read: what is
 * staged after the list goes to it or to a later one, so the published start is never too young. */
static void publish_oldest(struct dd_wheel *w, const struct dd_hot_slot *slots, unsigned n,
                           struct dd_hot_slot open, uint64_t run)
{
    int64_t oldest = w->options.stage ? open.start_s : INT64_MAX;
    for (unsigned i = 0; i < n; i++)
        if (slots[i].start_s < oldest) oldest = slots[i].start_s;
    /* A clock that was ahead and was put right has left slots to come: their time has been. */
    for (unsigned i = 0; i < n; i++)
        if (slots[i].start_s > now_s(w) + CLOCK_AHEAD_S) dd_clock_observe(w->clock, slots[i].start_s * 1000);
    atomic_store(&w->oldest_s, oldest);
    atomic_store(&w->listed_run, run);
}

static struct dd_wheel_slot_info *find_info(struct dd_wheel *w, struct dd_hot_slot slot)
{
    for (unsigned i = 0; i < w->slots_n; i++)
        if (w->slots[i].slot.start_s == slot.start_s && w->slots[i].slot.end_s == slot.end_s)
            return &w->slots[i];
    return NULL;
}

static void set_state(struct dd_wheel *w, struct dd_hot_slot slot, enum dd_wheel_slot_state state,
                      const char *error)
{
    pthread_mutex_lock(&w->lock);
    struct dd_wheel_slot_info *info = find_info(w, slot);
    if (info) {
        info->state = state;
        snprintf(info->last_error, sizeof info->last_error, "%s", error);
    }
    pthread_mutex_unlock(&w->lock);
}

static int64_t age_s(struct dd_wheel *w, struct dd_hot_slot slot)
{
    int64_t age = now_s(w) - slot.end_s;
    return age > 0 ? age : 0;
}

/* Shows the list to operators, with sizes, and keeps what is known of slots that were there before. */
static void show_slots(struct dd_wheel *w, const struct dd_hot_slot *slots, unsigned n)
{
    struct dd_wheel_slot_info shown[DD_WHEEL_SLOTS_SHOWN] = {0};
    unsigned shown_n = n < DD_WHEEL_SLOTS_SHOWN ? n : DD_WHEEL_SLOTS_SHOWN;
    int64_t lag = 0;
    for (unsigned i = 0; i < shown_n; i++) {
        shown[i].slot = slots[i];
        shown[i].state = is_sealed(w, slots[i]) ? DD_SLOT_SEALED : DD_SLOT_OPEN;
        if (dd_hot_staging_slot_size(w->staging, slots[i], &shown[i].users) != DD_OK) shown[i].users = 0;
        if (shown[i].state == DD_SLOT_SEALED && age_s(w, slots[i]) > lag) lag = age_s(w, slots[i]);
    }
    pthread_mutex_lock(&w->lock);
    for (unsigned i = 0; i < shown_n; i++) {
        const struct dd_wheel_slot_info *old = find_info(w, slots[i]);
        if (!old || !old->last_error[0]) continue;
        shown[i].state = DD_SLOT_RETRYING;
        memcpy(shown[i].last_error, old->last_error, sizeof shown[i].last_error);
    }
    memcpy(w->slots, shown, shown_n * sizeof *shown);
    w->slots_n = shown_n;
    w->slots_total = n;
    w->known = true;
    w->lag_s = lag;
    pthread_mutex_unlock(&w->lock);
    dd_gauge_set(w->count.lag_s, lag);
}

static enum dd_err list_slots(struct dd_wheel *w, struct dd_hot_slot **out, unsigned *n)
{
    struct dd_hot_slot open = dd_wheel_open_slot(w);
    uint64_t run = dd_hot_run(w->hot);
    const struct dd_hot_slot *slots;
    enum dd_err err = dd_hot_staging_slots(w->staging, &slots, n);
    if (err != DD_OK) return err;
    publish_oldest(w, slots, *n, open, run);
    *out = malloc((*n + 1) * sizeof **out); /* a copy: the next call of the same name reuses theirs */
    if (!*out) return DD_NO_MEMORY;
    if (*n) memcpy(*out, slots, *n * sizeof **out);
    show_slots(w, *out, *n);
    return DD_OK;
}

/* ---- ticks ---- */

static enum dd_err empty_one(struct dd_wheel *w, struct dd_hot_slot slot, struct dd_wheel_flush *total)
{
    char why[96] = "";
    uint64_t users = 0, items = 0;
    set_state(w, slot, DD_SLOT_FLUSHING, "");
    enum dd_err err = dd_wheel_empty_slot(w, slot, &users, &items, why, sizeof why);
    total->users += users;
    total->items += items;
    if (err == DD_OK) {
        total->slots++;
        dd_info("wheel.flushed", "slot=%lld users=%llu items=%llu", (long long)slot.start_s,
                (unsigned long long)users, (unsigned long long)items);
    } else if (err != DD_SHUTDOWN) {
        set_state(w, slot, DD_SLOT_RETRYING, why);
        snprintf(w->tick_error, sizeof w->tick_error, "slot %lld: %s", (long long)slot.start_s, why);
        dd_warn("wheel.retry", "slot=%lld users=%llu error=\"%s\"", (long long)slot.start_s,
                (unsigned long long)users, why);
    }
    return err;
}

/* Empties every sealed slot, oldest first. A slot that fails because of itself (DD_BUSY) does not hold up the
 * others. */
static enum dd_err empty_sealed(struct dd_wheel *w, struct dd_wheel_flush *total)
{
    struct dd_hot_slot *slots = NULL;
    unsigned n = 0;
    enum dd_err err = list_slots(w, &slots, &n), worst = err;
    for (unsigned i = 0; slots && i < n && (err == DD_OK || err == DD_BUSY); i++) {
        if (!is_sealed(w, slots[i])) continue;
        err = empty_one(w, slots[i], total);
        if (err != DD_OK) worst = err;
    }
    free(slots);
    if (n && worst == DD_OK && (worst = list_slots(w, &slots, &n)) == DD_OK) free(slots);
    return worst;
}

static void note_result(struct dd_wheel *w, enum dd_err err)
{
    if (err != DD_OK && !w->tick_error[0])
        snprintf(w->tick_error, sizeof w->tick_error, "%s: %s", dd_err_name(err),
                 dd_hot_staging_error(w->staging));
    pthread_mutex_lock(&w->lock);
    memcpy(w->last_error, w->tick_error, sizeof w->last_error);
    pthread_mutex_unlock(&w->lock);
}

static struct dd_wheel_flush *take_requests(struct dd_wheel *w, bool *paused)
{
    pthread_mutex_lock(&w->lock);
    struct dd_wheel_flush *requests = w->requests;
    w->requests = NULL;
    *paused = w->paused;
    pthread_mutex_unlock(&w->lock);
    return requests;
}

static void answer_requests(struct dd_wheel_flush *f, const struct dd_wheel_flush *total, enum dd_err err)
{
    while (f) {
        struct dd_wheel_flush *next = f->next; /* after the post f belongs to its owner again */
        f->err = err;
        f->slots = total->slots;
        f->users = total->users;
        f->items = total->items;
        f->task = (struct dd_task){.run = f->done, .arg = f->arg};
        dd_loop_post(f->loop, &f->task);
        f = next;
    }
}

/* The open slot, and those that begin later than it: slots were shorter when they were made. Not all before
 * now + 1, since what is staged after that in the same second would not be sealed by the next call. */
static void seal_all(struct dd_wheel *w)
{
    const struct dd_hot_slot *slots;
    unsigned n;
    raise_mark(w, dd_wheel_open_slot(w).start_s + 1);
    if (dd_hot_staging_slots(w->staging, &slots, &n) == DD_OK && n) raise_mark(w, slots[n - 1].start_s + 1);
}

static enum dd_err tick(struct dd_wheel *w)
{
    bool paused;
    struct dd_wheel_flush *requests = take_requests(w, &paused), total = {0};
    w->tick_error[0] = 0;
    dd_wheel_beat(w, false);
    seal_ended(w);
    for (struct dd_wheel_flush *f = requests; f; f = f->next)
        if (f->all) seal_all(w);
    enum dd_err err;
    if (w->displaced) {
        err = DD_SHUTDOWN; /* what is staged belongs to the process that holds the store now */
    } else if (paused && !requests) {
        struct dd_hot_slot *slots;
        unsigned n;
        err = list_slots(w, &slots, &n);
        if (err == DD_OK) free(slots);
    } else {
        err = empty_sealed(w, &total);
    }
    note_result(w, err);
    dd_wheel_keep_mark(w);
    dd_wheel_log_staging(w);
    answer_requests(requests, &total, err);
    return err;
}

static bool wait_for(struct dd_wheel *w, int64_t ms, bool also_requests)
{
    struct timespec until = dd_until_ms(ms);
    pthread_mutex_lock(&w->lock);
    while (!w->stop && !(also_requests && w->requests) && dd_cond_wait_until(&w->wake, &w->lock, &until)) {
    }
    bool go_on = !w->stop;
    pthread_mutex_unlock(&w->lock);
    return go_on;
}

static bool has_requests(struct dd_wheel *w)
{
    pthread_mutex_lock(&w->lock);
    bool any = w->requests != NULL;
    pthread_mutex_unlock(&w->lock);
    return any;
}

bool dd_wheel_rest(struct dd_wheel *w, int64_t ms, bool also_requests)
{
    int64_t piece = w->options.boot ? w->options.boot->alive_ms / 3 : ms;
    for (; ms > piece; ms -= piece) {
        if (!wait_for(w, piece, also_requests)) return false;
        if (also_requests && has_requests(w)) return true;
        dd_wheel_beat(w, false);
    }
    return wait_for(w, ms, also_requests);
}

static void *run(void *arg)
{
    struct dd_wheel *w = arg;
    int64_t wait_ms;
    unsigned failures = 0;
    do {
        enum dd_err err = tick(w);
        failures = err == DD_OK ? 0 : failures + (failures < 16);
        wait_ms = w->options.tick_ms << (failures ? failures - 1 : 0);
        if (wait_ms > BACKOFF_MAX_MS)
            wait_ms = w->options.tick_ms > BACKOFF_MAX_MS ? w->options.tick_ms : BACKOFF_MAX_MS;
    } while (dd_wheel_rest(w, wait_ms, true));
    bool paused;
    struct dd_wheel_flush none = {0};
    answer_requests(take_requests(w, &paused), &none, DD_SHUTDOWN); /* no more come after stop */
    return NULL;
}

/* ---- making and asking ---- */

static void register_counters(struct dd_wheel *w, struct dd_stats *stats)
{
    w->count.users = dd_stats_counter(stats, "dedupd_wheel_users_total",
                                      "Users whose pending was folded into the store.");
    w->count.items = dd_stats_counter(stats, "dedupd_wheel_items_total",
                                      "Pending items folded into the store.");
    w->count.pages = dd_stats_counter(stats, "dedupd_wheel_pages_total", "Batches of users flushed.");
    w->count.failures = dd_stats_counter(stats, "dedupd_wheel_failures_total",
                                         "Slots that could not be emptied at a tick.");
    w->count.stripped = dd_stats_counter(stats, "dedupd_wheel_stripped_total",
                                         "Users erased while their flush was under way.");
    w->count.page_us = dd_stats_histogram(stats, "dedupd_wheel_page_seconds",
                                          "Time to flush one batch of users.");
    w->count.lag_s = dd_stats_gauge(stats, "dedupd_wheel_lag_seconds",
                                    "Age of the oldest sealed slot that is not empty.");
}

static void init_sync(struct dd_wheel *w)
{
    dd_cond_init(&w->wake);
    pthread_mutex_init(&w->lock, NULL);
}

/* Before anything is served, if Redis answers: which slots there are, also those of a clock that was ahead.
 */
static void look_first(struct dd_wheel *w)
{
    struct dd_hot_slot *slots;
    unsigned n;
    if (list_slots(w, &slots, &n) == DD_OK) free(slots);
}

enum dd_err dd_wheel_create(const struct dd_wheel_options *o, struct dd_store *store, struct dd_hot *hot,
                            const struct dd_scenes *scenes, struct dd_clock *clock, struct dd_stats *stats,
                            struct dd_wheel **out)
{
    struct dd_wheel *w = calloc(1, sizeof *w);
    if (!w) return DD_NO_MEMORY;
    if (dd_hints_init(&w->hints) != DD_OK) {
        free(w);
        return DD_NO_MEMORY;
    }
    bool embedded = dd_hot_is_embedded(hot);
    w->options = *o;
    if (embedded) w->options.stage = false;
    w->store = store;
    w->hot = hot;
    w->scenes = scenes;
    w->clock = clock;
    w->paused = o->paused;
    w->rate_users_s = o->rate_users_s;
    atomic_init(&w->sealed_s, INT64_MIN);
    atomic_init(&w->oldest_s, embedded ? INT64_MAX : INT64_MIN);
    atomic_init(&w->listed_run, UINT64_MAX);
    register_counters(w, stats);
    init_sync(w);
    seal_ended(w);
    enum dd_err err = embedded ? DD_OK : dd_hot_staging_open(hot, &w->staging);
    if (err == DD_OK) dd_wheel_recall_mark(w);
    if (err == DD_OK && !embedded) err = dd_wheel_refuse_evicting(w);
    if (err == DD_OK && !embedded) look_first(w);
    if (err == DD_OK && !embedded) {
        w->started = pthread_create(&w->thread, NULL, run, w) == 0;
        if (!w->started) err = DD_NO_MEMORY;
    }
    if (err != DD_OK) {
        dd_wheel_destroy(w);
        return err;
    }
    *out = w;
    return DD_OK;
}

void dd_wheel_stop(struct dd_wheel *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

void dd_wheel_destroy(struct dd_wheel *w)
{
    if (!w) return;
    dd_wheel_stop(w);
    if (w->started) pthread_join(w->thread, NULL);
    if (w->started) dd_wheel_leave_mark(w);
    if (w->staging && w->registered && !w->displaced &&
        dd_hot_boot_leave(w->staging, w->options.boot) != DD_OK)
        dd_warn("store.not_deregistered", "error=\"%s\"", dd_hot_staging_error(w->staging));
    if (w->staging) dd_hot_staging_close(w->staging);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    dd_hints_free(&w->hints);
    free(w);
}

void dd_wheel_reload(struct dd_wheel *w, bool paused, unsigned rate_users_s)
{
    pthread_mutex_lock(&w->lock);
    w->paused = paused;
    w->rate_users_s = rate_users_s;
    pthread_mutex_unlock(&w->lock);
}

enum dd_err dd_wheel_flush(struct dd_wheel *w, struct dd_wheel_flush *f)
{
    if (!w->staging) return DD_UNSUPPORTED;
    pthread_mutex_lock(&w->lock);
    bool stop = w->stop;
    if (!stop) {
        f->next = w->requests;
        w->requests = f;
        pthread_cond_broadcast(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    return stop ? DD_SHUTDOWN : DD_PENDING;
}

void dd_wheel_get_status(struct dd_wheel *w, struct dd_wheel_status *out)
{
    *out = (struct dd_wheel_status){.embedded = !w->staging,
                                    .staging_wanted = w->options.stage,
                                    .staging = dd_wheel_staging(w),
                                    .displaced = w->displaced,
                                    .users_flushed = dd_counter_get(w->count.users),
                                    .items_flushed = dd_counter_get(w->count.items)};
    if (w->staging) dd_hot_get_durability(w->hot, &out->durability);
    out->blind = w->blind;
    pthread_mutex_lock(&w->lock);
    out->paused = w->paused;
    out->known = w->known;
    out->lag_s = w->lag_s;
    out->lagging = w->lag_s > (int64_t)w->options.lag_warn_s;
    out->slots = w->slots_total;
    memcpy(out->last_error, w->last_error, sizeof out->last_error);
    pthread_mutex_unlock(&w->lock);
}

unsigned dd_wheel_get_slots(struct dd_wheel *w, struct dd_wheel_slot_info *out, unsigned max)
{
    pthread_mutex_lock(&w->lock);
    unsigned n = w->slots_n < max ? w->slots_n : max;
    memcpy(out, w->slots, n * sizeof *out);
    pthread_mutex_unlock(&w->lock);
    return n;
}
