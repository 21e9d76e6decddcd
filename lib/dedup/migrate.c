#include "dedup/migrate.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/wait.h"
#include "dedup/migrate_impl.h"

#define RETRY_MS 200
#define RECENT   65536

/* ---- the queue of lazy migration ---- */

void dd_migrate_enqueue(struct dd_migrate *m, struct dd_slice user)
{
    uint64_t hash = dd_hash64(user, 0) | 1; /* never the 0 of a free place */
    uint64_t *place = &m->recent[hash >> 1 & (RECENT - 1)];
    pthread_mutex_lock(&m->lock);
    bool full = m->queued == DD_MIGRATE_QUEUE;
    if (*place != hash && full) m->dropped++;
    if (*place != hash && !full) {
        struct dd_migrate_user *u = &m->queue[(m->head + m->queued++) % DD_MIGRATE_QUEUE];
        u->len = (uint8_t)user.len;
        memcpy(u->bytes, user.ptr, user.len);
        *place = hash;
        pthread_cond_signal(&m->wake);
    }
    pthread_mutex_unlock(&m->lock);
}

/* Under the lock. */
static unsigned take_queued(struct dd_migrate *m, struct dd_migrate_user *out)
{
    unsigned n = 0;
    for (; n < DD_MIGRATE_BATCH && m->queued; m->queued--) {
        out[n] = m->queue[m->head];
        m->head = (m->head + 1) % DD_MIGRATE_QUEUE;
        uint64_t hash = dd_hash64(dd_slice_of(out[n].bytes, out[n].len), 0) | 1;
        uint64_t *place = &m->recent[hash >> 1 & (RECENT - 1)];
        if (*place == hash) *place = 0; /* who is queued from now on is migrated again */
        n++;
    }
    return n;
}

static enum dd_err migrate_queued(struct dd_migrate *m, const struct dd_migrate_user *users, unsigned n)
{
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < n && err == DD_OK; i++)
        err = dd_migrate_take(m, dd_slice_of(users[i].bytes, users[i].len), NULL);
    if (err == DD_OK) err = dd_migrate_flush(m, NULL);
    if (err != DD_OK) dd_migrate_drop(m); /* they come again with their next request */
    return err == DD_BUSY ? DD_OK : err;
}

/* ---- the thread ---- */

bool dd_migrate_stopping(struct dd_migrate *m)
{
    pthread_mutex_lock(&m->lock);
    bool stop = m->stop;
    pthread_mutex_unlock(&m->lock);
    return stop;
}

void dd_migrate_failed(struct dd_migrate *m, const char *what, enum dd_err err)
{
    char text[128] = "";
    if (err != DD_OK)
        snprintf(text, sizeof text, "%s: %s: %.80s", what, dd_err_name(err), dd_legacy_sync_error(m->sync));
    pthread_mutex_lock(&m->lock);
    bool news = strcmp(text, m->last_error) != 0;
    memcpy(m->last_error, text, sizeof text);
    pthread_mutex_unlock(&m->lock);
    if (news && err != DD_OK) dd_warn("migrate.failed", "%s", text);
}

/* Under the lock: waits for ms, or for work (-1). */
static void wait_for(struct dd_migrate *m, int64_t ms)
{
    if (ms < 0) {
        pthread_cond_wait(&m->wake, &m->lock);
        return;
    }
    struct timespec until = dd_until_ms(ms);
    while (!m->stop && dd_cond_wait_until(&m->wake, &m->lock, &until)) {
    }
}

/* What one turn finds to do. */
struct turn {
    struct dd_migrate_user users[DD_MIGRATE_BATCH];
    unsigned n, rate_users_s;
    bool bulk, verify, unsaved;
};

/* false: it is time to stop. */
static bool next_turn(struct dd_migrate *m, struct turn *t)
{
    pthread_mutex_lock(&m->lock);
    while (!m->stop && !m->unsaved && !m->queued && m->bulk.state != DD_BULK_RUNNING && !m->verify.running)
        wait_for(m, -1);
    t->n = take_queued(m, t->users);
    t->rate_users_s = m->bulk.rate_users_s;
    t->bulk = m->bulk.state == DD_BULK_RUNNING;
    t->verify = m->verify.running;
    t->unsaved = m->unsaved;
    bool go_on = !m->stop;
    pthread_mutex_unlock(&m->lock);
    return go_on;
}

