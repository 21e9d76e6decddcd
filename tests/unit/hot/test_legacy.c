/* The old store: times, names of keys, and that a removal takes what was read and nothing else. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "hot/legacy_impl.h"
#include "world.h"

/* ---- times ---- */

START_TEST(times)
{
    static const struct {
        enum dd_legacy_unit unit;
        double score;
        int64_t ms;
    } rows[] = {
        {DD_LEGACY_AUTO, 1764500000, 1764500000000},
        {DD_LEGACY_AUTO, 1764500000123, 1764500000123},
        {DD_LEGACY_AUTO, 1764500000.25, 1764500000250},
        {DD_LEGACY_AUTO, 99999999999, 99999999999000},
        {DD_LEGACY_AUTO, 1e11, 100000000000},
        {DD_LEGACY_AUTO, -5, -5000},
        {DD_LEGACY_AUTO, -0.5, -500},
        {DD_LEGACY_AUTO, 0, 0},
        {DD_LEGACY_S, 2e11, 200000000000000},
        {DD_LEGACY_MS, 5, 5},
        {DD_LEGACY_MS, -0.5, -1},
        {DD_LEGACY_AUTO, INFINITY, INT64_MAX},
        {DD_LEGACY_AUTO, -INFINITY, INT64_MIN},
        {DD_LEGACY_S, 1e300, INT64_MAX},
        {DD_LEGACY_MS, -1e300, INT64_MIN},
        {DD_LEGACY_AUTO, NAN, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_int_eq(dd_legacy_time(rows[i].unit, rows[i].score), rows[i].ms);
}
END_TEST

START_TEST(scores)
{
    static const char *const bad[] = {"", "x", "1x", "1 ",
                                      "0123456789012345678901234567890123456789"
                                      "0123456789012345678901234567890123456789"};
    double v;
    ck_assert(dd_legacy_score(dd_slice_str("1764500000.25"), &v) && v == 1764500000.25);
    ck_assert(dd_legacy_score(dd_slice_str("-inf"), &v) && isinf(v) && v < 0);
    ck_assert(dd_legacy_score(dd_slice_of("12345", 2), &v) && v == 12); /* not past its length */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!dd_legacy_score(dd_slice_str(bad[i]), &v), "%s", bad[i]);
}
END_TEST

static void expect_range(struct dd_legacy_range r, const char *min, const char *max)
{
    ck_assert_str_eq(r.min, min);
    ck_assert_str_eq(r.max, max);
}

START_TEST(ranges)
{
    struct dd_legacy_range r[2];
    ck_assert_uint_eq(dd_legacy_ranges(DD_LEGACY_AUTO, 1764500000123, r), 2);
    expect_range(r[0], "(1764500000.123", "(100000000000");
    expect_range(r[1], "(1764500000123", "+inf");
    ck_assert_uint_eq(dd_legacy_ranges(DD_LEGACY_S, 1764500000123, r), 1);
    expect_range(r[0], "(1764500000.123", "+inf");
    ck_assert_uint_eq(dd_legacy_ranges(DD_LEGACY_MS, -5, r), 1);
    expect_range(r[0], "(-5", "+inf");
    /* A mark of 1970: whatever is as high as milliseconds is newer. */
    ck_assert_uint_eq(dd_legacy_ranges(DD_LEGACY_AUTO, 5000, r), 2);
    expect_range(r[1], "100000000000", "+inf");
}
END_TEST

/* ---- names ---- */

static struct dd_legacy pattern(const char *head, const char *tail)
{
    return (struct dd_legacy){.head = dd_slice_str(head), .tail = dd_slice_str(tail)};
}

static const char *user_of(const struct dd_legacy *l, const char *key)
{
    static char text[64];
    struct dd_slice user;
    if (!dd_legacy_user_of(l, dd_slice_str(key), &user)) return "(none)";
    snprintf(text, sizeof text, "%.*s", (int)user.len, (const char *)user.ptr);
    return text;
}

START_TEST(names)
{
    struct dd_legacy l = pattern("p:", ":v1");
    struct dd_buf b = {0};
    ck_assert_str_eq(user_of(&l, "p:u1:v1"), "u1");
    ck_assert_str_eq(user_of(&l, "p:a:v1:v1"), "a:v1");
    ck_assert_str_eq(user_of(&l, "p::v1"), "(none)");
    ck_assert_str_eq(user_of(&l, "p:v1"), "(none)"); /* head and tail must not overlap */
    ck_assert_str_eq(user_of(&l, "q:u1:v1"), "(none)");
    ck_assert_str_eq(user_of(&l, "p:u1:v2"), "(none)");
    dd_legacy_key(&l, dd_slice_str("u1"), &b);
    ck_assert(dd_slice_eq(dd_buf_slice(&b), dd_slice_str("p:u1:v1")));
    l = pattern("a*[b]?", "\\x^");
    dd_legacy_glob(&l, &b);
    ck_assert(dd_slice_eq(dd_buf_slice(&b), dd_slice_str("a\\*\\[b\\]\\?*\\\\x\\^")));
    dd_buf_free(&b);
}
END_TEST

/* ---- reading and removing, on a server ---- */

struct old {
    struct world w;
    struct dd_legacy *l;
    struct dd_legacy_sync *s;
    struct dd_legacy_entries e;
};

static void old_open(struct old *o, enum dd_legacy_type type)
{
    memset(o, 0, sizeof *o);
    server_start(&o->w.server);
    world_open(&o->w, 1);
    struct dd_legacy_options options = {.key = "old:{user}", .type = type};
    ck_assert_ok(dd_legacy_create(&options, o->w.hot, o->w.stats, &o->l));
    ck_assert_ok(dd_legacy_sync_open(o->l, &o->s));
}

static void old_close(struct old *o)
{
    dd_legacy_entries_free(&o->e);
    dd_legacy_sync_close(o->s);
    dd_legacy_destroy(o->l);
    world_close(&o->w);
}

static const struct dd_slice u1 = {(const uint8_t *)"u1", 2};

static unsigned load(struct old *o)
{
    ck_assert_ok(dd_legacy_load(o->s, u1, false, 0, &o->e));
    return o->e.n;
}

START_TEST(zset_keeps_what_moved)
{
    struct old o;
    old_open(&o, DD_LEGACY_ZSET);
    ask(&o.w.server, "ZADD", "old:u1", "1764500000", "a", "0.1", "b", "-7.25", "c", "inf", "d", NULL);
    ck_assert_uint_eq(load(&o), 4);
    ask(&o.w.server, "ZADD", "old:u1", "1764500001", "a", "3", "new", NULL); /* a was seen again */
    ck_assert_ok(dd_legacy_remove(o.s, u1, &o.e, INT64_MIN));
    ck_assert_str_eq(ask(&o.w.server, "ZRANGE", "old:u1", "0", "-1", NULL), "new a");
    old_close(&o);
}
END_TEST

START_TEST(zset_since)
{
    struct old o;
    old_open(&o, DD_LEGACY_ZSET);
    ask(&o.w.server, "ZADD", "old:u1", "100", "old", "200", "equal", "200.5", "s", "1764500000000", "ms",
        NULL);
    ck_assert_ok(dd_legacy_load(o.s, u1, true, 200000, &o.e));
    ck_assert_uint_eq(o.e.n, 2);
    ck_assert(dd_slice_eq(dd_legacy_entry_at(&o.e, 0).id, dd_slice_str("s")));
    ck_assert_int_eq(dd_legacy_entry_at(&o.e, 0).at_ms, 200500);
    ck_assert_int_eq(dd_legacy_entry_at(&o.e, 1).at_ms, 1764500000000);
    old_close(&o);
}
END_TEST

/* Fills old:u1 by a script: n members "<name>i" with the score first + i / same. */
static void fill(struct old *o, const char *name, const char *n, const char *first, const char *same)
{
    ck_assert_str_eq(ask(&o->w.server, "EVAL",
                         "for i = 0, ARGV[2] - 1 do redis.call('ZADD', KEYS[1], "
                         "string.format('%.17g', ARGV[3] + math.floor(i / ARGV[4])), "
                         "ARGV[1] .. i) end return 'ok'",
                         "1", "old:u1", name, n, first, same, NULL),
                     "ok");
}

/* Every entry once. */
static void expect_once(struct dd_legacy_entries *e, const char *name, unsigned n)
{
    bool *seen = calloc(n, sizeof *seen);
    unsigned found = 0;
    for (unsigned i = 0; i < e->n; i++) {
        struct dd_slice id = dd_legacy_entry_at(e, i).id;
        char text[40];
        snprintf(text, sizeof text, "%.*s", (int)id.len, (const char *)id.ptr);
        if (strncmp(text, name, strlen(name)) != 0) continue;
        unsigned long k = strtoul(text + strlen(name), NULL, 10);
        ck_assert_msg(k < n && !seen[k], "%s twice", text);
        seen[k] = true;
        found++;
    }
    free(seen);
    ck_assert_msg(found == n, "%u of %u %s", found, n, name);
}

/* More than a page: scores of their own, some that several share, and one that fills pages by itself; seconds
 * and milliseconds. */
START_TEST(zset_since_in_pages)
{
    struct old o;
    old_open(&o, DD_LEGACY_ZSET);
    fill(&o, "old", "1500", "1", "20"); /* before the mark */
    fill(&o, "own", "2500", "1764500000", "1");
    fill(&o, "few", "2500", "1764500100", "7");
    fill(&o, "tie", "3700", "1764600000", "3700");
    fill(&o, "ms", "2000", "1764500000000", "1000");
    ck_assert_ok(dd_legacy_load(o.s, u1, true, 1764499999000, &o.e));
    ck_assert_uint_eq(o.e.n, 2500 + 2500 + 3700 + 2000);
    expect_once(&o.e, "own", 2500);
    expect_once(&o.e, "few", 2500);
    expect_once(&o.e, "tie", 3700);
    expect_once(&o.e, "ms", 2000);
    ck_assert_ok(dd_legacy_load(o.s, u1, true, 1764700000000, &o.e)); /* nothing since */
    ck_assert_uint_eq(o.e.n, 0);
    old_close(&o);
}
END_TEST

struct mover {
    struct server *server;
    atomic_bool stop;
};

/* Members are seen again, one after the other: each moves to the end. */
static void *move(void *arg)
{
    struct mover *m = arg;
    char score[40], member[20];
    for (unsigned i = 0; !atomic_load(&m->stop); i++) {
        snprintf(score, sizeof score, "%u", 1764600000 + i);
        snprintf(member, sizeof member, "move%u", i % 2000);
        ask(m->server, "ZADD", "old:u1", score, member, NULL);
    }
    return NULL;
}

/* A member that nobody moves is never stepped over. */
START_TEST(zset_since_while_members_move)
{
    struct old o;
    pthread_t thread;
    old_open(&o, DD_LEGACY_ZSET);
    fill(&o, "move", "2000", "1764500000", "1");
    fill(&o, "stay", "6000", "1764501000", "1");
    struct mover m = {.server = &o.w.server};
    ck_assert_int_eq(pthread_create(&thread, NULL, move, &m), 0);
    for (unsigned i = 0; i < 30; i++) {
        ck_assert_ok(dd_legacy_load(o.s, u1, true, 1764499999000, &o.e));
        expect_once(&o.e, "stay", 6000);
    }
    atomic_store(&m.stop, true);
    pthread_join(thread, NULL);
    old_close(&o);
}
END_TEST

START_TEST(set_keeps_what_came)
{
    struct old o;
    old_open(&o, DD_LEGACY_SET);
    ask(&o.w.server, "SADD", "old:u1", "a", "b", NULL);
    ck_assert_uint_eq(load(&o), 2);
    ask(&o.w.server, "SADD", "old:u1", "new", NULL);
    ck_assert_ok(dd_legacy_remove(o.s, u1, &o.e, INT64_MIN));
    ck_assert_str_eq(ask(&o.w.server, "SMEMBERS", "old:u1", NULL), "new");
    old_close(&o);
}
END_TEST

/* Pushed at its head, at its tail, at both, and changed in its middle. */
START_TEST(list_keeps_what_came)
{
    static const struct {
        const char *change[5], *left;
    } rows[] = {{{"LPUSH", "old:u1", "new", NULL}, "new"},
                {{"RPUSH", "old:u1", "new", NULL}, "new"},
                {{"LPUSH", "old:u1", "a", NULL}, "a"},
                {{"LREM", "old:u1", "1", "b", NULL}, "a c"}};
    struct old o;
    old_open(&o, DD_LEGACY_LIST);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const *c = rows[i].change;
        ask(&o.w.server, "DEL", "old:u1", NULL);
        ask(&o.w.server, "RPUSH", "old:u1", "a", "b", "c", NULL);
        ck_assert_uint_eq(load(&o), 3);
        ask(&o.w.server, c[0], c[1], c[2], c[3], NULL);
        ck_assert_ok(dd_legacy_remove(o.s, u1, &o.e, INT64_MIN));
        ck_assert_str_eq(ask(&o.w.server, "LRANGE", "old:u1", "0", "-1", NULL), rows[i].left);
    }
    old_close(&o);
}
END_TEST

