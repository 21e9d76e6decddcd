#include "hand.h"

#include <stdio.h>

static struct dd_arena arena;

void hand_init(struct hand *h, struct world *w, enum dd_filter_kind kind)
{
    *h = (struct hand){.w = w};
    world_init(w, true);
    world_close(w, true);
    w->scene[0].policy.kind = kind;
    w->wheel_options.stage = true;
    w->wheel_options.paused = true;
    world_open(w);
    world_wait_staging(w);
    ck_assert_ok(dd_hot_staging_open(w->hot, &h->staging));
}

void hand_free(struct hand *h)
{
    dd_hot_staging_close(h->staging);
    world_free(h->w);
}

enum dd_err hand_walk(struct hand *h)
{
    const struct dd_hot_slot *slots;
    unsigned n;
    h->n = 0;
    ck_assert_ok(dd_hot_staging_slots(h->staging, &slots, &n));
    if (!n) return DD_NOT_FOUND;
    h->slot = slots[0];
    h->walk = (struct dd_hot_walk){.slot = h->slot};
    while (!h->walk.ended && !h->n)
        ck_assert_ok(dd_hot_staging_walk(h->staging, &h->walk, 100, &h->users, &h->n));
    return h->n ? DD_OK : DD_NOT_FOUND;
}

void hand_read(struct hand *h)
{
    h->number = dd_change_number(dd_store_change(h->w->store));
    ck_assert_ok(dd_hot_staging_read(h->staging, h->users, h->n));
}

enum dd_err hand_commit(struct hand *h)
{
    struct dd_buf operand = {0};
    struct dd_hot_user *u = &h->users[0];
    ck_assert_ok(dd_filter_operand(&h->w->scene[0].policy, 0, u->fps, u->n, &operand));
    h->op = (struct dd_store_op){.kind = DD_STORE_MERGE,
                                 .scene = u->scene,
                                 .user = u->user,
                                 .period = u->period,
                                 .operand = dd_buf_slice(&operand),
                                 .read_number = h->number};
    struct dd_store_batch batch = {.ops = &h->op, .n = 1, .sync = true};
    ck_assert_ok(dd_store_write_wait(h->w->store, &batch));
    dd_buf_free(&operand);
    return h->op.result;
}

void hand_remove(struct hand *h)
{
    ck_assert_ok(dd_hot_staging_remove(h->staging, h->users, h->n));
}

void hand_unlist(struct hand *h)
{
    bool dropped;
    ck_assert_ok(dd_hot_staging_unlist(h->staging, h->slot, h->users, h->n));
    ck_assert_ok(dd_hot_staging_drop_slot(h->staging, h->slot, &dropped));
}

void hand_stage(struct hand *h, int item)
{
    ck_assert_ok(world_exposed(h->w, "default", "alice", &item, 1, DD_TS_NOW));
    ck_assert_int_eq(h->w->last_durability, DD_DURABLE_STAGED);
}

/* ---- calls ---- */

static void on_done(void *arg)
{
    *(bool *)arg = true;
}

static void run(struct world *w, const bool *done)
{
    for (int turns = 0; !*done; turns++) {
        ck_assert_msg(turns < 6000, "a call did not end");
        world_turn(w);
    }
}

enum dd_err world_erase(struct world *w, struct dd_admin *a, const char *scene, const char *user,
                        struct dd_erase_call *c)
{
    bool done = false;
    c->scene = dd_slice_str(scene);
    c->user = dd_slice_str(user);
    c->arena = &arena;
    c->done = on_done;
    c->arg = &done;
    dd_user_erase(a, w->dl, c);
    run(w, &done);
    return c->err;
}

void world_forget_start(struct world *w, struct dd_admin *a, const char *user, const int *items, unsigned n,
                        struct world_forgetting *f)
{
    *f = (struct world_forgetting){.done = false};
    ck_assert_uint_le(n, 64);
    for (unsigned i = 0; i < n; i++) {
        snprintf(f->text[i], sizeof f->text[i], "i%d", items[i]);
        f->item[i].id = f->item[i].echo = dd_slice_str(f->text[i]);
    }
    f->call = (struct dd_forget_call){.scene = dd_scenes_find(w->scenes, dd_slice_str("default")),
                                      .user = dd_slice_str(user),
                                      .items = f->item,
                                      .n = n,
                                      .arena = &arena,
                                      .done = on_done,
                                      .arg = &f->done};
    dd_user_forget(a, w->dl, &f->call);
}

enum dd_err world_forget_end(struct world *w, struct world_forgetting *f, unsigned *forgotten)
{
    run(w, &f->done);
    if (forgotten) *forgotten = f->call.forgotten;
    return f->call.err;
}

enum dd_err world_forget(struct world *w, struct dd_admin *a, const char *user, const int *items, unsigned n,
                         unsigned *forgotten)
{
    struct world_forgetting f;
    world_forget_start(w, a, user, items, n, &f);
    return world_forget_end(w, &f, forgotten);
}

enum dd_err world_inspect(struct world *w, const char *user, struct dd_inspect_call *c)
{
    bool done = false;
    c->user = dd_slice_str(user);
    c->arena = &arena;
    c->done = on_done;
    c->arg = &done;
    dd_user_inspect(w->dl, c);
    run(w, &done);
    return c->err;
}

void world_calls_free(void)
{
    dd_arena_free(&arena);
}

/* ---- what is left ---- */

struct search {
    struct dd_slice user;
    unsigned found;
};

static bool visit(void *arg, struct dd_slice scene, struct dd_slice user, struct dd_period period,
                  struct dd_slice blob)
{
    struct search *s = arg;
    (void)scene, (void)period, (void)blob;
    s->found += dd_slice_eq(user, s->user);
    return true;
}

unsigned left_in_store(struct world *w, const char *user)
{
    struct search s = {.user = dd_slice_str(user)};
    ck_assert_ok(dd_store_each(w->store, visit, &s));
    return s.found;
}

bool left_in_redis(struct world *w, const char *user, bool entries)
{
    char script[600];
    snprintf(script, sizeof script,
             "EVAL \"for _, k in ipairs(redis.call('KEYS', '*')) do "
             "if string.find(k, '%s', 1, true) then return redis.error_reply(k) end "
             "if %s and string.find(k, 'dd:a:', 1, true) == 1 then "
             "for _, m in ipairs(redis.call('SMEMBERS', k)) do "
             "if string.find(m, '%s', 1, true) then return redis.error_reply(m) end end end end return 1\" 0",
             user, entries ? "true" : "false", user);
    return world_redis_cli(w, script) != 0;
}
