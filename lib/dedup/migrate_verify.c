/* Both stores side by side, on a sample: a walk over old keys from a random place, a few entries of each.
 *
 * Of a migrated user every entry of the window that the dual read no longer answers for must be in a set;
 * those newer than the mark are still read from the old key. Ids that nobody ever saw tell how many are
 * dropped all the same. */
#include <stdio.h>

#include "base/hash.h"
#include "base/log.h"
#include "dedup/migrate_impl.h"

#define ENTRIES_EACH 20 /* of one user, spread over his entries */
#define NEVER_EACH   20

struct check {
    struct dd_migrate *m;
    struct dd_migrate_verify *v;
    struct dd_legacy_entries entries;
    struct dd_store_read read;
    uint64_t random;
    struct dd_buf users;
    unsigned n;
};

static void add_user(void *arg, struct dd_slice user)
{
    struct check *c = arg;
    struct dd_migrate_user u = {0};
    if (user.len > DD_USER_MAX_BYTES) return;
    u.len = (uint8_t)user.len;
    memcpy(u.bytes, user.ptr, user.len);
    dd_buf_add(&c->users, &u, sizeof u);
    c->n++;
}

static uint64_t next_random(struct check *c)
{
    c->random += 0x9e3779b97f4a7c15ULL;
    return dd_mix64(c->random);
}

static bool is_stored(const struct check *c, uint64_t seed, struct dd_slice id)
{
    uint32_t fp = dd_hash_fingerprint(seed, id);
    uint8_t seen = 0;
    struct dd_filter_view view;
    for (unsigned i = 0; i < c->read.n && !seen; i++)
        if (c->read.set[i].err == DD_OK && dd_filter_view_open(&view, c->read.set[i].blob) == DD_OK)
            dd_filter_view_test(&view, &fp, 1, &seen, 1);
    return seen;
}

/* Whether the sets answer for it. */
static bool counts(const struct check *c, const struct dd_migrate_mark *mark, const struct dd_legacy_entry *e)
{
    const struct dd_migrate *m = c->m;
    if (e->id.len < 1 || e->id.len > DD_ITEM_MAX_BYTES) return false;
    if (!dd_legacy_is_timed(m->legacy)) return true;
    int32_t oldest = c->read.periods[0].ordinal - (int32_t)m->o.scene->window + 1;
    return e->at_ms < mark->mark_ms - m->o.margin_ms && (!mark->erased || e->at_ms > mark->erased_ms) &&
           dd_period_at(m->o.scene->period, (struct dd_wall){e->at_ms}).ordinal >= oldest;
}

/* Hashes: the log outlives an erase. */
static void note_missing(struct check *c, struct dd_slice user, struct dd_slice id)
{
    c->v->missing++;
    dd_error("migrate.missing", "user_hash=%016llx item_hash=%016llx", (unsigned long long)dd_hash64(user, 0),
             (unsigned long long)dd_hash64(id, 0));
}

static void check_entries(struct check *c, struct dd_slice user, const struct dd_migrate_mark *mark,
                          uint64_t seed)
{
    unsigned step = c->entries.n / ENTRIES_EACH + 1;
    for (unsigned i = (unsigned)(next_random(c) % step); i < c->entries.n; i += step) {
        struct dd_legacy_entry e = dd_legacy_entry_at(&c->entries, i);
        if (!counts(c, mark, &e)) continue;
        c->v->entries++;
        if (is_stored(c, seed, e.id)) continue;
        if (dd_legacy_is_timed(c->m->legacy))
            note_missing(c, user, e.id);
        else
            c->v->newer++;
    }
}

static void check_never_seen(struct check *c, uint64_t seed)
{
    char id[48];
    for (unsigned i = 0; i < NEVER_EACH; i++) {
        snprintf(id, sizeof id, "never-seen-%016llx", (unsigned long long)next_random(c));
        c->v->never++;
        c->v->false_positives += is_stored(c, seed, dd_slice_str(id));
    }
}

static enum dd_err check_user(struct check *c, struct dd_slice user)
{
    struct dd_migrate *m = c->m;
    struct dd_migrate_mark mark;
    enum dd_err err = dd_mark_get(m, user, &mark);
    if (err == DD_OK && !mark.migrated) {
        c->v->unmigrated++;
        return DD_OK;
    }
    if (err == DD_OK) err = dd_legacy_load(m->sync, user, false, 0, &c->entries);
    if (err != DD_OK) return err == DD_CORRUPT || err == DD_TOO_LARGE ? DD_OK : err;
    c->read = (struct dd_store_read){.scene = dd_scene_slice(m->o.scene), .user = user};
    c->read.n = dd_window_periods(m->d->clock, m->o.scene, m->o.scene->window, NULL, c->read.periods);
    err = dd_store_read_wait(m->d->store, &c->read);
    if (err != DD_OK) return err;
    uint64_t seed = dd_hash_user_seed(m->d->secret, dd_scene_slice(m->o.scene), user);
    c->v->users++;
    check_entries(c, user, &mark, seed);
    check_never_seen(c, seed);
    dd_store_read_release(&c->read);
    return DD_OK;
}

static void show(struct check *c)
{
    pthread_mutex_lock(&c->m->lock);
    c->m->verify = *c->v;
    pthread_mutex_unlock(&c->m->lock);
}

static enum dd_err check_page(struct check *c, uint64_t *cursor)
{
    dd_buf_reset(&c->users);
    c->n = 0;
    enum dd_err err = dd_legacy_scan(c->m->sync, cursor, add_user, c);
    const struct dd_migrate_user *u = (const struct dd_migrate_user *)(const void *)c->users.data;
    if (err == DD_OK && !dd_buf_ok(&c->users)) err = DD_NO_MEMORY;
    for (unsigned i = 0; i < c->n && err == DD_OK && c->v->entries < c->v->sample; i++)
        err = dd_migrate_stopping(c->m) ? DD_SHUTDOWN : check_user(c, dd_slice_of(u[i].bytes, u[i].len));
    show(c);
    return err;
}

/* From a random place to the end, then from the beginning: a short store is gone through once and a bit. */
static enum dd_err walk(struct check *c)
{
    enum dd_err err = DD_OK;
    for (unsigned round = 0; round < 2 && err == DD_OK && c->v->entries < c->v->sample; round++) {
        uint64_t cursor = round ? 0 : next_random(c) | 1;
        if (round) {
            c->v->users = c->v->unmigrated = c->v->entries = 0; /* the whole walk counts, not both */
            c->v->missing = c->v->newer = c->v->never = c->v->false_positives = 0;
        }
        do {
            err = check_page(c, &cursor);
        } while (err == DD_OK && cursor && c->v->entries < c->v->sample);
    }
    return err;
}

void dd_verify_run(struct dd_migrate *m)
{
    pthread_mutex_lock(&m->lock);
    struct dd_migrate_verify v = m->verify;
    pthread_mutex_unlock(&m->lock);
    struct check c = {.m = m, .v = &v};
    enum dd_err err = dd_random(&c.random, sizeof c.random);
    if (err == DD_OK) err = walk(&c);
    dd_legacy_entries_free(&c.entries);
    dd_buf_free(&c.users);
    v.err = err;
    v.ended_ms = dd_clock_wall(m->d->clock).ms;
    v.running = false;
    show(&c);
}
