/* Merging: base and operands in, one blob out. Every readable input is taken whole; the others are counted
 * and the result is flagged. Lists are united first (pairwise, so that many small operands cost n log k),
 * except where layers are limited: there the order of the operands says which items are newest (rotate), and
 * which came while there was room (saturate). */
#include "filter/internal.h"

#include <stdlib.h>

struct gather {
    struct dd_filter_set set;
    struct dd_filter_merge_report report;
    bool any;         /* an input was readable */
    uint32_t *values; /* the lists of the operands, one after the other; as many again to sort in */
    size_t room, *starts, runs;
};

static enum dd_err gather_init(struct gather *g, struct dd_slice base, const struct dd_slice *operands,
                               size_t n, struct dd_buf *out)
{
    g->report = (struct dd_filter_merge_report){0};
    g->any = false;
    g->runs = 0;
    g->room = 0;
    for (size_t i = 0; i < n; i++)
        g->room += operands[i].len / 4;
    g->starts = malloc((n + 1) * sizeof *g->starts + 2 * g->room * sizeof *g->values);
    if (!g->starts) return DD_NO_MEMORY;
    g->values = (uint32_t *)(g->starts + n + 1);
    g->starts[0] = 0;
    enum dd_err err = dd_filter_set_init(&g->set, out, g->room + base.len / 4);
    if (err != DD_OK) free(g->starts);
    return err;
}

static void gather_free(struct gather *g)
{
    dd_filter_set_free(&g->set);
    free(g->starts);
}

/* The base's list becomes the list of the set as it is: it was tested against the layers when it was made. */
static void gather_base(struct gather *g, struct dd_slice base)
{
    struct dd_filter_view v;
    if (base.len == 0) return;
    if (dd_filter_view_open(&v, base) != DD_OK) {
        g->report.base_damaged = g->set.v.damaged = true;
        return;
    }
    g->any = dd_filter_set_take(&g->set, &v);
    memcpy(g->set.tail, v.sparse, v.sparse_n * sizeof *g->set.tail);
    g->set.tail_n = v.sparse_n;
}

static void gather_operand(struct gather *g, struct dd_slice operand)
{
    struct dd_filter_view v;
    if (operand.len == 0) return;
    if (dd_filter_view_open(&v, operand) != DD_OK || !dd_filter_set_take(&g->set, &v)) {
        g->report.skipped++;
        g->set.v.damaged = true;
        return;
    }
    g->any = true;
    if (v.sparse_n == 0) return;
    size_t at = g->starts[g->runs];
    memcpy(g->values + at, v.sparse, v.sparse_n * sizeof *g->values);
    g->starts[++g->runs] = at + v.sparse_n;
}

static unsigned copies_kept(const struct gather *g)
{
    return g->set.v.policy.kind == DD_FILTER_COUNTING ? DD_FILTER_COPIES : 1;
}

/* All lists of operands as one; returns its length. */
static size_t unite_runs(struct gather *g)
{
    size_t total = g->starts[g->runs];
    dd_list_merge_runs(g->values, g->starts, g->runs, g->values + g->room);
    return dd_list_limit_copies(g->values, total, copies_kept(g));
}

static void absorb_all(struct gather *g)
{
    struct dd_filter_set *s = &g->set;
    s->tail_n = dd_list_limit_copies(s->tail, s->tail_n,
                                     copies_kept(g)); /* the policy may have left counting */
    if (s->v.policy.on_full == DD_ON_FULL_GROW) {
        dd_filter_set_absorb(s, g->values, unite_runs(g));
        return;
    }
    for (size_t i = 0; i < g->runs; i++) {
        uint32_t *run = g->values + g->starts[i];
        size_t n = dd_list_limit_copies(run, g->starts[i + 1] - g->starts[i], copies_kept(g));
        dd_filter_set_absorb(s, run, n);
    }
    if (g->runs == 0) dd_filter_set_absorb(s, g->values, 0);
}

static void unite_all(struct gather *g)
{
    struct dd_filter_set *s = &g->set;
    s->tail_n = unite_runs(g);
    memcpy(s->tail, g->values, s->tail_n * sizeof *s->tail);
    s->v.operand = true;
}

static enum dd_err gather_finish(struct gather *g, struct dd_filter_merge_report *report)
{
    enum dd_err err = DD_OK;
    if (g->any || g->set.v.damaged)
        err = dd_filter_set_finish(&g->set);
    else
        g->set.out->len = g->set.start; /* nothing of nothing is the empty set: no bytes */
    if (report) *report = g->report;
    gather_free(g);
    return err;
}

enum dd_err dd_filter_merge(struct dd_slice base, const struct dd_slice *operands, size_t n,
                            struct dd_buf *out, struct dd_filter_merge_report *report)
{
    struct gather g;
    enum dd_err err = gather_init(&g, base, operands, n, out);
    if (err != DD_OK) return err;
    gather_base(&g, base);
    for (size_t i = 0; i < n; i++)
        gather_operand(&g, operands[i]);
    absorb_all(&g);
    return gather_finish(&g, report);
}

bool dd_filter_keep_apart(const struct dd_slice *operands, size_t n)
{
    struct dd_filter_view v;
    size_t entries = 0, newest = n;
    for (size_t i = 0; i < n; i++) {
        if (dd_filter_header_get(&v, operands[i]) == DD_OK) newest = i;
        entries += operands[i].len / 4;
    }
    if (newest == n || dd_filter_header_get(&v, operands[newest]) != DD_OK) return false;
    return v.policy.on_full != DD_ON_FULL_GROW && entries > v.policy.capacity / 4;
}

enum dd_err dd_filter_partial_merge(const struct dd_slice *operands, size_t n, struct dd_buf *out,
                                    struct dd_filter_merge_report *report)
{
    struct gather g;
    enum dd_err err = gather_init(&g, dd_slice_of(NULL, 0), operands, n, out);
    if (err != DD_OK) return err;
    for (size_t i = 0; i < n; i++)
        gather_operand(&g, operands[i]);
    unite_all(&g);
    return gather_finish(&g, report);
}
