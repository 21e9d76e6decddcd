/* The registry and the Prometheus text. */
#include <pthread.h>
#include <stdio.h>

#include "stats/stats.h"
#include "suites.h"

static struct dd_stats *stats;

static void setup(void)
{
    ck_assert_ok(dd_stats_create(&stats));
}

static void teardown(void)
{
    dd_stats_destroy(stats);
}

START_TEST(a_name_registered_twice_is_one_metric)
{
    struct dd_counter *a = dd_stats_counter(stats, "dedupd_test_total", "A test.");
    dd_count(a, 2);
    struct dd_counter *b = dd_stats_counter(stats, "dedupd_test_total", "Other words.");
    ck_assert_ptr_eq(a, b);
    ck_assert_uint_eq(dd_counter_get(b), 2);
}
END_TEST

START_TEST(a_name_of_another_kind_gets_the_spare)
{
    struct dd_counter *a = dd_stats_counter(stats, "dedupd_test_total", "A test.");
    struct dd_gauge *g = dd_stats_gauge(stats, "dedupd_test_total", "A test.");
    ck_assert_ptr_nonnull(g);
    dd_gauge_set(g, 7);
    ck_assert_uint_eq(dd_counter_get(a), 0);
}
END_TEST

START_TEST(prometheus_text)
{
    dd_count(dd_stats_counter(stats, "dedupd_test_total{path=\"/filter\"}", "Requests."), 3);
    dd_gauge_set(dd_stats_gauge(stats, "dedupd_test_open", "Open things."), -4);
    dd_count(dd_stats_counter(stats, "dedupd_test_total{path=\"/exposed\"}", "Requests."), 1);
    struct dd_histogram *h = dd_stats_histogram(stats, "dedupd_test_seconds{path=\"/filter\"}", "Time.");
    dd_histogram_record(h, 7);
    dd_histogram_record(h, 2000000);
    struct dd_buf out = {0};
    dd_stats_prometheus(stats, &out);
    dd_buf_add_u8(&out, 0);
    ck_assert(dd_buf_ok(&out));
    ck_assert_str_eq((char *)out.data, "# HELP dedupd_test_total Requests.\n"
                                       "# TYPE dedupd_test_total counter\n"
                                       "dedupd_test_total{path=\"/filter\"} 3\n"
                                       "dedupd_test_total{path=\"/exposed\"} 1\n"
                                       "# HELP dedupd_test_open Open things.\n"
                                       "# TYPE dedupd_test_open gauge\n"
                                       "dedupd_test_open -4\n"
                                       "# HELP dedupd_test_seconds Time.\n"
                                       "# TYPE dedupd_test_seconds summary\n"
                                       "dedupd_test_seconds{path=\"/filter\",quantile=\"0.5\"} 0.000007\n"
                                       "dedupd_test_seconds{path=\"/filter\",quantile=\"0.9\"} 2.031615\n"
                                       "dedupd_test_seconds{path=\"/filter\",quantile=\"0.99\"} 2.031615\n"
                                       "dedupd_test_seconds{path=\"/filter\",quantile=\"0.999\"} 2.031615\n"
                                       "dedupd_test_seconds_sum{path=\"/filter\"} 2.000007\n"
                                       "dedupd_test_seconds_count{path=\"/filter\"} 2\n");
    dd_buf_free(&out);
}
END_TEST

static void visit(void *arg, const char *name, const struct dd_counter *c, const struct dd_gauge *g,
                  const struct dd_histogram *h)
{
    dd_buf_addf(arg, "%s:%s ", name, c ? "c" : g ? "g" : h ? "h" : "?");
    ck_assert_int_eq(!!c + !!g + !!h, 1);
}

START_TEST(each_visits_in_the_order_of_registration)
{
    dd_stats_gauge(stats, "b", "B.");
    dd_stats_counter(stats, "a", "A.");
    dd_stats_histogram(stats, "c", "C.");
    struct dd_buf out = {0};
    dd_stats_each(stats, visit, &out);
    dd_buf_add_u8(&out, 0);
    ck_assert_str_eq((char *)out.data, "b:g a:c c:h ");
    dd_buf_free(&out);
}
END_TEST

/* Registration, counting and rendering at the same time, and more metrics than the array began with. */
static void *use(void *arg)
{
    (void)arg;
    for (int i = 0; i < 200; i++) {
        char name[64];
        snprintf(name, sizeof name, "dedupd_test_%d_total", i);
        dd_count(dd_stats_counter(stats, name, "A test."), 1);
        struct dd_buf out = {0};
        if (i % 50 == 0) dd_stats_prometheus(stats, &out);
        dd_buf_free(&out);
    }
    return NULL;
}

START_TEST(threads_share_the_registry)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 200; i++) {
        char name[64];
        snprintf(name, sizeof name, "dedupd_test_%d_total", i);
        ck_assert_uint_eq(dd_counter_get(dd_stats_counter(stats, name, "A test.")), 4);
    }
}
END_TEST

Suite *suite_stats(void)
{
    Suite *s = suite_create("stats");
    TCase *t = tcase_create("stats");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_name_registered_twice_is_one_metric);
    tcase_add_test(t, a_name_of_another_kind_gets_the_spare);
    tcase_add_test(t, prometheus_text);
    tcase_add_test(t, each_visits_in_the_order_of_registration);
    tcase_add_test(t, threads_share_the_registry);
    suite_add_tcase(s, t);
    return s;
}
