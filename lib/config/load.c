/* The order of loading: defaults, file, environment, --set, then what needs more than one option to judge. */
#include "config/load.h"

#include <stdlib.h>

#define SCENES "scenes."

struct dd_target dd_config_target(struct dd_config *cfg)
{
    return (struct dd_target){&dd_config_table, cfg, "", NULL};
}

static void set_named(struct dd_config *cfg, const char *name, const char *value, struct dd_report *report)
{
    struct dd_target to = dd_config_target(cfg);
    const struct dd_option *opt = dd_option_find(to.table, dd_slice_str(name));
    if (opt)
        dd_option_assign(&to, opt, dd_value_read(opt, value), report);
    else if (!strncmp(name, SCENES, strlen(SCENES)))
        dd_scene_set(cfg, name + strlen(SCENES), value, report);
    else if (!strcmp(name, "scenes") || dd_option_is_section(to.table, dd_slice_str(name)))
        dd_report_add(report, "", name, "is a section; write %s.<option>=value", name);
    else
        dd_option_unknown(&to, name, report);
}

void dd_load_set(struct dd_config *cfg, const char *assignment, struct dd_report *report)
{
    report->source = "--set";
    const char *equals = strchr(assignment, '=');
    if (!equals) {
        dd_report_add(report, "", assignment, "no value; write name=value");
        return;
    }
    char *name = strndup(assignment, (size_t)(equals - assignment));
    if (name)
        set_named(cfg, name, equals + 1, report);
    else
        dd_report_raise(report, DD_NO_MEMORY);
    free(name);
}

static void load_defaults(struct dd_config *cfg, struct dd_report *report)
{
    struct dd_target to = dd_config_target(cfg);
    report->source = "default";
    dd_option_assign_defaults(&to, report);
    dd_scene_make(cfg, dd_slice_str("default"), report);
}

enum dd_err dd_config_load(const struct dd_config_sources *from, struct dd_config **out,
                           struct dd_buf *errors)
{
    struct dd_report report = {errors, "", DD_OK};
    *out = NULL;
    struct dd_config *cfg = calloc(1, sizeof *cfg);
    if (!cfg) return DD_NO_MEMORY;
    load_defaults(cfg, &report);
    if (from->file) dd_load_json(cfg, from->file, &report);
    if (from->environment) dd_load_environment(cfg, from->environment, &report);
    for (size_t i = 0; i < from->set_count; i++)
        dd_load_set(cfg, from->sets[i], &report);
    if (report.err == DD_OK) dd_load_check(cfg, &report);
    if (report.err == DD_OK)
        *out = cfg; /* the caller's from here */
    else
        dd_config_destroy(cfg);
    return report.err;
}

void dd_config_destroy(struct dd_config *cfg)
{
    if (!cfg) return;
    for (size_t i = 0; i < dd_config_table.count; i++)
        dd_option_release(&dd_config_table.rows[i], cfg);
    dd_scenes_release(cfg);
    explicit_bzero(cfg, sizeof *cfg);
    free(cfg);
}

const struct dd_scene_config *dd_config_scene(const struct dd_config *cfg, struct dd_slice name)
{
    for (size_t i = 0; i < cfg->scene_count; i++)
        if (dd_slice_eq(dd_slice_str(cfg->scenes[i].name), name)) return &cfg->scenes[i];
    return NULL;
}

bool dd_config_is_staged(const struct dd_config *cfg)
{
    if (cfg->ingest.mode == DD_CONFIG_INGEST_AUTO) return *cfg->redis.url != 0;
    return cfg->ingest.mode == DD_CONFIG_INGEST_STAGED;
}
