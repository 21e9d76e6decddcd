/* /stats: the same figures as /metrics, worked up for people and scripts: traffic and latency per endpoint,
 * hit ratios, store, hot tier; and every metric under its Prometheus name and in its unit, so that nothing is
 * only in one of the two.
 *
 * Hit ratios come from a naming rule, not from a list: every counter `x{result="hit"}` gives the share of
 * hits among all `x{result=...}`. */
#include "api/internal.h"
#include "api/json.h"
#include "stats/histogram.h"

static unsigned long long count_of(const struct dd_api_metric *m)
{
    return dd_counter_get(m->requests);
}

static void add_traffic(struct dd_buf *out, const struct dd_api *a)
{
    dd_buf_add_str(out, "\"traffic\":{");
    for (unsigned e = 0; e < DD_ENDPOINT_COUNT; e++) {
        dd_buf_addf(out, "%s\"%s\":{", e ? "," : "", dd_api_endpoint_name(e));
        for (unsigned c = 0; c < DD_CLASS_COUNT; c++)
            dd_buf_addf(out, "%s\"%s\":%llu", c ? "," : "", dd_api_class_name(c),
                        count_of(&a->metrics[e][c]));
        dd_buf_add_u8(out, '}');
    }
    dd_buf_add_str(out, "},");
}

static void add_quantiles(struct dd_buf *out, const struct dd_histogram *h)
{
    dd_buf_addf(out, "{\"count\":%llu,\"p50\":%lld,\"p90\":%lld,\"p99\":%lld,\"p999\":%lld}",
                (unsigned long long)dd_histogram_count(h), (long long)dd_histogram_quantile(h, 0.5),
                (long long)dd_histogram_quantile(h, 0.9), (long long)dd_histogram_quantile(h, 0.99),
                (long long)dd_histogram_quantile(h, 0.999));
}

/* Of answers with 2xx: errors are quick, and would flatter the figures. */
static void add_latency(struct dd_buf *out, const struct dd_api *a)
{
    dd_buf_add_str(out, "\"latency_us\":{");
    for (unsigned e = 0; e < DD_ENDPOINT_OTHER; e++) {
        dd_buf_addf(out, "%s\"%s\":", e ? "," : "", dd_api_endpoint_name(e));
        add_quantiles(out, a->metrics[e][DD_CLASS_2XX].seconds);
    }
    dd_buf_add_str(out, "},");
}

/* ---- hit ratios ---- */

struct ratio {
    const char *family; /* whose results are being added up */
    size_t family_len;
    uint64_t hits, all;
};

#define HIT "{result=\"hit\"}"

static void add_result(void *arg, const char *name, const struct dd_counter *c, const struct dd_gauge *g,
                       const struct dd_histogram *h)
{
    struct ratio *r = arg;
    (void)g, (void)h;
    if (!c || strncmp(name, r->family, r->family_len) != 0) return;
    if (strncmp(name + r->family_len, "{result=", 8) != 0) return;
    r->all += dd_counter_get(c);
    if (strcmp(name + r->family_len, HIT) == 0) r->hits = dd_counter_get(c);
}

/* Families that have hits, with the names as the registry keeps them; it may not be asked again from inside.
 */
struct families {
    const char *name[16];
    unsigned n;
};

static void find_family(void *arg, const char *name, const struct dd_counter *c, const struct dd_gauge *g,
                        const struct dd_histogram *h)
{
    struct families *f = arg;
    size_t n = strlen(name), tail = sizeof HIT - 1;
    (void)g, (void)h;
    if (c && n > tail && strcmp(name + n - tail, HIT) == 0 && f->n < sizeof f->name / sizeof *f->name)
        f->name[f->n++] = name;
}

/* "dedupd_dedup_cache_total" is shown as "dedup_cache". */
static void add_ratio(struct dd_buf *out, const char *family, size_t len, double ratio, bool first)
{
    static const char head[] = "dedupd_", tail[] = "_total";
    if (len > sizeof head && memcmp(family, head, sizeof head - 1) == 0) {
        family += sizeof head - 1;
        len -= sizeof head - 1;
    }
    if (len > sizeof tail && memcmp(family + len - (sizeof tail - 1), tail, sizeof tail - 1) == 0)
        len -= sizeof tail - 1;
    dd_buf_addf(out, "%s\"%.*s\":%.4f", first ? "" : ",", (int)len, family, ratio);
}

static void add_ratios(struct dd_buf *out, struct dd_stats *stats)
{
    struct families f = {.n = 0};
    dd_stats_each(stats, find_family, &f);
    dd_buf_add_str(out, "\"hit_ratio\":{");
    for (unsigned i = 0; i < f.n; i++) {
        struct ratio r = {.family = f.name[i], .family_len = strlen(f.name[i]) - (sizeof HIT - 1)};
        dd_stats_each(stats, add_result, &r);
        add_ratio(out, r.family, r.family_len, r.all ? (double)r.hits / (double)r.all : 0, i == 0);
    }
    dd_buf_add_str(out, "},");
}

/* ---- store, hot tier, everything ---- */

