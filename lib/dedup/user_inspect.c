/* What is known of a user, as /filter would see it: the same round trip to the hot tier, the same reads of
 * the store, the same judgement of cached sets. Scenes are gone through one after the other. */
#include "dedup/migrate_impl.h"
#include "dedup/user.h"

struct inspect {
    struct dd_inspect_call *c;
    struct dd_dedup_loop *dl;
    const struct dd_scene *scene; /* the one being looked at */
    const struct dd_scene *only;  /* NULL: all are gone through */
    unsigned at, scenes;          /* its number, how many there are */
    bool complete;                /* Redis answered for every scene */
    bool fetched;                 /* it is the store's turn */
    enum dd_err read_err;
    unsigned periods, in_window;
    struct dd_inspect_period *period;
    struct dd_inspect_scene *found; /* of all scenes */
    struct dd_hot_fetch fetch;
    struct dd_store_read read;
    struct dd_mark_key key;
    struct dd_record_read record;
};

static void finish(struct inspect *s, enum dd_err err)
{
    struct dd_inspect_call *c = s->c;
    c->scenes = s->found;
    c->partial = !s->complete;
    if (err == DD_OK) err = s->read_err;
    struct dd_trace *trace = s->dl->d->options.trace;
    c->traced = trace && dd_trace_get(trace, c->user, &c->trace) == DD_OK;
    if (err == DD_OK && !c->scene_n && !c->traced) err = s->complete ? DD_NOT_FOUND : DD_UNAVAILABLE;
    c->err = err;
    s->dl->inflight--;
    c->done(c->arg);
}

/* ---- the hot tier ---- */

static const struct dd_scene *scene_at(const struct dd_dedup *d, unsigned i)
{
    unsigned n = dd_scenes_count(d->scenes);
    return i < n ? dd_scenes_at(d->scenes, i) : &d->retired.scene[i - n];
}

static bool is_configured(const struct dd_dedup *d, const struct dd_scene *scene)
{
    return dd_scenes_find(d->scenes, dd_scene_slice(scene)) == scene;
}

static const struct dd_scene *find_scene(const struct dd_dedup *d, struct dd_slice name)
{
    const struct dd_scene *configured = dd_scenes_find(d->scenes, name);
    return configured ? configured : dd_retired_find(&d->retired, name);
}

static enum dd_err begin_scene(struct inspect *s)
{
    struct dd_dedup *d = s->dl->d;
    struct dd_period period[DD_WINDOW_MAX];
    s->scene = s->only ? s->only : scene_at(d, s->at);
    s->in_window = dd_window_periods(d->clock, s->scene, s->scene->window, NULL, period);
    s->periods = dd_window_periods(d->clock, s->scene, s->scene->window + 1, NULL,
                                   period); /* kept for a while */
    s->period = dd_arena_calloc(s->c->arena, s->periods, sizeof *s->period);
    if (!s->period) return DD_NO_MEMORY;
    for (unsigned i = 0; i < s->periods; i++) {
        s->period[i].period = period[i];
        s->period[i].in_window = i < s->in_window;
    }
    struct dd_hot_fetch *f = &s->fetch;
    f->scene = dd_scene_slice(s->scene);
    f->user = s->c->user;
    f->want_recent = true;
    f->now_ms = dd_clock_wall(d->clock).ms;
    f->recent_ttl_ms = s->scene->recent_ttl_ms;
    f->pending_n = f->cached_n = dd_hot_is_embedded(d->hot) ? 0 : s->periods;
    memcpy(f->pending_period, period, f->pending_n * sizeof *period);
    memcpy(f->cached_period, period, f->cached_n * sizeof *period);
    return DD_OK;
}

static struct dd_hot_recent *copy_recent(struct inspect *s, unsigned *n)
{
    const struct dd_hot_fetch *f = &s->fetch;
    struct dd_hot_recent *copy = dd_arena_calloc(s->c->arena, f->recent_n + 1, sizeof *copy);
    *n = copy ? f->recent_n : 0;
    for (unsigned i = 0; i < *n; i++)
        copy[i] = (struct dd_hot_recent){dd_arena_copy(s->c->arena, f->recent[i].id), f->recent[i].at_ms};
    return copy;
}

static void judge_cached(struct inspect *s, struct dd_inspect_period *p, const struct dd_hot_cached *cached)
{
    struct dd_dedup *d = s->dl->d;
    if (!cached->present) return;
    uint64_t seed = dd_hash_user_seed(d->secret, dd_scene_slice(s->scene), s->c->user);
    bool valid = cached->incarnation == dd_change_incarnation(d->change) &&
                 cached->number >= dd_change_cell(d->change, p->period, seed);
    p->cache = valid ? DD_CACHE_VALID : DD_CACHE_STALE;
    p->cached_ms = cached->filled_ms;
}

static void take_fetch(struct inspect *s)
{
    const struct dd_hot_fetch *f = &s->fetch;
    struct dd_inspect_scene *found = &s->found[s->c->scene_n];
    if (!f->complete) s->complete = false;
    *found = (struct dd_inspect_scene){
        .scene = s->scene, .configured = is_configured(s->dl->d, s->scene), .period = s->period};
    found->recent = copy_recent(s, &found->recent_n);
    for (unsigned i = 0; f->complete && i < f->pending_n; i++)
        s->period[i].pending = f->pending[i].n;
    for (unsigned i = 0; f->complete && i < f->cached_n; i++)
        judge_cached(s, &s->period[i], &f->cached[i]);
    s->fetched = true;
}

