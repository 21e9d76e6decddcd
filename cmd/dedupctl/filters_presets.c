/* Comparisons published elsewhere, made again here: what was stated stands beside what is measured. */
#include <math.h>
#include <stdio.h>

#include "filters_measure.h"
#include "filters_table.h"

/* ---- articles: 5,000 ids of 14 bytes with what separates them, 70 KB as stated ---- */

enum { ARTICLES = 5000, ARTICLE_ID_BYTES = 12 };

enum { A_NAME, A_BYTES, A_PER_ID, A_STATED_KB, A_ID_US, A_CHECK_US, A_STATED_US, A_FPR, A_LOW, A_HIGH, A_N };

static const struct dd_table_column article_columns[A_N] = {
    [A_NAME] = {"structure", "structure", DD_TABLE_TEXT},
    [A_BYTES] = {"bytes", "bytes", DD_TABLE_COUNT},
    [A_PER_ID] = {"bytes_per_id", "bytes/id", DD_TABLE_FIXED},
    [A_STATED_KB] = {"stated_kb", "stated KB", DD_TABLE_COUNT},
    [A_ID_US] = {"id_us", "us an id", DD_TABLE_FIXED},
    [A_CHECK_US] = {"check_us", "us 100 ids", DD_TABLE_FIXED},
    [A_STATED_US] = {"stated_check_us", "stated us", DD_TABLE_COUNT},
    [A_FPR] = {"fpr", "fpr", DD_TABLE_RATE},
    [A_LOW] = {"fpr_low", "95% from", DD_TABLE_RATE},
    [A_HIGH] = {"fpr_high", "to", DD_TABLE_RATE},
};

static enum dd_err article_row(struct dd_table *t, const struct dd_structure_spec *spec,
                               const struct dd_workload *w, const struct dd_filters_args *a, double kb,
                               double us)
{
    struct dd_measured m;
    enum dd_err err = dd_measure(spec, w, a, &m);
    if (err != DD_OK) return err;
    struct dd_interval i = dd_interval_of(m.hits, m.trials);
    dd_table_row(t);
    dd_table_set_text(t, A_NAME, spec->name);
    dd_table_set(t, A_BYTES, m.bytes);
    dd_table_set(t, A_PER_ID, m.bytes / ARTICLES);
    dd_table_set(t, A_STATED_KB, kb);
    dd_table_set(t, A_ID_US, m.test_ns / 1e3);
    dd_table_set(t, A_CHECK_US, m.test_ns * DD_MEASURE_CANDIDATES / 1e3);
    dd_table_set(t, A_STATED_US, us);
    dd_table_set(t, A_FPR, (double)m.hits / (double)m.trials);
    if (spec->form != DD_FORM_SET) return DD_OK;
    dd_table_set(t, A_LOW, i.low);
    dd_table_set(t, A_HIGH, i.high);
    return DD_OK;
}

int dd_filters_articles(const struct dd_filters_args *a)
{
    struct dd_table t;
    struct dd_workload w = {
        .users = a->users ? a->users : 10, .items = ARTICLES, .id_bytes = ARTICLE_ID_BYTES};
    struct dd_structure_spec list = dd_spec_list(), hash = dd_spec_hash(),
                             chain = dd_spec_blocks("chain 5 x 1,000, 0.001 each", 5, 1000, 0.001),
                             less = dd_spec_blocks("chain 5 x 1,000, 0.001 in all", 5, 1000, 0.0002),
                             bloom = dd_spec_kind(a, DD_FILTER_BLOOM),
                             compact = dd_spec_kind(a, DD_FILTER_COMPACT);
    dd_table_init(&t, "articles", article_columns, A_N);
    enum dd_err err = article_row(&t, &list, &w, a, 70, 570);
    if (err == DD_OK) err = article_row(&t, &chain, &w, a, 10, 180);
    if (err == DD_OK) err = article_row(&t, &less, &w, a, NAN, NAN);
    if (err == DD_OK) err = article_row(&t, &bloom, &w, a, NAN, NAN);
    if (err == DD_OK) err = article_row(&t, &compact, &w, a, NAN, NAN);
    if (err == DD_OK) err = article_row(&t, &hash, &w, a, NAN, NAN);
    dd_table_note(&t, "%d article ids of one user, %d bytes each and 2 for the length.", ARTICLES,
                  ARTICLE_ID_BYTES);
    dd_table_note(&t, "Stated elsewhere: about 70 KB and 0.57 ms a check as a list, 10 KB and 0.18 ms as a "
                      "chain; how many ids a check had was not said.");
    dd_table_note(&t, "bloom and compact: %g for each of %d periods.", a->fpr / DD_FILTERS_WINDOW,
                  DD_FILTERS_WINDOW);
    if (err == DD_OK) err = dd_table_print(&t, a->json);
    dd_table_free(&t);
    return dd_filters_exit(err, "articles");
}

