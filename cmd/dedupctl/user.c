/* user and export: what is known of one user, and his filter set to take away. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "args.h"

static const char user_help[] =
    "usage: dedupctl user USER [--scene SCENE] [--json]\n"
    "\n"
    "Deliveries, staged exposures and the filter set of each period. Exit code 1 when nothing is known.\n"
    "\n"
    "  dedupctl user u123\n"
    "  dedupctl user u123 --scene push --json\n";

static const char export_help[] =
    "usage: dedupctl export USER [--scene SCENE] [--period PERIOD]\n"
    "\n"
    "The user's filter set of one period (default: the current one) as JSON, with the seed that fingerprints "
    "are\n"
    "made with. proto/filter_reader.py (`make install` puts it into share/doc/dedupd/proto) tests candidates "
    "against it.\n"
    "\n"
    "  dedupctl export u123 --period 2026-11 | python3 proto/filter_reader.py article-1 article-2\n";

/* "/users/<user><tail>?scene=...&period=..." */
static bool make_path(struct dd_buf *out, const char *user, const char *tail, const char *scene,
                      const char *period)
{
    dd_buf_add_str(out, "/users/");
    dd_ctl_add_encoded(out, dd_slice_str(user));
    dd_buf_add_str(out, tail);
    if (scene) {
        dd_buf_add_str(out, "?scene=");
        dd_ctl_add_encoded(out, dd_slice_str(scene));
    }
    if (period) {
        dd_buf_add_str(out, scene ? "&period=" : "?period=");
        dd_ctl_add_encoded(out, dd_slice_str(period));
    }
    dd_buf_add_u8(out, 0);
    return dd_buf_ok(out);
}

static long long number(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static const char *text(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s ? s : "-";
}

static void print_period(const json_t *p)
{
    const json_t *stored = json_object_get(p, "stored");
    printf("  %-10s %8lld", text(p, "period"), number(p, "pending"));
    if (json_is_null(stored))
        printf("  %-10s %8s %7s %6s %8s %9s", "-", "", "", "", "", "");
    else if (json_is_true(json_object_get(stored, "corrupt")))
        printf("  %-10s %8s %7s %6s %8s %9s", "corrupt", "", "", "", "", "");
    else
        printf("  %-10s %8lld %7lld %6.2f %8lld %9.2g",
               json_is_true(json_object_get(stored, "sparse")) ? "sparse" : text(stored, "kind"),
               number(stored, "items"), number(stored, "layers"),
               json_number_value(json_object_get(stored, "fill")), number(stored, "bytes"),
               json_number_value(json_object_get(stored, "fpr")));
    printf("  %s%s%s\n", text(p, "cache"),
           json_is_true(json_object_get(p, "in_window")) ? "" : ", past the window",
           json_is_true(json_object_get(stored, "damaged")) ? ", damaged" : "");
}

static void print_scene(const json_t *scene)
{
    size_t i;
    const json_t *entry;
    const json_t *deliveries = json_object_get(scene, "deliveries"),
                 *periods = json_object_get(scene, "periods");
    bool configured = !json_is_false(json_object_get(scene, "configured"));
    printf("\nscene %s%s\n", text(scene, "scene"), configured ? "" : " (not in the configuration)");
    if (json_array_size(periods))
        printf("  %-10s %8s  %-10s %8s %7s %6s %8s %9s  %s\n", "period", "pending", "kind", "items", "layers",
               "fill", "bytes", "fpr", "cache");
    json_array_foreach(periods, i, entry) print_period(entry);
    if (json_array_size(deliveries)) printf("  delivered (newest first)\n");
    json_array_foreach(deliveries, i, entry)
    {
        printf("    %8.1f s ago  ", (double)number(entry, "age_ms") / 1000);
        dd_ctl_print_id(text(entry, "item"));
        putchar('\n');
    }
}

static void print_time(const char *what, const json_t *ms)
{
    time_t at = (time_t)(json_integer_value(ms) / 1000);
    struct tm day;
    char when[40];
    if (!json_is_integer(ms) || !gmtime_r(&at, &day)) return;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &day);
    printf("%s %s", what, when);
}

static void print_migration(const json_t *m)
{
    if (!json_is_object(m)) return;
    print_time("\nfrom the old store: migrated", json_object_get(m, "migrated_ms"));
    print_time("\nfrom the old store: erased", json_object_get(m, "erased_ms"));
    printf("\n  %lld entries taken, %lld skipped\n", number(m, "entries"), number(m, "skipped"));
}

static int print_user(const struct dd_buf *body)
{
    json_error_t e;
    size_t i;
    const json_t *scene;
    json_t *v = json_loadb((const char *)body->data, body->len, 0, &e);
    if (!v) {
        fprintf(stderr, "dedupctl: the answer is not JSON\n");
        return DD_CTL_FAILED;
    }
    printf("user %s%s\n", text(v, "user"),
           strcmp(text(v, "history"), "full") == 0 ? "" : "  (partial: Redis did not answer)");
    const json_t *trace = json_object_get(v, "trace");
    if (json_is_object(trace))
        printf("traced%s: %lld entries (dedupctl trace show)\n",
               json_is_true(json_object_get(trace, "active")) ? "" : ", ended", number(trace, "entries"));
    json_array_foreach(json_object_get(v, "scenes"), i, scene) print_scene(scene);
    print_migration(json_object_get(v, "migration"));
    json_decref(v);
    return DD_CTL_OK;
}

int dd_ctl_user(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    const char *user = NULL, *scene = NULL;
    unsigned n;
    const struct dd_ctl_option options[] = {{"--scene", &scene, NULL}, {NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, user_help, options, &user, 1, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    if (parsed == DD_CTL_GO_ON && !n) fputs(user_help, stderr);
    if (parsed != DD_CTL_GO_ON || !n) return DD_CTL_USAGE;
    struct dd_buf path = {0};
    struct dd_reply reply;
    if (!make_path(&path, user, "", scene, NULL)) return DD_CTL_FAILED;
    int code = DD_CTL_OK;
    if (ctl.json) {
        code = dd_ctl_show(&ctl, ctl.admin, "GET", (char *)path.data, NULL);
    } else if ((code = dd_ctl_call(&ctl, ctl.admin, "GET", (char *)path.data, NULL, &reply)) == DD_CTL_OK) {
        code = reply.status == 200 ? print_user(&reply.body) : dd_ctl_complain(&reply);
        dd_reply_reset(&reply);
    }
    dd_buf_free(&path);
    return code;
}

int dd_ctl_export(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    const char *user = NULL, *scene = NULL, *period = NULL;
    unsigned n;
    const struct dd_ctl_option options[] = {
        {"--scene", &scene, NULL}, {"--period", &period, NULL}, {NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, export_help, options, &user, 1, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    if (parsed == DD_CTL_GO_ON && !n) fputs(export_help, stderr);
    if (parsed != DD_CTL_GO_ON || !n) return DD_CTL_USAGE;
    struct dd_buf path = {0};
    int code = make_path(&path, user, "/filter", scene, period)
                   ? dd_ctl_show(&ctl, ctl.admin, "GET", (char *)path.data, NULL)
                   : DD_CTL_FAILED;
    dd_buf_free(&path);
    return code;
}
