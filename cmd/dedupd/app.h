/* The application: builds every part in order, runs the worker loops, takes everything down in reverse.
 *
 *   store (its LOCK is taken first: a second process cannot steal the port) -> hot tier -> dedup -> api
 *   -> per worker: loop, dedup handle, api handle, HTTP servers -> keeper
 *
 * Threads: all functions are called from the main thread. Worker threads run the loops. */
#ifndef DD_CMD_APP_H
#define DD_CMD_APP_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "config/config.h"

struct dd_app;

/* Sent to the main thread when the last worker has finished. */
#define DD_APP_SIGNAL_DONE SIGUSR2

/* What a start would refuse beyond the configuration itself, before anything is opened: the file of tokens.
 * The reason has been logged. */
enum dd_err dd_app_check(const struct dd_config *config) DD_MUST_USE;

/* Opens, binds, starts. The reason for a failure has been logged. Borrows the configuration. */
enum dd_err dd_app_start(const struct dd_config *config, struct dd_app **out) DD_MUST_USE;

/* Readiness turns false; requests are still accepted and answered with Connection: close. */
void dd_app_drain(struct dd_app *app);

/* Closes the listeners; each worker ends once nothing is in flight. DD_APP_SIGNAL_DONE follows. */
void dd_app_finish(struct dd_app *app);

/* Takes over options that may change at run time, after dd_config_reload_diff. */
void dd_app_reload(struct dd_app *app);

/* Frees everything. clean: the workers have finished, so the change table and deliveries may be saved. */
void dd_app_destroy(struct dd_app *app, bool clean);

#endif
