#include "worker.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"

#define FINISH_POLL_MS 5 /* how often a finishing worker looks whether the last request has gone */

struct dd_worker {
    struct dd_worker_parts parts;
    struct dd_loop *loop;
    struct dd_dedup_loop *dedup;
    struct dd_api_loop *data_api, *admin_api;
    struct dd_http_server *data, *admin;
    struct dd_task drain, finish;
    struct dd_timer poll;
    pthread_t thread;
    bool started;
};

static void on_drain(void *arg)
{
    struct dd_worker *w = arg;
    dd_http_server_drain(w->data);
    if (w->admin) dd_http_server_drain(w->admin);
}

static void on_poll(void *arg)
{
    struct dd_worker *w = arg;
    unsigned busy = dd_http_server_inflight(w->data) + dd_dedup_loop_inflight(w->dedup);
    if (w->admin) busy += dd_http_server_inflight(w->admin);
    if (busy)
        dd_timer_start(&w->poll, FINISH_POLL_MS);
    else
        dd_loop_stop(w->loop);
}

static void close_front(struct dd_http_server *server)
{
    dd_http_server_drain(server);
    dd_http_server_stop_accepting(server);
    dd_http_server_close_idle(server);
}

static void on_finish(void *arg)
{
    struct dd_worker *w = arg;
    close_front(w->data);
    if (w->admin) close_front(w->admin);
    on_poll(w);
}

static enum dd_err create_servers(struct dd_worker *w)
{
    const struct dd_worker_parts *p = &w->parts;
    enum dd_err err = dd_http_server_create(w->loop, p->data_options, p->stats, p->data, dd_api_handle,
                                            w->data_api, &w->data);
    if (err != DD_OK || !p->admin) return err;
    return dd_http_server_create(w->loop, p->admin_options, p->stats, p->admin, dd_api_handle, w->admin_api,
                                 &w->admin);
}

enum dd_err dd_worker_create(const struct dd_worker_parts *parts, struct dd_worker **out)
{
    struct dd_worker *w = calloc(1, sizeof *w);
    if (!w) return DD_NO_MEMORY;
    w->parts = *parts;
    w->drain = (struct dd_task){.run = on_drain, .arg = w};
    w->finish = (struct dd_task){.run = on_finish, .arg = w};
    enum dd_err err = dd_loop_create(&w->loop);
    if (err == DD_OK) err = dd_dedup_loop_create(parts->dedup, w->loop, &w->dedup);
    if (err == DD_OK) err = dd_api_loop_create(parts->api, w->dedup, DD_API_DATA, &w->data_api);
    if (err == DD_OK) err = dd_api_loop_create(parts->api, w->dedup, DD_API_ADMIN, &w->admin_api);
    if (err == DD_OK) err = create_servers(w);
    if (err != DD_OK) {
        dd_worker_destroy(w);
        return err;
    }
    dd_timer_init(&w->poll, w->loop, on_poll, w);
    *out = w;
    return DD_OK;
}

static void *run(void *arg)
{
    struct dd_worker *w = arg;
    dd_loop_run(w->loop);
    w->parts.ended(w->parts.ended_arg);
    return NULL;
}

enum dd_err dd_worker_start(struct dd_worker *w)
{
    if (pthread_create(&w->thread, NULL, run, w)) return DD_NO_MEMORY;
    w->started = true;
    return DD_OK;
}

void dd_worker_drain(struct dd_worker *w)
{
    dd_loop_post(w->loop, &w->drain);
}

void dd_worker_finish(struct dd_worker *w)
{
    dd_loop_post(w->loop, &w->finish);
}

void dd_worker_join(struct dd_worker *w)
{
    if (w->started) pthread_join(w->thread, NULL);
    w->started = false;
}

void dd_worker_destroy(struct dd_worker *w)
{
    if (!w) return;
    if (w->admin) dd_http_server_destroy(w->admin);
    if (w->data) dd_http_server_destroy(w->data);
    dd_api_loop_destroy(w->admin_api);
    dd_api_loop_destroy(w->data_api);
    dd_dedup_loop_destroy(w->dedup);
    if (w->loop) dd_loop_destroy(w->loop);
    free(w);
}
