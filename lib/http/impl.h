/* The inside of the HTTP server: private to lib/http. The phases of a connection:
 *
 *   IDLE      nothing of a request received       first byte: HEAD
 *   HEAD      part of a head received             whole head: BODY; a refusal: WRITING
 *   BODY      head whole, body not                whole body: HANDLING
 *   HANDLING  the request is with the handler     reply, taken at once: IDLE, or HEAD when more is buffered
 *   WRITING   the socket took part of a reply     all taken: as above; after a refusal: LINGER
 *   LINGER    input is thrown away                its end, or the deadline: closed
 *
 * A request that arrives whole goes from IDLE to HANDLING and back without the phases between.
 *
 * A connection is in one list of its server, that of its phase. A phase has one duration, so a list is in the
 * order of its deadlines and one timer a server, set for the earliest, serves all: no timer per connection,
 * none per byte. */
#ifndef DD_HTTP_IMPL_H
#define DD_HTTP_IMPL_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <stdatomic.h>

#include "base/address.h"
#include "http/http.h"
#include "http/parse.h"

#define DD_HTTP_INPUT_BYTES   16384 /* the first read buffer: a head and a usual body at once */
#define DD_HTTP_LISTENERS_MAX DD_ADDRESSES_MAX

enum dd_http_phase { DD_IDLE, DD_HEAD, DD_BODY, DD_HANDLING, DD_WRITING, DD_LINGER, DD_HTTP_PHASES };

struct dd_http_listener {
    int fd;
    char *unlink_path; /* of a Unix socket */
};

struct dd_http_listeners {
    struct dd_http_listener items[DD_HTTP_LISTENERS_MAX];
    unsigned count;
    bool local;
    struct dd_buf text;
    /* What all servers of these listeners hold together. */
    _Atomic unsigned connections, inflight;
    _Atomic size_t buffered;
};

struct dd_http_peer {
    sa_family_t family;
    uint16_t port;
    struct in6_addr address; /* IPv4 mapped */
};

/* What a connection holds only while it has a request under way. */
struct dd_http_work {
    struct dd_http_work *next; /* in the server's free list */
    uint8_t *in;               /* start..len: received and not yet consumed */
    size_t in_cap, in_len, in_start;
    struct dd_buf out; /* the head of the reply, and what the socket did not take of its body */
    size_t out_sent;
    struct dd_buf headers; /* by dd_http_reply_header */
    struct dd_buf scratch;
    struct dd_http_extra *extras; /* allocations above the arena */
    size_t charged;               /* of listeners->buffered */
    struct dd_http_head head;
    size_t arena_used;
    _Alignas(16) uint8_t arena[];
};

struct dd_http_conn {
    struct dd_http_request req; /* first: a request is its connection */
    struct dd_http_server *server;
    struct dd_http_conn *prev, *next;
    int64_t deadline_ns;
    enum dd_http_phase phase;
    int fd;         /* -1 once closed */
    unsigned holds; /* what keeps a closed connection's memory: pump on the stack, request with the handler */
    bool reading, writing; /* the events are added */
    bool pumping;
    bool resume;  /* the read event was activated by hand, to go on with what is buffered */
    bool counted; /* in listeners->inflight */
    bool busy;    /* in server->busy */
    bool gone;
    bool close_after; /* the reply */
    bool rejected;    /* over max_connections: not in listeners->connections */
    bool refused;     /* by this layer: what the client still sends is thrown away for a while */
    size_t linger_left;
    struct dd_http_peer peer;
    struct dd_http_work *work;
    struct event read_event, write_event;
};

struct dd_http_list {
    struct dd_http_conn *head, *tail;
};

struct dd_http_metrics {
    struct dd_counter *accepted, *rejected, *requests, *refused, *overloaded, *timeouts, *accept_errors;
    struct dd_counter *in_bytes, *out_bytes;
    struct dd_counter *responses[6]; /* by the hundreds of the status; [0] unused */
    struct dd_gauge *connections, *inflight;
};

