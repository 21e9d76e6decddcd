/* The shared part: limits, metrics, and the call structs that each loop keeps for reuse. */
#include "api/api.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/internal.h"

/* A call's first arena block: body of 100 candidates, their items and lib/dedup's working memory fit, so that
 * an ordinary request allocates nothing. */
#define FIRST_BLOCK (64 * 1024)
/* Calls a loop keeps for reuse: 16 MiB of arenas at most. */
#define FREE_MAX 256

const struct dd_api_backend dd_api_dedup = {.exposed = dd_dedup_exposed,
                                            .filter = dd_dedup_filter,
                                            .delivered = dd_dedup_delivered,
                                            .status = dd_dedup_get_status,
                                            .flush = dd_wheel_flush,
                                            .slots = dd_wheel_get_slots};

const char *dd_api_endpoint_name(enum dd_endpoint e)
{
    static const char *const names[DD_ENDPOINT_COUNT] = {
        [DD_ENDPOINT_EXPOSED] = "exposed",     [DD_ENDPOINT_FILTER] = "filter",
        [DD_ENDPOINT_DELIVERED] = "delivered", [DD_ENDPOINT_FORGET] = "forget",
        [DD_ENDPOINT_HEALTH] = "health",       [DD_ENDPOINT_STATS] = "stats",
        [DD_ENDPOINT_METRICS] = "metrics",     [DD_ENDPOINT_ADMIN] = "admin",
        [DD_ENDPOINT_OTHER] = "other"};
    return names[e];
}

const char *dd_api_class_name(enum dd_status_class c)
{
    static const char *const names[DD_CLASS_COUNT] = {"2xx", "4xx", "5xx"};
    return names[c];
}

int64_t dd_api_uptime_s(const struct dd_api *a)
{
    return dd_mono_ms_between(a->started, dd_clock_mono(a->options.clock)) / 1000;
}

static void register_metric(struct dd_api *a, enum dd_endpoint e, enum dd_status_class c)
{
    char name[128];
    snprintf(name, sizeof name, "dedupd_api_requests_total{endpoint=\"%s\",status=\"%s\"}",
             dd_api_endpoint_name(e), dd_api_class_name(c));
    a->metrics[e][c].requests = dd_stats_counter(a->options.stats, name, "Requests answered.");
    snprintf(name, sizeof name, "dedupd_api_request_seconds{endpoint=\"%s\",status=\"%s\"}",
             dd_api_endpoint_name(e), dd_api_class_name(c));
    a->metrics[e][c].seconds = dd_stats_histogram(a->options.stats, name,
                                                  "Time from a request's last byte to its answer.");
}

enum dd_err dd_api_create(const struct dd_api_options *o, struct dd_api **out)
{
    struct dd_api *a = calloc(1, sizeof *a);
    if (!a) return DD_NO_MEMORY;
    a->options = *o;
    if (!a->options.backend) a->options.backend = &dd_api_dedup;
    a->codec = (struct dd_codec){.scenes = o->scenes,
                                 .max_candidates = o->max_candidates ? o->max_candidates : 10000,
                                 .max_items = o->max_items ? o->max_items : 10000,
                                 .max_events = o->max_events ? o->max_events : 1000};
    a->started = dd_clock_mono(o->clock);
    for (unsigned e = 0; e < DD_ENDPOINT_COUNT; e++)
        for (unsigned c = 0; c < DD_CLASS_COUNT; c++)
            register_metric(a, e, c);
    *out = a;
    return DD_OK;
}

void dd_api_destroy(struct dd_api *a)
{
    free(a);
}

void dd_api_set_draining(struct dd_api *a, bool draining)
{
    atomic_store_explicit(&a->draining, draining, memory_order_relaxed);
}

unsigned dd_api_inflight(const struct dd_api *a)
{
    return atomic_load_explicit(&a->inflight, memory_order_acquire);
}

enum dd_err dd_api_loop_create(struct dd_api *a, struct dd_dedup_loop *dl, enum dd_api_listener listener,
                               struct dd_api_loop **out)
{
    struct dd_api_loop *al = calloc(1, sizeof *al);
    if (!al) return DD_NO_MEMORY;
    al->api = a;
    al->dl = dl;
    al->listener = listener;
    *out = al;
    return DD_OK;
}

static void free_call(struct dd_api_call *c)
{
    dd_arena_free(&c->arena);
    free(c);
}

void dd_api_loop_destroy(struct dd_api_loop *al)
{
    if (!al) return;
    while (al->free) {
        struct dd_api_call *c = al->free;
        al->free = c->next;
        free_call(c);
    }
    free(al);
}

static struct dd_api_call *new_call(void)
{
    struct dd_api_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    if (dd_arena_alloc(&c->arena, FIRST_BLOCK)) {
        dd_arena_reset(&c->arena);
        return c;
    }
    free(c);
    return NULL;
}

struct dd_api_call *dd_api_call_take(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_api_call *c = al->free;
    if (c) {
        al->free = c->next;
        al->free_n--;
    } else if (!(c = new_call())) {
        return NULL;
    }
    c->al = al;
    c->origin = *o;
    atomic_fetch_add_explicit(&al->api->inflight, 1, memory_order_relaxed);
    return c;
}

void dd_api_call_release(struct dd_api_call *c)
{
    struct dd_api_loop *al = c->al;
    atomic_fetch_sub_explicit(&al->api->inflight, 1, memory_order_release);
    if (al->free_n >= FREE_MAX) {
        free_call(c);
        return;
    }
    dd_arena_reset(&c->arena);
    c->next = al->free;
    al->free = c;
    al->free_n++;
}
