/* Sizes and times that the project set itself, each with what is measured now and pass or miss. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "filters_measure.h"
#include "filters_population.h"
#include "filters_table.h"

enum { TARGET, UNIT, MEASURED, LIMIT, VERDICT, COLUMNS };

static const struct dd_table_column columns[COLUMNS] = {
    [TARGET] = {"target", "target", DD_TABLE_TEXT},        [UNIT] = {"unit", "unit", DD_TABLE_TEXT},
    [MEASURED] = {"measured", "measured", DD_TABLE_FIXED}, [LIMIT] = {"limit", "limit", DD_TABLE_FIXED},
    [VERDICT] = {"verdict", "verdict", DD_TABLE_TEXT},
};

struct targets {
    const struct dd_filters_args *a;
    struct dd_table table;
    unsigned missed;
};

static void judge(struct targets *t, const char *target, const char *unit, double measured, double limit)
{
    bool pass = measured <= limit;
    dd_table_row(&t->table);
    dd_table_set_text(&t->table, TARGET, target);
    dd_table_set_text(&t->table, UNIT, unit);
    dd_table_set(&t->table, MEASURED, measured);
    dd_table_set(&t->table, LIMIT, limit);
    dd_table_set_text(&t->table, VERDICT, pass ? "pass" : "MISS");
    t->missed += !pass;
}

/* ---- sizes ---- */

/* The worst of `value` over a set that grows in batches; the value may be NaN where it does not apply. */
static enum dd_err worst_while_growing(const struct dd_structure_spec *spec, uint64_t seed, uint32_t items,
                                       uint32_t batch,
                                       double (*value)(const struct dd_structure *s, uint32_t n),
                                       double *worst)
{
    struct dd_workload w = {.users = 1, .items = items, .id_bytes = 16};
    struct dd_ids ids = {0};
    struct dd_structure *s = NULL;
    enum dd_err err = dd_workload_user(&w, 0, &ids);
    if (err == DD_OK) err = dd_structure_create(spec, seed, &s);
    for (uint32_t n = 0; err == DD_OK && n < items; n += batch) {
        err = dd_structure_add(s, ids.id + n, batch);
        *worst = fmax(*worst, value(s, n + batch));
    }
    dd_structure_destroy(s);
    dd_ids_free(&ids);
    return err;
}

static double ratio_from_1000(const struct dd_structure *s, uint32_t n)
{
    return n < 1000 ? NAN : (double)s->blob.len * 8 / n / log2(1 / s->spec.policy.fpr);
}

static double bytes_over_list(const struct dd_structure *s, uint32_t n)
{
    struct dd_filter_view v;
    if (dd_filter_view_open(&v, dd_buf_slice(&s->blob)) != DD_OK) return HUGE_VAL;
    return v.layers > 0 ? NAN : (double)s->blob.len - 4.0 * n;
}

static enum dd_err judge_compact(struct targets *t)
{
    struct dd_structure_spec spec = dd_spec_kind(t->a, DD_FILTER_COMPACT);
    double worst = 0;
    enum dd_err err = DD_OK;
    for (uint64_t user = 0; err == DD_OK && user < 3; user++)
        err = worst_while_growing(&spec, dd_random_at(t->a->seed, user, 1), 20000, 20, ratio_from_1000,
                                  &worst);
    if (err == DD_OK) judge(t, "compact, worst of 1,000 to 20,000 items", "x limit", worst, 1.6);
    return err;
}

static enum dd_err judge_sparse(struct targets *t)
{
    double worst = 0;
    enum dd_err err = DD_OK;
    for (unsigned k = DD_FILTER_BLOOM; err == DD_OK && k <= DD_FILTER_COMPACT; k++) {
        struct dd_structure_spec spec = dd_spec_kind(t->a, (enum dd_filter_kind)k);
        err = worst_while_growing(&spec, t->a->seed, 1000, 1, bytes_over_list, &worst);
    }
    if (err == DD_OK) judge(t, "sparse sets, over 4 bytes an item", "bytes", worst, 32);
    return err;
}

static enum dd_err judge_population(struct targets *t)
{
    struct dd_population p = {.users = t->a->users ? t->a->users : 10000,
                              .seed = t->a->seed,
                              .policy = dd_filters_policy(t->a, DD_FILTER_BLOOM),
                              .hinted = true};
    struct dd_progress bar;
    struct dd_census c = {0};
    char *dir = NULL, path[4096];
    enum dd_err err = dd_filters_make_dir(t->a->dir, &dir);
    if (err != DD_OK) return err;
    snprintf(path, sizeof path, "%s/store", dir);
    dd_log_set_level(DD_LOG_WARN);
    dd_progress_begin(&bar, dd_population_all_items(&p));
    err = dd_population_run(&p, path, t->a->probes, NULL, &bar, &c);
    dd_progress_end(&bar);
    dd_filters_remove_dir(dir);
    free(dir);
    if (err != DD_OK) return err;
    double optimum = (double)c.items * log2(1 / p.policy.fpr) / M_LN2 / 8;
    judge(t, "bloom, population with hints", "x optimum", (double)c.bytes / optimum, 1.5);
    judge(t, "population, sparse sets over 4 bytes an item + 32", "sets", (double)c.sparse_over, 0);
    judge(t, "population, items forgotten", "items", (double)c.forgotten, 0);
    judge(t, "population, false positives (lower end)", "per 1000",
          1000 * dd_interval_of(c.hits, c.trials).low, 1000 * t->a->fpr);
    return DD_OK;
}

