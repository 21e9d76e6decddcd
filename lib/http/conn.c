/* A connection's life, without its input and output: opening, the phase lists, closing, and who frees it.
 *
 * Epoll is touched as little as possible: the read event stays registered over requests and is only taken out
 * when a client sends more while its request is handled. A keep-alive request then costs three system calls:
 * epoll_wait, recv, sendmsg. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/impl.h"

#define SPARE_CONNS  256       /* structs kept by a server */
#define LINGER_BYTES (4 << 20) /* the most that is read only to be thrown away */

static void list_append(struct dd_http_list *l, struct dd_http_conn *c)
{
    c->prev = l->tail;
    c->next = NULL;
    if (l->tail)
        l->tail->next = c;
    else
        l->head = c;
    l->tail = c;
}

static void list_remove(struct dd_http_list *l, struct dd_http_conn *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        l->head = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        l->tail = c->prev;
}

static void enter(struct dd_http_conn *c, enum dd_http_phase phase)
{
    struct dd_http_server *s = c->server;
    c->phase = phase;
    list_append(&s->lists[phase], c);
    if (s->timeout_ns[phase] == 0) return;
    c->deadline_ns = dd_loop_now(s->loop).ns + s->timeout_ns[phase];
    if (c->deadline_ns < s->sweep_ns) dd_http_sweep_by(s, c->deadline_ns);
}

/* Staying in a phase does not move its deadline: that is what makes deadlines absolute. */
void dd_http_conn_set_phase(struct dd_http_conn *c, enum dd_http_phase phase)
{
    if (phase == c->phase) return;
    list_remove(&c->server->lists[c->phase], c);
    enter(c, phase);
}

void dd_http_conn_want(struct dd_http_conn *c, bool read, bool write)
{
    if (read != c->reading && (read ? event_add(&c->read_event, NULL) : event_del(&c->read_event)) == 0)
        c->reading = read;
    if (write != c->writing && (write ? event_add(&c->write_event, NULL) : event_del(&c->write_event)) == 0)
        c->writing = write;
}

static void set_peer(struct dd_http_peer *p, const struct sockaddr_storage *from)
{
    const struct sockaddr_in *v4 = (const void *)from;
    const struct sockaddr_in6 *v6 = (const void *)from;
    p->family = from->ss_family;
    if (p->family == AF_INET) {
        p->port = ntohs(v4->sin_port);
        memset(&p->address, 0, 10);
        memset(p->address.s6_addr + 10, 0xff, 2);
        memcpy(p->address.s6_addr + 12, &v4->sin_addr, 4);
    } else if (p->family == AF_INET6) {
        p->port = ntohs(v6->sin6_port);
        p->address = v6->sin6_addr;
    }
}

static struct dd_http_conn *take(struct dd_http_server *s)
{
    struct dd_http_conn *c = s->spare_conns;
    if (!c) return calloc(1, sizeof *c);
    s->spare_conns = c->next;
    s->spare_conn_count--;
    memset(c, 0, sizeof *c);
    return c;
}

struct dd_http_conn *dd_http_conn_open(struct dd_http_server *s, int fd, const struct sockaddr_storage *peer,
                                       bool rejected)
{
    struct dd_http_conn *c = take(s);
    if (!c) return NULL;
    struct event_base *base = dd_loop_base(s->loop);
    c->server = s;
    c->fd = fd;
    c->rejected = rejected;
    set_peer(&c->peer, peer);
    event_assign(&c->read_event, base, fd, EV_READ | EV_PERSIST, dd_http_on_readable, c);
    event_assign(&c->write_event, base, fd, EV_WRITE | EV_PERSIST, dd_http_on_writable, c);
    if (event_add(&c->read_event, NULL) != 0) {
        free(c);
        return NULL;
    }
    c->reading = true;
    s->conns++;
    enter(c, rejected ? DD_LINGER : DD_IDLE);
    c->linger_left = LINGER_BYTES;
    return c;
}

void dd_http_conn_free(struct dd_http_conn *c)
{
    struct dd_http_server *s = c->server;
    dd_http_work_detach(c);
    s->conns--;
    if (s->spare_conn_count < SPARE_CONNS && !s->destroyed) {
        c->next = s->spare_conns;
        s->spare_conns = c;
        s->spare_conn_count++;
    } else {
        free(c);
    }
    dd_http_server_free_if_last(s);
}

static void leave_counts(struct dd_http_conn *c)
{
    struct dd_http_server *s = c->server;
    if (c->rejected) {
        s->rejecting--;
    } else {
        atomic_fetch_sub(&s->listeners->connections, 1);
        dd_gauge_add(s->m.connections, -1);
    }
    if (c->busy && c->phase != DD_HANDLING) { /* else dd_http_reply ends it */
        atomic_fetch_sub_explicit(&s->busy, 1, memory_order_release);
        c->busy = false;
    }
}

void dd_http_conn_close(struct dd_http_conn *c)
{
    if (c->fd < 0) return;
    event_del(&c->read_event); /* also cancels an activation by hand */
    event_del(&c->write_event);
    close(c->fd);
    c->fd = -1;
    c->gone = true;
    leave_counts(c);
    list_remove(&c->server->lists[c->phase], c);
    if (c->holds == 0) dd_http_conn_free(c);
}

void dd_http_conn_abort(struct dd_http_conn *c)
{
    struct linger at_once = {1, 0};
    if (c->fd >= 0) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    dd_http_conn_close(c);
}

void dd_http_conn_release(struct dd_http_conn *c)
{
    if (--c->holds == 0 && c->fd < 0) dd_http_conn_free(c);
}

static void end(struct dd_http_conn *c, bool unread)
{
    if (!unread) {
        dd_http_conn_close(c);
        return;
    }
    /* close() with input unread sends a reset, which can overtake the reply: say that nothing more comes, and
     * give the client a moment to read it. */
    shutdown(c->fd, SHUT_WR);
    dd_http_work_detach(c);
    dd_http_conn_set_phase(c, DD_LINGER);
    dd_http_conn_want(c, true, false);
}

void dd_http_conn_replied(struct dd_http_conn *c)
{
    struct dd_http_work *w = c->work;
    if (c->busy) atomic_fetch_sub_explicit(&c->server->busy, 1, memory_order_release);
    c->busy = false;
    if (c->refused) {
        end(c, true);
        return;
    }
    dd_http_work_consume(c, w->head.head_bytes + w->head.body_bytes);
    bool more = w->in_len > w->in_start;
    if (c->close_after) {
        end(c, more);
        return;
    }
    dd_http_conn_set_phase(c, more ? DD_HEAD : DD_IDLE);
    if (c->pumping) return; /* which goes on by itself */
    if (more) {
        c->resume = true;
        event_active(&c->read_event, EV_READ, 1);
    } else {
        dd_http_work_detach(c);
        dd_http_conn_want(c, true, false);
    }
}
