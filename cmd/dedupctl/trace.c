/* trace: what one user was shown, in plain text, for as long as an operator asks for it. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "args.h"

static const char help[] =
    "usage: dedupctl trace on USER [--days N] [--scene SCENE]\n"
    "       dedupctl trace show USER [--limit N] [--before CURSOR] [--scene SCENE] [--json]\n"
    "       dedupctl trace off USER\n"
    "\n"
    "Records what is delivered to one user and what he sees, in plain text, for N days (1 to 90, default "
    "7);\n"
    "the newest 10,000 entries are kept. show prints them newest first; off stops and removes them. Nobody "
    "else\n"
    "is recorded. Exit code 1 when the user is not traced.\n"
    "\n"
    "  dedupctl trace on u123 --days 3\n"
    "  dedupctl trace show u123 --limit 20\n"
    "  dedupctl trace off u123\n";

static const char *text(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s ? s : "-";
}

static void add_param(struct dd_buf *path, const char *name, const char *value)
{
    if (!value) return;
    dd_buf_add_u8(path, memchr(path->data, '?', path->len) ? '&' : '?');
    dd_buf_addf(path, "%s=", name);
    dd_ctl_add_encoded(path, dd_slice_str(value));
}

static void add_path(struct dd_buf *path, const char *user)
{
    dd_buf_add_str(path, "/users/");
    dd_ctl_add_encoded(path, dd_slice_str(user));
    dd_buf_add_str(path, "/trace");
}

static const char *time_text(json_int_t ms, char out[32])
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, 32 - n, ".%03dZ", (int)(ms % 1000));
    return out;
}

static void print_entries(const json_t *v)
{
    size_t i;
    const json_t *e;
    char at[32], until[32];
    printf("user %s, %s until %s, %lld entries\n", text(v, "user"),
           json_is_true(json_object_get(v, "active")) ? "recorded" : "recorded, ended",
           time_text(json_integer_value(json_object_get(v, "until_ms")), until),
           (long long)json_integer_value(json_object_get(v, "entries")));
    json_array_foreach(json_object_get(v, "items"), i, e)
    {
        printf("%s  %-9s %-7s %-10s ", time_text(json_integer_value(json_object_get(e, "at_ms")), at),
               text(e, "what"), text(e, "source"), text(e, "scene"));
        dd_ctl_print_id(text(e, "item"));
        putchar('\n');
    }
    if (json_is_string(json_object_get(v, "next"))) printf("more: --before %s\n", text(v, "next"));
}

static int show(const struct dd_ctl *ctl, const char *path)
{
    int code;
    if (ctl->json) return dd_ctl_show(ctl, ctl->admin, "GET", path, NULL);
    json_t *v = dd_ctl_ask(ctl, "GET", path, NULL, &code);
    if (v) print_entries(v);
    json_decref(v);
    return code;
}

static bool is_number(const char *text_)
{
    return *text_ && strlen(text_) <= 6 && strspn(text_, "0123456789") == strlen(text_);
}

static int run(const struct dd_ctl *ctl, const char *verb, const char *path, const char *days)
{
    struct dd_buf body = {0};
    if (strcmp(verb, "show") == 0) return show(ctl, path);
    if (strcmp(verb, "off") == 0) return dd_ctl_show(ctl, ctl->admin, "DELETE", path, NULL);
    dd_buf_addf(&body, days ? "{\"days\":%s}" : "{}", days);
    dd_buf_add_u8(&body, 0);
    int code = dd_buf_ok(&body) ? dd_ctl_show(ctl, ctl->admin, "PUT", path, (char *)body.data)
                                : DD_CTL_FAILED;
    dd_buf_free(&body);
    return code;
}

int dd_ctl_trace(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    const char *words[2] = {NULL, NULL}, *days = NULL, *scene = NULL, *limit = NULL, *before = NULL;
    unsigned n;
    const struct dd_ctl_option options[] = {{"--days", &days, NULL},
                                            {"--scene", &scene, NULL},
                                            {"--limit", &limit, NULL},
                                            {"--before", &before, NULL},
                                            {NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, help, options, words, 2, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    if (parsed == DD_CTL_WRONG) return DD_CTL_USAGE;
    bool known = n == 2 && (!strcmp(words[0], "on") || !strcmp(words[0], "off") || !strcmp(words[0], "show"));
    if (!known || (days && !is_number(days))) {
        fputs(help, stderr);
        return DD_CTL_USAGE;
    }
    struct dd_buf path = {0};
    add_path(&path, words[1]);
    if (strcmp(words[0], "off") != 0) add_param(&path, "scene", scene);
    if (strcmp(words[0], "show") == 0) {
        add_param(&path, "limit", limit);
        add_param(&path, "before", before);
    }
    dd_buf_add_u8(&path, 0);
    int code = dd_buf_ok(&path) ? run(&ctl, words[0], (char *)path.data, days) : DD_CTL_FAILED;
    dd_buf_free(&path);
    return code;
}