/* ---- times ---- */

/* CAPACITY: the default of the option scenes.*.capacity. */
enum { RUNS = 9, CALLS = 300, TURNS = 64, ITEMS = 1000, CAPACITY = 1024 };

struct window {
    struct dd_structure *set[DD_FILTERS_WINDOW];
    uint32_t candidates[TURNS][DD_MEASURE_CANDIDATES]; /* other ones each time, or they would be learnt */
};

static enum dd_err build_window(struct window *w, const struct dd_structure_spec *spec, uint64_t seed)
{
    struct dd_workload users = {.users = 1, .items = ITEMS, .id_bytes = 16};
    struct dd_ids ids = {0};
    enum dd_err err = dd_workload_user(&users, 0, &ids);
    for (int i = 0; err == DD_OK && i < DD_FILTERS_WINDOW; i++) {
        err = dd_structure_create(spec, seed + (uint64_t)i, &w->set[i]);
        for (uint32_t n = 0; err == DD_OK && n < ITEMS; n += DD_MEASURE_BATCH)
            err = dd_structure_add(w->set[i], ids.id + n, DD_MEASURE_BATCH);
    }
    for (unsigned i = 0; i < TURNS * DD_MEASURE_CANDIDATES; i++)
        w->candidates[i / DD_MEASURE_CANDIDATES][i % DD_MEASURE_CANDIDATES] = (uint32_t)dd_random_at(seed, i,
                                                                                                     5);
    dd_ids_free(&ids);
    return err;
}

/* What /filter does with three sets, their verification included; fingerprints are there already. */
static size_t test_window(const struct window *w, unsigned turn)
{
    uint8_t seen[DD_MEASURE_CANDIDATES] = {0};
    size_t found = 0;
    for (int i = 0; i < DD_FILTERS_WINDOW; i++) {
        struct dd_filter_view v;
        if (dd_filter_view_open(&v, dd_buf_slice(&w->set[i]->blob)) != DD_OK) continue;
        found += dd_filter_view_test(&v, w->candidates[turn % TURNS], DD_MEASURE_CANDIDATES, seen, 1);
    }
    return found;
}

static double window_us(const struct window *w)
{
    double us[RUNS];
    for (int run = 0; run < RUNS; run++) {
        double start = dd_cpu_ns();
        for (unsigned i = 0; i < CALLS; i++)
            test_window(w, i);
        us[run] = (dd_cpu_ns() - start) / CALLS / 1e3;
    }
    return dd_median(us, RUNS);
}

/* Sets of 1,000 as they come about: in one layer of just that size; grown in batches under the policy as
 * configured by default; and the same after a previous period of as many. */
enum how { ONE_LAYER, GROWN, HINTED, HOWS };
static const char *const how_text[HOWS] = {"in one layer", "grown by default", "after a like period"};

static struct dd_structure_spec spec_for(const struct targets *t, enum dd_filter_kind kind, enum how how)
{
    struct dd_structure_spec spec = dd_spec_kind(t->a, kind);
    spec.policy.capacity = how == ONE_LAYER ? ITEMS : CAPACITY;
    if (how == HINTED) spec.hint = ITEMS;
    return spec;
}

static enum dd_err judge_time(struct targets *t, enum dd_filter_kind kind, enum how how)
{
    struct dd_structure_spec spec = spec_for(t, kind, how);
    struct window *w = calloc(1, sizeof *w);
    char target[96];
    if (!w) return DD_NO_MEMORY;
    enum dd_err err = build_window(w, &spec, dd_random_at(t->a->seed, kind, 9));
    snprintf(target, sizeof target, "100 candidates, three sets of 1,000, %s, %s", spec.name, how_text[how]);
    if (err == DD_OK) judge(t, target, "us", window_us(w), kind == DD_FILTER_COMPACT ? 12 : 6);
    for (int i = 0; i < DD_FILTERS_WINDOW; i++)
        dd_structure_destroy(w->set[i]);
    free(w);
    return err;
}

static enum dd_err judge_times(struct targets *t)
{
    enum dd_err err = DD_OK;
    for (int how = 0; how < HOWS; how++)
        for (unsigned k = DD_FILTER_BLOOM; err == DD_OK && k <= DD_FILTER_COMPACT; k++)
            err = judge_time(t, (enum dd_filter_kind)k, (enum how)how);
    return err;
}

int dd_filters_targets(const struct dd_filters_args *a)
{
    struct targets t = {.a = a};
    dd_table_init(&t.table, "targets", columns, COLUMNS);
    enum dd_err err = judge_compact(&t);
    if (err == DD_OK) err = judge_sparse(&t);
    if (err == DD_OK) err = judge_population(&t);
    if (err == DD_OK) err = judge_times(&t);
    dd_table_note(&t.table,
                  "Promise %g over %d periods. Limit: log2(1 / share) bits an item; optimum of Bloom: "
                  "1.44 times that. Times: CPU of this thread, median of %d runs.",
                  a->fpr, DD_FILTERS_WINDOW, RUNS);
    dd_table_note(&t.table, "%zu passed, %u missed", t.table.rows - t.missed, t.missed);
    if (err == DD_OK) err = dd_table_print(&t.table, a->json);
    dd_table_free(&t.table);
    return dd_filters_exit(err, "targets");
}
