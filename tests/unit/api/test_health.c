/* /health, /stats and /metrics: what they say in each state, and what status goes with it. */
#include <stdio.h>

#include "cases.h"
#include "served.h"
#include "suites.h"

static struct served s;
static struct reply r;
static json_t *body;

static void setup(void)
{
    served_start(&s, DD_API_DATA);
    r = (struct reply){.status = 0};
    body = NULL;
}

static void teardown(void)
{
    json_decref(body);
    reply_free(&r);
    served_stop(&s);
}

static void get(const char *path)
{
    json_error_t e;
    json_decref(body);
    reply_free(&r);
    served_get(&s, path, &r);
    body = json_loadb((const char *)r.body.data, r.body.len, JSON_REJECT_DUPLICATES, &e);
}

static const char *text_at(const char *a, const char *b, const char *c)
{
    const json_t *v = json_object_get(body, a);
    if (b) v = json_object_get(v, b);
    if (c) v = json_object_get(v, c);
    if (json_is_array(v)) v = json_array_get(v, 0);
    return json_is_string(v) ? json_string_value(v) : "(none)";
}

static void status_of(const char *path, int status, const char *word)
{
    get(path);
    ck_assert_msg(r.status == status && strcmp(text_at("status", NULL, NULL), word) == 0, "%s: %d %.2000s",
                  path, r.status, (const char *)r.body.data);
}

START_TEST(all_is_well)
{
    status_of("/health", 200, "ok");
    ck_assert_str_eq(text_at("components", "store", "status"), "ok");
    ck_assert_str_eq(text_at("components", "memory", "status"), "ok");
    ck_assert_str_eq(text_at("components", "clock", "status"), "ok");
    ck_assert_str_eq(text_at("version", NULL, NULL), "1.2.3-test");
    status_of("/health/live", 200, "ok");
    status_of("/health/ready", 200, "ok");
}
END_TEST

START_TEST(disk_full)
{
    s.fake.status.writable = s.fake.status.store.writable = false;
    s.fake.status.store.last_error = DD_DISK_FULL;
    s.fake.status.store.free_bytes = 12000000;
    status_of("/health", 200, "degraded");
    ck_assert_str_eq(text_at("components", "store", "reasons"),
                     "the disk is nearly full (12 MB free): exposures are refused, /filter goes on");
    ck_assert(json_is_false(json_object_get(body, "exposures_accepted")));
    status_of("/health/ready", 200, "ok");
}
END_TEST

START_TEST(writes_fail)
{
    s.fake.status.writable = s.fake.status.store.writable = false;
    s.fake.status.store.last_error = DD_IO;
    status_of("/health", 200, "degraded");
    ck_assert_ptr_nonnull(
        strstr(text_at("components", "store", "reasons"), "writes fail (input or output failed)"));
}
END_TEST

static void redis_away(void)
{
    s.fake.status.full = s.fake.status.hot.up = s.fake.status.hot.embedded = false;
    s.fake.status.hot.connections = 2;
    snprintf(s.fake.status.hot.last_error, sizeof s.fake.status.hot.last_error, "connect: \"refused\"");
}

START_TEST(redis_is_away)
{
    redis_away();
    status_of("/health", 200, "degraded");
    ck_assert_str_eq(text_at("components", "redis", "status"), "degraded");
    ck_assert_ptr_nonnull(strstr(text_at("components", "redis", "reasons"), "(connect: \"refused\")"));
    ck_assert_str_eq(text_at("history", NULL, NULL), "partial");
    status_of("/health/ready", 200, "ok");
}
END_TEST

START_TEST(deliveries_lost)
{
    s.fake.status.hot.embedded = false;
    s.fake.status.hot.recent_intact = s.fake.status.full = false;
    status_of("/health", 200, "degraded");
    ck_assert_ptr_nonnull(strstr(text_at("components", "redis", "reasons"), "may have lost deliveries"));
}
END_TEST

