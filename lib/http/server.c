/* The server of one loop: options, deadlines, draining, the end.
 *
 * Why not evhttp, libevent's own HTTP server.
 * It cannot be made strict from outside: when the callback runs it has already lost what matters (bare LF,
 * text after a NUL, folded headers, "Content-Length : 5", a second Content-Length, lenient chunk sizes).
 * It cannot be bounded from outside: it reads on while a reply is unsent (one connection took 200 MB), its
 * timeouts are idle timeouts, which a byte a second defeats, its errors are HTML, and it spins when there are
 * no descriptors left.
 * It is slow: 25 to 28 us of CPU for an empty reply to a POST of 2.5 KB, where bufferevents with a small
 * parser took 14 and nginx's static reply 17.6 (prototypes, one machine).
 *
 * Why not bufferevents: input goes through chained blocks, so that a body has to be made contiguous, and
 * epoll interest changes with every write. Plain events and one contiguous buffer are less code, and bounded
 * by construction.
 *
 * CPU for a POST of 2.5 KB with an empty reply, keep-alive, user and system, six runs each on two shared
 * cores (make bench-http): 6.8 to 7.8 us here, 11.9 to 13.4 us in evhttp. What it costs is about 1,900 lines
 * to own. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "http/impl.h"

void dd_http_options_init(struct dd_http_options *o)
{
    *o = (struct dd_http_options){
        .name = "data",
        .max_connections = 10000,
        .max_inflight = 2000,
        .max_body_bytes = 1 << 20,
        .max_head_bytes = 8192,
        .max_buffered_bytes = 256 << 20,
        .arena_bytes = 16384,
        .head_timeout_ms = 10000,
        .body_timeout_ms = 10000,
        .write_timeout_ms = 30000,
        .idle_timeout_ms = 75000,
        .linger_timeout_ms = 2000,
    };
}

/* ---- deadlines ---- */

static const struct dd_http_refusal too_slow = {408, "timeout", "the request did not arrive in time"};

static void expire(struct dd_http_conn *c)
{
    switch (c->phase) {
    case DD_HEAD:
    case DD_BODY:
        dd_count(c->server->m.timeouts, 1);
        dd_http_conn_refuse(c, &too_slow);
        break;
    case DD_WRITING:
        dd_count(c->server->m.timeouts, 1);
        dd_http_conn_abort(c);
        break;
    default:
        dd_http_conn_close(c);
    }
}

#define SWEEP_GAP_NS 10000000 /* deadlines are met to 10 ms: one sweep serves all that fall into it */

static void on_sweep(void *arg)
{
    struct dd_http_server *s = arg;
    int64_t now = dd_loop_now(s->loop).ns, next = INT64_MAX;
    for (int phase = 0; phase < DD_HTTP_PHASES; phase++) {
        struct dd_http_list *l = &s->lists[phase];
        if (s->timeout_ns[phase] == 0) continue;
        while (l->head && l->head->deadline_ns <= now)
            expire(l->head); /* which always leaves this list */
    }
    s->sweep_ns = INT64_MAX;
    for (int phase = 0; phase < DD_HTTP_PHASES; phase++) {
        struct dd_http_conn *first = s->timeout_ns[phase] ? s->lists[phase].head : NULL;
        if (first && first->deadline_ns < next) next = first->deadline_ns;
    }
    if (next != INT64_MAX) dd_http_sweep_by(s, next);
}

void dd_http_sweep_by(struct dd_http_server *s, int64_t deadline_ns)
{
    int64_t wait_ns = deadline_ns - dd_loop_now(s->loop).ns;
    if (wait_ns < SWEEP_GAP_NS) wait_ns = SWEEP_GAP_NS;
    s->sweep_ns = deadline_ns;
    dd_timer_start(&s->sweep, wait_ns / 1000000 + 1);
}

/* ---- date ---- */