/* ---- the store ---- */

static enum dd_err start_read(struct inspect *s, void (*done)(void *arg))
{
    s->read.scene = dd_scene_slice(s->scene);
    s->read.user = s->c->user;
    s->read.n = s->periods;
    for (unsigned i = 0; i < s->periods; i++)
        s->read.periods[i] = s->period[i].period;
    s->read.loop = s->dl->loop;
    s->read.done = done;
    s->read.arg = s;
    return dd_store_read(s->dl->d->store, &s->read);
}

static void take_set(struct dd_inspect_period *p, const struct dd_store_set *set)
{
    struct dd_filter_view view;
    p->stored = set->err != DD_OK || set->blob.len > 0;
    p->sound = set->err == DD_OK && dd_filter_view_open(&view, set->blob) == DD_OK;
    if (p->sound) dd_filter_view_info(&view, &p->info);
}

/* Keeps the periods that hold anything, and the scene if it has any. */
static void take_read(struct inspect *s)
{
    struct dd_inspect_scene *found = &s->found[s->c->scene_n];
    if (s->read.err != DD_OK) s->read_err = s->read.err;
    for (unsigned i = 0; i < s->periods; i++) {
        struct dd_inspect_period *p = &s->period[i];
        if (s->read.err == DD_OK) take_set(p, &s->read.set[i]);
        if (p->stored || p->pending) s->period[found->period_n++] = *p;
    }
    dd_store_read_release(&s->read);
    if (found->recent_n || found->period_n) s->c->scene_n++;
    s->at++;
    s->fetched = false;
}

/* ---- from scene to scene ---- */

static void go_on(struct inspect *s);

static void on_fetch(void *arg)
{
    struct inspect *s = arg;
    take_fetch(s);
    go_on(s);
}

static void on_read(void *arg)
{
    struct inspect *s = arg;
    take_read(s);
    go_on(s);
}

/* DD_OK: the step is done, DD_PENDING: its callback follows. */
static enum dd_err step(struct inspect *s)
{
    enum dd_err err;
    if (s->fetched) {
        err = start_read(s, on_read);
        if (err == DD_OK) take_read(s);
        return err;
    }
    err = begin_scene(s);
    if (err == DD_OK) err = dd_hot_fetch(s->dl->hot, &s->fetch);
    if (err != DD_OK) return err;
    take_fetch(s);
    dd_hot_fetch_release(&s->fetch);
    return DD_OK;
}

static void go_on(struct inspect *s)
{
    enum dd_err err = DD_OK;
    while (err == DD_OK && s->at < s->scenes)
        err = step(s);
    if (err != DD_PENDING) finish(s, err);
}

/* ---- the mark of a migration ---- */

static void take_mark(struct inspect *s)
{
    s->c->migration = dd_mark_decode(s->record.err == DD_OK ? dd_buf_slice(&s->record.value)
                                                            : dd_slice_of(NULL, 0));
    dd_buf_free(&s->record.value);
}

static void on_mark(void *arg)
{
    struct inspect *s = arg;
    take_mark(s);
    go_on(s);
}

/* DD_OK: it is there, or there is none. */
static enum dd_err read_mark(struct inspect *s)
{
    const struct dd_migrate *m = s->dl->d->migrate;
    s->c->migration = (struct dd_migrate_mark){0};
    if (!m) return DD_OK;
    dd_mark_key_make(&s->key, dd_scene_slice(m->o.scene), s->c->user);
    s->record = (struct dd_record_read){
        .key = dd_slice_of(s->key.bytes, s->key.len), .loop = s->dl->loop, .done = on_mark, .arg = s};
    enum dd_err err = dd_store_record_read(s->dl->d->store, &s->record);
    if (err == DD_OK) take_mark(s);
    return err;
}

void dd_user_inspect(struct dd_dedup_loop *dl, struct dd_inspect_call *c)
{
    struct inspect *s = dd_arena_calloc(c->arena, 1, sizeof *s);
    const struct dd_dedup *d = dl->d;
    const struct dd_scene *only = c->scene.len ? find_scene(d, c->scene) : NULL;
    unsigned scenes = only ? 1 : dd_scenes_count(d->scenes) + d->retired.n;
    c->scene_n = 0;
    c->scenes = NULL;
    c->partial = false;
    struct dd_inspect_scene *found = dd_arena_calloc(c->arena, scenes, sizeof *found);
    if (!s || !found || (c->scene.len && !only)) {
        c->err = !s || !found ? DD_NO_MEMORY : DD_INVALID;
        c->done(c->arg);
        return;
    }
    s->c = c;
    s->dl = dl;
    s->only = only;
    s->scenes = scenes;
    s->found = found;
    s->complete = true;
    s->read_err = DD_OK;
    s->fetch.done = on_fetch;
    s->fetch.arg = s;
    dl->inflight++;
    enum dd_err err = read_mark(s);
    if (err == DD_OK) go_on(s);
    if (err != DD_OK && err != DD_PENDING) finish(s, err);
}
