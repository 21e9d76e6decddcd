/* One batch of users: keys are read one after the other, written by one synced commit, marked by another.
 *
 * The number of the change table is loaded before the mark is read, and the mark before the key. An erase
 * writes its mark, then erases: so either its mark is seen here, or its number is above ours and the writer
 * strips what we bring. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "dedup/migrate_impl.h"

#define BATCH_ENTRIES 50000 /* a batch with more is written at once */
#define SAMPLE_EVERY  16

struct dd_migrate_job {
    struct dd_migrate_user user;
    uint64_t number;      /* before the mark was read */
    int64_t kept_from_ms; /* entries older than this were skipped: the window by the clock of that moment */
    struct dd_migrate_mark news;
    bool sampled, busy, stripped, again; /* again: counted before */
    bool vanished; /* the walk met the key, and then it was not there: erased meanwhile */
    uint64_t bytes_before;
    struct dd_legacy_entries entries;
    struct dd_buf operand;
    struct dd_store_op op[DD_WINDOW_MAX];
    size_t operand_from[DD_WINDOW_MAX];
    unsigned op_n;
    struct dd_mark_key key;
};

enum dd_err dd_migrate_jobs_create(struct dd_migrate *m)
{
    m->jobs = calloc(DD_MIGRATE_BATCH, sizeof *m->jobs);
    return m->jobs ? DD_OK : DD_NO_MEMORY;
}

void dd_migrate_jobs_destroy(struct dd_migrate *m)
{
    for (unsigned i = 0; m->jobs && i < DD_MIGRATE_BATCH; i++) {
        dd_legacy_entries_free(&m->jobs[i].entries);
        dd_buf_free(&m->jobs[i].operand);
    }
    free(m->jobs);
}

void dd_migrate_drop(struct dd_migrate *m)
{
    m->jobs_n = 0;
    m->jobs_entries = 0;
}

static struct dd_slice user_of(const struct dd_migrate_job *j)
{
    return dd_slice_of(j->user.bytes, j->user.len);
}

/* ---- entries to operands ---- */

/* The number of periods back, or -1: older than the window. What lies ahead of the clock counts as now. */
static int age_of(const struct dd_migrate *m, struct dd_period newest, const struct dd_legacy_entry *e)
{
    if (!dd_legacy_is_timed(m->legacy)) return 0;
    int32_t ordinal = dd_period_at(newest.kind, (struct dd_wall){e->at_ms}).ordinal;
    if (ordinal >= newest.ordinal) return 0;
    return newest.ordinal - ordinal < (int32_t)m->o.scene->window ? newest.ordinal - ordinal : -1;
}

static enum dd_err add_operand(struct dd_migrate *m, struct dd_migrate_job *j, struct dd_period period,
                               const struct dd_buf *fps)
{
    if (!dd_buf_ok(fps)) return DD_NO_MEMORY;
    if (!fps->len) return DD_OK;
    j->operand_from[j->op_n] = j->operand.len;
    j->op[j->op_n++] = (struct dd_store_op){.kind = DD_STORE_MERGE,
                                            .scene = dd_scene_slice(m->o.scene),
                                            .user = user_of(j),
                                            .period = period,
                                            .read_number = j->number};
    return dd_filter_operand(&m->o.scene->policy, 0, (const uint32_t *)(const void *)fps->data,
                             fps->len / sizeof(uint32_t), &j->operand);
}

/* fps: one buffer a period of the window. */
static void spread(struct dd_migrate *m, struct dd_migrate_job *j, struct dd_period newest,
                   struct dd_buf *fps)
{
    uint64_t seed = dd_hash_user_seed(m->d->secret, dd_scene_slice(m->o.scene), user_of(j));
    for (unsigned i = 0; i < j->entries.n; i++) {
        struct dd_legacy_entry e = dd_legacy_entry_at(&j->entries, i);
        int age = e.id.len >= 1 && e.id.len <= DD_ITEM_MAX_BYTES ? age_of(m, newest, &e) : -1;
        if (age < 0) {
            j->news.skipped++;
            continue;
        }
        uint32_t fp = dd_hash_fingerprint(seed, e.id);
        dd_buf_add(&fps[age], &fp, sizeof fp);
        j->news.entries++;
    }
}

