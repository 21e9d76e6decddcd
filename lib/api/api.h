/* The HTTP interface of dedupd (proto/openapi.yaml): requests in, calls of lib/dedup, answers out.
 *
 * One struct dd_api for the process and one struct dd_api_loop for each worker loop; dd_api_handle is the
 * handler for lib/http, with the loop's handle as its ctx. A call's memory (arena, structs) is taken from the
 * loop's free list and goes back when lib/dedup says `finished`, which may be after the answer.
 *
 * Threads: struct dd_api is shared (its functions may be called from any thread); a struct dd_api_loop
 * belongs to the thread of its loop. Ownership: everything is borrowed and must outlive the result. */
#ifndef DD_API_API_H
#define DD_API_API_H

#include "api/auth.h"
#include "base/clock.h"
#include "base/err.h"
#include "dedup/admin.h"
#include "dedup/dedup.h"
#include "dedup/wheel.h"
#include "http/http.h"
#include "stats/stats.h"

struct dd_api;
struct dd_api_loop;

/* What the routes call. dd_api_dedup is lib/dedup; tests have others. */
struct dd_api_backend {
    void (*exposed)(struct dd_dedup_loop *dl, struct dd_exposed_call *c);
    void (*filter)(struct dd_dedup_loop *dl, struct dd_filter_call *c);
    void (*delivered)(struct dd_dedup_loop *dl, struct dd_delivered_call *c);
    void (*status)(struct dd_dedup *d, struct dd_dedup_status *out);
    enum dd_err (*flush)(struct dd_wheel *w, struct dd_wheel_flush *f);
    unsigned (*slots)(struct dd_wheel *w, struct dd_wheel_slot_info *out, unsigned max);
};

extern const struct dd_api_backend dd_api_dedup;

struct dd_api_options {
    const char *version; /* static */
    const struct dd_scenes *scenes;
    struct dd_clock *clock;
    const struct dd_api_backend *backend; /* NULL: dd_api_dedup */
    struct dd_dedup *dedup;               /* handed to backend->status */
    struct dd_wheel *wheel;               /* handed to backend->flush and ->slots; NULL: nothing is staged */
    struct dd_admin *admin;               /* operator work; NULL: those paths and /forget are 503 */
    const struct dd_auth *auth;           /* NULL: no tokens */
    bool protect;                         /* without tokens, clients from other hosts are 403 */
    struct dd_stats *stats;
    unsigned max_candidates; /* of one /filter; 0: 10,000 */
    unsigned max_items;      /* of one /exposed or /delivered; 0: 10,000 */
    unsigned max_events;     /* of one /exposed; 0: 1,000 */
};

/* DD_OK or DD_NO_MEMORY. Registers the metrics. */
enum dd_err dd_api_create(const struct dd_api_options *o, struct dd_api **out) DD_MUST_USE;
void dd_api_destroy(struct dd_api *a);

/* While draining /health/ready is 503; requests are still answered. */
void dd_api_set_draining(struct dd_api *a, bool draining);
/* Calls that are not finished, over all loops: 0 when no answer is due and nothing of lib/dedup is under way.
 */
unsigned dd_api_inflight(const struct dd_api *a);

/* Which paths a listener serves. */
enum dd_api_listener { DD_API_DATA = 1, DD_API_ADMIN = 2 };

/* dl: handed to the backend; may be NULL for a loop that serves only DD_API_ADMIN paths. DD_OK or
 * DD_NO_MEMORY. */
enum dd_err dd_api_loop_create(struct dd_api *a, struct dd_dedup_loop *dl, enum dd_api_listener listener,
                               struct dd_api_loop **out) DD_MUST_USE;
/* All calls of the loop must be finished. */
void dd_api_loop_destroy(struct dd_api_loop *al);

/* The handler for dd_http_server_create; ctx is a struct dd_api_loop. */
void dd_api_handle(void *ctx, struct dd_http_request *req);

#endif
