/* The registry: an array of metrics in the order of registration. Registering is rare (once per module and
 * start) and looks a name up by walking the array; counting never comes here, as the caller keeps the
 * pointer. */
#include "stats/stats.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "stats/histogram.h"

enum kind { COUNTER, GAUGE, HISTOGRAM };

struct metric {
    enum kind kind;
    const char *name; /* both in one allocation with the metric */
    const char *help;
    size_t family; /* bytes of name before its labels */
    union {
        struct dd_counter counter;
        struct dd_gauge gauge;
        struct dd_histogram histogram;
    } u;
};

struct dd_stats {
    pthread_mutex_t lock; /* guards the array, not the values */
    struct metric **metrics;
    size_t count, cap;
    struct metric spare[3]; /* given out when memory is short, one of a kind */
};

enum dd_err dd_stats_create(struct dd_stats **out)
{
    struct dd_stats *s = calloc(1, sizeof *s);
    if (!s) return DD_NO_MEMORY;
    pthread_mutex_init(&s->lock, NULL);
    *out = s;
    return DD_OK;
}

void dd_stats_destroy(struct dd_stats *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->count; i++)
        free(s->metrics[i]);
    free(s->metrics);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct metric *find(struct dd_stats *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->metrics[i]->name, name) == 0) return s->metrics[i];
    return NULL;
}

static struct metric *make(enum kind kind, const char *name, const char *help)
{
    size_t name_size = strlen(name) + 1, help_size = strlen(help) + 1;
    struct metric *m = calloc(1, sizeof *m + name_size + help_size);
    if (!m) return NULL;
    char *text = (char *)(m + 1);
    m->kind = kind;
    m->name = memcpy(text, name, name_size);
    m->help = memcpy(text + name_size, help, help_size);
    m->family = strcspn(name, "{");
    return m;
}

static struct metric *append(struct dd_stats *s, enum kind kind, const char *name, const char *help)
{
    if (s->count == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        struct metric **bigger = realloc(s->metrics, cap * sizeof *bigger);
        if (!bigger) return NULL;
        s->metrics = bigger;
        s->cap = cap;
    }
    struct metric *m = make(kind, name, help);
    if (m) s->metrics[s->count++] = m;
    return m;
}

static struct metric *obtain(struct dd_stats *s, enum kind kind, const char *name, const char *help)
{
    pthread_mutex_lock(&s->lock);
    struct metric *m = find(s, name);
    if (!m) m = append(s, kind, name, help);
    pthread_mutex_unlock(&s->lock);
    if (m && m->kind == kind) return m;
    dd_error("stats.register", "name=%s reason=%s", name, m ? "registered as another kind" : "out of memory");
    return &s->spare[kind];
}

struct dd_counter *dd_stats_counter(struct dd_stats *s, const char *name, const char *help)
{
    return &obtain(s, COUNTER, name, help)->u.counter;
}

struct dd_gauge *dd_stats_gauge(struct dd_stats *s, const char *name, const char *help)
{
    return &obtain(s, GAUGE, name, help)->u.gauge;
}

struct dd_histogram *dd_stats_histogram(struct dd_stats *s, const char *name, const char *help)
{
    return &obtain(s, HISTOGRAM, name, help)->u.histogram;
}

void dd_stats_each(struct dd_stats *s, dd_stats_visit visit, void *arg)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->count; i++) {
        struct metric *m = s->metrics[i];
        visit(arg, m->name, m->kind == COUNTER ? &m->u.counter : NULL, m->kind == GAUGE ? &m->u.gauge : NULL,
              m->kind == HISTOGRAM ? &m->u.histogram : NULL);
    }
    pthread_mutex_unlock(&s->lock);
}

/* `family<suffix>{labels,extra}`, with whichever of the two label parts there are. */
static void put_name(struct dd_buf *out, const struct metric *m, const char *suffix, const char *extra)
{
    const char *labels = m->name + m->family; /* "" or "{...}" */
    size_t inner = *labels ? strlen(labels) - 2 : 0;
    dd_buf_add(out, m->name, m->family);
    dd_buf_add_str(out, suffix);
    if (inner || *extra) dd_buf_add_u8(out, '{');
    dd_buf_add(out, labels + 1, inner);
    if (inner && *extra) dd_buf_add_u8(out, ',');
    dd_buf_add_str(out, extra);
    if (inner || *extra) dd_buf_add_u8(out, '}');
    dd_buf_add_u8(out, ' ');
}

static void put_seconds(struct dd_buf *out, uint64_t us)
{
    dd_buf_addf(out, "%llu.%06llu\n", (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
}

static void put_summary(struct dd_buf *out, const struct metric *m)
{
    static const struct {
        double q;
        const char *label;
    } quantiles[] = {{0.5, "quantile=\"0.5\""},
                     {0.9, "quantile=\"0.9\""},
                     {0.99, "quantile=\"0.99\""},
                     {0.999, "quantile=\"0.999\""}};
    const struct dd_histogram *h = &m->u.histogram;
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        put_name(out, m, "", quantiles[i].label);
        put_seconds(out, (uint64_t)dd_histogram_quantile(h, quantiles[i].q));
    }
    put_name(out, m, "_sum", "");
    put_seconds(out, dd_histogram_sum_us(h));
    put_name(out, m, "_count", "");
    dd_buf_addf(out, "%llu\n", (unsigned long long)dd_histogram_count(h));
}

static void put_metric(struct dd_buf *out, const struct metric *m)
{
    if (m->kind == HISTOGRAM) {
        put_summary(out, m);
        return;
    }
    put_name(out, m, "", "");
    if (m->kind == COUNTER)
        dd_buf_addf(out, "%llu\n", (unsigned long long)dd_counter_get(&m->u.counter));
    else
        dd_buf_addf(out, "%lld\n", (long long)dd_gauge_get(&m->u.gauge));
}

static bool same_family(const struct metric *a, const struct metric *b)
{
    return a->family == b->family && memcmp(a->name, b->name, a->family) == 0;
}

static bool family_seen(const struct dd_stats *s, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (same_family(s->metrics[i], s->metrics[j])) return true;
    return false;
}

/* The format wants all lines of a family together: each family is written where its first member stands. */
static void put_family(const struct dd_stats *s, size_t first, struct dd_buf *out)
{
    static const char *const types[] = {"counter", "gauge", "summary"};
    const struct metric *m = s->metrics[first];
    dd_buf_addf(out, "# HELP %.*s %s\n", (int)m->family, m->name, m->help);
    dd_buf_addf(out, "# TYPE %.*s %s\n", (int)m->family, m->name, types[m->kind]);
    for (size_t i = first; i < s->count; i++)
        if (same_family(m, s->metrics[i])) put_metric(out, s->metrics[i]);
}

void dd_stats_prometheus(struct dd_stats *s, struct dd_buf *out)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->count; i++)
        if (!family_seen(s, i)) put_family(s, i, out);
    pthread_mutex_unlock(&s->lock);
}
