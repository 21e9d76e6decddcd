/* Every row of both tables, without a list of them here: the table is sound, and every bound is kept, whether
 * the value comes from the file or from --set. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "config/option.h"
#include "suites.h"
#include "support.h"

#define EXACT 9007199254740992.0 /* 2^53 */

struct row {
    const struct dd_option *opt;
    const char *prefix; /* "" or "scenes.default." */
};

static size_t row_count(void)
{
    return dd_config_table.count + dd_scene_table.count;
}

static struct row row_at(size_t i)
{
    if (i < dd_config_table.count) return (struct row){&dd_config_table.rows[i], ""};
    return (struct row){&dd_scene_table.rows[i - dd_config_table.count], "scenes.default."};
}

static struct loaded load_row_set(struct row r, const char *value)
{
    char assignment[6000];
    snprintf(assignment, sizeof assignment, "%s%s=%s", r.prefix, r.opt->name, value);
    return load_set(assignment);
}

/* The name's parts as nested objects around the value. */
static struct loaded load_row_json(struct row r, const char *value)
{
    struct dd_buf json = {0};
    char name[DD_OPTION_TEXT_MAX];
    size_t depth = 1;
    snprintf(name, sizeof name, "%s%s", r.prefix, r.opt->name);
    dd_buf_add_str(&json, "{\"");
    for (const char *p = name; *p; p++) {
        if (*p == '.') {
            dd_buf_add_str(&json, "\":{\"");
            depth++;
        } else {
            dd_buf_add_u8(&json, (uint8_t)*p);
        }
    }
    dd_buf_addf(&json, "\":%s", value);
    while (depth--)
        dd_buf_add_str(&json, "}");
    dd_buf_add_u8(&json, 0);
    struct loaded l = load_json((const char *)json.data);
    dd_buf_free(&json);
    return l;
}

/* The error names the whole key and what is allowed. */
static void expect_refused(struct row r, struct loaded l, const char *value)
{
    char range[DD_OPTION_TEXT_MAX], name[DD_OPTION_TEXT_MAX];
    snprintf(name, sizeof name, "%s%s: ", r.prefix, r.opt->name);
    ck_assert_msg(l.err == DD_INVALID, "%s%s: %s", name, value, dd_err_name(l.err));
    ck_assert_contains((char *)l.errors.data, name);
    ck_assert_contains((char *)l.errors.data, dd_option_range(r.opt, range));
    loaded_free(&l);
}

static void refused_both(struct row r, const char *value)
{
    expect_refused(r, load_row_set(r, value), value);
    expect_refused(r, load_row_json(r, value), value);
}

static void refused_json(struct row r, const char *value)
{
    expect_refused(r, load_row_json(r, value), value);
}

static void refused_set(struct row r, const char *value)
{
    expect_refused(r, load_row_set(r, value), value);
}

static const void *base_of(struct row r, const struct dd_config *cfg)
{
    return *r.prefix ? (const void *)dd_config_scene(cfg, dd_slice_str("default")) : cfg;
}

static void expect_number(struct row r, struct loaded l, double value)
{
    ck_assert_msg(l.err == DD_OK, "%s%s %g: %s", r.prefix, r.opt->name, value, (char *)l.errors.data);
    const void *base = base_of(r, l.cfg);
    double got = r.opt->type == DD_OPTION_INT ? (double)dd_option_int(r.opt, base)
                                              : dd_option_real(r.opt, base);
    ck_assert_msg(got == value, "%s%s: %g, not %g", r.prefix, r.opt->name, got, value);
    loaded_free(&l);
}

/* A bound itself is taken by the row; a policy as a whole may still refuse it, in other words. */
static void taken(struct row r, double value)
{
    char text[DD_OPTION_TEXT_MAX];
    struct loaded by_set = load_row_set(r, dd_number_text(value, text));
    struct loaded by_json = load_row_json(r, text);
    ck_assert_int_eq(by_set.err, by_json.err);
    if (*r.prefix && by_set.err != DD_OK) {
        ck_assert_lacks((char *)by_set.errors.data, "(allowed: ");
        loaded_free(&by_set);
        loaded_free(&by_json);
        return;
    }
    expect_number(r, by_set, value);
    expect_number(r, by_json, value);
}

