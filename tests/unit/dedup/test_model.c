/* Random operations against a naive exact model: no item that was acknowledged as exposed within the window
 * is ever offered again in an answer that says full; and with claims, none is handed out twice. Clock jumps
 * over period ends, cache expiry, restarts (clean and as after a crash), Redis killed, away, restarted;
 * embedded, direct, and staged with the wheel running. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#define USERS 12
#define ITEMS 400

struct model {
    int32_t exposed_month[2][USERS][ITEMS]; /* newest month of an acknowledged exposure; 0: never */
    int64_t claimed_ms[2][USERS][ITEMS];    /* when it was claimed in a full answer; 0: never */
};

static struct world w;
static struct model m;
static struct world_answer a;
static uint64_t rng;

static uint32_t pick(uint32_t below)
{
    rng = dd_mix64(rng + 0x9e3779b97f4a7c15ULL);
    return (uint32_t)(rng >> 33) % below;
}

static int32_t month_at(int64_t ms)
{
    return dd_period_at(DD_PERIOD_MONTH, (struct dd_wall){ms}).ordinal;
}

static int32_t month_now(void)
{
    return month_at(dd_clock_period_now(&w.clock).ms);
}

static void expose(unsigned scene, unsigned user)
{
    static const int64_t back_days[] = {0, 0, 0, 0, 1, 20, 40, 70};
    int items[20];
    unsigned n = 1 + pick(20);
    for (unsigned i = 0; i < n; i++)
        items[i] = (int)pick(ITEMS);
    char name[16];
    snprintf(name, sizeof name, "u%u", user);
    int64_t back = back_days[pick(8)] * 86400000;
    int64_t ts = back ? dd_clock_wall(&w.clock).ms - back : DD_TS_NOW;
    enum dd_err err = world_exposed(&w, w.scene[scene].name, name, items, n, ts);
    if (err == DD_EXPIRED) return;
    ck_assert_ok(err);
    int32_t month = back ? month_at(ts) : month_now();
    for (unsigned i = 0; i < n; i++)
        if (m.exposed_month[scene][user][items[i]] < month) m.exposed_month[scene][user][items[i]] = month;
}

static void ask(unsigned scene, unsigned user)
{
    int items[100];
    unsigned n = 1 + pick(100);
    for (unsigned i = 0; i < n; i++)
        items[i] = (int)pick(ITEMS);
    char name[16];
    snprintf(name, sizeof name, "u%u", user);
    enum dd_claim claim = (enum dd_claim)(pick(4) == 0 ? 1 + pick(2) : 0);
    world_filter(&w, w.scene[scene].name, name, items, n, claim ? 10 : pick(2) * 20, claim, pick(4) == 0, &a);
    if (a.err == DD_LIMIT) return;
    ck_assert_ok(a.err);
    if (a.partial) return;
    int64_t now = dd_clock_wall(&w.clock).ms;
    for (unsigned i = 0; i < a.n; i++) {
        int item = a.item[i];
        int32_t month = m.exposed_month[scene][user][item];
        ck_assert_msg(month <= month_now() - 3, "scene %u user %u item %d: exposed in %d, offered in %d",
                      scene, user, item, month, month_now());
        if (!claim) continue;
        int64_t age = now - m.claimed_ms[scene][user][item];
        ck_assert_msg(age > 60000 || age < 0, "item %d of user %u claimed twice within %lld ms", item, user,
                      (long long)age);
        m.claimed_ms[scene][user][item] = now;
        if (claim == DD_CLAIM_EXPOSED) m.exposed_month[scene][user][item] = month_now();
    }
}

enum mode { EMBEDDED, DIRECT, STAGED, MODES };

/* Redis is away for a while: answers are partial, exposures go to the store, and nothing of it is forgotten.
 */
static void outage(void)
{
    world_redis_kill(&w);
    world_wait_hot(&w, false);
    for (unsigned i = 0; i < 10; i++) {
        if (pick(2))
            expose(pick(2), pick(USERS));
        else
            ask(pick(2), pick(USERS));
    }
    world_redis_start(&w);
    world_wait_hot(&w, true);
}

static void restart(bool staged)
{
    world_close(&w, pick(2));
    world_open(&w);
    if (staged && pick(2))
        world_wait_staging(&w); /* else the first requests come before the slots are listed */
}

static void disturb(enum mode mode)
{
    switch (pick(mode == EMBEDDED ? 4 : 7)) {
    case 0:
        dd_clock_move(&w.clock, (int64_t)pick(40) * 86400000);
        break;
    case 1:
        dd_clock_move(&w.clock, (int64_t)pick(2 * 3600) * 1000);
        break;
    case 2:
    case 3:
        restart(mode == STAGED);
        break;
    case 4:
        if (mode == STAGED) { /* what is staged would be lost with it */
            world_flush(&w, pick(2));
            break;
        }
        ck_assert_int_eq(world_redis_cli(&w, "flushall"), 0);
        memset(m.claimed_ms, 0, sizeof m.claimed_ms);
        break;
    case 5:
        outage();
        break;
    default:
        world_redis_kill(&w);
        world_redis_start(&w);
        world_wait_hot(&w, true);
    }
}

static void start(enum mode mode)
{
    world_init(&w, mode != EMBEDDED);
    if (mode != STAGED) return;
    world_close(&w, true);
    w.wheel_options.stage = true;
    w.wheel_options.slot_s = 60;
    w.wheel_options.grace_s = 5;
    world_open(&w);
    world_wait_staging(&w);
}

START_TEST(random_operations_never_offer_a_seen_item)
{
    const char *rounds = getenv("DD_TEST_STEPS");
    int steps = rounds ? atoi(rounds) : 1500;
    enum mode mode = (enum mode)(_i % MODES);
    rng = (uint64_t)_i * 7919 + 17;
    memset(&m, 0, sizeof m);
    start(mode);
    for (int step = 0; step < steps; step++) {
        unsigned scene = pick(2), user = pick(USERS), what = pick(100);
        if (what < 40)
            expose(scene, user);
        else if (what < 98)
            ask(scene, user);
        else
            disturb(mode);
        if (pick(3) == 0) dd_clock_move(&w.clock, 61000);
    }
    world_free(&w);
}
END_TEST

Suite *suite_model(void);
Suite *suite_model(void)
{
    Suite *s = suite_create("dedup/model");
    TCase *t = tcase_create("model");
    tcase_set_timeout(t, 600);
    tcase_add_loop_test(t, random_operations_never_offer_a_seen_item, 0, 9);
    suite_add_tcase(s, t);
    return s;
}
