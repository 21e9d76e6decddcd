/* Reading a row of the table and the value behind it. */
#include "config/option.h"

#include <stdio.h>
#include <stdlib.h>

#include "config/redis_url.h"

const struct dd_option *dd_option_find(const struct dd_table *table, struct dd_slice name)
{
    for (size_t i = 0; i < table->count; i++)
        if (dd_slice_eq(dd_slice_str(table->rows[i].name), name)) return &table->rows[i];
    return NULL;
}

bool dd_option_is_section(const struct dd_table *table, struct dd_slice name)
{
    for (size_t i = 0; i < table->count; i++) {
        struct dd_slice row = dd_slice_str(table->rows[i].name);
        if (row.len > name.len && row.ptr[name.len] == '.' && !memcmp(row.ptr, name.ptr, name.len))
            return true;
    }
    return false;
}

const char *dd_option_env(const char *prefix, struct dd_slice name, char out[DD_OPTION_TEXT_MAX])
{
    size_t n = (size_t)snprintf(out, DD_OPTION_TEXT_MAX, "%s%.*s", prefix, (int)name.len,
                                (const char *)name.ptr);
    if (n >= DD_OPTION_TEXT_MAX) n = DD_OPTION_TEXT_MAX - 1;
    for (size_t i = strlen(prefix); i < n; i++) {
        char c = out[i];
        if (c >= 'a' && c <= 'z')
            out[i] = (char)(c - 'a' + 'A');
        else if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9'))
            out[i] = '_';
    }
    return out;
}

const char *dd_number_text(double v, char out[DD_OPTION_TEXT_MAX])
{
    snprintf(out, DD_OPTION_TEXT_MAX, "%.15g", v);
    if (strtod(out, NULL) != v) snprintf(out, DD_OPTION_TEXT_MAX, "%.17g", v);
    return out;
}

static void list_choices(const struct dd_option *opt, char out[DD_OPTION_TEXT_MAX])
{
    size_t n = 0;
    out[0] = 0;
    for (const struct dd_choice *c = opt->choices; c->name && n < DD_OPTION_TEXT_MAX; c++)
        n += (size_t)snprintf(out + n, DD_OPTION_TEXT_MAX - n, "%s%s", n ? ", " : "", c->name);
}

const char *dd_option_range(const struct dd_option *opt, char out[DD_OPTION_TEXT_MAX])
{
    char min[DD_OPTION_TEXT_MAX], max[DD_OPTION_TEXT_MAX];
    switch (opt->type) {
    case DD_OPTION_INT:
    case DD_OPTION_REAL:
        snprintf(out, DD_OPTION_TEXT_MAX, "%s%.40s..%.40s%s",
                 opt->flags & DD_OPTION_OR_MINUS1 ? "-1 or " : "", dd_number_text(opt->min, min),
                 dd_number_text(opt->max, max), opt->flags & DD_OPTION_POWER2 ? ", a power of two" : "");
        break;
    case DD_OPTION_BOOL:
        snprintf(out, DD_OPTION_TEXT_MAX, "true, false");
        break;
    case DD_OPTION_CHOICE:
        list_choices(opt, out);
        break;
    case DD_OPTION_TEXT:
        snprintf(out, DD_OPTION_TEXT_MAX, "%s", opt->unit);
        break;
    }
    return out;
}

static const void *at(const struct dd_option *opt, const void *base)
{
    return (const char *)base + opt->offset;
}

static size_t size_of(const struct dd_option *opt)
{
    static const size_t sizes[] = {[DD_OPTION_INT] = sizeof(int64_t),
                                   [DD_OPTION_REAL] = sizeof(double),
                                   [DD_OPTION_BOOL] = sizeof(bool),
                                   [DD_OPTION_CHOICE] = sizeof(int),
                                   [DD_OPTION_TEXT] = sizeof(char *)};
    return sizes[opt->type];
}

int64_t dd_option_int(const struct dd_option *opt, const void *base)
{
    return *(const int64_t *)at(opt, base);
}

double dd_option_real(const struct dd_option *opt, const void *base)
{
    return *(const double *)at(opt, base);
}

bool dd_option_bool(const struct dd_option *opt, const void *base)
{
    return *(const bool *)at(opt, base);
}

const char *dd_option_string(const struct dd_option *opt, const void *base)
{
    if (opt->type == DD_OPTION_TEXT) return *(char *const *)at(opt, base);
    int value;
    memcpy(&value, at(opt, base), sizeof value);
    const struct dd_choice *c = opt->choices;
    while (c->name && c->value != value)
        c++;
    return c->name;
}

void dd_option_format(const struct dd_option *opt, const void *base, struct dd_buf *out)
{
    char number[DD_OPTION_TEXT_MAX];
    if (opt->type == DD_OPTION_INT)
        dd_buf_add_i64(out, dd_option_int(opt, base));
    else if (opt->type == DD_OPTION_REAL)
        dd_buf_add_str(out, dd_number_text(dd_option_real(opt, base), number));
    else if (opt->type == DD_OPTION_BOOL)
        dd_buf_add_str(out, dd_option_bool(opt, base) ? "true" : "false");
    else if (opt->flags & DD_OPTION_SECRET)
        dd_redis_url_mask(dd_slice_str(dd_option_string(opt, base)), out);
    else
        dd_buf_add_str(out, dd_option_string(opt, base));
}

bool dd_option_equal(const struct dd_option *opt, const void *a, const void *b)
{
    if (opt->type == DD_OPTION_TEXT) return !strcmp(dd_option_string(opt, a), dd_option_string(opt, b));
    return !memcmp(at(opt, a), at(opt, b), size_of(opt));
}

bool dd_option_copy(const struct dd_option *opt, void *to, const void *from)
{
    if (opt->type != DD_OPTION_TEXT) {
        memcpy((char *)to + opt->offset, at(opt, from), size_of(opt));
        return true;
    }
    char *text = strdup(dd_option_string(opt, from));
    if (!text) return false;
    dd_option_release(opt, to);
    *(char **)((char *)to + opt->offset) = text;
    return true;
}

void dd_option_release(const struct dd_option *opt, void *base)
{
    if (opt->type != DD_OPTION_TEXT) return;
    char **text = (char **)((char *)base + opt->offset);
    if (*text) explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}
