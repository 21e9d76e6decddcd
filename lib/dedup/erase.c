/* Erasing a user, so that nothing in flight can bring any of it back:
 *
 *   1 Redis: deliveries, cached sets, pending are removed      a wheel that reads from now on finds nothing
 *   2 the store: every set is deleted, synced, with a mark     a wheel that had read before is stripped: the
 *                                                              number it read is below the mark's
 *   3 barrier                                                  cache fills already on their way have arrived;
 *                                                              later ones see the raised cell and are not
 *                                                              sent
 *   4 Redis again                                              what arrived since step 1 goes
 *
 * Each is a comment here and an interleaving in tests/unit/dedup/test_erase.c. An exposure that is staged
 * while this goes on is as if it came before or after, never half. Entries in slots stay: they name a user
 * without pending, and leave when their slot is flushed.
 *
 * Redis away: nothing is done at all (step 1 fails), or what is done is repeated by the next try. */
#include "dedup/admin_impl.h"
#include "dedup/history.h"
#include "dedup/migrate_impl.h"
#include "dedup/trace.h"
#include "dedup/user.h"

struct erase {
    struct dd_erase_call *c;
    struct dd_admin *a;
    struct dd_dedup_loop *dl;
    struct dd_slice user;
    struct dd_user_scene *scenes;
    unsigned n;
    struct dd_job job;
};

static void finish(struct erase *s)
{
    s->dl->inflight--;
    dd_history_leave(s->a->d->options.history, s->user);
    if (s->c->err == DD_OK) dd_count(s->a->count.erased, 1);
    s->c->done(s->c->arg);
}

/* ---- on the users' thread ---- */

static enum dd_err clean_hot(struct erase *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        const struct dd_user_scene *scene = &s->scenes[i];
        unsigned removed;
        enum dd_err err = dd_hot_erase(s->a->d->hot, s->a->users_staging, scene->name, s->user, scene->period,
                                       scene->n, &removed);
        if (err != DD_OK) return err;
        s->c->keys += removed;
    }
    return DD_OK;
}

static enum dd_err count_sets(struct erase *s, const struct dd_user_scene *scene)
{
    struct dd_store_read *r = dd_arena_calloc(s->c->arena, 1, sizeof *r);
    if (!r) return DD_NO_MEMORY;
    enum dd_err err = DD_OK;
    for (unsigned from = 0; from < scene->n && err == DD_OK; from += r->n) {
        *r = (struct dd_store_read){.scene = scene->name, .user = s->user};
        r->n = scene->n - from < DD_WINDOW_MAX ? scene->n - from : DD_WINDOW_MAX;
        memcpy(r->periods, scene->period + from, r->n * sizeof *r->periods);
        err = dd_store_read_wait(s->a->d->store, r);
        if (err == DD_IO) err = DD_OK; /* what cannot be read can be deleted all the same */
        for (unsigned i = 0; i < r->n && err == DD_OK; i++)
            s->c->sets += r->set[i].err != DD_OK || r->set[i].blob.len > 0;
        if (err == DD_OK) dd_store_read_release(r);
    }
    return err;
}

/* The records of a set go in the same commit. */
static enum dd_err erase_sets(struct erase *s, const struct dd_user_scene *scene)
{
    struct dd_store_op *ops = dd_arena_calloc(s->c->arena, scene->n, sizeof *ops);
    if (!ops) return DD_NO_MEMORY;
    for (unsigned i = 0; i < scene->n; i++)
        ops[i] = (struct dd_store_op){
            .kind = DD_STORE_ERASE, .scene = scene->name, .user = s->user, .period = scene->period[i]};
    struct dd_store_batch batch = {.ops = ops, .n = scene->n, .sync = true};
    enum dd_err err = dd_store_write_wait(s->a->d->store, &batch);
    for (unsigned i = 0; i < scene->n && err == DD_OK; i++) {
        err = ops[i].result;
        s->c->records += ops[i].records;
    }
    return err;
}

/* What was recorded in plain cannot be told by period, so a trace goes with any of them. */
static enum dd_err clean_trace(struct erase *s)
{
    uint64_t removed;
    if (!s->a->d->options.trace) return DD_OK;
    enum dd_err err = dd_trace_stop(s->a->d->options.trace, s->user, s->c->scene, &removed);
    s->c->records += (unsigned)removed;
    return err == DD_NOT_FOUND ? DD_OK : err;
}

static enum dd_err clean_store(struct erase *s)
{
    enum dd_err err = DD_OK;
    for (unsigned i = 0; i < s->n && err == DD_OK; i++) {
        err = count_sets(s, &s->scenes[i]);
        if (err == DD_OK) err = erase_sets(s, &s->scenes[i]);
    }
    return err == DD_OK ? clean_trace(s) : err;
}