/* Users that were written take their time by the rate; a failure takes a pause. */
static void pause_after(struct dd_migrate *m, const struct turn *t, uint64_t users, int64_t took_ms,
                        enum dd_err err)
{
    int64_t ms = t->rate_users_s ? (int64_t)(users * 1000 / t->rate_users_s) - took_ms : 0;
    if (err != DD_OK) ms = RETRY_MS;
    if (ms <= 0) return;
    pthread_mutex_lock(&m->lock);
    wait_for(m, ms);
    pthread_mutex_unlock(&m->lock);
}

static void *run(void *arg)
{
    struct dd_migrate *m = arg;
    struct turn t;
    while (next_turn(m, &t)) {
        struct dd_mono begun = dd_clock_mono(m->d->clock);
        uint64_t users = t.n;
        if (t.unsaved) dd_bulk_save(m);
        enum dd_err err = migrate_queued(m, t.users, t.n);
        if (err == DD_OK && t.bulk) err = dd_bulk_step(m, &users);
        if (err == DD_OK && t.verify) dd_verify_run(m);
        dd_migrate_failed(m, t.bulk ? "bulk" : "lazy", err);
        pause_after(m, &t, users, dd_mono_ms_between(begun, dd_clock_mono(m->d->clock)), err);
    }
    if (t.unsaved) dd_bulk_save(m); /* what was asked for just before the stop */
    return NULL;
}

/* ---- life ---- */

static void register_counters(struct dd_migrate *m, struct dd_stats *stats)
{
#define COUNTER(field, help) m->count.field = dd_stats_counter(stats, "dedupd_migrate_" #field "_total", help)
    COUNTER(users, "Users migrated.");
    COUNTER(entries, "Entries of old keys that were migrated.");
    COUNTER(skipped, "Entries of old keys older than the window, or no items.");
    COUNTER(wrong_type, "Old keys of another type than stated.");
    COUNTER(too_large, "Old keys with more entries than can be migrated.");
    COUNTER(erased, "Users whose old key no longer counts because they were erased.");
#undef COUNTER
}

static void init_sync(struct dd_migrate *m)
{
    dd_cond_init(&m->wake);
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->erase_lock, NULL);
}

static enum dd_err open_parts(struct dd_migrate *m, struct dd_stats *stats)
{
    m->queue = calloc(DD_MIGRATE_QUEUE, sizeof *m->queue);
    m->recent = calloc(RECENT, sizeof *m->recent);
    if (!m->queue || !m->recent) return DD_NO_MEMORY;
    enum dd_err err = dd_migrate_jobs_create(m);
    if (err == DD_OK) err = dd_legacy_create(&m->o.legacy, m->d->hot, stats, &m->legacy);
    if (err == DD_OK) err = dd_legacy_sync_open(m->legacy, &m->sync);
    return err == DD_OK ? dd_legacy_sync_open(m->legacy, &m->erase_sync) : err;
}

enum dd_err dd_migrate_create(const struct dd_migrate_options *o, struct dd_dedup *d, struct dd_stats *stats,
                              struct dd_migrate **out)
{
    struct dd_migrate *m = calloc(1, sizeof *m);
    if (!m) return DD_NO_MEMORY;
    m->o = *o;
    m->d = d;
    init_sync(m);
    register_counters(m, stats);
    enum dd_err err = open_parts(m, stats);
    if (err == DD_OK) {
        dd_bulk_load(m);
        m->bulk.rate_users_s = m->bulk.state == DD_BULK_RUNNING ? m->bulk.rate_users_s : o->rate_users_s;
        m->started = o->dual && pthread_create(&m->thread, NULL, run, m) == 0;
        if (o->dual && !m->started) err = DD_NO_MEMORY;
    }
    if (err != DD_OK) {
        dd_migrate_destroy(m);
        return err;
    }
    d->migrate = m;
    *out = m;
    return DD_OK;
}

