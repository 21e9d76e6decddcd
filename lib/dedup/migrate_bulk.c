/* The walk over all old keys: SCAN, a page a step. What is done stands in the record `migration` after each
 * page, so that a restart goes on there. A cursor is good for one run of the server only: hash tables are
 * seeded anew at its start, so after that the pass begins again; users that were migrated since the walk
 * began cost a look at their mark then. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "dedup/migrate_impl.h"

static const char record_key[] = "migration";

#define COUNTS(x)                                                                                            \
    " %" x " %" x " %" x " %" x " %" x " %" x " %" x " %" x " %" x " %" x " %" x /* cursor to bytes_after */
#define FORMAT "1 %u %u %u %u %u %" PRId64 " %" PRId64 COUNTS(PRIu64) " %s"
#define SCAN   "1 %u %u %u %u %u %" SCNd64 " %" SCNd64 COUNTS(SCNu64) " %47s"

/* ---- state ---- */

void dd_bulk_load(struct dd_migrate *m)
{
    struct dd_buf text = {0};
    struct dd_bulk b = {0};
    unsigned state = 0;
    enum dd_err err = dd_store_record_get(m->d->store, dd_slice_str(record_key), &text);
    dd_buf_add_u8(&text, 0);
    int n = err == DD_OK && dd_buf_ok(&text)
                ? sscanf((const char *)text.data, SCAN, &state, &b.pass, &b.passes, &b.active_days,
                         &b.rate_users_s, &b.started_ms, &b.ended_ms, &b.cursor, &b.keys, &b.users,
                         &b.entries, &b.skipped, &b.wrong_type, &b.too_large, &b.erased, &b.sampled,
                         &b.bytes_before, &b.bytes_after, b.run_id)
                : 0;
    dd_buf_free(&text);
    if (n != 19 || state > DD_BULK_DONE) return; /* none, or unreadable: a walk is begun by hand */
    b.state = (enum dd_bulk_state)state;
    m->bulk = b;
}

static enum dd_err write_state(void *arg, struct dd_slice current, struct dd_buf *out)
{
    const struct dd_bulk *b = arg;
    (void)current;
    dd_buf_addf(out, FORMAT, (unsigned)b->state, b->pass, b->passes, b->active_days, b->rate_users_s,
                b->started_ms, b->ended_ms, b->cursor, b->keys, b->users, b->entries, b->skipped,
                b->wrong_type, b->too_large, b->erased, b->sampled, b->bytes_before, b->bytes_after,
                b->run_id[0] ? b->run_id : "-");
    return DD_OK;
}

void dd_bulk_save(struct dd_migrate *m)
{
    pthread_mutex_lock(&m->lock);
    struct dd_bulk b = m->bulk;
    m->unsaved = false;
    pthread_mutex_unlock(&m->lock);
    struct dd_record_update u = {dd_slice_str(record_key), write_state, &b};
    enum dd_err err = dd_store_record_update(m->d->store, &u, 1, false);
    if (err != DD_OK) dd_warn("migrate.state_not_saved", "error=%s", dd_err_name(err));
}

/* The cursor of SCAN counts in the reversed bits of its number. */
static double share_of(uint64_t cursor)
{
    double share = 0, bit = 0.5;
    for (unsigned i = 0; i < 64; i++, cursor >>= 1, bit /= 2)
        if (cursor & 1) share += bit;
    return share;
}

double dd_bulk_progress(const struct dd_bulk *b)
{
    if (b->state == DD_BULK_NEVER || !b->passes) return 0;
    if (b->state == DD_BULK_DONE) return 1;
    return (b->pass + share_of(b->cursor)) / b->passes;
}

/* ---- orders ---- */

enum dd_err dd_migrate_start(struct dd_migrate *m, unsigned active_days, unsigned rate_users_s)
{
    if (!m->o.dual) return DD_UNSUPPORTED;
    pthread_mutex_lock(&m->lock);
    bool runs = m->bulk.state == DD_BULK_RUNNING;
    if (!runs && m->bulk.state != DD_BULK_PAUSED)
        m->bulk = (struct dd_bulk){.passes = active_days ? 2 : 1,
                                   .active_days = active_days,
                                   .started_ms = dd_clock_wall(m->d->clock).ms};
    m->bulk.state = DD_BULK_RUNNING;
    m->bulk.rate_users_s = rate_users_s;
    m->unsaved = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    return runs ? DD_EXISTS : DD_OK;
}

void dd_migrate_pause(struct dd_migrate *m)
{
    pthread_mutex_lock(&m->lock);
    if (m->bulk.state == DD_BULK_RUNNING) m->bulk.state = DD_BULK_PAUSED;
    m->unsaved = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
}

