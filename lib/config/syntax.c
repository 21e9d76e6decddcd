/* A line and a column are little help in a file of a hundred options: the last key before the error is looked
 * up in the tables and named. Not what is allowed there: the value may be good, and a comma missing behind
 * it. */
#include "config/syntax.h"

#include <stdio.h>

#include "config/option.h"

#define HINT_MAX (DD_OPTION_TEXT_MAX + 40)

static struct dd_slice before(struct dd_slice text, uint8_t c)
{
    const uint8_t *at = text.len ? memrchr(text.ptr, c, text.len) : NULL;
    return dd_slice_of(text.ptr, at ? (size_t)(at - text.ptr) : 0);
}

/* The last "key": of the text; of length 0: none. */
static struct dd_slice last_key(struct dd_slice text)
{
    struct dd_slice key = before(before(text, ':'), '"'), head = before(key, '"');
    size_t skip = head.len + 1;
    return key.len > skip ? dd_slice_of(key.ptr + skip, key.len - skip) : dd_slice_of(key.ptr, 0);
}

static bool ends_with_part(struct dd_slice name, struct dd_slice part)
{
    if (name.len < part.len || memcmp(name.ptr + name.len - part.len, part.ptr, part.len)) return false;
    return name.len == part.len || name.ptr[name.len - part.len - 1] == '.';
}

/* How many rows have the key as the last part of their names; the last of them is stored in found. */
static size_t rows_named(const struct dd_table *table, struct dd_slice key, const struct dd_option **found)
{
    size_t n = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (!ends_with_part(dd_slice_str(table->rows[i].name), key)) continue;
        *found = &table->rows[i];
        n++;
    }
    return n;
}

static void find_hint(struct dd_slice text, char out[HINT_MAX])
{
    const struct dd_option *opt = NULL;
    struct dd_slice key = last_key(text);
    out[0] = 0;
    if (!key.len) return;
    if (rows_named(&dd_config_table, key, &opt) + rows_named(&dd_scene_table, key, &opt) == 1)
        snprintf(out, HINT_MAX, " (after %s)", opt->name);
}

/* jansson quotes the text near an error, which may be a URL with a password: cut there. */
void dd_report_syntax(const json_error_t *e, struct dd_slice text, struct dd_report *report)
{
    char hint[HINT_MAX];
    const char *scheme = strstr(e->text, "://");
    int n = scheme ? (int)(scheme - e->text) : (int)strlen(e->text);
    if (e->position >= 0 && (size_t)e->position < text.len) text.len = (size_t)e->position;
    find_hint(text, hint);
    dd_report_add(report, "", "", "line %d, column %d: %.*s%s%s", e->line, e->column, n, e->text,
                  scheme ? "..." : "", hint);
}
