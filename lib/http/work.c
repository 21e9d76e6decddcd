/* Buffers belong to requests, not to connections: a server keeps a few dozen sets and lends one to a
 * connection from the first byte of a request to the end of its reply. Ten thousand idle connections cost
 * their structs and nothing else, and the set that was used last is the one still in the cache. */
#include <malloc.h>
#include <stdlib.h>

#include "http/impl.h"

#define SPARE_MAX  64    /* sets kept by a server */
#define KEEP_BYTES 65536 /* buffers that grew beyond this are not kept */

/* After a flood most of what was freed lies between blocks that are still in use, and the allocator keeps it:
 * of 330 MB for ten thousand half-sent requests 50 stayed, of 256 MB of half-sent bodies 130. Once this much
 * was freed and the flood is over, it is told to give pages back. That takes milliseconds, so it is not done
 * often. */
#define GIVE_BACK_BYTES    (32 << 20)
#define GIVE_BACK_AFTER_MS 1000

struct dd_http_extra {
    struct dd_http_extra *next;
    _Alignas(16) uint8_t bytes[];
};

/* A head that is not refused always fits, so only bodies make a buffer grow. */
static size_t base_cap(const struct dd_http_server *s)
{
    size_t head = s->options.max_head_bytes;
    return head > DD_HTTP_INPUT_BYTES ? head : DD_HTTP_INPUT_BYTES;
}

bool dd_http_work_charge(struct dd_http_conn *c, size_t n, bool force)
{
    struct dd_http_listeners *l = c->server->listeners;
    size_t before = atomic_fetch_add_explicit(&l->buffered, n, memory_order_relaxed);
    if (!force && before + n > c->server->options.max_buffered_bytes) {
        atomic_fetch_sub_explicit(&l->buffered, n, memory_order_relaxed);
        return false;
    }
    c->work->charged += n;
    return true;
}

static void uncharge_to(struct dd_http_conn *c, size_t keep)
{
    struct dd_http_work *w = c->work;
    if (w->charged <= keep) return;
    atomic_fetch_sub_explicit(&c->server->listeners->buffered, w->charged - keep, memory_order_relaxed);
    w->charged = keep;
}

static struct dd_http_work *make(struct dd_http_server *s)
{
    struct dd_http_work *w = malloc(sizeof *w + s->options.arena_bytes);
    if (!w) return NULL;
    memset(w, 0, offsetof(struct dd_http_work, head));
    w->arena_used = 0;
    w->in_cap = base_cap(s);
    w->in = malloc(w->in_cap);
    if (w->in) return w;
    free(w);
    return NULL;
}

void dd_http_works_give_back(void *server)
{
    struct dd_http_server *s = server;
    if (s->lent_works > SPARE_MAX) {
        dd_timer_start(&s->give_back, GIVE_BACK_AFTER_MS);
        return;
    }
    malloc_trim(0);
    s->freed_bytes = 0;
}

static void note_freed(struct dd_http_server *s, const struct dd_http_work *w)
{
    s->freed_bytes += w->in_cap + s->options.arena_bytes;
    if (s->freed_bytes < GIVE_BACK_BYTES || s->destroyed || dd_timer_is_set(&s->give_back)) return;
    dd_timer_start(&s->give_back, GIVE_BACK_AFTER_MS);
}

static void free_work(struct dd_http_work *w)
{
    free(w->in);
    dd_buf_free(&w->out);
    dd_buf_free(&w->headers);
    dd_buf_free(&w->scratch);
    free(w);
}

static void free_extras(struct dd_http_work *w)
{
    for (struct dd_http_extra *e; (e = w->extras);) {
        w->extras = e->next;
        free(e);
    }
}

