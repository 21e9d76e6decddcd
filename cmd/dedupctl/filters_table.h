/* One result: a table with named columns and notes, printed for people or as JSON.
 *
 *   {"report":"...","rows":[{"column":value,...},...],"notes":["...",...]}
 *
 * A number that does not apply is NaN: "-" for people, null in JSON.
 * Ownership: names and headings are borrowed (literals); texts and notes are copied. */
#ifndef DD_CTL_FILTERS_TABLE_H
#define DD_CTL_FILTERS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"

#define DD_TABLE_COLUMNS_MAX 24

/* How people read the numbers of a column. */
enum dd_table_form {
    DD_TABLE_TEXT,    /* a word, to the left */
    DD_TABLE_COUNT,   /* a whole number */
    DD_TABLE_FIXED,   /* two decimals */
    DD_TABLE_RATE,    /* two significant digits, 3.3e-04 */
    DD_TABLE_PERCENT, /* of a share */
};

struct dd_table_column {
    const char *name;    /* in JSON */
    const char *heading; /* for people */
    enum dd_table_form form;
};

struct dd_table_cell {
    double number;
    size_t text; /* offset in the texts, for DD_TABLE_TEXT */
};

struct dd_table {
    const char *name;
    const struct dd_table_column *column;
    size_t columns, rows, room;
    struct dd_table_cell *cell; /* row after row */
    struct dd_buf texts, notes; /* NUL-terminated, one after the other */
    bool failed;                /* no memory: print says so */
};

void dd_table_init(struct dd_table *t, const char *name, const struct dd_table_column *column,
                   size_t columns);
void dd_table_free(struct dd_table *t);

/* Begins a row, all its cells empty; then sets cells of it by the place of their column. */
void dd_table_row(struct dd_table *t);
void dd_table_set(struct dd_table *t, size_t column, double number);
void dd_table_set_text(struct dd_table *t, size_t column, const char *text);
void dd_table_note(struct dd_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

double dd_table_number(const struct dd_table *t, size_t row, size_t column);
const char *dd_table_text(const struct dd_table *t, size_t row, size_t column);

/* On standard output. DD_NO_MEMORY (also when a row could not be kept), DD_IO. */
enum dd_err dd_table_print(const struct dd_table *t, bool json) DD_MUST_USE;

#endif