START_TEST(corrupt_blobs)
{
    s.fake.status.store.corrupt = 2;
    status_of("/health", 200, "degraded");
    ck_assert_ptr_nonnull(strstr(text_at("components", "store", "reasons"), "2 stored filter sets failed"));
}
END_TEST

START_TEST(clock_stepped_back)
{
    s.fake.status.clock_behind_ms = 3600000;
    status_of("/health", 200, "ok");
    s.fake.status.clock_behind_ms = 7200000;
    status_of("/health", 200, "degraded");
    ck_assert_ptr_nonnull(strstr(text_at("components", "clock", "reasons"), "7200 s behind"));
}
END_TEST

START_TEST(staging)
{
    struct dd_wheel_status *w = &s.fake.status.wheel;
    s.fake.status.hot.embedded = false;
    w->staging_wanted = true;
    w->staging = DD_STAGING_FIRM;
    status_of("/health", 200, "ok");
    ck_assert_str_eq(text_at("components", "ingest", "durability"), "staged");
    w->lagging = true;
    w->lag_s = 9000;
    status_of("/health", 200, "degraded");
    ck_assert_str_eq(text_at("components", "ingest", "reasons"),
                     "the oldest ended slot has waited 9000 s to be emptied into the store");
    w->lagging = false;
    w->staging = DD_STAGING_OFF;
    w->durability.known = true;
    snprintf(w->durability.warnings, sizeof w->durability.warnings, "appendonly is no");
    status_of("/health", 200, "degraded");
    ck_assert_ptr_nonnull(strstr(text_at("components", "ingest", "reasons"), "costs more: appendonly is no"));
    ck_assert_str_eq(text_at("components", "ingest", "warnings"), "appendonly is no");
    w->staging_wanted = false; /* direct on purpose */
    status_of("/health", 200, "ok");
}
END_TEST

START_TEST(losses_and_errors_of_the_wheel)
{
    struct dd_wheel_status *w = &s.fake.status.wheel;
    s.fake.status.hot.embedded = false;
    w->durability.losses = 2;
    w->durability.last_loss_ms = dd_clock_wall(&s.clock).ms - 1000;
    status_of("/health", 200, "degraded");
    ck_assert_ptr_nonnull(
        strstr(text_at("components", "ingest", "reasons"), "lost staged exposures (2 times"));
    dd_clock_move(&s.clock, 3600000);
    status_of("/health", 200, "ok");
    snprintf(w->last_error, sizeof w->last_error, "timeout");
    status_of("/health", 200, "degraded");
    *w->last_error = 0;
    w->displaced = true;
    status_of("/health", 200, "degraded");
    ck_assert_ptr_nonnull(strstr(text_at("components", "ingest", "reasons"), "another process"));
}
END_TEST

START_TEST(old_store_away)
{
    struct dd_legacy_status *l = &s.fake.status.legacy;
    status_of("/health", 200, "ok");
    ck_assert_str_eq(text_at("components", "migration", "status"), "(none)");
    *l = (struct dd_legacy_status){.asked = true, .up = true, .connections = 2, .connections_up = 2};
    status_of("/health", 200, "ok");
    ck_assert_str_eq(text_at("components", "migration", "status"), "ok");
    l->up = s.fake.status.full = false;
    snprintf(l->last_error, sizeof l->last_error, "connect: refused");
    status_of("/health", 200, "degraded");
    ck_assert_str_eq(text_at("history", NULL, NULL), "partial");
    ck_assert_str_eq(text_at("components", "migration", "reasons"),
                     "the old store does not answer (connect: refused): answers say partial and offer what "
                     "only it knows");
}
END_TEST

START_TEST(nothing_works)
{
    redis_away();
    s.fake.status.writable = s.fake.status.store.writable = false;
    status_of("/health", 503, "down");
    status_of("/health/ready", 503, "down");
    status_of("/health/live", 200, "ok");
}
END_TEST

