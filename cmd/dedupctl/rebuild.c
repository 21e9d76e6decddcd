/* rebuild: filter sets made anew from history, in the running server. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "bar.h"

#define POLL_MS 200
#define PATH    "/admin/rebuild"

static const char help[] =
    "usage: dedupctl rebuild (--user USER | --scene SCENE | --all) [--json]\n"
    "\n"
    "Makes filter sets anew from history (history.mode), under the current policy, while the server serves. "
    "Sets\n"
    "of periods that history covers whole are replaced; others are united with what history knows. An\n"
    "interrupted dedupctl does not stop the server's rebuild. Exit code 1 when a set could not be rebuilt.\n"
    "\n"
    "  dedupctl rebuild --user u123\n"
    "  dedupctl rebuild --scene push\n"
    "  dedupctl rebuild --all\n";

static long long number(const json_t *v, const char *name)
{
    return json_integer_value(json_object_get(v, name));
}

static int conclude(const struct dd_ctl *ctl, const json_t *v)
{
    const char *result = json_string_value(json_object_get(v, "result"));
    bool good = result && strcmp(result, "ok") == 0;
    if (ctl->json) {
        json_dumpf(v, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        printf("%lld sets: %lld replaced, %lld united, %lld without history, %lld left as they are, %lld "
               "failed; %lld items read\n",
               number(v, "done"), number(v, "replaced"), number(v, "united"), number(v, "without_history"),
               number(v, "left"), number(v, "failed"), number(v, "items"));
    }
    if (!good) fprintf(stderr, "dedupctl: the rebuild did not go through: %s\n", result ? result : "?");
    return good ? DD_CTL_OK : DD_CTL_FAILED;
}

static int run(const struct dd_ctl *ctl, const char *body)
{
    struct dd_bar bar;
    int code;
    json_t *v = dd_ctl_ask(ctl, "POST", PATH, body, &code);
    dd_bar_begin(&bar, "sets");
    while (v && json_is_true(json_object_get(v, "running"))) {
        dd_bar_show(&bar, (uint64_t)number(v, "done"), (uint64_t)number(v, "total"));
        json_decref(v);
        v = dd_ctl_wait_ms(POLL_MS) ? dd_ctl_ask(ctl, "GET", PATH, NULL, &code) : NULL;
    }
    dd_bar_end(&bar);
    if (!v) return code == DD_CTL_OK ? DD_CTL_FAILED : code;
    code = conclude(ctl, v);
    json_decref(v);
    return code;
}

static void add_member(struct dd_buf *body, const char *name, const char *value)
{
    if (!value) return;
    if (body->len > 1) dd_buf_add_u8(body, ',');
    dd_buf_addf(body, "\"%s\":", name);
    dd_ctl_add_json(body, value);
}

int dd_ctl_rebuild(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    const char *user = NULL, *scene = NULL, *none;
    bool all = false;
    unsigned n;
    const struct dd_ctl_option options[] = {
        {"--user", &user, NULL}, {"--scene", &scene, NULL}, {"--all", NULL, &all}, {NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, help, options, &none, 0, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    if (parsed == DD_CTL_GO_ON && all == (user || scene)) fputs(help, stderr);
    if (parsed != DD_CTL_GO_ON || all == (user || scene)) return DD_CTL_USAGE;
    struct dd_buf body = {0};
    dd_buf_add_u8(&body, '{');
    add_member(&body, "user", user);
    add_member(&body, "scene", scene);
    dd_buf_add_str(&body, all ? "\"all\":true}" : "}");
    dd_buf_add_u8(&body, 0);
    int code = dd_buf_ok(&body) ? run(&ctl, (char *)body.data) : DD_CTL_FAILED;
    dd_buf_free(&body);
    return code;
}