/* Before the sets: a migration of the user either sees this mark or is stripped (migrate_users.c). */
static enum dd_err clean_migration(struct erase *s)
{
    struct dd_migrate *m = s->a->d->migrate;
    enum dd_err err = DD_OK;
    for (unsigned i = 0; m && !s->c->one_period && i < s->n && err == DD_OK; i++)
        err = dd_migrate_erase(m, s->scenes[i].name, s->user, s->c->legacy, &s->c->keys);
    return err;
}

static void run_first(void *arg)
{
    struct erase *s = arg;
    struct dd_erase_call *c = s->c;
    c->err = dd_user_scenes(s->a, c->scene, c->one_period ? &c->period : NULL, c->arena, &s->scenes, &s->n);
    if (c->err == DD_OK) c->err = clean_hot(s);
    if (c->err == DD_OK) c->err = clean_migration(s);
    if (c->err == DD_OK) c->err = clean_store(s);
    c->scenes = s->n;
}

static const char *copy_text(struct dd_arena *arena, const char *text)
{
    return (const char *)dd_arena_copy(arena, dd_slice_of(text, strlen(text) + 1)).ptr;
}

/* Stores that other processes hold may know the user too; they are named, not asked. */
static enum dd_err list_others(struct erase *s)
{
    const struct dd_hot_holder *holders;
    unsigned n;
    if (!s->a->users_staging) return DD_OK;
    enum dd_err err = dd_hot_boot_list(s->a->users_staging, &holders, &n);
    if (err != DD_OK) return err;
    struct dd_erase_other *others = dd_arena_calloc(s->c->arena, n + 1, sizeof *others);
    if (!others) return DD_NO_MEMORY;
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(holders[i].store_id, dd_store_id(s->a->d->store)) == 0) continue;
        struct dd_erase_other *o = &others[s->c->others_n++];
        *o = (struct dd_erase_other){copy_text(s->c->arena, holders[i].store_id),
                                     copy_text(s->c->arena, holders[i].admin), holders[i].seen_ms};
        if (!o->store || !o->admin) return DD_NO_MEMORY;
    }
    s->c->others = others;
    return DD_OK;
}

/* With the old key gone nothing of the user stays, the mark included. */
static enum dd_err forget_migration(struct erase *s)
{
    struct dd_migrate *m = s->a->d->migrate;
    enum dd_err err = DD_OK;
    for (unsigned i = 0; m && s->c->legacy && !s->c->one_period && i < s->n && err == DD_OK; i++)
        err = dd_migrate_forget(m, s->scenes[i].name, s->user);
    return err;
}

static void run_second(void *arg)
{
    struct erase *s = arg;
    s->c->err = clean_hot(s);
    if (s->c->err == DD_OK) s->c->err = forget_migration(s);
    if (s->c->err == DD_OK) s->c->err = list_others(s);
}

/* ---- on the loop ---- */

static void on_second(void *arg)
{
    finish(arg);
}

/* c->err belongs to the thread once the job is submitted. */
static void on_barrier(void *arg, bool all)
{
    struct erase *s = arg;
    if (!all) { /* a fill may still be on its way: said, so that it is repeated */
        s->c->err = DD_UNAVAILABLE;
        finish(s);
        return;
    }
    enum dd_err err = dd_admin_submit(s->a->users, &s->job, s->dl->loop, run_second, on_second, s);
    if (err == DD_OK) return;
    s->c->err = err;
    finish(s);
}

static void on_first(void *arg)
{
    struct erase *s = arg;
    if (s->c->err == DD_OK)
        dd_barrier(s->dl, on_barrier, s);
    else
        finish(s);
}

void dd_user_erase(struct dd_admin *a, struct dd_dedup_loop *dl, struct dd_erase_call *c)
{
    struct erase *s = dd_arena_calloc(c->arena, 1, sizeof *s);
    c->scenes = c->keys = c->sets = c->records = c->others_n = 0;
    c->others = NULL;
    c->err = DD_OK;
    enum dd_err err = DD_NO_MEMORY;
    if (s) {
        *s = (struct erase){.c = c, .a = a, .dl = dl, .user = c->user};
        dd_history_enter(a->d->options.history, s->user); /* until all is done: history.h */
        err = dd_admin_submit(a->users, &s->job, dl->loop, run_first, on_first, s);
    }
    if (err == DD_OK) {
        dl->inflight++;
        return;
    }
    if (s) dd_history_leave(a->d->options.history, s->user);
    c->err = err;
    c->done(c->arg);
}
