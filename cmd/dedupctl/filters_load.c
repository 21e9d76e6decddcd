#include <stdlib.h>

#include "filters_population.h"

enum { OPS = 256 };

/* One commit under construction. Operands are appended to one buffer, which may move: ops get their slices at
 * the end. */
struct load {
    const struct dd_population *p;
    struct dd_store *s;
    struct dd_store_op op[OPS];
    char name[OPS][DD_POPULATION_NAME];
    size_t from[OPS + 1];
    unsigned n;
    uint64_t items;
    struct dd_buf operands;
    uint32_t fps[DD_POPULATION_TAIL];
};

static enum dd_err commit(struct load *l)
{
    struct dd_store_batch b = {.ops = l->op, .n = l->n};
    if (l->n == 0) return DD_OK;
    for (unsigned i = 0; i < l->n; i++)
        l->op[i].operand = dd_slice_of(l->operands.data + l->from[i], l->from[i + 1] - l->from[i]);
    enum dd_err err = dd_store_write_wait(l->s, &b);
    for (unsigned i = 0; err == DD_OK && i < l->n; i++)
        err = l->op[i].result;
    dd_buf_reset(&l->operands);
    l->n = 0;
    l->items = 0;
    return err;
}

/* The part of a month that falls to a visit; a month of few items has fewer visits. */
static enum dd_err visit(struct load *l, uint32_t user, int month, uint32_t number)
{
    uint64_t items = dd_population_items(l->p, user, month);
    uint32_t from = (uint32_t)(items * number / DD_POPULATION_VISITS),
             to = (uint32_t)(items * (number + 1) / DD_POPULATION_VISITS);
    if (from == to) return DD_OK;
    dd_population_fingerprints(l->p, user, month, from, to - from, l->fps);
    uint32_t hint = l->p->hinted ? dd_population_items(l->p, user, month - 1) : 0;
    l->from[l->n] = l->operands.len;
    enum dd_err err = dd_filter_operand(&l->p->policy, hint, l->fps, to - from, &l->operands);
    if (err != DD_OK) return err;
    l->from[l->n + 1] = l->operands.len;
    l->op[l->n] = (struct dd_store_op){.kind = DD_STORE_MERGE,
                                       .scene = dd_slice_str("home"),
                                       .user = dd_population_name(user, l->name[l->n]),
                                       .period = dd_population_period(month),
                                       .read_number = UINT64_MAX};
    l->items += to - from;
    l->n++;
    return DD_OK;
}

static enum dd_err load_visit(struct load *l, int month, uint32_t number, struct dd_progress *bar,
                              const char *label)
{
    enum dd_err err = DD_OK;
    for (uint32_t user = 0; err == DD_OK && user < l->p->users; user++) {
        err = visit(l, user, month, number);
        if (err != DD_OK || (l->n < OPS && user + 1 < l->p->users)) continue;
        uint64_t items = l->items;
        err = commit(l);
        if (err == DD_OK) err = dd_progress_step(bar, items, label);
    }
    return err;
}

enum dd_err dd_population_load(const struct dd_population *p, struct dd_store *s, struct dd_progress *bar,
                               const char *label)
{
    struct load *l = calloc(1, sizeof *l);
    if (!l) return DD_NO_MEMORY;
    l->p = p, l->s = s;
    enum dd_err err = DD_OK;
    for (int month = 0; err == DD_OK && month < DD_POPULATION_MONTHS; month++)
        for (uint32_t number = 0; err == DD_OK && number < DD_POPULATION_VISITS; number++)
            err = load_visit(l, month, number, bar, label);
    dd_buf_free(&l->operands);
    free(l);
    return err;
}
