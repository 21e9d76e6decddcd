/* What an unknown name was probably meant to be. */
#include "config/option.h"

#define NAME_MAX_BYTES 64

static size_t least(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein's distance, two rows at a time; both at most NAME_MAX_BYTES. */
static size_t distance(struct dd_slice a, struct dd_slice b)
{
    size_t rows[2][NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = j;
    for (size_t i = 0; i < a.len; i++) {
        const size_t *above = rows[i % 2];
        size_t *row = rows[(i + 1) % 2];
        row[0] = i + 1;
        for (size_t j = 0; j < b.len; j++)
            row[j + 1] = least(above[j + 1] + 1, row[j] + 1, above[j] + (a.ptr[i] != b.ptr[j]));
    }
    return rows[a.len % 2][b.len];
}

struct guess {
    struct dd_slice name, best;
    size_t mistakes; /* of best; at first one more than may be */
};

static void consider(struct guess *g, struct dd_slice known, size_t mistakes)
{
    if (mistakes >= g->mistakes) return;
    g->mistakes = mistakes;
    g->best = known;
}

/* A row is near by its whole name, by its section, or without its section ("workers"), which counts as one
 * mistake. */
static void consider_row(struct guess *g, struct dd_slice row)
{
    const uint8_t *dot = memchr(row.ptr, '.', row.len);
    if (row.len > NAME_MAX_BYTES) return;
    consider(g, row, distance(g->name, row));
    if (!dot) return;
    struct dd_slice section = dd_slice_of(row.ptr, (size_t)(dot - row.ptr));
    consider(g, section, distance(g->name, section));
    if (dd_slice_eq(g->name, dd_slice_of(dot + 1, row.len - section.len - 1))) consider(g, row, 1);
}

/* Of length 0: nothing is within a third of the name's length. */
static struct dd_slice nearest(const struct dd_table *table, struct dd_slice name)
{
    struct guess g = {name, {0}, name.len / 3 + 1};
    if (name.len > NAME_MAX_BYTES) return g.best;
    for (size_t i = 0; i < table->count; i++)
        consider_row(&g, dd_slice_str(table->rows[i].name));
    return g.best;
}

void dd_option_unknown(const struct dd_target *to, const char *name, struct dd_report *report)
{
    struct dd_slice near = nearest(to->table, dd_slice_str(name));
    if (near.len)
        dd_report_add(report, to->prefix, name, "unknown option; did you mean %s%.*s?", to->prefix,
                      (int)near.len, (const char *)near.ptr);
    else
        dd_report_add(report, to->prefix, name, "unknown option");
}