static void check_number_row(struct row r)
{
    char text[DD_OPTION_TEXT_MAX];
    double step = r.opt->type == DD_OPTION_INT ? 1 : r.opt->min / 1000;
    refused_both(r, dd_number_text(r.opt->min - step, text));
    refused_both(r, dd_number_text(r.opt->max + step, text));
    refused_both(r, "9223372036854775808");
    refused_both(r, "-9223372036854775809");
    refused_both(r, "1e300");
    taken(r, r.opt->min);
    taken(r, r.opt->max);
    if (r.opt->type == DD_OPTION_INT) refused_both(r, dd_number_text(r.opt->min + 0.5, text));
    if (r.opt->flags & DD_OPTION_OR_MINUS1) {
        taken(r, -1);
        refused_both(r, "-2");
        refused_both(r, "0");
    }
    if (r.opt->flags & DD_OPTION_POWER2) refused_both(r, dd_number_text(r.opt->min + 1, text));
    static const char *const words[] = {"",   "x",  "nan", "NaN",  "inf", "-inf", "0x10", " 1",
                                        "1 ", "+1", "1,0", "true", "1e",  "--1",  "1..2", "1e999"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        refused_set(r, words[i]);
    static const char *const values[] = {"\"1\"", "true", "null", "[]", "[1]", "{}", "\"\""};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        refused_json(r, values[i]);
}

static void check_bool_row(struct row r)
{
    static const char *const words[] = {"", "x", "0", "1", "yes", "TRUE", "true ", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        refused_set(r, words[i]);
    static const char *const values[] = {"\"true\"", "0", "1", "null", "[]", "{}"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        refused_json(r, values[i]);
    for (int flag = 0; flag < 2; flag++) {
        struct loaded a = load_row_set(r, flag ? "true" : "false"),
                      b = load_row_json(r, flag ? "true" : "false");
        ck_assert_int_eq(dd_option_bool(r.opt, base_of(r, a.cfg)), flag);
        ck_assert_int_eq(dd_option_bool(r.opt, base_of(r, b.cfg)), flag);
        loaded_free(&a);
        loaded_free(&b);
    }
}

static void check_choice_row(struct row r)
{
    refused_set(r, "");
    refused_set(r, "surely-not");
    static const char *const values[] = {"\"\"", "\"surely-not\"", "0", "true", "null", "[]", "{}"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        refused_json(r, values[i]);
    for (const struct dd_choice *c = r.opt->choices; c->name; c++) {
        char quoted[40];
        snprintf(quoted, sizeof quoted, "\"%s\"", c->name);
        struct loaded a = load_row_set(r, c->name), b = load_row_json(r, quoted);
        ck_assert_int_eq(a.err, b.err); /* some choices need other options: then both say so */
        if (a.cfg) ck_assert_str_eq(dd_option_string(r.opt, base_of(r, a.cfg)), c->name);
        if (b.cfg) ck_assert_str_eq(dd_option_string(r.opt, base_of(r, b.cfg)), c->name);
        if (!a.cfg) ck_assert_lacks((char *)a.errors.data, "choices");
        loaded_free(&a);
        loaded_free(&b);
    }
}

static void check_text_row(struct row r)
{
    static char lengthy[4098];
    memset(lengthy, 'a', sizeof lengthy - 1);
    refused_set(r, lengthy);
    refused_set(r, "a\nb");
    refused_set(r, "a\x7f");
    refused_set(r, "\xff\xfe");
    static const char *const values[] = {"0", "true", "null", "[]", "{}", "\"a\\u0007\""};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        refused_json(r, values[i]);
}

START_TEST(bounds)
{
    struct row r = row_at((size_t)_i);
    switch (r.opt->type) {
    case DD_OPTION_INT:
    case DD_OPTION_REAL:
        check_number_row(r);
        break;
    case DD_OPTION_BOOL:
        check_bool_row(r);
        break;
    case DD_OPTION_CHOICE:
        check_choice_row(r);
        break;
    case DD_OPTION_TEXT:
        check_text_row(r);
        break;
    }
}
END_TEST

START_TEST(defaults)
{
    struct loaded l = load_all(NULL, NULL, NULL);
    ck_assert_ok(l.err);
    for (size_t i = 0; i < row_count(); i++) {
        struct row r = row_at(i);
        struct dd_buf text = {0};
        dd_option_format(r.opt, base_of(r, l.cfg), &text);
        ck_assert_msg(dd_slice_eq(dd_buf_slice(&text), dd_slice_str(r.opt->initial)), "%s", r.opt->name);
        dd_buf_free(&text);
    }
    loaded_free(&l);
}
END_TEST

static void check_words(const struct dd_option *opt)
{
    ck_assert_msg(*opt->text && opt->text[strlen(opt->text) - 1] == '.', "%s: no sentence", opt->name);
    ck_assert_msg(!strpbrk(opt->text, "|\n"), "%s: breaks the table of the page", opt->name);
    ck_assert_msg(opt->unit && !strchr(opt->unit, '|'), "%s: unit", opt->name);
    for (const char *p = opt->name; *p; p++)
        ck_assert_msg(islower((unsigned char)*p) || isdigit((unsigned char)*p) || strchr("._", *p), "%s",
                      opt->name);
}

START_TEST(sound)
{
    for (size_t i = 0; i < row_count(); i++) {
        const struct dd_option *opt = row_at(i).opt;
        check_words(opt);
        if (opt->type == DD_OPTION_INT) {
            ck_assert_msg(fabs(opt->min) < EXACT && fabs(opt->max) < EXACT, "%s: bounds", opt->name);
            ck_assert_msg(opt->min == trunc(opt->min) && opt->max == trunc(opt->max), "%s: bounds",
                          opt->name);
        }
        if (opt->type == DD_OPTION_INT || opt->type == DD_OPTION_REAL) ck_assert(opt->min < opt->max);
        if (opt->type == DD_OPTION_CHOICE) ck_assert_ptr_nonnull(opt->choices);
    }
}
END_TEST

static void distinct(const char *a, const char *b)
{
    ck_assert_msg(strcmp(a, b) != 0, "two options are called %s", a);
}

/* Names, fields and variables are one each; sections stand together and are no options themselves. */
START_TEST(names)
{
    char a[DD_OPTION_TEXT_MAX], b[DD_OPTION_TEXT_MAX];
    for (size_t i = 0; i < dd_config_table.count; i++) {
        const struct dd_option *x = &dd_config_table.rows[i];
        dd_option_env("DEDUPD_", dd_slice_str(x->name), a);
        ck_assert_msg(!strstr(a, "_SERVICE_") && !strstr(a, "_PORT"), "%s would be taken for a service's", a);
        ck_assert_msg(strncmp(x->name, "scenes", 6) != 0, "%s: the scenes have their own table", x->name);
        ck_assert(!dd_option_is_section(&dd_config_table, dd_slice_str(x->name)));
        for (size_t j = 0; j < i; j++) {
            distinct(x->name, dd_config_table.rows[j].name);
            distinct(a, dd_option_env("DEDUPD_", dd_slice_str(dd_config_table.rows[j].name), b));
            ck_assert_uint_ne(x->offset, dd_config_table.rows[j].offset);
        }
    }
}
END_TEST

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* What makes "scenes.a.b.recent.max" readable in one way only, and DEDUPD_SCENES_A_B_RECENT_MAX too. */
START_TEST(scene_fields)
{
    char a[DD_OPTION_TEXT_MAX], b[DD_OPTION_TEXT_MAX], dotted[DD_OPTION_TEXT_MAX];
    for (size_t i = 0; i < dd_scene_table.count; i++) {
        for (size_t j = 0; j < dd_scene_table.count; j++) {
            const char *x = dd_scene_table.rows[i].name, *y = dd_scene_table.rows[j].name;
            if (i == j) continue;
            snprintf(dotted, sizeof dotted, ".%s", y);
            ck_assert_msg(!ends_with(x, dotted), "%s ends in %s", x, dotted);
            dd_option_env("_", dd_slice_str(x), a);
            dd_option_env("_", dd_slice_str(y), b);
            ck_assert_msg(!ends_with(a, b), "%s ends in %s", a, b);
        }
    }
}
END_TEST

/* The names that other modules print for the same values. */
START_TEST(choice_names)
{
    const struct dd_option *period = dd_option_find(&dd_scene_table, dd_slice_str("period"));
    for (const struct dd_choice *c = period->choices; c->name; c++)
        ck_assert_str_eq(c->name, dd_period_kind_name((enum dd_period_kind)c->value));
    const struct dd_option *filter = dd_option_find(&dd_scene_table, dd_slice_str("filter"));
    for (const struct dd_choice *c = filter->choices; c->name; c++)
        ck_assert_str_eq(c->name, dd_filter_kind_name((enum dd_filter_kind)c->value));
    const struct dd_option *level = dd_option_find(&dd_config_table, dd_slice_str("log.level"));
    for (const struct dd_choice *c = level->choices; c->name; c++) {
        enum dd_log_level got;
        ck_assert_ok(dd_log_level_parse(dd_slice_str(c->name), &got));
        ck_assert_int_eq((int)got, c->value);
    }
}
END_TEST

Suite *suite_table(void)
{
    Suite *s = suite_create("config table");
    TCase *tc = case_of(s, "rows");
    tcase_add_loop_test(tc, bounds, 0, (int)row_count());
    tcase_add_test(tc, defaults);
    tcase_add_test(tc, sound);
    tcase_add_test(tc, names);
    tcase_add_test(tc, scene_fields);
    tcase_add_test(tc, choice_names);
    return s;
}
