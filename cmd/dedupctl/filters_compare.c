/* All structures on one workload; and the preset for which only the choice of structures and sizes differs.
 *
 * The chain, the double array and the queue are built as they are elsewhere: for the newest 5,000 items, with
 * the promised rate in each block. */
#include <math.h>
#include <stdio.h>

#include "filters_measure.h"
#include "filters_plot.h"

enum column {
    NAME,
    USERS,
    ITEMS,
    BYTES,
    PER_ITEM,
    RATIO,
    HINTED,
    FPR,
    FPR_LOW,
    FPR_HIGH,
    PROMISE,
    FORGOTTEN,
    ADD,
    GROWTH,
    TEST,
    MERGE,
    COLUMNS
};

static const struct dd_table_column columns[COLUMNS] = {
    [NAME] = {"structure", "structure", DD_TABLE_TEXT},
    [USERS] = {"users", "users", DD_TABLE_COUNT},
    [ITEMS] = {"items", "items", DD_TABLE_COUNT},
    [BYTES] = {"bytes_per_user", "bytes/user", DD_TABLE_COUNT},
    [PER_ITEM] = {"bytes_per_item", "bytes/item", DD_TABLE_FIXED},
    [RATIO] = {"ratio", "ratio", DD_TABLE_FIXED},
    [HINTED] = {"hinted_bytes_per_user", "hinted", DD_TABLE_COUNT},
    [FPR] = {"fpr", "fpr", DD_TABLE_RATE},
    [FPR_LOW] = {"fpr_low", "95% from", DD_TABLE_RATE},
    [FPR_HIGH] = {"fpr_high", "to", DD_TABLE_RATE},
    [PROMISE] = {"promise", "promise", DD_TABLE_RATE},
    [FORGOTTEN] = {"forgotten", "forgotten", DD_TABLE_PERCENT},
    [ADD] = {"add_ns", "add ns", DD_TABLE_COUNT},
    [GROWTH] = {"growth_ns", "grow ns", DD_TABLE_COUNT},
    [TEST] = {"test_ns", "test ns", DD_TABLE_FIXED},
    [MERGE] = {"merge_us", "merge us", DD_TABLE_FIXED},
};

static const struct dd_plot_panel panels[] = {{BYTES, "bytes of a user"},
                                              {FPR, "share of new items taken for seen"},
                                              {FORGOTTEN, "share of seen items forgotten"}};

static void fill_row(struct dd_table *t, const struct dd_structure_spec *spec, const struct dd_workload *w,
                     double distinct, const struct dd_measured *m, double hinted)
{
    struct dd_interval i = dd_interval_of(m->hits, m->trials);
    double promise = dd_measure_promise(spec), items = distinct / w->users;
    dd_table_row(t);
    dd_table_set_text(t, NAME, spec->name);
    dd_table_set(t, USERS, w->users);
    dd_table_set(t, ITEMS, items);
    dd_table_set(t, BYTES, m->bytes);
    dd_table_set(t, PER_ITEM, m->bytes / items);
    if (promise > 0 && !spec->forgets) dd_table_set(t, RATIO, m->bytes * 8 / items / log2(1 / promise));
    dd_table_set(t, HINTED, hinted);
    dd_table_set(t, FPR, (double)m->hits / (double)m->trials);
    if (spec->form == DD_FORM_SET) {
        dd_table_set(t, FPR_LOW, i.low);
        dd_table_set(t, FPR_HIGH, i.high);
        dd_table_set(t, PROMISE, promise);
    }
    dd_table_set(t, FORGOTTEN, (double)m->forgotten / (double)m->asked);
    dd_table_set(t, ADD, m->add_ns);
    dd_table_set(t, GROWTH, m->growth_ns);
    dd_table_set(t, TEST, m->test_ns);
    dd_table_set(t, MERGE, m->merge_us);
}

/* With the number of items known before: only where that changes anything. */
static enum dd_err measure_hinted(const struct dd_structure_spec *spec, const struct dd_workload *w,
                                  const struct dd_filters_args *a, double *out)
{
    struct dd_structure_spec hinted = *spec;
    *out = NAN;
    if (spec->form != DD_FORM_SET || spec->policy.max_layers > 0) return DD_OK;
    hinted.hint = UINT32_MAX;
    return dd_measure_bytes(&hinted, w, a, out);
}

static enum dd_err add_rows(struct dd_table *t, const struct dd_structure_spec *specs, size_t n,
                            const struct dd_workload *w, const struct dd_filters_args *a)
{
    uint64_t distinct = 0;
    enum dd_err err = dd_measure_distinct(w, &distinct);
    for (size_t i = 0; err == DD_OK && i < n; i++) {
        struct dd_measured m;
        double hinted = NAN;
        err = dd_measure(&specs[i], w, a, &m);
        if (err == DD_OK) err = measure_hinted(&specs[i], w, a, &hinted);
        if (err == DD_OK) fill_row(t, &specs[i], w, (double)distinct, &m, hinted);
    }
    return err;
}