/* ---- one page ---- */

struct page {
    struct dd_buf users; /* struct dd_migrate_user */
    unsigned n;
};

static void add_user(void *arg, struct dd_slice user)
{
    struct page *p = arg;
    struct dd_migrate_user u = {0};
    if (user.len > DD_USER_MAX_BYTES) return;
    u.len = (uint8_t)user.len;
    memcpy(u.bytes, user.ptr, user.len);
    dd_buf_add(&p->users, &u, sizeof u);
    p->n++;
}

/* Whether the user's turn is in this pass. */
static enum dd_err is_due(struct dd_migrate *m, const struct dd_bulk *b, struct dd_slice user, bool *due)
{
    int64_t at_ms, now_ms = dd_clock_wall(m->d->clock).ms;
    *due = true;
    if (b->pass + 1 == b->passes) return DD_OK;
    enum dd_err err = dd_legacy_activity(m->sync, user, now_ms, &at_ms);
    *due = err == DD_OK && at_ms >= now_ms - (int64_t)b->active_days * 86400000;
    return err;
}

static enum dd_err migrate_page(struct dd_migrate *m, const struct dd_bulk *b, const struct page *p,
                                struct dd_migrate_sum *sum)
{
    const struct dd_migrate_user *u = (const struct dd_migrate_user *)(const void *)p->users.data;
    enum dd_err err = dd_buf_ok(&p->users) ? DD_OK : DD_NO_MEMORY;
    for (unsigned i = 0; i < p->n && err == DD_OK; i++) {
        struct dd_slice user = dd_slice_of(u[i].bytes, u[i].len);
        bool due;
        if (dd_migrate_stopping(m)) err = DD_SHUTDOWN;
        if (err == DD_OK) err = is_due(m, b, user, &due);
        if (err == DD_OK && due) err = dd_migrate_take(m, user, sum);
    }
    if (err == DD_OK) err = dd_migrate_flush(m, sum);
    if (err != DD_OK) dd_migrate_drop(m);
    return err;
}

/* The page is done: b is the state before it, with the cursor after it. */
static void take_page(struct dd_migrate *m, struct dd_bulk *b, const struct dd_migrate_sum *sum, bool end)
{
    pthread_mutex_lock(&m->lock);
    struct dd_bulk *now = &m->bulk;
    now->cursor = b->cursor;
    now->pass = b->pass + end;
    memcpy(now->run_id, b->run_id, sizeof now->run_id);
    now->keys = b->keys;
    now->users += sum->users;
    now->entries += sum->entries;
    now->skipped += sum->skipped;
    now->sampled += sum->sampled;
    now->bytes_before += sum->bytes_before;
    now->bytes_after += sum->bytes_after;
    if (b->pass + 1 == b->passes) { /* every key is met in the last pass; one that is met twice counts once */
        now->wrong_type += sum->wrong_type;
        now->too_large += sum->too_large;
        now->erased += sum->erased;
    }
    if (now->pass == now->passes) {
        now->state = DD_BULK_DONE;
        now->ended_ms = dd_clock_wall(m->d->clock).ms;
    }
    bool done = now->state == DD_BULK_DONE;
    pthread_mutex_unlock(&m->lock);
    dd_bulk_save(m);
    if (done)
        dd_info("migrate.bulk_done", "users=%" PRIu64 " entries=%" PRIu64 " skipped=%" PRIu64, now->users,
                now->entries, now->skipped);
}

enum dd_err dd_bulk_step(struct dd_migrate *m, uint64_t *users)
{
    char run_id[DD_LEGACY_RUN_ID];
    struct page page = {{0}, 0};
    pthread_mutex_lock(&m->lock);
    struct dd_bulk b = m->bulk;
    pthread_mutex_unlock(&m->lock);
    struct dd_migrate_sum sum = {.not_since_ms = b.started_ms};
    enum dd_err err = dd_legacy_server(m->sync, run_id, &b.keys);
    if (err != DD_OK) return err;
    if (strcmp(run_id, b.run_id) != 0) b.cursor = 0;
    memcpy(b.run_id, run_id, sizeof run_id);
    err = dd_legacy_scan(m->sync, &b.cursor, add_user, &page);
    if (err == DD_OK) err = migrate_page(m, &b, &page, &sum);
    dd_buf_free(&page.users);
    if (err != DD_OK) return err == DD_SHUTDOWN ? DD_OK : err;
    *users += sum.users;
    take_page(m, &b, &sum, b.cursor == 0);
    return DD_OK;
}