static enum dd_err make_operands(struct dd_migrate *m, struct dd_migrate_job *j)
{
    struct dd_buf fps[DD_WINDOW_MAX] = {{0}};
    struct dd_period newest = dd_period_at(m->o.scene->period, dd_clock_period_now(m->d->clock));
    enum dd_err err = DD_OK;
    j->op_n = 0;
    j->kept_from_ms = dd_legacy_is_timed(m->legacy)
                          ? dd_period_start_ms((struct dd_period){
                                newest.kind, newest.ordinal - (int32_t)m->o.scene->window + 1})
                          : INT64_MIN;
    dd_buf_reset(&j->operand);
    spread(m, j, newest, fps);
    for (unsigned age = 0; age < m->o.scene->window && err == DD_OK; age++)
        err = add_operand(m, j, (struct dd_period){newest.kind, newest.ordinal - (int32_t)age}, &fps[age]);
    for (unsigned i = 0; i < DD_WINDOW_MAX; i++)
        dd_buf_free(&fps[i]);
    for (unsigned i = 0; i < j->op_n; i++) { /* now that the buffer stands still */
        size_t to = i + 1 < j->op_n ? j->operand_from[i + 1] : j->operand.len;
        j->op[i].operand = dd_slice_of(j->operand.data + j->operand_from[i], to - j->operand_from[i]);
    }
    return err;
}

/* ---- writing ---- */

static enum dd_err write_sets(struct dd_migrate *m)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->jobs_n; i++)
        n += m->jobs[i].op_n;
    struct dd_store_op *ops = calloc(n + 1, sizeof *ops);
    if (!ops) return DD_NO_MEMORY;
    n = 0;
    for (unsigned i = 0; i < m->jobs_n; i++)
        for (unsigned k = 0; k < m->jobs[i].op_n; k++)
            ops[n++] = m->jobs[i].op[k];
    struct dd_store_batch batch = {.ops = ops, .n = n, .sync = true};
    enum dd_err err = n ? dd_store_write_wait(m->d->store, &batch) : DD_OK;
    n = 0;
    for (unsigned i = 0; i < m->jobs_n && err == DD_OK; i++) {
        m->jobs[i].busy = m->jobs[i].stripped = false;
        for (unsigned k = 0; k < m->jobs[i].op_n; k++, n++) {
            m->jobs[i].busy |= ops[n].result != DD_OK;
            m->jobs[i].stripped |= ops[n].stripped;
        }
    }
    free(ops);
    return err;
}

/* Not synced: the log keeps the order, so a mark never survives what it stands for, and a lost one costs
 * another migration. */
static enum dd_err write_marks(struct dd_migrate *m)
{
    struct dd_record_update u[DD_MIGRATE_BATCH];
    unsigned n = 0;
    for (unsigned i = 0; i < m->jobs_n; i++) {
        struct dd_migrate_job *j = &m->jobs[i];
        if (j->busy || j->stripped || j->vanished) continue;
        dd_mark_key_make(&j->key, dd_scene_slice(m->o.scene), user_of(j));
        u[n++] = (struct dd_record_update){dd_slice_of(j->key.bytes, j->key.len), dd_mark_note_migrated,
                                           &j->news};
    }
    return n ? dd_store_record_update(m->d->store, u, n, false) : DD_OK;
}

static enum dd_err finish_old_key(struct dd_migrate *m, const struct dd_migrate_job *j)
{
    if (j->busy || j->stripped || m->o.after == DD_AFTER_KEEP) return DD_OK;
    if (m->o.after == DD_AFTER_EXPIRE) return dd_legacy_expire(m->sync, user_of(j), m->o.expire_s);
    /* What was skipped as too old stays: a clock that has jumped ahead must not delete it unmigrated. */
    return dd_legacy_remove(m->sync, user_of(j), &j->entries, j->kept_from_ms);
}

static uint64_t stored_bytes(struct dd_migrate *m, const struct dd_migrate_job *j)
{
    struct dd_store_read r = {.scene = dd_scene_slice(m->o.scene), .user = user_of(j)};
    uint64_t bytes = 0;
    r.n = dd_window_periods(m->d->clock, m->o.scene, m->o.scene->window, NULL, r.periods);
    if (dd_store_read_wait(m->d->store, &r) != DD_OK) return 0;
    for (unsigned i = 0; i < r.n; i++)
        bytes += r.set[i].blob.len;
    dd_store_read_release(&r);
    return bytes;
}