START_TEST(wrong_type_and_no_key)
{
    for (enum dd_legacy_type type = DD_LEGACY_ZSET; type <= DD_LEGACY_SET; type++) {
        struct old o;
        old_open(&o, type);
        ck_assert_uint_eq(load(&o), 0);
        ask(&o.w.server, "SET", "old:u1", "x", NULL);
        ck_assert_err(dd_legacy_load(o.s, u1, false, 0, &o.e), DD_CORRUPT);
        server_kill(&o.w.server);
        ck_assert_err(dd_legacy_load(o.s, u1, false, 0, &o.e), DD_UNAVAILABLE);
        old_close(&o);
    }
}
END_TEST

/* ---- one request ---- */

struct asked {
    struct dd_legacy_read r;
    const char *const *names;
    char got[200];
    unsigned done;
};

static struct dd_slice id(void *arg, unsigned i)
{
    struct asked *a = arg;
    return dd_slice_str(a->names[i]);
}

static void found(void *arg, struct dd_slice item)
{
    struct asked *a = arg;
    size_t at = strlen(a->got);
    snprintf(a->got + at, sizeof a->got - at, "%.*s ", (int)item.len, (const char *)item.ptr);
}

static void known(void *arg, unsigned i)
{
    found(arg, id(arg, i));
}

