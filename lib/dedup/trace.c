/* Recording. A request of a user who is not traced costs one load: the table of cells says "nobody of this
 * hash" and that is all. (A table of users swapped as a whole would need to know when its last reader has
 * left the old one; a byte that says "perhaps" needs nothing, and only those few look under the lock.)
 *
 * Everything that adds or removes entries holds `writing`, and the thread looks up a note's trace under it:
 * so once a stop has returned, no note that was queued before it can be written. */
#include "dedup/trace_impl.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/wait.h"

#define QUEUE_BYTES ((size_t)4 << 20)
#define TICK_S      1
#define SWEEP_MS    60000

/* ---- on the loops ---- */

static struct dd_traced *find_active(struct dd_trace *t, struct dd_slice scene, struct dd_slice user)
{
    struct dd_traced *e = dd_trace_find(t, user);
    if (!e || dd_clock_wall(t->clock).ms >= e->state.until_ms) return NULL;
    return !e->state.scene[0] || dd_slice_eq(scene, dd_slice_str(e->state.scene)) ? e : NULL;
}

/* 0: not traced. */
static uint64_t id_of(struct dd_trace *t, struct dd_slice scene, struct dd_slice user)
{
    if (!t || !atomic_load_explicit(&t->cell[dd_trace_cell_of(t, user)], memory_order_relaxed)) return 0;
    pthread_mutex_lock(&t->lock);
    const struct dd_traced *e = find_active(t, scene, user);
    uint64_t id = e ? e->id : 0;
    pthread_mutex_unlock(&t->lock);
    return id;
}

bool dd_trace_is_on(struct dd_trace *t, struct dd_slice scene, struct dd_slice user)
{
    return id_of(t, scene, user) != 0;
}

struct dd_trace_note *dd_trace_begin(struct dd_trace *t, struct dd_slice scene, struct dd_slice user,
                                     enum dd_trace_what what, enum dd_trace_source source, int64_t ts_ms)
{
    uint64_t id = id_of(t, scene, user);
    if (!id) return NULL;
    struct dd_trace_note *n = calloc(1, sizeof *n);
    if (!n) {
        dd_count(t->dropped, 1);
        return NULL;
    }
    n->id = id;
    n->at_ms = dd_clock_wall(t->clock).ms;
    n->ts_ms = ts_ms;
    n->what = (uint8_t)what;
    n->source = (uint8_t)source;
    memcpy(n->scene, scene.ptr, scene.len < DD_SCENE_NAME_MAX ? scene.len : DD_SCENE_NAME_MAX);
    return n;
}

void dd_trace_add(struct dd_trace_note *n, struct dd_slice item)
{
    uint8_t len[2];
    if (!n) return;
    dd_put_le16(len, (uint16_t)item.len);
    dd_buf_add(&n->items, len, sizeof len);
    dd_buf_add_slice(&n->items, item);
    n->n++;
}

static void free_note(struct dd_trace_note *n)
{
    dd_buf_free(&n->items);
    free(n);
}

static size_t size_of(const struct dd_trace_note *n)
{
    return sizeof *n + n->items.cap;
}

void dd_trace_end(struct dd_trace *t, struct dd_trace_note *n)
{
    if (!n) return;
    pthread_mutex_lock(&t->lock);
    bool fits = dd_buf_ok(&n->items) && n->n && t->queued_bytes + size_of(n) <= QUEUE_BYTES && !t->stop;
    if (fits) {
        t->queued_bytes += size_of(n);
        *t->tail = n;
        t->tail = &n->next;
        t->noted++;
        pthread_cond_signal(&t->wake);
    }
    pthread_mutex_unlock(&t->lock);
    if (fits) return;
    dd_count(t->dropped, n->n);
    free_note(n);
}

void dd_trace_items(struct dd_trace *t, struct dd_slice scene, struct dd_slice user, enum dd_trace_what what,
                    enum dd_trace_source source, int64_t ts_ms, const struct dd_item *items,
                    const uint32_t *chosen, unsigned n)
{
    struct dd_trace_note *note = n ? dd_trace_begin(t, scene, user, what, source, ts_ms) : NULL;
    for (unsigned i = 0; note && i < n; i++)
        dd_trace_add(note, items[chosen ? chosen[i] : i].id);
    dd_trace_end(t, note);
}

/* ---- the thread ---- */

static void write_note(struct dd_trace *t, const struct dd_trace_note *n)
{
    pthread_mutex_lock(&t->writing);
    unsigned written = dd_trace_write(t, n);
    pthread_mutex_unlock(&t->writing);
    dd_count(t->recorded, written);
    dd_count(t->dropped, n->n - written);
}

