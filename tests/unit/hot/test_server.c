/* What is concluded from samples of a server: pure, no Redis. */
#include <stdio.h>

#include "hot/server.h"
#include "unit.h"

#define NOW 1796000000000

static struct dd_server server;

static void make(void)
{
    dd_server_init(&server);
}

static void drop(void)
{
    dd_server_reset(&server);
}

static struct dd_server_sample sample_of(const char *run, int64_t beat, bool firm)
{
    struct dd_server_sample s = {.has_info = true,
                                 .has_config = true,
                                 .has_beat = true,
                                 .beat = beat,
                                 .aof = firm,
                                 .fsync = DD_HOT_FSYNC_ALWAYS,
                                 .eviction = DD_EVICT_NONE};
    snprintf(s.run_id, sizeof s.run_id, "%s", run);
    return s;
}

static void see(struct dd_server_sample s)
{
    dd_server_observe(&server, &s, NOW);
}

static struct dd_hot_durability told(void)
{
    struct dd_hot_durability d;
    dd_server_durability(&server, &d);
    return d;
}

static bool is_intact(void)
{
    return dd_server_recent_lost_ms(&server) == INT64_MIN;
}

static const struct {
    const char *what, *run;
    int64_t beat;
    bool firm_before, firm_after, intact;
    unsigned restarts, losses;
} cases[] = {
    {"nothing happened", "a", 1001, false, false, true, 0, 0},
    {"samples out of order", "a", 999, false, false, true, 0, 0},
    {"flushed", "a", 1 << 30, false, false, false, 0, 1},
    {"flushed, far below", "a", -5000000, false, false, false, 0, 1},
    {"restarted, firm", "b", 1001, true, true, true, 1, 0},
    {"restarted, firm only now", "b", 1001, false, true, false, 1, 0},
    {"restarted, firm only before", "b", 1001, true, false, false, 1, 0},
    {"an old snapshot", "b", 990, true, true, false, 1, 1},
    {"the last beat again", "b", 1000, true, true, false, 1, 1},
    {"another instance", "b", 1ll << 50, true, true, false, 1, 1},
};

START_TEST(conclusions)
{
    see(sample_of("a", 1000, cases[_i].firm_before));
    ck_assert(is_intact());
    see(sample_of(cases[_i].run, cases[_i].beat, cases[_i].firm_after));
    struct dd_hot_durability d = told();
    ck_assert_msg(is_intact() == cases[_i].intact, "%s", cases[_i].what);
    ck_assert_msg(d.restarts == cases[_i].restarts && d.losses == cases[_i].losses, "%s", cases[_i].what);
    ck_assert((d.last_loss_ms == NOW) == (cases[_i].losses > 0));
}
END_TEST

START_TEST(a_beat_that_failed_makes_a_restart_unsure)
{
    see(sample_of("a", 1000, true));
    struct dd_server_sample s = sample_of("b", 0, true);
    s.has_beat = false;
    see(s);
    ck_assert(!is_intact() && told().losses == 0 && told().restarts == 1);
    see(sample_of("b", 900, true));
    ck_assert_uint_eq(told().losses, 0);
}
END_TEST

START_TEST(order_does_not_lower_the_beat)
{
    see(sample_of("a", 1000, true));
    see(sample_of("a", 995, true));
    see(sample_of("b", 998, true));
    ck_assert_uint_eq(told().losses, 1);
}
END_TEST

START_TEST(replicas_and_promotion_are_not_firm)
{
    struct dd_server_sample s = sample_of("a", 1000, true);
    s.replicas = 1;
    see(s);
    ck_assert(told().replicated);
    see(sample_of("b", 1001, true));
    ck_assert(!is_intact());
}
END_TEST

START_TEST(eviction_is_noticed)
{
    struct dd_server_sample s = sample_of("a", 1000, true);
    s.eviction = DD_EVICT_WITH_TTL;
    s.evicted_keys = 5;
    see(s);
    ck_assert(is_intact());
    s.beat++;
    see(s);
    ck_assert(is_intact());
    s.beat++;
    s.evicted_keys = 6;
    see(s);
    ck_assert(!is_intact());
}
END_TEST