static void add_store(struct dd_buf *out, const struct dd_store_status *s)
{
    dd_buf_addf(out, "\"store\":{\"writable\":%s,\"last_error\":\"%s\",", s->writable ? "true" : "false",
                dd_err_name(s->last_error));
    dd_buf_addf(out, "\"disk_bytes\":%llu,\"free_bytes\":%llu,\"sets_estimate\":%llu,",
                (unsigned long long)s->disk_bytes, (unsigned long long)s->free_bytes,
                (unsigned long long)s->keys_estimate);
    dd_buf_addf(out, "\"commits\":%llu,\"write_queue\":%u,\"read_queue\":%u,\"corrupt\":%llu},",
                (unsigned long long)s->commits, s->write_queue, s->read_queue,
                (unsigned long long)s->corrupt);
}

static void add_hot(struct dd_buf *out, const struct dd_hot_status *h)
{
    dd_buf_addf(out, "\"hot\":{\"kind\":\"%s\",\"up\":%s,\"connections\":%u,\"connections_up\":%u,",
                h->embedded ? "memory" : "redis", h->up || h->embedded ? "true" : "false", h->connections,
                h->connections_up);
    dd_buf_addf(out, "\"deliveries_intact\":%s,\"memory_bytes\":%zu,\"memory_users\":%llu,\"last_error\":",
                h->recent_intact ? "true" : "false", h->memory_bytes, (unsigned long long)h->memory_users);
    dd_json_add_string(out, dd_slice_str(h->last_error));
    dd_buf_add_str(out, "},");
}

static void add_wheel(struct dd_buf *out, const struct dd_wheel_status *w)
{
    static const char *const names[] = {
        [DD_STAGING_OFF] = "off", [DD_STAGING_FIRM] = "staged", [DD_STAGING_VOLATILE] = "volatile"};
    dd_buf_addf(out, "\"wheel\":{\"staging\":\"%s\",\"paused\":%s,\"slots\":%u,\"lag_s\":%lld,",
                names[w->staging], w->paused ? "true" : "false", w->slots, (long long)w->lag_s);
    dd_buf_addf(out, "\"users_flushed\":%llu,\"items_flushed\":%llu,\"losses\":%llu,\"last_error\":",
                (unsigned long long)w->users_flushed, (unsigned long long)w->items_flushed,
                (unsigned long long)w->durability.losses);
    dd_json_add_string(out, dd_slice_str(w->last_error));
    dd_buf_add_str(out, "},");
}

static void add_seconds(struct dd_buf *out, const char *name, int64_t us)
{
    dd_buf_addf(out, ",\"%s\":%lld.%06lld", name, (long long)(us / 1000000), (long long)(us % 1000000));
}

/* As /metrics has them: the names say seconds. */
static void add_summary(struct dd_buf *out, const struct dd_histogram *h)
{
    dd_buf_addf(out, "{\"count\":%llu", (unsigned long long)dd_histogram_count(h));
    add_seconds(out, "sum", (int64_t)dd_histogram_sum_us(h));
    add_seconds(out, "p50", dd_histogram_quantile(h, 0.5));
    add_seconds(out, "p90", dd_histogram_quantile(h, 0.9));
    add_seconds(out, "p99", dd_histogram_quantile(h, 0.99));
    add_seconds(out, "p999", dd_histogram_quantile(h, 0.999));
    dd_buf_add_u8(out, '}');
}

static void add_metric(void *arg, const char *name, const struct dd_counter *c, const struct dd_gauge *g,
                       const struct dd_histogram *h)
{
    struct dd_buf *out = arg;
    if (out->len && out->data[out->len - 1] != '{') dd_buf_add_u8(out, ',');
    dd_json_add_string(out, dd_slice_str(name));
    dd_buf_add_u8(out, ':');
    if (c) dd_buf_addf(out, "%llu", (unsigned long long)dd_counter_get(c));
    if (g) dd_buf_add_i64(out, dd_gauge_get(g));
    if (h) add_summary(out, h);
}

void dd_api_stats(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_api *a = al->api;
    struct dd_dedup_status s;
    struct dd_buf *out = dd_http_request_scratch(o->req);
    a->options.backend->status(a->options.dedup, &s);
    dd_buf_reset(out);
    dd_buf_addf(out, "{\"version\":\"%s\",\"uptime_s\":%lld,\"draining\":%s,\"inflight\":%u,",
                a->options.version, (long long)dd_api_uptime_s(a),
                atomic_load(&a->draining) ? "true" : "false", dd_api_inflight(a));
    add_traffic(out, a);
    add_latency(out, a);
    add_ratios(out, a->options.stats);
    add_store(out, &s.store);
    add_hot(out, &s.hot);
    add_wheel(out, &s.wheel);
    dd_buf_add_str(out, "\"metrics\":{");
    dd_stats_each(a->options.stats, add_metric, out);
    dd_buf_add_str(out, "}}");
    dd_api_answer_buf(o, 200, DD_API_JSON, out);
}

void dd_api_metrics(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_buf *out = dd_http_request_scratch(o->req);
    dd_buf_reset(out);
    dd_stats_prometheus(al->api->options.stats, out);
    dd_api_answer_buf(o, 200, "text/plain; version=0.0.4; charset=utf-8", out);
}
