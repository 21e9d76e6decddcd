/* health and stats: what state the server is in. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "args.h"

static const char health_help[] =
    "usage: dedupctl health [--json]\n"
    "\n"
    "The state of the server, then a line for each part of it, with what is wrong. Without a token where one "
    "is\n"
    "needed: the state alone. Exit code 0 when it can serve (also degraded), 1 when it cannot, 3 no answer.\n"
    "\n"
    "  dedupctl health\n"
    "  dedupctl --data http://10.0.0.5:8080 health --json\n";

static const char stats_help[] =
    "usage: dedupctl stats [--json]\n"
    "\n"
    "Traffic, latencies, hit ratios, sizes, as JSON either way. /metrics has the counters for Prometheus.\n"
    "\n"
    "  dedupctl stats | jq .hit_ratio\n";

/* ---- plain words ---- */

static const char *text(const json_t *v, const char *name)
{
    const char *t = json_string_value(json_object_get(v, name));
    return t ? t : "";
}

/* Between "; " after the first. */
static void add_remark(const char *remark, const char **before)
{
    if (!*remark) return;
    printf("%s%s", *before, remark);
    *before = "; ";
}

static void print_component(const char *name, const json_t *c)
{
    const json_t *reason;
    const char *before = ": ", *warnings = text(c, "warnings");
    bool told = false;
    size_t i;
    printf("  %-10s %s", name, text(c, "status"));
    json_array_foreach(json_object_get(c, "reasons"), i, reason)
    {
        const char *words = json_string_value(reason);
        if (!words) continue;
        add_remark(words, &before);
        told = told || strstr(words, warnings);
    }
    if (!told) add_remark(warnings, &before);
    putchar('\n');
}

static void print_words(json_t *v)
{
    const char *name;
    json_t *c, *components = json_object_get(v, "components");
    printf("%s", text(v, "status"));
    if (components)
        printf(": exposures are %s, answers are %s%s; version %s, up %lld s",
               json_is_true(json_object_get(v, "exposures_accepted")) ? "accepted" : "refused",
               text(v, "history"),
               json_is_true(json_object_get(v, "draining")) ? ", it is about to stop" : "",
               text(v, "version"), (long long)json_integer_value(json_object_get(v, "uptime_s")));
    putchar('\n');
    json_object_foreach(components, name, c) print_component(name, c);
}

static int show_health(const struct dd_ctl *ctl, const struct dd_reply *reply)
{
    json_error_t e;
    if (ctl->json) return dd_ctl_print(reply);
    json_t *v = json_loadb((const char *)reply->body.data, reply->body.len, 0, &e);
    int code = reply->status >= 200 && reply->status < 300 ? DD_CTL_OK : DD_CTL_FAILED;
    if (*text(v, "status"))
        print_words(v);
    else
        code = dd_ctl_complain(reply);
    json_decref(v);
    return code;
}

/* ---- the commands ---- */

/* false: *code is the exit code. */
static bool no_arguments(struct dd_ctl *ctl, const char *help, int *code)
{
    const struct dd_ctl_option options[] = {{NULL, NULL, NULL}};
    const char *none;
    unsigned n;
    enum dd_ctl_parsed parsed = dd_ctl_parse(ctl, help, options, &none, 0, &n);
    *code = parsed == DD_CTL_WRONG ? DD_CTL_USAGE : DD_CTL_OK;
    return parsed == DD_CTL_GO_ON;
}

/* Without a token where one is needed, the state that needs none is shown: a probe holds no secret. */
int dd_ctl_health(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    struct dd_reply reply;
    int code;
    if (!no_arguments(&ctl, health_help, &code)) return code;
    code = dd_ctl_call(&ctl, ctl.data, "GET", "/health", NULL, &reply);
    if (code == DD_CTL_OK && !ctl.token && (reply.status == 401 || reply.status == 403)) {
        dd_reply_reset(&reply);
        code = dd_ctl_call(&ctl, ctl.data, "GET", "/health/ready", NULL, &reply);
    }
    if (code != DD_CTL_OK) return code;
    code = show_health(&ctl, &reply);
    dd_reply_reset(&reply);
    return code;
}

int dd_ctl_stats(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    int code;
    return no_arguments(&ctl, stats_help, &code) ? dd_ctl_show(&ctl, ctl.data, "GET", "/stats", NULL) : code;
}
