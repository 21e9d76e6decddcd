/* DEDUPD_HTTP_WORKERS=4 sets http.workers. A variable cannot carry the case and punctuation of a scene's
 * name: DEDUPD_SCENES_PUSH_WINDOW means the scene whose name turns into PUSH (which the file may have made),
 * or else a new scene in lower case.
 *
 * A variable that begins with DEDUPD_ and means nothing is an error, as in the file, but for those that
 * Kubernetes puts into every container beside a service of that name (DEDUPD_SERVICE_HOST,
 * DEDUPD_PORT_8080_TCP, ...). */
#include <ctype.h>
#include <stdio.h>

#include "config/load.h"

#define PREFIX        "DEDUPD_"
#define SCENES        "DEDUPD_SCENES_"
#define NAME_MAX_SIZE 128

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

static bool is_service_link(const char *name)
{
    const char *port = strstr(name, "_PORT_");
    return ends_with(name, "_SERVICE_HOST") || strstr(name, "_SERVICE_PORT") || ends_with(name, "_PORT") ||
           (port && isdigit((unsigned char)port[6]));
}

static const struct dd_option *find(const struct dd_table *table, const char *name)
{
    char env[DD_OPTION_TEXT_MAX];
    for (size_t i = 0; i < table->count; i++)
        if (!strcmp(dd_option_env(PREFIX, dd_slice_str(table->rows[i].name), env), name))
            return &table->rows[i];
    return NULL;
}

/* The field whose variable name ends rest ("PUSH_RECENT_MAX"); *length: of what stands before. */
static const struct dd_option *find_field(const char *rest, size_t *length)
{
    char env[DD_OPTION_TEXT_MAX];
    for (size_t i = 0; i < dd_scene_table.count; i++) {
        const struct dd_option *opt = &dd_scene_table.rows[i];
        dd_option_env("_", dd_slice_str(opt->name), env);
        if (!ends_with(rest, env) || strlen(rest) == strlen(env)) continue;
        *length = strlen(rest) - strlen(env);
        return opt;
    }
    return NULL;
}

/* The scenes, of those there are, whose names turn into this one; the last of them is stored in found. */
static size_t match_scenes(const struct dd_config *cfg, const char *name, size_t length,
                           struct dd_slice *found)
{
    char env[DD_OPTION_TEXT_MAX];
    size_t n = 0;
    for (size_t i = 0; i < cfg->scene_count; i++) {
        struct dd_slice candidate = dd_slice_str(cfg->scenes[i].name);
        dd_option_env("", candidate, env);
        if (strlen(env) != length || memcmp(env, name, length)) continue;
        *found = candidate;
        n++;
    }
    return n;
}

/* rest: "PUSH_WINDOW" */
static void set_scene(struct dd_config *cfg, const char *rest, const char *value, struct dd_report *report)
{
    size_t length = 0;
    char lower[NAME_MAX_SIZE], prefix[DD_SCENE_PREFIX];
    const struct dd_option *opt = find_field(rest, &length);
    if (!opt || length >= sizeof lower) {
        dd_report_add(report, "", "", "names no option of a scene");
        return;
    }
    for (size_t i = 0; i < length; i++)
        lower[i] = (char)tolower((unsigned char)rest[i]);
    struct dd_slice name = dd_slice_of(lower, length);
    if (match_scenes(cfg, rest, length, &name) > 1) {
        dd_report_add(report, "", "", "means several scenes; use --set or the file");
        return;
    }
    struct dd_scene_config *scene = dd_scene_make(cfg, name, report);
    if (!scene) return;
    struct dd_target to = dd_scene_target(scene, prefix);
    dd_option_assign(&to, opt, dd_value_read(opt, value), report);
}

static void set_variable(struct dd_config *cfg, const char *name, const char *value, struct dd_report *report)
{
    const struct dd_option *opt = find(&dd_config_table, name);
    struct dd_target to = dd_config_target(cfg);
    report->source = name;
    if (opt)
        dd_option_assign(&to, opt, dd_value_read(opt, value), report);
    else if (!strncmp(name, SCENES, strlen(SCENES)))
        set_scene(cfg, name + strlen(SCENES), value, report);
    else if (!is_service_link(name))
        dd_report_add(report, "", "", "names no option");
}

void dd_load_environment(struct dd_config *cfg, char *const *environment, struct dd_report *report)
{
    for (; *environment; environment++) {
        const char *entry = *environment, *equals = strchr(entry, '=');
        char name[NAME_MAX_SIZE];
        if (!equals || strncmp(entry, PREFIX, strlen(PREFIX))) continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - entry), entry);
        set_variable(cfg, name, equals + 1, report);
    }
}