static void add_up(struct dd_migrate *m, const struct dd_migrate_job *j, struct dd_migrate_sum *sum)
{
    if (j->busy || j->stripped) return;
    dd_count(m->count.users, 1);
    dd_count(m->count.entries, j->news.entries);
    dd_count(m->count.skipped, j->news.skipped);
    if (!sum || j->again) return;
    sum->users++;
    sum->entries += j->news.entries;
    sum->skipped += j->news.skipped;
    if (!j->sampled) return;
    sum->sampled++;
    sum->bytes_before += j->bytes_before;
    sum->bytes_after += stored_bytes(m, j);
}

enum dd_err dd_migrate_flush(struct dd_migrate *m, struct dd_migrate_sum *sum)
{
    enum dd_err err = m->jobs_n ? write_sets(m) : DD_OK;
    if (err == DD_OK && m->jobs_n) err = write_marks(m);
    bool busy = false;
    for (unsigned i = 0; i < m->jobs_n && err == DD_OK; i++) {
        busy |= m->jobs[i].busy;
        add_up(m, &m->jobs[i], sum);
        err = finish_old_key(m, &m->jobs[i]);
    }
    dd_migrate_drop(m);
    return err == DD_OK && busy ? DD_BUSY : err;
}

/* ---- reading ---- */

/* DD_NOT_FOUND: there is nothing to migrate. */
static enum dd_err read_user(struct dd_migrate *m, struct dd_migrate_job *j, struct dd_migrate_sum *sum)
{
    struct dd_migrate_mark mark;
    int64_t since_ms;
    bool since;
    j->number = dd_change_number(m->d->change);
    enum dd_err err = dd_mark_get(m, user_of(j), &mark);
    if (err != DD_OK) return err;
    j->again = sum && mark.migrated && mark.mark_ms >= sum->not_since_ms;
    if (j->again && m->o.after == DD_AFTER_KEEP) return DD_NOT_FOUND;
    if (!dd_mark_range(m, &mark, &since, &since_ms)) {
        if (sum) sum->erased++;
        return DD_NOT_FOUND;
    }
    /* A crash may have come before the removal: then older entries are still there to be removed. */
    if (m->o.after == DD_AFTER_DELETE && !mark.erased) since = false;
    j->news = (struct dd_migrate_mark){.mark_ms = dd_clock_wall(m->d->clock).ms};
    if (j->sampled) err = dd_legacy_memory(m->sync, user_of(j), &j->bytes_before);
    return err == DD_OK ? dd_legacy_load(m->sync, user_of(j), since, since_ms, &j->entries) : err;
}

/* Some keys cannot be migrated, which must not stop the others. */
static bool is_skipped(struct dd_migrate *m, const struct dd_migrate_job *j, enum dd_err err,
                       struct dd_migrate_sum *sum)
{
    if (err == DD_NOT_FOUND) return true;
    if (err != DD_CORRUPT && err != DD_TOO_LARGE) return false;
    bool wrong = err == DD_CORRUPT;
    dd_count(wrong ? m->count.wrong_type : m->count.too_large, 1);
    if (sum) (wrong ? &sum->wrong_type : &sum->too_large)[0]++;
    dd_warn("migrate.skipped", "user_hash=%016llx reason=%s",
            (unsigned long long)dd_hash64(dd_slice_of(j->user.bytes, j->user.len), 0),
            wrong ? "wrong_type" : "too_large");
    return true;
}

enum dd_err dd_migrate_take(struct dd_migrate *m, struct dd_slice user, struct dd_migrate_sum *sum)
{
    struct dd_migrate_job *j = &m->jobs[m->jobs_n];
    if (user.len < 1 || user.len > DD_USER_MAX_BYTES) return DD_OK;
    j->user.len = (uint8_t)user.len;
    memcpy(j->user.bytes, user.ptr, user.len);
    j->sampled = sum && (sum->users + m->jobs_n) % SAMPLE_EVERY == 0;
    enum dd_err err = read_user(m, j, sum);
    if (is_skipped(m, j, err, sum)) return DD_OK;
    j->vanished = sum && err == DD_OK && j->entries.n == 0 && !j->again;
    if (err == DD_OK) err = make_operands(m, j);
    if (err != DD_OK) {
        dd_migrate_drop(m);
        return err;
    }
    m->jobs_n++;
    m->jobs_entries += j->entries.n;
    bool full = m->jobs_n == DD_MIGRATE_BATCH || m->jobs_entries >= BATCH_ENTRIES;
    return full ? dd_migrate_flush(m, sum) : DD_OK;
}