static void done(void *arg)
{
    ((struct asked *)arg)->done++;
}

static const char *ask_old(struct old *o, bool since, int64_t since_ms)
{
    static const char *const asked_for[] = {"a", "x", "b"};
    static struct asked a;
    struct dd_legacy_loop *ll;
    a = (struct asked){.r = {.user = u1,
                             .since = since,
                             .since_ms = since_ms,
                             .n = 3,
                             .id = id,
                             .known = known,
                             .found = found,
                             .done = done},
                       .names = asked_for};
    a.r.arg = &a;
    ck_assert_ok(dd_legacy_loop_create(o->l, o->w.hl[0], o->w.loop[0], &ll));
    wait_for(&o->w, world_is_up(&o->w));
    ck_assert_err(dd_legacy_read(ll, &a.r), DD_PENDING);
    wait_for(&o->w, a.done);
    ck_assert_ok(a.r.err);
    ck_assert_uint_eq(a.done, 1);
    dd_legacy_loop_destroy(ll);
    return a.got;
}

START_TEST(request)
{
    static const char *const add[] = {"ZADD", "RPUSH", "SADD"};
    for (enum dd_legacy_type type = DD_LEGACY_ZSET; type <= DD_LEGACY_SET; type++) {
        struct old o;
        old_open(&o, type);
        if (type == DD_LEGACY_ZSET)
            ask(&o.w.server, add[type], "old:u1", "100", "a", "300", "b", NULL);
        else
            ask(&o.w.server, add[type], "old:u1", "a", "b", NULL);
        ck_assert_str_eq(ask_old(&o, false, 0), "a b ");
        const char *since = ask_old(&o, true, 200000);
        if (type == DD_LEGACY_ZSET) ck_assert_str_eq(since, "b ");
        if (type == DD_LEGACY_SET) ck_assert_str_eq(since, "a b ");
        if (type == DD_LEGACY_LIST) ck_assert_str_eq(since, "a b a b ");
        old_close(&o);
    }
}
END_TEST