bool dd_http_work_attach(struct dd_http_conn *c)
{
    struct dd_http_server *s = c->server;
    if (c->work) return true;
    struct dd_http_work *w = s->spare_works;
    if (w) {
        s->spare_works = w->next;
        s->spare_work_count--;
    } else if (!(w = make(s))) {
        return false;
    }
    c->work = w;
    s->lent_works++;
    size_t above = w->in_cap - base_cap(s);
    if (above) dd_http_work_charge(c, above, true);
    dd_http_head_init(&w->head, s->options.max_head_bytes, s->options.max_body_bytes);
    return true;
}

static void trim(struct dd_buf *b)
{
    if (b->cap > KEEP_BYTES) dd_buf_free(b);
    dd_buf_reset(b);
}

static void reset(struct dd_http_work *w)
{
    if (w->extras) free_extras(w);
    trim(&w->out);
    trim(&w->headers);
    trim(&w->scratch);
    w->out_sent = 0;
    w->arena_used = 0;
}

void dd_http_work_detach(struct dd_http_conn *c)
{
    struct dd_http_server *s = c->server;
    struct dd_http_work *w = c->work;
    if (!w) return;
    uncharge_to(c, 0);
    c->work = NULL;
    s->lent_works--;
    reset(w);
    w->in_start = w->in_len = 0;
    if (w->in_cap > KEEP_BYTES || s->spare_work_count >= SPARE_MAX || s->destroyed) {
        note_freed(s, w);
        free_work(w);
        return;
    }
    w->next = s->spare_works;
    s->spare_works = w;
    s->spare_work_count++;
}

void dd_http_works_free(struct dd_http_server *s)
{
    for (struct dd_http_work *w; (w = s->spare_works);) {
        s->spare_works = w->next;
        free_work(w);
    }
    s->spare_work_count = 0;
}

void dd_http_work_consume(struct dd_http_conn *c, size_t bytes)
{
    struct dd_http_work *w = c->work;
    w->in_start += bytes;
    if (w->in_start == w->in_len) w->in_start = w->in_len = 0;
    reset(w);
    uncharge_to(c, w->in_cap - base_cap(c->server));
    dd_http_head_init(&w->head, c->server->options.max_head_bytes, c->server->options.max_body_bytes);
}

/* Small bodies get their room at once. Large ones get it as they arrive, so that announcing 1 MiB and sending
 * nothing reserves nothing. */
static size_t next_cap(size_t cap, size_t total)
{
    if (total <= KEEP_BYTES) return total;
    size_t doubled = cap * 2 > KEEP_BYTES ? cap * 2 : KEEP_BYTES;
    return doubled < total ? doubled : total;
}

bool dd_http_work_room(struct dd_http_conn *c, size_t total)
{
    struct dd_http_work *w = c->work;
    if (w->in_start) {
        memmove(w->in, w->in + w->in_start, w->in_len - w->in_start);
        w->in_len -= w->in_start;
        w->in_start = 0;
    }
    if (w->in_len < w->in_cap) return true;
    size_t cap = next_cap(w->in_cap, total), more = cap - w->in_cap;
    if (cap <= w->in_cap || !dd_http_work_charge(c, more, false)) return false;
    uint8_t *in = realloc(w->in, cap);
    if (!in) {
        uncharge_to(c, w->charged - more);
        return false;
    }
    w->in = in;
    w->in_cap = cap;
    return true;
}

void *dd_http_request_alloc(struct dd_http_request *req, size_t size)
{
    struct dd_http_conn *c = dd_http_conn_of(req);
    struct dd_http_work *w = c->work;
    if (size > SIZE_MAX - 64) return NULL;
    size_t rounded = (size + 15) & ~(size_t)15;
    if (rounded <= c->server->options.arena_bytes - w->arena_used) {
        void *p = w->arena + w->arena_used;
        w->arena_used += rounded;
        return p;
    }
    struct dd_http_extra *e = malloc(sizeof *e + rounded);
    if (!e) return NULL;
    e->next = w->extras;
    w->extras = e;
    return e->bytes;
}

struct dd_buf *dd_http_request_scratch(struct dd_http_request *req)
{
    struct dd_buf *b = &dd_http_conn_of(req)->work->scratch;
    dd_buf_reset(b);
    return b;
}
