/* One way in for values, wherever they come from: read, judge, store. */
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/option.h"

#define TEXT_BYTES_MAX 4096

/* strtod without what JSON does not have: blanks, hexadecimal, "inf", "nan". */
static bool read_number(const char *text, double *out)
{
    if (!*text || text[strspn(text, "0123456789.eE+-")] || text[0] == '+') return false;
    char *end;
    *out = strtod(text, &end);
    return !*end && isfinite(*out);
}

struct dd_value dd_value_read(const struct dd_option *opt, const char *text)
{
    struct dd_value v = {.kind = DD_VALUE_STRING, .string = text};
    if (opt->type == DD_OPTION_INT || opt->type == DD_OPTION_REAL) {
        if (read_number(text, &v.number)) v.kind = DD_VALUE_NUMBER;
    } else if (opt->type == DD_OPTION_BOOL) {
        v.flag = !strcmp(text, "true");
        if (v.flag || !strcmp(text, "false")) v.kind = DD_VALUE_BOOL;
    }
    return v;
}

/* The scheme, three asterisks, and what follows the last @. When a URL is wrong, nobody knows where its
 * password ends. */
static void add_hidden(struct dd_buf *out, const char *url)
{
    const char *scheme_end = strstr(url, "://"), *at = strrchr(url, '@');
    if (scheme_end && scheme_end - url < 10) dd_buf_add(out, url, (size_t)(scheme_end - url) + 3);
    dd_buf_add_str(out, "***");
    if (at) dd_report_quote(out, at);
}

static void add_shown(struct dd_buf *out, const struct dd_option *opt, struct dd_value v)
{
    char number[DD_OPTION_TEXT_MAX];
    if (v.kind == DD_VALUE_NUMBER) {
        dd_buf_add_str(out, dd_number_text(v.number, number));
    } else if (v.kind == DD_VALUE_BOOL) {
        dd_buf_add_str(out, v.flag ? "true" : "false");
    } else if (v.kind == DD_VALUE_OTHER) {
        dd_buf_add_str(out, v.string);
    } else {
        dd_buf_add_str(out, "\"");
        if (opt->flags & DD_OPTION_SECRET)
            add_hidden(out, v.string);
        else
            dd_report_quote(out, v.string);
        dd_buf_add_str(out, "\"");
    }
}

/* "300 is out of range (allowed: 0..256)" */
static void refuse(const struct dd_target *to, const struct dd_option *opt, struct dd_value v,
                   const char *because, struct dd_report *report)
{
    struct dd_buf shown = {0};
    char range[DD_OPTION_TEXT_MAX];
    add_shown(&shown, opt, v);
    if (!dd_buf_ok(&shown)) dd_report_raise(report, DD_NO_MEMORY);
    dd_report_add(report, to->prefix, opt->name, "%.*s %s (allowed: %s)", (int)shown.len,
                  shown.data ? (char *)shown.data : "", because, dd_option_range(opt, range));
    dd_buf_free(&shown);
}

/* NULL, or what is wrong with the number. Bounds are compared as doubles: the table keeps them exact. */
static const char *judge_number(const struct dd_option *opt, double v)
{
    if (opt->type == DD_OPTION_INT && v != trunc(v)) return "is not an integer";
    if (opt->flags & DD_OPTION_OR_MINUS1 && v == -1) return NULL;
    if (!(v >= opt->min && v <= opt->max)) return "is out of range";
    if (opt->flags & DD_OPTION_POWER2 && (int64_t)v & ((int64_t)v - 1)) return "is not a power of two";
    return NULL;
}

static const char *assign_number(const struct dd_option *opt, void *field, struct dd_value v)
{
    if (v.kind != DD_VALUE_NUMBER)
        return opt->type == DD_OPTION_INT ? "is not an integer" : "is not a number";
    const char *wrong = judge_number(opt, v.number);
    if (wrong) return wrong;
    if (opt->type == DD_OPTION_INT)
        *(int64_t *)field = (int64_t)v.number;
    else
        *(double *)field = v.number;
    return NULL;
}

static const char *assign_choice(const struct dd_option *opt, void *field, struct dd_value v)
{
    if (v.kind != DD_VALUE_STRING) return "is not a string";
    for (const struct dd_choice *c = opt->choices; c->name; c++) {
        if (strcmp(c->name, v.string)) continue;
        memcpy(field, &c->value, sizeof c->value);
        return NULL;
    }
    return "is none of the choices";
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text)) return true;
    return false;
}

/* What is not UTF-8 could not be printed as JSON again. jansson is asked, since it will do the printing. */
static bool is_utf8(const char *text)
{
    json_t *j = json_string(text);
    json_decref(j);
    return j != NULL;
}

/* why: room for a sentence of the row's own check. */
static const char *assign_text(const struct dd_option *opt, void *field, struct dd_value v, char *why,
                               size_t why_size, struct dd_report *report)
{
    if (v.kind != DD_VALUE_STRING) return "is not a string";
    if (strlen(v.string) > TEXT_BYTES_MAX) return "is longer than 4096 bytes";
    if (has_control(v.string)) return "holds control bytes";
    if (!is_utf8(v.string)) return "is not UTF-8";
    int n = snprintf(why, why_size, "is refused: ");
    if (opt->check && !opt->check(v.string, why + n, why_size - (size_t)n)) return why;
    char *copy = strdup(v.string);
    if (!copy) {
        dd_report_raise(report, DD_NO_MEMORY);
        return NULL;
    }
    char **text = field;
    if (*text) explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = copy; /* the struct's from here */
    return NULL;
}

void dd_option_assign(const struct dd_target *to, const struct dd_option *opt, struct dd_value v,
                      struct dd_report *report)
{
    void *field = (char *)to->base + opt->offset;
    char why[256];
    const char *wrong = NULL;
    switch (opt->type) {
    case DD_OPTION_INT:
    case DD_OPTION_REAL:
        wrong = assign_number(opt, field, v);
        break;
    case DD_OPTION_BOOL:
        if (v.kind == DD_VALUE_BOOL)
            *(bool *)field = v.flag;
        else
            wrong = "is not a boolean";
        break;
    case DD_OPTION_CHOICE:
        wrong = assign_choice(opt, field, v);
        break;
    case DD_OPTION_TEXT:
        wrong = assign_text(opt, field, v, why, sizeof why, report);
        break;
    }
    if (wrong)
        refuse(to, opt, v, wrong, report);
    else if (to->given)
        *to->given |= UINT64_C(1) << (opt - to->table->rows);
}

void dd_option_assign_defaults(const struct dd_target *to, struct dd_report *report)
{
    struct dd_target quiet = *to;
    quiet.given = NULL;
    for (size_t i = 0; i < to->table->count; i++) {
        const struct dd_option *opt = &to->table->rows[i];
        dd_option_assign(&quiet, opt, dd_value_read(opt, opt->initial), report);
    }
}
