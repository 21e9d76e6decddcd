/* Scenes. Names may hold dots, so "scenes.a.b.recent.max" is read from its end: no field is the end of
 * another field's name, which leaves one way to read it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/load.h"

static bool is_name(struct dd_slice name)
{
    if (name.len < 1 || name.len > DD_SCENE_NAME_MAX) return false;
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum(name.ptr[i]) && !memchr("_.-", name.ptr[i], 3)) return false;
    return true;
}

struct dd_target dd_scene_target(struct dd_scene_config *scene, char prefix[DD_SCENE_PREFIX])
{
    snprintf(prefix, DD_SCENE_PREFIX, "scenes.%s.", scene->name);
    return (struct dd_target){&dd_scene_table, scene, prefix, &scene->given};
}

static struct dd_scene_config *append(struct dd_config *cfg, struct dd_slice name, struct dd_report *report)
{
    char prefix[DD_SCENE_PREFIX];
    struct dd_scene_config *scenes = reallocarray(cfg->scenes, cfg->scene_count + 1, sizeof *scenes);
    if (!scenes) goto fail;
    cfg->scenes = scenes;
    struct dd_scene_config *scene = &scenes[cfg->scene_count];
    memset(scene, 0, sizeof *scene);
    scene->name = strndup((const char *)name.ptr, name.len);
    if (!scene->name) goto fail;
    cfg->scene_count++;
    struct dd_target to = dd_scene_target(scene, prefix);
    dd_option_assign_defaults(&to, report);
    return scene;
fail:
    dd_report_raise(report, DD_NO_MEMORY);
    return NULL;
}

struct dd_scene_config *dd_scene_make(struct dd_config *cfg, struct dd_slice name, struct dd_report *report)
{
    for (size_t i = 0; i < cfg->scene_count; i++)
        if (dd_slice_eq(dd_slice_str(cfg->scenes[i].name), name)) return &cfg->scenes[i];
    if (!is_name(name)) {
        char shown[DD_SCENE_NAME_MAX + 2];
        snprintf(shown, sizeof shown, "%.*s", (int)name.len, (const char *)name.ptr);
        dd_report_add(report, "scenes.", shown, "not a name (allowed: 1..%d bytes of A-Z a-z 0-9 _ . -)",
                      DD_SCENE_NAME_MAX);
        return NULL;
    }
    if (cfg->scene_count == DD_SCENES_MAX) {
        dd_report_add(report, "", "scenes", "more than %d", DD_SCENES_MAX);
        return NULL;
    }
    return append(cfg, name, report);
}

/* The field that ends name, after a dot; NULL: none. */
static const struct dd_option *find_field(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < dd_scene_table.count; i++) {
        const char *field = dd_scene_table.rows[i].name;
        size_t m = strlen(field);
        if (n > m && name[n - m - 1] == '.' && !strcmp(name + n - m, field)) return &dd_scene_table.rows[i];
    }
    return NULL;
}

/* Which part of an unknown name is the scene cannot be known: its first part is the best guess. */
static void report_unknown(const char *name, struct dd_report *report)
{
    char prefix[DD_SCENE_PREFIX];
    const char *dot = strchr(name, '.');
    if (!dot || dot - name > DD_SCENE_NAME_MAX) {
        dd_report_add(report, "scenes.", name, "unknown option; write scenes.<scene>.<option>");
        return;
    }
    snprintf(prefix, sizeof prefix, "scenes.%.*s.", (int)(dot - name), name);
    struct dd_target to = {&dd_scene_table, NULL, prefix, NULL};
    dd_option_unknown(&to, dot + 1, report);
}

void dd_scene_set(struct dd_config *cfg, const char *name, const char *value, struct dd_report *report)
{
    char prefix[DD_SCENE_PREFIX];
    const struct dd_option *opt = find_field(name);
    if (!opt) {
        report_unknown(name, report);
        return;
    }
    size_t length = strlen(name) - strlen(opt->name) - 1;
    struct dd_scene_config *scene = dd_scene_make(cfg, dd_slice_of(name, length), report);
    if (!scene) return;
    struct dd_target to = dd_scene_target(scene, prefix);
    dd_option_assign(&to, opt, dd_value_read(opt, value), report);
}

void dd_scenes_release(struct dd_config *cfg)
{
    for (size_t i = 0; i < cfg->scene_count; i++)
        free(cfg->scenes[i].name);
    free(cfg->scenes);
    cfg->scenes = NULL;
    cfg->scene_count = 0;
}
