#include "app.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "build.h"
#include "dedup/admin.h"
#include "dedup/history.h"
#include "dedup/keeper.h"
#include "dedup/staged.h"
#include "dedup/trace.h"
#include "files.h"
#include "identity.h"
#include "worker.h"

#define KEEPER_TICK_MS 1000

struct dd_app {
    const struct dd_config *config;
    struct dd_clock clock;
    struct dd_stats *stats;
    struct dd_scenes *scenes;
    struct dd_store *store;
    struct dd_hot *hot;
    struct dd_wheel *wheel;
    struct dd_identity identity;
    struct dd_trace *trace;
    struct dd_history *history;
    struct dd_dedup *dedup;
    struct dd_migrate *migrate; /* NULL: nothing is migrated */
    struct dd_admin *admin_work;
    struct dd_auth *auth;
    struct dd_api *api;
    struct dd_keeper *keeper;
    struct dd_http_listeners *data, *admin;
    struct dd_http_options data_options, admin_options;
    struct dd_worker **workers;
    unsigned workers_n;
    atomic_uint running; /* workers whose loop has not ended */
    pthread_t main_thread;
    char deliveries_path[4200]; /* of the deliveries kept in memory */
};

static enum dd_err build_scenes(struct dd_app *app)
{
    size_t n = app->config->scene_count;
    struct dd_scene *scenes = calloc(n, sizeof *scenes);
    if (!scenes) return DD_NO_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const struct dd_scene_config *sc = &app->config->scenes[i];
        scenes[i] = dd_build_scene(sc);
        if (sc->cap_lowered_from)
            dd_info("scene.cap_lowered",
                    "scene=%s cap=%lld default=%lld hint=\"the most that fpr and window allow\"", sc->name,
                    (long long)sc->cap, (long long)sc->cap_lowered_from);
    }
    enum dd_err err = dd_scenes_create(scenes, (unsigned)n, &app->scenes);
    free(scenes);
    return err;
}

static enum dd_err register_scenes(struct dd_app *app)
{
    for (unsigned i = 0; i < dd_scenes_count(app->scenes); i++) {
        const struct dd_scene *s = dd_scenes_at(app->scenes, i);
        enum dd_period_kind existing;
        enum dd_err err = dd_store_register_scene(app->store, dd_scene_slice(s), s->period, s->window,
                                                  &existing);
        if (err == DD_INVALID)
            dd_error(
                "scene.period_changed",
                "scene=%s configured=%s stored=%s hint=\"a live scene keeps its period; make a new scene\"",
                s->name, dd_period_kind_name(s->period), dd_period_kind_name(existing));
        if (err != DD_OK) return err;
    }
    return DD_OK;
}

/* The saved change table is used only if the hot tier remembers the same clean stop. Embedded there are no
 * cached sets in Redis that could be judged by it, so every start is a new incarnation. */
static void resume(struct dd_app *app)
{
    uint64_t incarnation = 0, number = 0;
    enum dd_err err = dd_hot_is_embedded(app->hot) ? DD_NOT_FOUND
                                                   : dd_hot_witness_get(app->hot, &incarnation, &number);
    bool resumed = err == DD_OK && dd_store_resume(app->store, incarnation, number);
    dd_info("store.incarnation", "resumed=%s incarnation=%016llx", resumed ? "yes" : "no",
            (unsigned long long)dd_change_incarnation(dd_store_change(app->store)));
}

static void load_deliveries(struct dd_app *app)
{
    snprintf(app->deliveries_path, sizeof app->deliveries_path, "%s/deliveries.saved", app->config->data_dir);
    if (!dd_hot_is_embedded(app->hot)) return;
    enum dd_err err = dd_hot_memory_load(app->hot, app->deliveries_path);
    if (err != DD_OK && err != DD_NOT_FOUND) dd_warn("deliveries.not_loaded", "error=%s", dd_err_name(err));
}

/* Before the scenes are registered: what the store does not know yet is covered by history from its
 * beginning.
 */
static enum dd_err open_records(struct dd_app *app)
{
    struct dd_history_options ho = dd_build_history(app->config);
    enum dd_err err = dd_trace_create(app->store, &app->clock, app->stats, &app->trace);
    if (err != DD_OK) return err;
    return dd_history_open(&ho, app->store, app->scenes, &app->clock, app->trace, &app->history);
}