/* ---- scale: 100 million users with 10,000 items of 25 bytes ---- */

enum { SCALE_ITEMS = 10000, SCALE_ID_BYTES = 25 };
#define SCALE_USERS 1e8

enum { S_NAME, S_BYTES, S_TB, S_SHARE, S_N };

static const struct dd_table_column scale_columns[S_N] = {
    [S_NAME] = {"structure", "structure", DD_TABLE_TEXT},
    [S_BYTES] = {"bytes_per_user", "bytes/user", DD_TABLE_COUNT},
    [S_TB] = {"tb", "TB", DD_TABLE_FIXED},
    [S_SHARE] = {"share", "of the ids", DD_TABLE_PERCENT},
};

static void scale_row(struct dd_table *t, const char *name, double bytes)
{
    dd_table_row(t);
    dd_table_set_text(t, S_NAME, name);
    dd_table_set(t, S_BYTES, bytes);
    dd_table_set(t, S_TB, bytes * SCALE_USERS / 1e12);
    dd_table_set(t, S_SHARE, bytes / (SCALE_ITEMS * SCALE_ID_BYTES));
}

static enum dd_err scale_measured(struct dd_table *t, struct dd_structure_spec spec, const char *name,
                                  uint32_t hint, const struct dd_workload *w, const struct dd_filters_args *a)
{
    double bytes = 0;
    spec.hint = hint;
    enum dd_err err = dd_measure_bytes(&spec, w, a, &bytes);
    if (err == DD_OK) scale_row(t, name, bytes);
    return err;
}

int dd_filters_scale(const struct dd_filters_args *a)
{
    struct dd_table t;
    struct dd_workload w = {
        .users = a->users ? a->users : 3, .items = SCALE_ITEMS, .id_bytes = SCALE_ID_BYTES};
    dd_table_init(&t, "scale", scale_columns, S_N);
    scale_row(&t, "ids alone", SCALE_ITEMS * SCALE_ID_BYTES);
    enum dd_err err = scale_measured(&t, dd_spec_list(), "list", 0, &w, a);
    if (err == DD_OK) err = scale_measured(&t, dd_spec_hash(), "hash set", 0, &w, a);
    for (unsigned k = DD_FILTER_BLOOM; err == DD_OK && k <= DD_FILTER_COMPACT; k++) {
        char hinted[64];
        struct dd_structure_spec spec = dd_spec_kind(a, (enum dd_filter_kind)k);
        snprintf(hinted, sizeof hinted, "%s, size known", spec.name);
        err = scale_measured(&t, spec, spec.name, 0, &w, a);
        if (err == DD_OK) err = scale_measured(&t, spec, hinted, UINT32_MAX, &w, a);
    }
    dd_table_note(&t,
                  "100 million users with %d items each of %d bytes; TB of 10^12 bytes, from what %u users "
                  "take here.",
                  SCALE_ITEMS, SCALE_ID_BYTES, w.users);
    dd_table_note(&t, "Sets promise %g over %d periods. Size known: the previous period had as many items.",
                  a->fpr, DD_FILTERS_WINDOW);
    if (err == DD_OK) err = dd_table_print(&t, a->json);
    dd_table_free(&t);
    return dd_filters_exit(err, "scale");
}