static const struct {
    bool aof, config;
    enum dd_hot_fsync fsync;
    enum dd_server_eviction eviction;
    uint64_t maxmemory;
    bool firm;
    const char *warning;
} durabilities[] = {
    {true, true, DD_HOT_FSYNC_ALWAYS, DD_EVICT_NONE, 0, true, ""},
    {true, true, DD_HOT_FSYNC_ALWAYS, DD_EVICT_WITH_TTL, 1000, true, ""},
    {true, true, DD_HOT_FSYNC_ALWAYS, DD_EVICT_ANY, 0, true, ""},
    {true, true, DD_HOT_FSYNC_ALWAYS, DD_EVICT_ANY, 1000, false, "evicts keys without a TTL"},
    {false, true, DD_HOT_FSYNC_ALWAYS, DD_EVICT_NONE, 0, false, "appendonly is off"},
    {true, true, DD_HOT_FSYNC_EVERYSEC, DD_EVICT_NONE, 0, false, "up to 2 s"},
    {true, true, DD_HOT_FSYNC_NO, DD_EVICT_NONE, 0, false, "appendfsync is no"},
    {true, false, DD_HOT_FSYNC_UNKNOWN, DD_EVICT_NONE, 0, false, "CONFIG GET"},
};

START_TEST(durability_is_said)
{
    ck_assert(!told().known && !told().warnings[0]);
    struct dd_server_sample s = sample_of("a", 1, durabilities[_i].aof);
    s.has_config = durabilities[_i].config;
    s.fsync = durabilities[_i].fsync;
    s.eviction = durabilities[_i].eviction;
    s.maxmemory = durabilities[_i].maxmemory;
    see(s);
    struct dd_hot_durability d = told();
    ck_assert(d.known && dd_hot_durability_is_firm(&d) == durabilities[_i].firm);
    ck_assert_msg(strstr(d.warnings, durabilities[_i].warning) && !*d.warnings == !*durabilities[_i].warning,
                  "%s", d.warnings);
}
END_TEST

START_TEST(info_is_read)
{
    struct dd_server_sample s = {0};
    const char *info = "# "
                       "Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n\r\nmaxmemory:1000\r\nmaxmemory_"
                       "policy:volatile-lru\r\n"
                       "used_memory:77\r\nevicted_keys:3\r\naof_enabled:1\r\nconnected_slaves:2\r\n"
                       "master_replid2:0000\r\n:\r\nno colon\r\nmaxmemory_human:5M";
    dd_server_read_info(&s, dd_slice_str(info));
    ck_assert(s.has_info && s.aof && !s.promoted && s.replicas == 2);
    ck_assert_str_eq(s.run_id, "abc");
    ck_assert(s.maxmemory == 1000 && s.used_memory == 77 && s.evicted_keys == 3);
    ck_assert_int_eq(s.eviction, DD_EVICT_WITH_TTL);
    dd_server_read_info(&s, dd_slice_str("master_replid2:0a00\nmaxmemory_policy:allkeys-lfu\n"));
    ck_assert(s.promoted && s.eviction == DD_EVICT_ANY);
    dd_server_read_info(&s, dd_slice_str(""));
    dd_server_read_config(&s, dd_slice_str("appendfsync"), dd_slice_str("everysec"));
    dd_server_read_config(&s, dd_slice_str("appendonly"), dd_slice_str("no"));
    ck_assert(s.has_config && !s.aof && s.fsync == DD_HOT_FSYNC_EVERYSEC);
}
END_TEST

Suite *suite_server(void);
Suite *suite_server(void)
{
    Suite *s = suite_create("hot server");
    TCase *t = tcase_create("server");
    tcase_add_checked_fixture(t, make, drop);
    tcase_add_loop_test(t, conclusions, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(t, a_beat_that_failed_makes_a_restart_unsure);
    tcase_add_test(t, order_does_not_lower_the_beat);
    tcase_add_test(t, replicas_and_promotion_are_not_firm);
    tcase_add_test(t, eviction_is_noticed);
    tcase_add_loop_test(t, durability_is_said, 0, (int)(sizeof durabilities / sizeof *durabilities));
    tcase_add_test(t, info_is_read);
    suite_add_tcase(s, t);
    return s;
}
