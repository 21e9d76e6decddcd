/* hiredis asks for five hooks. Two things differ from the adapter it ships:
 *
 * - Reading is one persistent event. The shipped one is added anew after every read, a system call each time.
 * - Writing does not wait for the socket to be reported writable, which it nearly always is: a first command
 * of a turn activates an event by hand, which runs after what is ready now, so that everything the turn
 * produces leaves in one write without a single epoll_ctl. Only when the kernel did not take all of it is the
 * socket watched.
 *
 * After redisAsyncHandleRead or redisAsyncHandleWrite the context, and with it this struct, may be gone. */
#include "hot/redis_events.h"

#include <stdbool.h>
#include <stdlib.h>

#include <event2/event.h>
#include <hiredis/async.h>

struct hooks {
    struct redisAsyncContext *ac;
    struct event *read, *write, *flush;
    bool reading, watching, in_write;
};

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct hooks *h = arg;
    redisAsyncHandleRead(h->ac);
}

/* hiredis ends a write with exactly one of add_write (not everything was taken) and del_write, or frees the
 * context: so in_write is true only while it writes. */
static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct hooks *h = arg;
    h->in_write = true;
    redisAsyncHandleWrite(h->ac);
}

static void add_read(void *arg)
{
    struct hooks *h = arg;
    if (h->reading) return;
    h->reading = event_add(h->read, NULL) == 0;
}

static void del_read(void *arg)
{
    struct hooks *h = arg;
    event_del(h->read);
    h->reading = false;
}

static void add_write(void *arg)
{
    struct hooks *h = arg;
    if (h->watching) return;
    if (h->in_write) {
        h->in_write = false;
        h->watching = event_add(h->write, NULL) == 0;
        return;
    }
    event_active(h->flush, EV_WRITE, 0);
}

static void del_write(void *arg)
{
    struct hooks *h = arg;
    h->in_write = false;
    if (!h->watching) return;
    event_del(h->write);
    h->watching = false;
}

static void free_events(struct hooks *h)
{
    if (h->read) event_free(h->read);
    if (h->write) event_free(h->write);
    if (h->flush) event_free(h->flush);
    free(h);
}

static void cleanup(void *arg)
{
    free_events(arg);
}

enum dd_err dd_redis_attach(struct redisAsyncContext *ac, struct dd_loop *loop)
{
    struct hooks *h = calloc(1, sizeof *h);
    if (!h) return DD_NO_MEMORY;
    struct event_base *base = dd_loop_base(loop);
    h->ac = ac;
    h->read = event_new(base, ac->c.fd, EV_READ | EV_PERSIST, on_readable, h);
    h->write = event_new(base, ac->c.fd, EV_WRITE | EV_PERSIST, on_writable, h);
    h->flush = event_new(base, -1, 0, on_writable, h);
    if (!h->read || !h->write || !h->flush || event_add(h->write, NULL) != 0) {
        free_events(h);
        return DD_NO_MEMORY;
    }
    h->watching = true; /* the first report says that the connection stands, or failed */
    ac->ev.data = h;
    ac->ev.addRead = add_read;
    ac->ev.delRead = del_read;
    ac->ev.addWrite = add_write;
    ac->ev.delWrite = del_write;
    ac->ev.cleanup = cleanup;
    return DD_OK;
}