/* ---- whether it answers ---- */

/* How often standard error, kept in f, has the word; other lines may be between. */
static unsigned said(FILE *f, const char *word)
{
    char line[1200];
    unsigned n = 0;
    rewind(f);
    while (fgets(line, sizeof line, f))
        n += strstr(line, word) != NULL;
    return n;
}

/* Loops fail many times a second: the log has one line for the change, and one a minute. */
START_TEST(a_change_is_said_once)
{
    struct dd_clock clock;
    struct dd_hot hot = {.clock = &clock}, own = {.embedded = false};
    struct dd_legacy l = {.hot = &hot, .own = &own};
    FILE *f = tmpfile();
    int kept = dup(2);
    dd_clock_init_manual(&clock, 1764500000000);
    dd_legacy_state_init(&l.state);
    dup2(fileno(f), 2);
    dd_log_set_level(DD_LOG_INFO);
    dd_legacy_state_count(&l, 2, 0);
    for (int ms = 0; ms < 150000; ms += 100, dd_clock_move(&clock, 100))
        dd_legacy_state_changed(&l, false, "connect: refused");
    ck_assert_uint_eq(said(f, "legacy.disconnected reason=\"connect: refused\""), 3); /* and two minutes */
    for (int up = 0; up < 2; up++) {
        dd_legacy_state_count(&l, 0, 1);
        dd_legacy_state_changed(&l, true, "");
    }
    ck_assert_uint_eq(said(f, "legacy.connected"), 1);
    for (int up = 0; up < 2; up++) {
        dd_legacy_state_count(&l, 0, -1);
        dd_legacy_state_changed(&l, false, "connection: closed");
    }
    ck_assert_uint_eq(said(f, "legacy.disconnected"), 4);
    dup2(kept, 2);
    dd_log_set_level(DD_LOG_ERROR);
    close(kept);
    fclose(f);
    dd_legacy_state_reset(&l.state);
}
END_TEST