static void add_notes(struct dd_table *t, const struct dd_filters_args *a)
{
    dd_table_note(t, "Promise of the kinds: %g over a window of %d periods, so a period's set has a third.",
                  a->fpr, DD_FILTERS_WINDOW);
    dd_table_note(t, "Ratio: bits an item over log2(1 / promise), the least that any structure can do with.");
    dd_table_note(t, "Hinted: bytes when the user's previous period had as many items.");
    dd_table_note(t,
                  "Chain, double array and queue keep about the newest 5,000 items and forget the others.");
    dd_table_note(t,
                  "Costs are CPU time with hashing: an item added at once with all others; grown in batches "
                  "of %d; a new candidate, %d at a time; a batch of %d merged into the whole.",
                  DD_MEASURE_BATCH, DD_MEASURE_CANDIDATES, DD_MEASURE_BATCH);
}

static enum dd_err run_sizes(struct dd_table *t, const struct dd_structure_spec *specs, size_t n,
                             const struct dd_filters_args *a)
{
    enum dd_err err = DD_OK;
    for (unsigned i = 0; err == DD_OK && i < a->items_n; i++) {
        struct dd_workload w = {.users = a->users, .items = a->items[i], .id_bytes = a->id_bytes};
        err = add_rows(t, specs, n, &w, a);
    }
    return err;
}

static enum dd_err run_file(struct dd_table *t, const struct dd_structure_spec *specs, size_t n,
                            const struct dd_filters_args *a)
{
    struct dd_workload w;
    char why[512];
    enum dd_err err = dd_workload_read(&w, a->file, why, sizeof why);
    if (err != DD_OK) {
        fprintf(stderr, "dedupctl: filters: --file %s\n", why);
        return err;
    }
    err = add_rows(t, specs, n, &w, a);
    dd_workload_free(&w);
    return err;
}

static int run(const char *name, const struct dd_structure_spec *specs, size_t n,
               const struct dd_filters_args *a)
{
    struct dd_table t;
    struct dd_plot plot;
    if (dd_plot_begin(&plot, a->plot) != DD_OK) return DD_CTL_FAILED;
    dd_table_init(&t, name, columns, COLUMNS);
    enum dd_err err = a->file ? run_file(&t, specs, n, a) : run_sizes(&t, specs, n, a);
    if (err == DD_OK) {
        add_notes(&t, a);
        err = dd_table_print(&t, a->json);
    }
    if (err == DD_OK) err = dd_plot_draw(&plot, &t, NAME, ITEMS, panels, sizeof panels / sizeof *panels);
    dd_plot_cancel(&plot);
    dd_table_free(&t);
    return dd_filters_exit(err, name);
}

int dd_filters_compare(const struct dd_filters_args *given)
{
    static const uint32_t usual[] = {100, 1000, 10000};
    struct dd_filters_args a = *given;
    struct dd_structure_spec specs[] = {
        dd_spec_kind(&a, DD_FILTER_BLOOM),
        dd_spec_kind(&a, DD_FILTER_COUNTING),
        dd_spec_kind(&a, DD_FILTER_CUCKOO),
        dd_spec_kind(&a, DD_FILTER_COMPACT),
        dd_spec_blocks("chain 5 x 1,000", 5, 1000, a.fpr),
        dd_spec_blocks("double array 2 x 2,500", 2, 2500, a.fpr),
        dd_spec_queue(5000),
        dd_spec_hash(),
        dd_spec_list(),
    };
    if (a.users == 0) a.users = 20;
    for (; given->items_n == 0 && a.items_n < 3; a.items_n++)
        a.items[a.items_n] = usual[a.items_n];
    return run("filters", specs, sizeof specs / sizeof *specs, &a);
}

int dd_filters_memory(const struct dd_filters_args *given)
{
    static const uint32_t usual[] = {100, 300, 1000, 2000, 3000, 5000, 7000, 10000, 20000};
    struct dd_filters_args a = *given;
    struct dd_structure_spec specs[] = {
        dd_spec_queue(5000),
        dd_spec_blocks("double array 2 x 2,500", 2, 2500, a.fpr),
        dd_spec_blocks("chain 5 x 1,000", 5, 1000, a.fpr),
        dd_spec_kind(&a, DD_FILTER_BLOOM),
        dd_spec_kind(&a, DD_FILTER_COMPACT),
    };
    if (a.users == 0) a.users = 5;
    for (; given->items_n == 0 && a.items_n < sizeof usual / sizeof *usual; a.items_n++)
        a.items[a.items_n] = usual[a.items_n];
    return run("memory", specs, sizeof specs / sizeof *specs, &a);
}
