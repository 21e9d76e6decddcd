/* From the configuration to the options of each part. Pure.
 *
 * Ownership: results borrow texts of the configuration. */
#ifndef DD_CMD_BUILD_H
#define DD_CMD_BUILD_H

#include "api/api.h"
#include "config/config.h"
#include "dedup/dedup.h"
#include "dedup/history.h"
#include "dedup/migrate.h"
#include "http/http.h"

struct dd_scene dd_build_scene(const struct dd_scene_config *sc);
struct dd_store_options dd_build_store(const struct dd_config *c);
struct dd_hot_options dd_build_hot(const struct dd_config *c, const char *store_id);
/* *server: where the options' server lives. */
struct dd_migrate_options dd_build_migrate(const struct dd_config *c, const struct dd_scenes *scenes,
                                           struct dd_hot_options *server);
struct dd_dedup_options dd_build_dedup(const struct dd_config *c);
struct dd_history_options dd_build_history(const struct dd_config *c);
struct dd_wheel_options dd_build_wheel(const struct dd_config *c);
struct dd_http_options dd_build_http(const struct dd_config *c, const char *name);

#endif
