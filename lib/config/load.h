/* The steps of dd_config_load, each in its own file. Internal to lib/config.
 *
 * Errors go to the report; a step that fails leaves the config in a state that dd_config_destroy accepts. */
#ifndef DD_CONFIG_LOAD_H
#define DD_CONFIG_LOAD_H

#include "config/config.h"
#include "config/option.h"
#include "config/report.h"

#define DD_SCENE_NAME_MAX 64
#define DD_SCENES_MAX     1000

/* "scenes." name "." NUL */
#define DD_SCENE_PREFIX (DD_SCENE_NAME_MAX + 9)

/* The table of everything but scenes, on this config. */
struct dd_target dd_config_target(struct dd_config *cfg);

/* json.c */
void dd_load_json(struct dd_config *cfg, const char *path, struct dd_report *report);
/* environment.c */
void dd_load_environment(struct dd_config *cfg, char *const *environment, struct dd_report *report);
/* load.c: "a.b=value" */
void dd_load_set(struct dd_config *cfg, const char *assignment, struct dd_report *report);
/* check.c: what no row can say on its own; fills redis.server and the policies of the scenes. */
void dd_load_check(struct dd_config *cfg, struct dd_report *report);

/* scene.c: the scene of that name, made with the defaults if there is none. NULL after a report. Valid until
 * the next call. */
struct dd_scene_config *dd_scene_make(struct dd_config *cfg, struct dd_slice name, struct dd_report *report);
struct dd_target dd_scene_target(struct dd_scene_config *scene, char prefix[DD_SCENE_PREFIX]);
/* Sets "push.recent.max" (a name after "scenes."): the longest known field at its end, the rest is the scene.
 */
void dd_scene_set(struct dd_config *cfg, const char *name, const char *value, struct dd_report *report);
void dd_scenes_release(struct dd_config *cfg);

#endif