START_TEST(status)
{
    struct dd_clock clock;
    struct dd_hot hot = {.clock = &clock}, own = {.embedded = false};
    struct dd_legacy l = {.hot = &hot, .own = &own};
    struct dd_legacy_status s;
    dd_clock_init_manual(&clock, 1764500000000);
    dd_legacy_state_init(&l.state);
    dd_legacy_state_count(&l, 2, 1);
    dd_legacy_state_changed(&l, false, "connect: refused");
    dd_legacy_get_status(&l, &s);
    ck_assert(s.asked && !s.up && s.connections == 2 && s.connections_up == 1);
    ck_assert_str_eq(s.last_error, "connect: refused");
    ck_assert_int_eq(s.down_since_ms, 1764500000000);
    dd_legacy_state_count(&l, 0, 1);
    dd_legacy_state_refused(&l, "NOPERM no");
    dd_legacy_get_status(&l, &s);
    ck_assert(!s.up && s.down_since_ms == 0);
    ck_assert_str_eq(s.last_error, "redis: NOPERM no");
    dd_legacy_state_answered(&l);
    dd_legacy_get_status(&l, &s);
    ck_assert(s.up && !*s.last_error);
    dd_legacy_state_reset(&l.state);
}
END_TEST

Suite *suite_legacy(void);
Suite *suite_legacy(void)
{
    Suite *s = suite_create("hot/legacy");
    TCase *tc = tcase_create("legacy");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, times);
    tcase_add_test(tc, scores);
    tcase_add_test(tc, ranges);
    tcase_add_test(tc, names);
    tcase_add_test(tc, zset_keeps_what_moved);
    tcase_add_test(tc, zset_since);
    tcase_add_test(tc, zset_since_in_pages);
    tcase_add_test(tc, zset_since_while_members_move);
    tcase_add_test(tc, set_keeps_what_came);
    tcase_add_test(tc, list_keeps_what_came);
    tcase_add_test(tc, wrong_type_and_no_key);
    tcase_add_test(tc, request);
    tcase_add_test(tc, a_change_is_said_once);
    tcase_add_test(tc, status);
    suite_add_tcase(s, tc);
    return s;
}