struct dd_http_acceptor {
    struct event event;
    struct dd_http_server *server;
    int fd;
    unsigned batch; /* connections of the next turn */
};

struct dd_http_server {
    struct dd_loop *loop;
    struct dd_http_options options;
    struct dd_http_listeners *listeners;
    dd_http_handler handler;
    void *ctx;
    struct dd_http_metrics m;

    struct dd_http_acceptor acceptors[DD_HTTP_LISTENERS_MAX];
    bool accepting, draining, destroyed;
    int spare_fd; /* given up when descriptors run out, to take one connection off the queue and close it */
    struct dd_timer pause;
    struct dd_mono last_complaint;
    unsigned rejecting; /* connections that only get their 503 */

    struct dd_http_list lists[DD_HTTP_PHASES];
    int64_t timeout_ns[DD_HTTP_PHASES]; /* 0: none */
    struct dd_timer sweep;
    int64_t sweep_ns; /* when it is due; INT64_MAX when not set */

    unsigned conns; /* structs that exist, closed ones included */
    _Atomic unsigned busy;
    struct dd_http_work *spare_works;
    unsigned spare_work_count, lent_works;
    size_t freed_bytes; /* since memory was last given back to the system */
    struct dd_timer give_back;
    struct dd_http_conn *spare_conns;
    unsigned spare_conn_count;

    int64_t date_s; /* the second that date holds */
    char date[40];
};

/* accept.c */
void dd_http_accept_start(struct dd_http_server *s);
void dd_http_accept_stop(struct dd_http_server *s);

/* conn.c */
struct dd_http_conn *dd_http_conn_open(struct dd_http_server *s, int fd, const struct sockaddr_storage *peer,
                                       bool rejected);
/* Closes the socket and leaves every list; frees now or when the last hold goes. */
void dd_http_conn_close(struct dd_http_conn *c);
/* Closes with a reset, so that the kernel does not keep unsent bytes for a client that does not take them. */
void dd_http_conn_abort(struct dd_http_conn *c);
void dd_http_conn_release(struct dd_http_conn *c);
void dd_http_conn_free(struct dd_http_conn *c);
void dd_http_conn_set_phase(struct dd_http_conn *c, enum dd_http_phase phase);
void dd_http_conn_want(struct dd_http_conn *c, bool read, bool write);
/* After a reply went out whole: the next request, idle, or the end. */
void dd_http_conn_replied(struct dd_http_conn *c);

/* input.c */
void dd_http_on_readable(evutil_socket_t fd, short what, void *arg);
/* Serves what is buffered, until it lacks bytes or a reply is due. */
void dd_http_pump(struct dd_http_conn *c);

/* reply.c */
void dd_http_on_writable(evutil_socket_t fd, short what, void *arg);
/* Answers instead of the handler, in the phases that read, and closes afterwards. */
void dd_http_conn_refuse(struct dd_http_conn *c, const struct dd_http_refusal *why);

/* work.c */
bool dd_http_work_attach(struct dd_http_conn *c);
void dd_http_work_detach(struct dd_http_conn *c);
void dd_http_works_free(struct dd_http_server *s);
void dd_http_works_give_back(void *server); /* a timer's */
/* Room for `total` bytes of the current request, as far as it is sensible now. false: over
 * max_buffered_bytes, or out of memory. */
bool dd_http_work_room(struct dd_http_conn *c, size_t total);
/* Forgets the request just answered; what follows it in the buffer stays. */
void dd_http_work_consume(struct dd_http_conn *c, size_t bytes);
/* Counts n more bytes as buffered; false: over the limit, and not counted. force: counted in any case. */
bool dd_http_work_charge(struct dd_http_conn *c, size_t n, bool force);

/* server.c */
void dd_http_sweep_by(struct dd_http_server *s, int64_t deadline_ns);
const char *dd_http_date(struct dd_http_server *s);
void dd_http_server_free_if_last(struct dd_http_server *s);

static inline struct dd_http_conn *dd_http_conn_of(const struct dd_http_request *req)
{
    return (struct dd_http_conn *)(uintptr_t)req;
}

#endif
