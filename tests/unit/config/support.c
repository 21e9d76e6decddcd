#include "support.h"

#include <stdio.h>
#include <stdlib.h>

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

struct loaded load_all(const char *json, const char *const *environment, const char *const *sets)
{
    struct loaded l = {0};
    char *dir = unit_mkdir(), path[600];
    snprintf(path, sizeof path, "%s/test.json", dir);
    if (json) write_file(path, json);
    struct dd_config_sources from = {json ? path : NULL, (char *const *)environment, sets, count(sets)};
    l.err = dd_config_load(&from, &l.cfg, &l.errors);
    unit_rmdir(dir);
    ck_assert_int_eq(l.err == DD_OK, l.cfg != NULL);
    ck_assert_int_eq(l.err == DD_OK, l.errors.len == 0);
    dd_buf_add_u8(&l.errors, 0);
    ck_assert(dd_buf_ok(&l.errors));
    return l;
}

struct loaded load_json(const char *json)
{
    return load_all(json, NULL, NULL);
}

struct loaded load_set(const char *assignment)
{
    const char *sets[] = {assignment, NULL};
    return load_all(NULL, NULL, sets);
}

void loaded_free(struct loaded *l)
{
    dd_config_destroy(l->cfg);
    dd_buf_free(&l->errors);
}

char *printed(const struct dd_config *cfg)
{
    struct dd_buf out = {0};
    ck_assert_ok(dd_config_print(cfg, &out));
    dd_buf_add_u8(&out, 0);
    ck_assert(dd_buf_ok(&out));
    return (char *)out.data; /* the caller's */
}

static void expect(struct loaded l, const char *what, enum dd_err err, const char *text)
{
    ck_assert_msg(l.err == err, "%s: %s, not %s", what, dd_err_name(l.err), dd_err_name(err));
    ck_assert_contains((char *)l.errors.data, text);
    loaded_free(&l);
}

void expect_json_error(const char *json, enum dd_err err, const char *text)
{
    expect(load_json(json), json, err, text);
}

void expect_set_error(const char *assignment, const char *text)
{
    expect(load_set(assignment), assignment, DD_INVALID, text);
}

TCase *case_of(Suite *s, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    return tc;
}