const char *dd_http_date(struct dd_http_server *s)
{
    time_t now = time(NULL);
    if (now != s->date_s) {
        struct tm tm;
        gmtime_r(&now, &tm);
        strftime(s->date, sizeof s->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        s->date_s = now;
    }
    return s->date;
}

/* ---- life ---- */

static struct dd_counter *counter(struct dd_stats *stats, const char *listener, const char *what,
                                  const char *labels, const char *help)
{
    char name[160];
    snprintf(name, sizeof name, "dedupd_http_%s_total{listener=\"%s\"%s}", what, listener, labels);
    return dd_stats_counter(stats, name, help);
}

static struct dd_gauge *gauge(struct dd_stats *stats, const char *listener, const char *what,
                              const char *help)
{
    char name[160];
    snprintf(name, sizeof name, "dedupd_http_%s{listener=\"%s\"}", what, listener);
    return dd_stats_gauge(stats, name, help);
}

static void register_metrics(struct dd_http_server *s, struct dd_stats *stats)
{
    static const char *const classes[] = {",class=\"1xx\"", ",class=\"1xx\"", ",class=\"2xx\"",
                                          ",class=\"3xx\"", ",class=\"4xx\"", ",class=\"5xx\""};
    const char *n = s->options.name;
    struct dd_http_metrics *m = &s->m;
    m->connections = gauge(stats, n, "connections", "Open connections.");
    m->inflight = gauge(stats, n, "inflight", "Requests being handled.");
    m->accepted = counter(stats, n, "connections_accepted", "", "Connections accepted.");
    m->rejected = counter(stats, n, "connections_rejected", "",
                          "Connections over max_connections, answered 503.");
    m->accept_errors = counter(stats, n, "accept_errors", "",
                               "Times accepting paused for want of descriptors.");
    m->requests = counter(stats, n, "requests", "", "Complete requests received.");
    m->refused = counter(stats, n, "requests_refused", "", "Requests refused before they were complete.");
    m->overloaded = counter(stats, n, "overloaded", "", "Requests answered 503 for want of capacity.");
    m->timeouts = counter(stats, n, "timeouts", "", "Requests or replies cut off at their deadline.");
    m->in_bytes = counter(stats, n, "received_bytes", "", "Bytes received.");
    m->out_bytes = counter(stats, n, "sent_bytes", "", "Bytes sent.");
    for (int i = 1; i < 6; i++)
        m->responses[i] = counter(stats, n, "responses", classes[i], "Replies by class of status.");
    m->responses[0] = m->responses[1];
}

static void set_timeouts(struct dd_http_server *s)
{
    const struct dd_http_options *o = &s->options;
    const int ms[DD_HTTP_PHASES] = {
        [DD_IDLE] = o->idle_timeout_ms,     [DD_HEAD] = o->head_timeout_ms,
        [DD_BODY] = o->body_timeout_ms,     [DD_WRITING] = o->write_timeout_ms,
        [DD_LINGER] = o->linger_timeout_ms,
    };
    for (int i = 0; i < DD_HTTP_PHASES; i++)
        s->timeout_ns[i] = (int64_t)ms[i] * 1000000;
}

static bool valid(const struct dd_http_options *o)
{
    return o->name && o->max_connections && o->max_inflight && o->max_head_bytes >= 256 &&
           o->max_head_bytes <= DD_HTTP_HEAD_MAX && o->max_body_bytes <= 1 << 30 && o->head_timeout_ms > 0 &&
           o->body_timeout_ms > 0 && o->write_timeout_ms > 0 && o->idle_timeout_ms > 0 &&
           o->linger_timeout_ms > 0 && o->max_wait_ms >= 0;
}

enum dd_err dd_http_server_create(struct dd_loop *loop, const struct dd_http_options *options,
                                  struct dd_stats *stats, struct dd_http_listeners *listeners,
                                  dd_http_handler handler, void *ctx, struct dd_http_server **out)
{
    if (!valid(options)) return DD_INVALID;
    struct dd_http_server *s = calloc(1, sizeof *s);
    if (!s) return DD_NO_MEMORY;
    s->loop = loop;
    s->options = *options;
    s->options.arena_bytes = (options->arena_bytes + 15) & ~(size_t)15;
    s->listeners = listeners;
    s->handler = handler;
    s->ctx = ctx;
    s->sweep_ns = INT64_MAX;
    s->date_s = -1;
    set_timeouts(s);
    register_metrics(s, stats);
    dd_timer_init(&s->sweep, loop, on_sweep, s);
    dd_timer_init(&s->give_back, loop, dd_http_works_give_back, s);
    dd_http_accept_start(s);
    *out = s;
    return DD_OK;
}

void dd_http_server_free_if_last(struct dd_http_server *s)
{
    if (!s->destroyed || s->conns) return;
    dd_http_works_free(s);
    free(s);
}

static void close_list(struct dd_http_server *s, enum dd_http_phase phase)
{
    while (s->lists[phase].head)
        dd_http_conn_close(s->lists[phase].head);
}

void dd_http_server_destroy(struct dd_http_server *s)
{
    if (!s) return;
    dd_http_accept_stop(s);
    for (int phase = 0; phase < DD_HTTP_PHASES; phase++)
        close_list(s, (enum dd_http_phase)phase);
    for (struct dd_http_conn *c; (c = s->spare_conns);) {
        s->spare_conns = c->next;
        free(c);
    }
    dd_timer_stop(&s->give_back);
    dd_timer_stop(&s->sweep); /* from here on the loop is not touched, whenever the last reply comes */
    s->destroyed = true;
    dd_http_server_free_if_last(s);
}

void dd_http_server_drain(struct dd_http_server *s)
{
    s->draining = true;
}

void dd_http_server_stop_accepting(struct dd_http_server *s)
{
    dd_http_accept_stop(s);
}

void dd_http_server_close_idle(struct dd_http_server *s)
{
    close_list(s, DD_IDLE);
}

unsigned dd_http_server_inflight(const struct dd_http_server *s)
{
    return atomic_load_explicit(&s->busy, memory_order_acquire);
}
