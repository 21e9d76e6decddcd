/* The change table in memory. change_file.c saves and loads it.
 *
 * The cells of all tables are one zeroed allocation, so a table that no period uses costs no memory until it
 * is raised. Only the writer thread stores, and numbers only grow, so a plain release store is a maximum. */
#include "store/change_table.h"

#include <stdlib.h>

#define CELLS_MIN  1024u
#define CELLS_MAX  (1u << 28)
#define TABLES_MAX (DD_WINDOW_MAX + 2)

enum dd_err dd_change_alloc(uint32_t cells, unsigned tables, struct dd_change **out)
{
    if (cells < CELLS_MIN || cells > CELLS_MAX || (cells & (cells - 1)) != 0) return DD_INVALID;
    if (tables < 1 || tables > TABLES_MAX) return DD_INVALID;
    struct dd_change *c = calloc(1, sizeof *c);
    if (!c) return DD_NO_MEMORY;
    c->cells = calloc((size_t)cells * tables, sizeof *c->cells);
    if (!c->cells) {
        free(c);
        return DD_NO_MEMORY;
    }
    c->cells_per_table = cells;
    c->tables = tables;
    *out = c;
    return DD_OK;
}

enum dd_err dd_change_create(uint32_t cells, unsigned tables, struct dd_change **out)
{
    struct dd_change *c;
    enum dd_err err = dd_change_alloc(cells, tables, &c);
    if (err != DD_OK) return err;
    err = dd_random(&c->incarnation, sizeof c->incarnation);
    if (err != DD_OK) {
        dd_change_destroy(c);
        return err;
    }
    *out = c;
    return DD_OK;
}

void dd_change_destroy(struct dd_change *c)
{
    if (!c) return;
    free(c->cells);
    free(c);
}

uint64_t dd_change_incarnation(const struct dd_change *c)
{
    return c->incarnation;
}

uint64_t dd_change_number(const struct dd_change *c)
{
    return atomic_load_explicit(&c->number, memory_order_acquire);
}

static _Atomic uint64_t *cell_of(const struct dd_change *c, struct dd_period period, uint64_t user_hash)
{
    size_t table = (uint32_t)period.ordinal % c->tables;
    return &c->cells[table * c->cells_per_table + (user_hash & (c->cells_per_table - 1))];
}

uint64_t dd_change_cell(const struct dd_change *c, struct dd_period period, uint64_t user_hash)
{
    return atomic_load_explicit(cell_of(c, period, user_hash), memory_order_acquire);
}

void dd_change_publish_number(struct dd_change *c, uint64_t number)
{
    atomic_store_explicit(&c->number, number, memory_order_release);
}

void dd_change_raise(struct dd_change *c, struct dd_period period, uint64_t user_hash, uint64_t number)
{
    atomic_store_explicit(cell_of(c, period, user_hash), number, memory_order_release);
}