void dd_migrate_destroy(struct dd_migrate *m)
{
    if (!m) return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_broadcast(&m->wake);
    pthread_mutex_unlock(&m->lock);
    if (m->started) pthread_join(m->thread, NULL);
    if (m->d->migrate == m) m->d->migrate = NULL;
    dd_migrate_jobs_destroy(m);
    dd_legacy_sync_close(m->sync);
    dd_legacy_sync_close(m->erase_sync);
    dd_legacy_destroy(m->legacy);
    pthread_cond_destroy(&m->wake);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->erase_lock);
    free(m->queue);
    free(m->recent);
    free(m);
}

/* ---- for operators ---- */

void dd_migrate_get_status(struct dd_migrate *m, struct dd_migrate_status *out)
{
    *out = (struct dd_migrate_status){.dual = m->o.dual,
                                      .lazy = m->o.lazy,
                                      .fpr = m->o.scene->policy.fpr * m->o.scene->window,
                                      .users = dd_counter_get(m->count.users),
                                      .entries = dd_counter_get(m->count.entries),
                                      .skipped = dd_counter_get(m->count.skipped),
                                      .wrong_type = dd_counter_get(m->count.wrong_type),
                                      .too_large = dd_counter_get(m->count.too_large)};
    pthread_mutex_lock(&m->lock);
    out->queued = m->queued;
    out->dropped = m->dropped;
    out->bulk = m->bulk;
    out->verify = m->verify;
    memcpy(out->last_error, m->last_error, sizeof out->last_error);
    pthread_mutex_unlock(&m->lock);
    struct dd_legacy_status old = {.up = true};
    if (m->o.dual) dd_legacy_get_status(m->legacy, &old);
    if (!old.up && !*out->last_error)
        snprintf(out->last_error, sizeof out->last_error, "filter: %.100s", old.last_error);
    out->progress = dd_bulk_progress(&out->bulk);
}

enum dd_err dd_migrate_verify(struct dd_migrate *m, unsigned sample)
{
    if (!m->o.dual) return DD_UNSUPPORTED;
    pthread_mutex_lock(&m->lock);
    bool busy = m->verify.running;
    if (!busy)
        m->verify = (struct dd_migrate_verify){
            .running = true, .sample = sample, .started_ms = dd_clock_wall(m->d->clock).ms};
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    return busy ? DD_EXISTS : DD_OK;
}

/* ---- erasing ---- */

enum dd_err dd_migrate_erase(struct dd_migrate *m, struct dd_slice scene, struct dd_slice user, bool legacy,
                             unsigned *keys)
{
    if (!dd_slice_eq(scene, dd_scene_slice(m->o.scene))) return DD_OK;
    struct dd_mark_key key = {0};
    struct dd_migrate_mark news = {.erased_ms = dd_clock_wall(m->d->clock).ms};
    dd_mark_key_make(&key, scene, user);
    struct dd_record_update u = {dd_slice_of(key.bytes, key.len), dd_mark_note_erased, &news};
    enum dd_err err = dd_store_record_update(m->d->store, &u, 1, true);
    bool existed = false;
    if (err == DD_OK && legacy) {
        pthread_mutex_lock(&m->erase_lock);
        err = dd_legacy_delete(m->erase_sync, user, &existed);
        pthread_mutex_unlock(&m->erase_lock);
    }
    if (err == DD_OK) dd_count(m->count.erased, 1);
    *keys += existed;
    return err;
}

static enum dd_err remove_mark(void *arg, struct dd_slice current, struct dd_buf *out)
{
    (void)arg, (void)current, (void)out;
    return DD_OK;
}

enum dd_err dd_migrate_forget(struct dd_migrate *m, struct dd_slice scene, struct dd_slice user)
{
    if (!dd_slice_eq(scene, dd_scene_slice(m->o.scene))) return DD_OK;
    struct dd_mark_key key = {0};
    dd_mark_key_make(&key, scene, user);
    struct dd_record_update u = {dd_slice_of(key.bytes, key.len), remove_mark, NULL};
    return dd_store_record_update(m->d->store, &u, 1, true);
}