static enum dd_err open_tiers(struct dd_app *app)
{
    struct dd_store_options so = dd_build_store(app->config);
    enum dd_err err = dd_store_open(&so, app->stats, &app->store);
    if (err != DD_OK) return err;
    struct dd_hot_options ho = dd_build_hot(app->config, dd_store_id(app->store));
    err = dd_hot_create(&ho, &app->clock, app->stats, &app->hot);
    if (err == DD_OK) dd_staged_settle(app->store, app->config->data_dir);
    if (err == DD_OK) dd_staged_recall(app->store, app->hot);
    if (err == DD_OK) err = dd_identity_make(app->config->data_dir, &app->identity);
    if (err == DD_OK && !dd_hot_is_embedded(app->hot)) err = dd_identity_register(&app->identity, app->hot);
    if (err != DD_OK) return err;
    resume(app);
    load_deliveries(app);
    err = open_records(app);
    return err == DD_OK ? register_scenes(app) : err;
}

/* Another process took over the store while this one gave no sign of life: it stops as on SIGTERM. */
static void on_displaced(void *arg)
{
    struct dd_app *app = arg;
    pthread_kill(app->main_thread, SIGTERM);
}

static enum dd_err create_dedup(struct dd_app *app)
{
    struct dd_wheel_options wheel = dd_build_wheel(app->config);
    struct dd_dedup_options dedup = dd_build_dedup(app->config);
    dedup.history = app->history;
    dedup.trace = app->trace;
    wheel.boot = &app->identity.boot;
    wheel.displaced = on_displaced;
    wheel.displaced_arg = app;
    enum dd_err err = dd_wheel_create(&wheel, app->store, app->hot, app->scenes, &app->clock, app->stats,
                                      &app->wheel);
    if (err != DD_OK) return err;
    return dd_dedup_create(&dedup, app->scenes, app->store, app->hot, app->wheel, &app->clock, app->stats,
                           &app->dedup);
}

static enum dd_err create_migrate(struct dd_app *app)
{
    struct dd_hot_options server;
    if (app->config->migrate.mode == DD_CONFIG_MIGRATE_OFF) return DD_OK;
    struct dd_migrate_options o = dd_build_migrate(app->config, app->scenes, &server);
    return dd_migrate_create(&o, app->dedup, app->stats, &app->migrate);
}

static enum dd_err listen_on(struct dd_app *app)
{
    enum dd_err err = dd_http_listen(app->config->http.listen, &app->data);
    if (err == DD_OK) err = dd_http_listen(app->config->admin.listen, &app->admin);
    if (err == DD_OK)
        snprintf(app->identity.admin, sizeof app->identity.admin, "%s", dd_http_listeners_text(app->admin));
    app->data_options = dd_build_http(app->config, "data");
    app->admin_options = dd_build_http(app->config, "admin");
    app->data_options.max_connections = dd_files_fit(app->config);
    app->admin_options.max_connections = DD_ADMIN_CONNECTIONS;
    return err;
}

static void on_worker_ended(void *arg)
{
    struct dd_app *app = arg;
    if (atomic_fetch_sub(&app->running, 1) == 1) pthread_kill(app->main_thread, DD_APP_SIGNAL_DONE);
}

static enum dd_err create_workers(struct dd_app *app)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = app->config->http.workers ? (unsigned)app->config->http.workers
                                           : (unsigned)(cores > 0 ? cores : 1);
    app->workers = calloc(n, sizeof *app->workers);
    if (!app->workers) return DD_NO_MEMORY;
    struct dd_worker_parts parts = {.dedup = app->dedup,
                                    .api = app->api,
                                    .stats = app->stats,
                                    .data = app->data,
                                    .admin = app->admin,
                                    .data_options = &app->data_options,
                                    .admin_options = &app->admin_options,
                                    .ended = on_worker_ended,
                                    .ended_arg = app};
    for (; app->workers_n < n; app->workers_n++) {
        enum dd_err err = dd_worker_create(&parts, &app->workers[app->workers_n]);
        if (err != DD_OK) return err;
        parts.admin = NULL; /* the first worker only */
    }
    return DD_OK;
}

static enum dd_err start_workers(struct dd_app *app)
{
    for (unsigned i = 0; i < app->workers_n; i++) {
        atomic_fetch_add(&app->running, 1);
        enum dd_err err = dd_worker_start(app->workers[i]);
        if (err == DD_OK) continue;
        atomic_fetch_sub(&app->running, 1);
        return err;
    }
    return DD_OK;
}

static enum dd_err create_api(struct dd_app *app)
{
    struct dd_api_options o = {.version = DD_VERSION,
                               .scenes = app->scenes,
                               .clock = &app->clock,
                               .dedup = app->dedup,
                               .wheel = app->wheel,
                               .admin = app->admin_work,
                               .auth = app->auth,
                               .protect = app->config->http.protected,
                               .stats = app->stats,
                               .max_candidates = (unsigned)app->config->http.max_candidates,
                               .max_items = (unsigned)app->config->http.max_items};
    return dd_api_create(&o, &app->api);
}

