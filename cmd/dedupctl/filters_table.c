#include "filters_table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "args.h"

enum { TEXT_MAX = 128 };

void dd_table_init(struct dd_table *t, const char *name, const struct dd_table_column *column, size_t columns)
{
    *t = (struct dd_table){.name = name, .column = column, .columns = columns};
    dd_buf_add_u8(&t->texts, 0); /* offset 0 is the empty text */
}

void dd_table_free(struct dd_table *t)
{
    free(t->cell);
    dd_buf_free(&t->texts);
    dd_buf_free(&t->notes);
}

void dd_table_row(struct dd_table *t)
{
    if (t->rows == t->room) {
        size_t room = t->room ? 2 * t->room : 16;
        struct dd_table_cell *grown = realloc(t->cell, room * t->columns * sizeof *grown);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->cell = grown;
        t->room = room;
    }
    for (size_t i = 0; i < t->columns; i++)
        t->cell[t->rows * t->columns + i] = (struct dd_table_cell){.number = NAN};
    t->rows++;
}

void dd_table_set(struct dd_table *t, size_t column, double number)
{
    if (!t->failed) t->cell[(t->rows - 1) * t->columns + column].number = number;
}

void dd_table_set_text(struct dd_table *t, size_t column, const char *text)
{
    if (t->failed) return;
    t->cell[(t->rows - 1) * t->columns + column].text = t->texts.len;
    dd_buf_add(&t->texts, text, strlen(text) + 1);
}

void dd_table_note(struct dd_table *t, const char *fmt, ...)
{
    char line[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    dd_buf_add(&t->notes, line, strlen(line) + 1);
}

double dd_table_number(const struct dd_table *t, size_t row, size_t column)
{
    return t->cell[row * t->columns + column].number;
}

const char *dd_table_text(const struct dd_table *t, size_t row, size_t column)
{
    return (const char *)t->texts.data + t->cell[row * t->columns + column].text;
}

/* ---- for people ---- */

static void cell_words(const struct dd_table *t, size_t row, size_t column, char out[TEXT_MAX])
{
    double v = dd_table_number(t, row, column);
    switch (t->column[column].form) {
    case DD_TABLE_TEXT:
        snprintf(out, TEXT_MAX, "%s", dd_table_text(t, row, column));
        return;
    case DD_TABLE_COUNT:
        snprintf(out, TEXT_MAX, "%.0f", v);
        break;
    case DD_TABLE_FIXED:
        snprintf(out, TEXT_MAX, "%.2f", v);
        break;
    case DD_TABLE_RATE:
        snprintf(out, TEXT_MAX, v == 0 || v >= 0.9995 ? "%.0f" : "%.1e", v);
        break;
    case DD_TABLE_PERCENT:
        snprintf(out, TEXT_MAX, v == 0 || v == 1 ? "%.0f%%" : "%.1f%%", 100 * v);
        break;
    }
    if (isnan(v)) snprintf(out, TEXT_MAX, "-");
}

static int width_of(const struct dd_table *t, size_t column)
{
    size_t width = strlen(t->column[column].heading);
    char words[TEXT_MAX];
    for (size_t row = 0; row < t->rows; row++) {
        cell_words(t, row, column, words);
        if (strlen(words) > width) width = strlen(words);
    }
    return (int)width;
}

static void add_cell(struct dd_buf *out, const struct dd_table *t, size_t column, int width,
                     const char *words)
{
    bool left = t->column[column].form == DD_TABLE_TEXT;
    if (left && column + 1 == t->columns) width = 0; /* nothing follows */
    dd_buf_addf(out, "%s%*s", column ? "  " : "", left ? -width : width, words);
}

static void render_words(const struct dd_table *t, struct dd_buf *out)
{
    int width[DD_TABLE_COLUMNS_MAX];
    char words[TEXT_MAX];
    for (size_t c = 0; c < t->columns; c++) {
        width[c] = width_of(t, c);
        add_cell(out, t, c, width[c], t->column[c].heading);
    }
    for (size_t row = 0; row < t->rows; row++) {
        dd_buf_add_str(out, "\n");
        for (size_t c = 0; c < t->columns; c++) {
            cell_words(t, row, c, words);
            add_cell(out, t, c, width[c], words);
        }
    }
    dd_buf_add_str(out, "\n");
    for (size_t at = 0; at < t->notes.len; at += strlen((const char *)t->notes.data + at) + 1)
        dd_buf_addf(out, "%s%s\n", at ? "" : "\n", (const char *)t->notes.data + at);
}

/* ---- JSON ---- */

static void add_row(struct dd_buf *out, const struct dd_table *t, size_t row)
{
    for (size_t c = 0; c < t->columns; c++) {
        dd_buf_addf(out, "%s\"%s\":", c ? "," : "", t->column[c].name);
        double v = dd_table_number(t, row, c);
        if (t->column[c].form == DD_TABLE_TEXT)
            dd_ctl_add_json(out, dd_table_text(t, row, c));
        else if (isfinite(v))
            dd_buf_addf(out, "%.9g", v);
        else
            dd_buf_add_str(out, "null");
    }
}

static void render_json(const struct dd_table *t, struct dd_buf *out)
{
    dd_buf_addf(out, "{\"report\":\"%s\",\"rows\":[", t->name);
    for (size_t row = 0; row < t->rows; row++) {
        dd_buf_add_str(out, row ? ",\n{" : "\n{");
        add_row(out, t, row);
        dd_buf_add_str(out, "}");
    }
    dd_buf_add_str(out, "\n],\"notes\":[");
    for (size_t at = 0; at < t->notes.len; at += strlen((const char *)t->notes.data + at) + 1) {
        if (at) dd_buf_add_str(out, ",");
        dd_ctl_add_json(out, (const char *)t->notes.data + at);
    }
    dd_buf_add_str(out, "]}\n");
}

enum dd_err dd_table_print(const struct dd_table *t, bool json)
{
    struct dd_buf out = {0};
    if (json)
        render_json(t, &out);
    else
        render_words(t, &out);
    enum dd_err err = t->failed || !dd_buf_ok(&out) || !dd_buf_ok(&t->texts) || !dd_buf_ok(&t->notes)
                          ? DD_NO_MEMORY
                          : DD_OK;
    if (err == DD_OK && fwrite(out.data, 1, out.len, stdout) != out.len) err = DD_IO;
    if (err == DD_OK && fflush(stdout) != 0) err = DD_IO;
    dd_buf_free(&out);
    return err;
}