START_TEST(draining)
{
    dd_api_set_draining(s.api, true);
    status_of("/health/ready", 503, "draining");
    status_of("/health/live", 200, "ok");
    status_of("/health", 200, "ok");
    ck_assert(json_is_true(json_object_get(body, "draining")));
    reply_free(&r);
    served_ask(&s, "/filter", "{\"user\":\"u\",\"candidates\":[1]}", &r);
    ck_assert_int_eq(r.status, 200);
    dd_api_set_draining(s.api, false);
    status_of("/health/ready", 200, "ok");
}
END_TEST

START_TEST(head_has_no_body)
{
    static const char *const paths[] = {"/health", "/health/live", "/health/ready", "/stats", "/metrics"};
    for (size_t i = 0; i < 5; i++) {
        reply_free(&r);
        served_receive(&s, served_send(&s, "HEAD", paths[i], NULL, dd_slice_of(NULL, 0)), &r);
        ck_assert_int_eq(r.status, 200);
        ck_assert_uint_eq(r.body.len, 0);
    }
}
END_TEST

START_TEST(admin_listener)
{
    struct served admin;
    served_start(&admin, DD_API_ADMIN);
    static const struct {
        const char *path;
        int status;
    } rows[] = {{"/health/live", 200}, {"/stats", 200}, {"/metrics", 200}, {"/filter", 404}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        reply_free(&r);
        served_get(&admin, rows[i].path, &r);
        ck_assert_msg(r.status == rows[i].status, "%s: %d", rows[i].path, r.status);
    }
    served_stop(&admin);
}
END_TEST

static json_int_t number_at(const char *a, const char *b, const char *c)
{
    const json_t *v = json_object_get(json_object_get(json_object_get(body, a), b), c);
    ck_assert_msg(json_is_integer(v), "no %s.%s.%s in %.2000s", a, b, c, (const char *)r.body.data);
    return json_integer_value(v);
}