static void write_notes(struct dd_trace *t, struct dd_trace_note *n)
{
    while (n) {
        struct dd_trace_note *next = n->next;
        write_note(t, n);
        pthread_mutex_lock(&t->lock);
        t->queued_bytes -= size_of(n);
        t->handled++;
        if (t->handled == t->noted) pthread_cond_broadcast(&t->idle);
        pthread_mutex_unlock(&t->lock);
        free_note(n);
        n = next;
    }
}

/* Entries past their days go; and traces of which none can be left. */
static void sweep_one(struct dd_trace *t, struct dd_slice user, int64_t now_ms)
{
    const struct dd_traced *e = dd_trace_find(t, user);
    uint64_t removed;
    if (!e) return;
    int64_t life_ms = (int64_t)e->state.days * 86400000;
    bool over = now_ms >= e->state.until_ms + life_ms;
    enum dd_err err = dd_trace_remove(t, user, dd_slice_of(NULL, 0), over ? INT64_MAX : now_ms - life_ms,
                                      UINT64_MAX, &removed);
    if (err == DD_OK && over) err = dd_trace_forget(t, user);
    if (err != DD_OK) dd_warn("trace.sweep_failed", "error=%s", dd_err_name(err));
}

static void sweep(struct dd_trace *t)
{
    int64_t now_ms = dd_clock_wall(t->clock).ms;
    if (now_ms >= t->swept_ms && now_ms - t->swept_ms < SWEEP_MS) return;
    t->swept_ms = now_ms;
    pthread_mutex_lock(&t->writing);
    for (unsigned i = t->n; i-- > 0;) { /* the last row takes the place of one that goes */
        struct dd_traced row = t->table[i];
        sweep_one(t, dd_traced_user(&row), now_ms);
    }
    pthread_mutex_unlock(&t->writing);
}

/* What is queued, after waiting at most a tick for it. */
static struct dd_trace_note *take(struct dd_trace *t, bool *stop)
{
    struct timespec until = dd_until_ms(TICK_S * 1000);
    pthread_mutex_lock(&t->lock);
    while (!t->head && !t->stop && dd_cond_wait_until(&t->wake, &t->lock, &until)) {
    }
    struct dd_trace_note *notes = t->head;
    t->head = NULL;
    t->tail = &t->head;
    *stop = t->stop;
    pthread_mutex_unlock(&t->lock);
    return notes;
}

static void *run(void *arg)
{
    struct dd_trace *t = arg;
    for (bool stop = false; !stop;) {
        write_notes(t, take(t, &stop));
        if (!stop) sweep(t);
    }
    return NULL;
}

void dd_trace_settle(struct dd_trace *t)
{
    pthread_mutex_lock(&t->lock);
    while (t->handled != t->noted)
        pthread_cond_wait(&t->idle, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

/* ---- life ---- */

enum dd_err dd_trace_create(struct dd_store *store, struct dd_clock *clock, struct dd_stats *stats,
                            struct dd_trace **out)
{
    struct dd_trace *t = calloc(1, sizeof *t);
    if (!t) return DD_NO_MEMORY;
    t->store = store;
    t->clock = clock;
    t->tail = &t->head;
    pthread_mutex_init(&t->writing, NULL);
    pthread_mutex_init(&t->lock, NULL);
    dd_cond_init(&t->wake);
    dd_cond_init(&t->idle);
    t->recorded = dd_stats_counter(stats, "dedupd_trace_recorded_total", "Entries of traces written.");
    t->dropped = dd_stats_counter(stats, "dedupd_trace_dropped_total",
                                  "Entries of traces left out: the queue was full or the store away.");
    t->users = dd_stats_gauge(stats, "dedupd_trace_users", "Users of whom a trace is kept.");
    t->table = calloc(DD_TRACE_USERS_MAX, sizeof *t->table);
    enum dd_err err = t->table ? dd_trace_load(t) : DD_NO_MEMORY;
    if (err == DD_OK)
        err = dd_random(&t->seq, sizeof t->seq); /* no two entries have one key, also when the */
    t->seq /= 2;                                 /* clock went back over a restart */
    if (err == DD_OK) {
        t->running = pthread_create(&t->thread, NULL, run, t) == 0;
        if (!t->running) err = DD_NO_MEMORY;
    }
    if (err != DD_OK) {
        dd_trace_destroy(t);
        return err;
    }
    *out = t;
    return DD_OK;
}

void dd_trace_destroy(struct dd_trace *t)
{
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    if (t->running) pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->wake);
    pthread_cond_destroy(&t->idle);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->writing);
    free(t->table);
    free(t);
}
