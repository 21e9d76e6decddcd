#include "world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

int64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- redis-server ---- */

uint16_t free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    return ntohs(a.sin_port);
}

static void run_server(struct server *s)
{
    char port[8];
    snprintf(port, sizeof port, "%u", s->port);
    const char *argv[40] = {"redis-server", "--port",    port,        "--bind", "127.0.0.1",
                            "--unixsocket", s->socket,   "--dir",     s->dir,   "--daemonize",
                            "no",           "--logfile", "redis.log", "--save", ""};
    unsigned n = 15;
    for (unsigned i = 0; s->extra[i]; i++)
        argv[n++] = s->extra[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execvp(argv[0], (char **)(uintptr_t)argv);
    _exit(127);
}

void server_start_unready(struct server *s)
{
    if (!s->dir) s->dir = unit_mkdir();
    snprintf(s->socket, sizeof s->socket, "%s/s", s->dir);
    s->pid = fork();
    if (s->pid == 0) run_server(s); /* before any assertion: their lock may be held by another thread */
    ck_assert_int_ge(s->pid, 0);
}

void server_start(struct server *s)
{
    server_start_unready(s);
    int64_t begun = mono_ms();
    for (;;) {
        ck_assert_msg(mono_ms() - begun < unit_patience_ms(10000), "redis-server does not start");
        redisContext *c = redisConnectUnix(s->socket);
        redisReply *r = c && !c->err ? redisCommand(c, "PING") : NULL;
        bool ready = r && strncmp(r->str, "LOADING", 7) != 0;
        if (r) freeReplyObject(r);
        if (c) redisFree(c);
        if (ready) return;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

void server_kill(struct server *s)
{
    if (s->pid <= 0) return;
    kill(s->pid, SIGKILL);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    s->pid = 0;
}

void server_remove(struct server *s)
{
    server_kill(s);
    if (s->dir) unit_rmdir(s->dir);
    s->dir = NULL;
}

static void add_text(struct dd_buf *out, const redisReply *r)
{
    switch (r->type) {
    case REDIS_REPLY_NIL:
        dd_buf_add_str(out, "(nil)");
        break;
    case REDIS_REPLY_INTEGER:
        dd_buf_add_i64(out, r->integer);
        break;
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < r->elements; i++) {
            if (i) dd_buf_add_u8(out, ' ');
            add_text(out, r->element[i]);
        }
        break;
    case REDIS_REPLY_ERROR:
        dd_buf_add_str(out, "(error) ");
        dd_buf_add(out, r->str, r->len);
        break;
    default:
        dd_buf_add(out, r->str, r->len);
    }
}

const char *ask(struct server *s, const char *word, ...)
{
    static struct dd_buf out;
    const char *argv[2048];
    int n = 0;
    va_list ap;
    va_start(ap, word);
    for (; word && n < 2048; word = va_arg(ap, const char *))
        argv[n++] = word;
    va_end(ap);
    redisContext *c = redisConnectUnix(s->socket);
    ck_assert_msg(c && !c->err, "cannot ask redis-server");
    redisReply *r = redisCommandArgv(c, n, argv, NULL);
    ck_assert_ptr_nonnull(r);
    dd_buf_reset(&out);
    add_text(&out, r);
    dd_buf_add_u8(&out, 0);
    freeReplyObject(r);
    redisFree(c);
    return (const char *)out.data;
}

/* ---- the hot tier ---- */

void world_open(struct world *w, unsigned loops)
{
    signal(SIGPIPE, SIG_IGN);
    struct dd_hot_options *o = &w->options;
    if (!o->host && !o->path && w->server.pid) o->path = w->server.socket;
    if (!o->store_id) o->store_id = "00aa11bb22cc33dd";
    if (!o->timeout_ms) o->timeout_ms = (int)unit_patience_ms(800);
    if (!o->connect_timeout_ms) o->connect_timeout_ms = (int)unit_patience_ms(800);
    if (!o->retry_max_ms) o->retry_max_ms = 200;
    if (!o->recent_ttl_ms_max) o->recent_ttl_ms_max = 600000;
    dd_clock_init(&w->clock, 0);
    ck_assert_ok(dd_stats_create(&w->stats));
    ck_assert_ok(dd_hot_create(o, &w->clock, w->stats, &w->hot));
    w->loops = loops;
    for (unsigned i = 0; i < loops; i++) {
        ck_assert_ok(dd_loop_create(&w->loop[i]));
        ck_assert_ok(dd_hot_loop_create(w->hot, w->loop[i], &w->hl[i]));
    }
}

void world_close(struct world *w)
{
    for (unsigned i = 0; i < w->loops; i++) {
        dd_hot_loop_destroy(w->hl[i]);
        dd_loop_destroy(w->loop[i]);
    }
    dd_hot_destroy(w->hot);
    dd_stats_destroy(w->stats);
    server_remove(&w->server);
}

void world_turn(struct world *w)
{
    for (unsigned i = 0; i < w->loops; i++)
        dd_loop_turn(w->loop[i], w->loops == 1 ? 5 : 1);
}

bool world_is_up(struct world *w)
{
    struct dd_hot_status status;
    dd_hot_get_status(w->hot, &status);
    return status.up;
}

struct dd_period month(int back)
{
    return (struct dd_period){DD_PERIOD_MONTH, 2026 * 12 + 10 - back};
}

static int by_value(const void *a, const void *b)
{
    int32_t x = (int32_t) * (const uint32_t *)a, y = (int32_t) * (const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_pending(const struct dd_hot_pending *p, char *out, size_t size)
{
    uint32_t sorted[16];
    size_t len = 0;
    out[0] = 0;
    if (p->n > 16) {
        snprintf(out, size, "%u", p->n);
        return;
    }
    if (p->n) memcpy(sorted, p->fps, p->n * sizeof *sorted);
    qsort(sorted, p->n, sizeof *sorted, by_value);
    for (unsigned i = 0; i < p->n; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%d", i ? " " : "", (int32_t)sorted[i]);
}

static void print_fetch(struct fetched *out)
{
    const struct dd_hot_fetch *f = &out->f;
    size_t len = 0;
    out->complete = f->complete;
    out->intact = f->recent_intact;
    out->recent[0] = 0;
    for (unsigned i = 0; i < f->recent_n; i++)
        len += (size_t)snprintf(out->recent + len, sizeof out->recent - len, "%s%.*s", i ? " " : "",
                                (int)f->recent[i].id.len, (const char *)f->recent[i].id.ptr);
    for (unsigned i = 0; i < 2; i++)
        print_pending(&f->pending[i], out->pending[i], sizeof out->pending[i]);
    for (unsigned i = 0; i < 3; i++) {
        const struct dd_hot_cached *c = &f->cached[i];
        if (c->present)
            snprintf(out->cached[i], sizeof out->cached[i], "%llu/%llu/%.*s",
                     (unsigned long long)c->incarnation, (unsigned long long)c->number, (int)c->blob.len,
                     (const char *)c->blob.ptr);
        else
            snprintf(out->cached[i], sizeof out->cached[i], "-");
    }
}

static void fetch_done(void *arg)
{
    struct fetched *out = arg;
    out->done++;
    print_fetch(out);
}

void fetch_start(struct world *w, unsigned loop, const char *user, struct fetched *out)
{
    memset(out, 0, sizeof *out);
    struct dd_hot_fetch *f = &out->f;
    f->scene = dd_slice_str("home");
    f->user = dd_slice_str(user);
    f->want_recent = true;
    f->now_ms = dd_clock_wall(&w->clock).ms;
    f->recent_ttl_ms = 600000;
    f->pending_n = 2;
    f->cached_n = 3;
    for (int i = 0; i < 3; i++)
        f->pending_period[i] = f->cached_period[i] = month(i);
    f->done = fetch_done;
    f->arg = out;
    enum dd_err err = dd_hot_fetch(w->hl[loop], f);
    if (err == DD_PENDING) return;
    ck_assert_ok(err);
    fetch_done(out);
    dd_hot_fetch_release(f);
}

void fetch(struct world *w, unsigned loop, const char *user, struct fetched *out)
{
    fetch_start(w, loop, user, out);
    wait_for(w, out->done);
    ck_assert_uint_eq(out->done, 1);
}

static void claim_done(void *arg)
{
    struct claimed *out = arg;
    out->done++;
    out->total = 0;
    for (unsigned i = 0; i < out->c.n; i++) {
        ck_assert_uint_le(out->won[i], 1);
        out->total += out->won[i];
    }
}

void claim_start(struct world *w, unsigned loop, const char *user, unsigned first, unsigned n,
                 struct claimed *out)
{
    out->done = 0;
    memset(out->won, 7, sizeof out->won);
    for (unsigned i = 0; i < n; i++)
        out->ids[i] = dd_slice_of(out->names[i], (size_t)snprintf(out->names[i], 16, "i%u", first + i));
    out->c = (struct dd_hot_claim){.scene = dd_slice_str("home"),
                                   .user = dd_slice_str(user),
                                   .ids = out->ids,
                                   .n = n,
                                   .now_ms = dd_clock_wall(&w->clock).ms,
                                   .recent_ttl_ms = 600000,
                                   .recent_max = 100,
                                   .won = out->won,
                                   .done = claim_done,
                                   .arg = out};
    enum dd_err err = dd_hot_claim(w->hl[loop], &out->c);
    if (err == DD_PENDING) return;
    ck_assert_ok(err);
    claim_done(out);
}

void claim(struct world *w, unsigned loop, const char *user, unsigned first, unsigned n, struct claimed *out)
{
    claim_start(w, loop, user, first, n, out);
    wait_for(w, out->done);
    ck_assert_uint_eq(out->done, 1);
}

uint64_t counted(struct world *w, const char *name)
{
    return dd_counter_get(dd_stats_counter(w->stats, name, ""));
}