enum dd_err dd_app_check(const struct dd_config *config)
{
    struct dd_auth *auth;
    enum dd_err err = dd_auth_create(config->auth.tokens_file, &auth);
    if (err == DD_OK) dd_auth_destroy(auth);
    return err;
}

static enum dd_err start(struct dd_app *app)
{
    enum dd_err err = dd_stats_create(&app->stats);
    if (err == DD_OK) err = dd_auth_create(app->config->auth.tokens_file, &app->auth);
    if (err == DD_OK) err = build_scenes(app);
    if (err == DD_OK) err = open_tiers(app);
    if (err == DD_OK) err = listen_on(app);
    if (err == DD_OK) err = create_dedup(app);
    if (err == DD_OK) err = create_migrate(app);
    if (err == DD_OK) err = dd_admin_create(app->dedup, app->stats, &app->admin_work);
    if (err == DD_OK) err = create_api(app);
    if (err == DD_OK) err = create_workers(app);
    if (err == DD_OK)
        err = dd_keeper_create(app->store, app->scenes, &app->clock, app->config->expiry.hold_s * 1000,
                               KEEPER_TICK_MS, app->stats, &app->keeper);
    if (err == DD_OK) err = start_workers(app);
    return err;
}

enum dd_err dd_app_start(const struct dd_config *config, struct dd_app **out)
{
    struct dd_app *app = calloc(1, sizeof *app);
    if (!app) return DD_NO_MEMORY;
    app->config = config;
    app->main_thread = pthread_self();
    dd_clock_init(&app->clock, config->clock.offset_s * 1000);
    enum dd_err err = start(app);
    if (err != DD_OK) {
        dd_error("app.start_failed", "error=%s", dd_err_name(err));
        dd_app_finish(app);
        dd_app_destroy(app, false);
        return err;
    }
    dd_info("app.ready", "version=%s http=%s admin=%s workers=%u store=%s mode=%s", DD_VERSION,
            dd_http_listeners_text(app->data), dd_http_listeners_text(app->admin), app->workers_n,
            dd_store_id(app->store), dd_hot_is_embedded(app->hot) ? "embedded" : "redis");
    *out = app;
    return DD_OK;
}

void dd_app_drain(struct dd_app *app)
{
    dd_api_set_draining(app->api, true);
    for (unsigned i = 0; i < app->workers_n; i++)
        dd_worker_drain(app->workers[i]);
}

void dd_app_finish(struct dd_app *app)
{
    if (app->wheel) dd_wheel_stop(app->wheel);
    for (unsigned i = 0; i < app->workers_n; i++)
        dd_worker_finish(app->workers[i]);
}

void dd_app_reload(struct dd_app *app)
{
    dd_log_set_level(app->config->log.level);
    dd_clock_set_offset(&app->clock, app->config->clock.offset_s * 1000);
    if (dd_auth_reload(app->auth) != DD_OK) dd_error("auth.reload_failed", "tokens=unchanged");
    dd_wheel_reload(app->wheel, app->config->wheel.paused, (unsigned)app->config->wheel.rate_users_s);
}

/* After the last write: what lets the next start trust cached sets, and keeps deliveries over a clean
 * restart. */
static void save(struct dd_app *app)
{
    const struct dd_change *change = dd_store_change(app->store);
    enum dd_err err = dd_hot_is_embedded(app->hot)
                          ? dd_hot_memory_save(app->hot, app->deliveries_path)
                          : dd_hot_witness_put(app->hot, dd_change_incarnation(change),
                                               dd_change_number(change));
    if (err != DD_OK) dd_warn("app.not_saved", "error=%s", dd_err_name(err));
}

void dd_app_destroy(struct dd_app *app, bool clean)
{
    if (!app) return;
    for (unsigned i = 0; i < app->workers_n; i++)
        dd_worker_join(app->workers[i]);
    dd_keeper_destroy(app->keeper);
    dd_admin_destroy(app->admin_work); /* before the loops, to which its threads post */
    for (unsigned i = 0; i < app->workers_n; i++)
        dd_worker_destroy(app->workers[i]);
    free(app->workers);
    dd_api_destroy(app->api);
    dd_auth_destroy(app->auth);
    dd_http_listeners_destroy(app->data);
    dd_http_listeners_destroy(app->admin);
    dd_migrate_destroy(app->migrate); /* after the loops, which read old keys through it */
    dd_dedup_destroy(app->dedup);
    dd_wheel_destroy(app->wheel);
    dd_trace_destroy(app->trace); /* writes what is queued */
    dd_history_close(app->history);
    if (clean) save(app);
    dd_hot_destroy(app->hot);
    if (app->store) dd_store_close(app->store, clean);
    dd_scenes_destroy(app->scenes);
    dd_stats_destroy(app->stats);
    free(app);
}
