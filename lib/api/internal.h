/* What the files of lib/api share. */
#ifndef DD_API_INTERNAL_H
#define DD_API_INTERNAL_H

#include <stdatomic.h>

#include "api/api.h"
#include "api/auth.h"
#include "api/codec.h"
#include "dedup/backup.h"
#include "dedup/rebuild.h"
#include "dedup/trace_call.h"
#include "dedup/user.h"

#define DD_API_JSON "application/json"

/* Endpoints that are counted by name; the rest (unknown paths) is "other". */
enum dd_endpoint {
    DD_ENDPOINT_EXPOSED,
    DD_ENDPOINT_FILTER,
    DD_ENDPOINT_DELIVERED,
    DD_ENDPOINT_FORGET,
    DD_ENDPOINT_HEALTH,
    DD_ENDPOINT_STATS,
    DD_ENDPOINT_METRICS,
    DD_ENDPOINT_ADMIN,
    DD_ENDPOINT_OTHER,
    DD_ENDPOINT_COUNT
};

enum dd_status_class { DD_CLASS_2XX, DD_CLASS_4XX, DD_CLASS_5XX, DD_CLASS_COUNT };

struct dd_api_metric {
    struct dd_counter *requests;
    struct dd_histogram *seconds;
};

struct dd_api {
    struct dd_api_options options;
    struct dd_codec codec;
    struct dd_mono started;
    _Atomic bool draining;
    _Atomic unsigned inflight;
    struct dd_api_metric metrics[DD_ENDPOINT_COUNT][DD_CLASS_COUNT];
};

/* Where a reply goes, and what it is counted under. */
struct dd_api_origin {
    struct dd_api *api;
    struct dd_http_request *req;
    enum dd_endpoint endpoint;
    struct dd_mono start;
};

/* One request that becomes a call of lib/dedup. */
struct dd_api_call {
    struct dd_api_call *next; /* of the free list */
    struct dd_api_loop *al;
    struct dd_api_origin origin; /* its request is gone after the answer */
    bool batch;                  /* /exposed: the body had "events" */
    struct dd_arena arena;
    union {
        struct dd_exposed_call exposed;
        struct dd_filter_call filter;
        struct dd_delivered_call delivered;
        struct dd_forget_call forget;
        struct dd_inspect_call inspect;
        struct dd_export_call export;
        struct dd_erase_call erase;
        struct dd_checkpoint_call checkpoint;
        struct dd_trace_call trace;
    } u;
};

struct dd_api_loop {
    struct dd_api *api;
    struct dd_dedup_loop *dl;
    enum dd_api_listener listener;
    struct dd_api_call *free;
    unsigned free_n;
};

/* ---- api.c: calls ---- */

/* An empty call for the request, counted as in flight; NULL: no memory. */
struct dd_api_call *dd_api_call_take(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_call_release(struct dd_api_call *c);

/* ---- answer.c: every reply goes through one of these ---- */

void dd_api_answer(const struct dd_api_origin *o, unsigned status, const char *content_type,
                   struct dd_slice body);
/* The same, from a buffer that may have run out of memory (then 503). */
void dd_api_answer_buf(const struct dd_api_origin *o, unsigned status, const char *content_type,
                       const struct dd_buf *body);
/* {"error":{"code","field"?,"message"}}; 429 and 503 get Retry-After, in seconds, when retry_s is not 0. */
void dd_api_answer_error(const struct dd_api_origin *o, const struct dd_api_error *e, unsigned retry_s);
/* The answer for a call that failed as a whole. */
void dd_api_answer_err(const struct dd_api_origin *o, enum dd_err err);
/* DD_LIMIT, which says nothing without the cap that was met. */
enum dd_api_cap { DD_API_CAP_DELIVERIES, DD_API_CAP_EXPOSURES };
void dd_api_answer_cap(const struct dd_api_origin *o, enum dd_api_cap cap);
void dd_api_answer_fail(const struct dd_api_origin *o, unsigned status, const char *code, const char *field,
                        const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The members of a trace's state, without braces. */
void dd_api_add_trace(struct dd_buf *out, const struct dd_trace_state *t);

/* ---- guard.c: who may call ---- */

#define DD_API_OPEN    8u /* beside enum dd_auth_role: without a token and from anywhere */
#define DD_API_ANYBODY (DD_AUTH_DATA | DD_AUTH_OPS) /* who has a token at all */

/* Whether the caller may go on; allowed: roles, or DD_API_OPEN. false: answered with 401 or 403. */
bool dd_api_admit(const struct dd_api_origin *o, unsigned allowed);

/* ---- the endpoints ---- */

void dd_api_exposed(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_filter(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_delivered(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_forget(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_user(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_user_erase(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_user_filter(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_checkpoint(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_verify_start(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_verify(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_migration(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_migration_order(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_migration_verify(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_trace_start(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_trace_show(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_trace_stop(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_rebuild_start(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_rebuild(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_health(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_health_live(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_health_ready(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_stats(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_flush(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_slots(struct dd_api_loop *al, const struct dd_api_origin *o);
void dd_api_metrics(struct dd_api_loop *al, const struct dd_api_origin *o);

const char *dd_api_endpoint_name(enum dd_endpoint e);
const char *dd_api_class_name(enum dd_status_class c);
int64_t dd_api_uptime_s(const struct dd_api *a);

#endif
