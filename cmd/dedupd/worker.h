/* A worker: one thread, one loop, and its share of every part. The first worker also serves the admin
 * listener.
 *
 * Threads: created, started, joined and destroyed by the main thread; drain and finish post to the loop.
 * Ownership: borrows the parts named in struct dd_worker_parts. */
#ifndef DD_CMD_WORKER_H
#define DD_CMD_WORKER_H

#include <stdbool.h>

#include "api/api.h"
#include "base/err.h"
#include "dedup/dedup.h"
#include "http/http.h"

struct dd_worker;

struct dd_worker_parts {
    struct dd_dedup *dedup;
    struct dd_api *api;
    struct dd_stats *stats;
    struct dd_http_listeners *data, *admin; /* admin NULL: not this worker */
    const struct dd_http_options *data_options, *admin_options;
    void (*ended)(void *arg); /* on the worker's thread, when its loop has ended */
    void *ended_arg;
};

enum dd_err dd_worker_create(const struct dd_worker_parts *parts, struct dd_worker **out) DD_MUST_USE;
enum dd_err dd_worker_start(struct dd_worker *w) DD_MUST_USE;
void dd_worker_drain(struct dd_worker *w);
/* Stops accepting and ends the loop as soon as nothing is in flight. */
void dd_worker_finish(struct dd_worker *w);
/* Waits for the thread, if it was started. */
void dd_worker_join(struct dd_worker *w);
void dd_worker_destroy(struct dd_worker *w);

#endif