START_TEST(traffic_is_counted)
{
    reply_free(&r);
    served_ask(&s, "/filter", "{\"user\":\"u\",\"candidates\":[1]}", &r);
    reply_free(&r);
    served_ask(&s, "/filter", "{", &r);
    reply_free(&r);
    served_ask(&s, "/nowhere", "{}", &r);
    s.fake.err = DD_BUSY;
    reply_free(&r);
    served_ask(&s, "/exposed", "{\"user\":\"u\",\"items\":[1]}", &r);
    get("/stats");
    ck_assert_int_eq(number_at("traffic", "filter", "2xx"), 1);
    ck_assert_int_eq(number_at("traffic", "filter", "4xx"), 1);
    ck_assert_int_eq(number_at("traffic", "other", "4xx"), 1);
    ck_assert_int_eq(number_at("traffic", "exposed", "5xx"), 1);
    ck_assert_int_eq(number_at("latency_us", "filter", "count"), 1);
    get("/metrics");
    const char *text = (const char *)r.body.data;
    ck_assert_ptr_nonnull(strstr(text, "dedupd_api_requests_total{endpoint=\"filter\",status=\"2xx\"} 1\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "dedupd_api_request_seconds_count{endpoint=\"exposed\",status=\"5xx\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "# TYPE dedupd_api_request_seconds summary\n"));
}
END_TEST

/* A latency is the time until the answer, not until the handler returned. */
START_TEST(latency_until_the_answer)
{
    s.fake.hold = true;
    int fd = served_send(&s, "POST", "/filter", NULL, dd_slice_str("{\"user\":\"u\",\"candidates\":[1]}"));
    served_turn_until(&s, &s.fake.calls, 1);
    dd_clock_move(&s.clock, 250);
    fake_answer(&s.fake);
    reply_free(&r);
    served_receive(&s, fd, &r);
    get("/stats");
    json_int_t p50 = number_at("latency_us", "filter", "p50");
    ck_assert_msg(p50 >= 250000 && p50 < 270000, "%lld", (long long)p50);
}
END_TEST

START_TEST(hit_ratios)
{
    dd_count(dd_stats_counter(s.stats, "dedupd_x_cache_total{result=\"hit\"}", "x"), 3);
    dd_count(dd_stats_counter(s.stats, "dedupd_x_cache_total{result=\"miss\"}", "x"), 1);
    dd_count(dd_stats_counter(s.stats, "dedupd_x_cache_total{result=\"stale\"}", "x"), 2);
    dd_count(dd_stats_counter(s.stats, "dedupd_x_cache_total_other{result=\"miss\"}", "x"), 100);
    dd_stats_counter(s.stats, "dedupd_idle_total{result=\"hit\"}", "x");
    dd_gauge_set(dd_stats_gauge(s.stats, "dedupd_some_gauge", "x"), -7);
    get("/stats");
    const json_t *ratios = json_object_get(body, "hit_ratio");
    ck_assert_msg(json_number_value(json_object_get(ratios, "x_cache")) == 0.5, "%.2000s",
                  (const char *)r.body.data);
    ck_assert_double_eq(json_number_value(json_object_get(ratios, "idle")), 0);
    ck_assert_uint_eq(json_object_size(ratios), 2);
    const json_t *metrics = json_object_get(body, "metrics");
    ck_assert_int_eq(json_integer_value(json_object_get(metrics, "dedupd_some_gauge")), -7);
    ck_assert_int_eq(json_integer_value(json_object_get(metrics, "dedupd_x_cache_total{result=\"hit\"}")), 3);
}
END_TEST

/* /stats says of a metric what /metrics says, in the same unit. */
START_TEST(seconds_are_seconds)
{
    struct dd_histogram *h = dd_stats_histogram(s.stats, "dedupd_x_seconds", "x");
    dd_histogram_record(h, 2031615);
    get("/stats");
    const json_t *m = json_object_get(json_object_get(body, "metrics"), "dedupd_x_seconds");
    ck_assert_msg(json_is_real(json_object_get(m, "p50")), "%.2000s", (const char *)r.body.data);
    ck_assert_double_eq(json_real_value(json_object_get(m, "p50")), 2.031615);
    ck_assert_double_eq(json_real_value(json_object_get(m, "sum")), 2.031615);
    get("/metrics");
    ck_assert_ptr_nonnull(strstr((const char *)r.body.data, "dedupd_x_seconds{quantile=\"0.5\"} 2.031615\n"));
}
END_TEST

START_TEST(uptime)
{
    dd_clock_move(&s.clock, 61000);
    get("/stats");
    ck_assert_int_eq(json_integer_value(json_object_get(body, "uptime_s")), 61);
}
END_TEST

Suite *suite_health(void)
{
    Suite *suite = suite_create("health");
    TCase *t = tcase_create("states");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, all_is_well);
    tcase_add_test(t, disk_full);
    tcase_add_test(t, writes_fail);
    tcase_add_test(t, redis_is_away);
    tcase_add_test(t, deliveries_lost);
    tcase_add_test(t, corrupt_blobs);
    tcase_add_test(t, clock_stepped_back);
    tcase_add_test(t, staging);
    tcase_add_test(t, losses_and_errors_of_the_wheel);
    tcase_add_test(t, old_store_away);
    tcase_add_test(t, nothing_works);
    tcase_add_test(t, draining);
    tcase_add_test(t, head_has_no_body);
    tcase_add_test(t, admin_listener);
    tcase_add_test(t, traffic_is_counted);
    tcase_add_test(t, latency_until_the_answer);
    tcase_add_test(t, hit_ratios);
    tcase_add_test(t, seconds_are_seconds);
    tcase_add_test(t, uptime);
    suite_add_tcase(suite, t);
    return suite;
}
