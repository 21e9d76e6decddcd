/* The dual read. The mark first: whoever finds it also finds the sets that were committed before it, because
 * he looks at the change table later. Then the old key: whoever finds an entry gone there finds it in a set
 * for the same reason (filter.c looks at the cells after this reply, or again). */
#include "dedup/migrate_impl.h"

/* Of a migrated user so many newer entries are worth another migration, once the last one is older than the
 * margin. */
#define AGAIN_ENTRIES 64

bool dd_dual_wanted(const struct dd_dedup *d, const struct dd_scene *scene)
{
    return d->migrate && d->migrate->o.dual && d->migrate->o.scene == scene;
}

static struct dd_slice id(void *arg, unsigned i)
{
    const struct dd_dual *q = arg;
    return q->index->items[i].id;
}

static void known(void *arg, unsigned i)
{
    struct dd_dual *q = arg;
    if (!*q->dead) dd_index_mark_id(q->index, q->index->items[i].id, DD_REASON_LEGACY);
}

static void found(void *arg, struct dd_slice item)
{
    struct dd_dual *q = arg;
    if (!*q->dead) dd_index_mark_id(q->index, item, DD_REASON_LEGACY);
}

static void queue(const struct dd_dual *q)
{
    struct dd_migrate *m = q->dl->d->migrate;
    bool again = q->mark.migrated && q->read.entries >= AGAIN_ENTRIES &&
                 dd_clock_wall(q->dl->d->clock).ms - q->mark.mark_ms > m->o.margin_ms;
    bool first = !q->mark.migrated && !q->mark.erased;
    if (m->o.lazy && (first || again)) dd_migrate_enqueue(m, q->user);
}

static void on_legacy(void *arg)
{
    struct dd_dual *q = arg;
    q->err = q->read.err;
    if (q->err == DD_OK || q->err == DD_LIMIT) queue(q);
    q->done(q->arg);
}

/* DD_OK: there is nothing to ask. */
static enum dd_err ask(struct dd_dual *q)
{
    struct dd_migrate *m = q->dl->d->migrate;
    if (q->record.err != DD_OK && q->record.err != DD_NOT_FOUND) {
        q->err = q->record.err;
        return DD_OK;
    }
    q->mark = dd_mark_decode(dd_buf_slice(&q->record.value));
    q->read = (struct dd_legacy_read){.user = q->user,
                                      .n = q->index->n,
                                      .id = id,
                                      .known = known,
                                      .found = found,
                                      .done = on_legacy,
                                      .arg = q};
    if (!dd_mark_range(m, &q->mark, &q->read.since, &q->read.since_ms)) return DD_OK;
    enum dd_err err = dd_legacy_read(q->dl->legacy, &q->read);
    if (err == DD_PENDING) return err;
    q->err = err;
    return DD_OK;
}

static enum dd_err ask_and_free(struct dd_dual *q)
{
    enum dd_err err = ask(q);
    dd_buf_free(&q->record.value);
    return err;
}

static void on_record(void *arg)
{
    struct dd_dual *q = arg;
    if (*q->dead) { /* the candidates are gone */
        dd_buf_free(&q->record.value);
        q->done(q->arg);
        return;
    }
    if (ask_and_free(q) == DD_OK) q->done(q->arg);
}

enum dd_err dd_dual_start(struct dd_dual *q)
{
    struct dd_dedup *d = q->dl->d;
    q->err = DD_OK;
    dd_mark_key_make(&q->key, dd_scene_slice(d->migrate->o.scene), q->user);
    q->record = (struct dd_record_read){
        .key = dd_slice_of(q->key.bytes, q->key.len), .loop = q->dl->loop, .done = on_record, .arg = q};
    enum dd_err err = dd_store_record_read(d->store, &q->record);
    if (err == DD_OK) return ask_and_free(q);
    if (err != DD_PENDING) {
        q->err = err;
        return DD_OK;
    }
    return DD_PENDING;
}
