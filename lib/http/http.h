/* An HTTP/1.1 server that hostile clients cannot hurt: a strict parser, limits, deadlines, and one handler.
 *
 * What it accepts: HTTP/1.1 and 1.0; bodies with one Content-Length; keep-alive; pipelining (strictly one
 * request of a connection at a time); Expect: 100-continue; half-closed clients. What it refuses, always with
 * {"error":{"code":"...","message":"..."}}:
 *
 *   400 bad_request        anything outside the grammar of parse.h; the connection is closed
 *   408 timeout            head or body not complete in time; closed
 *   411 length_required    Transfer-Encoding: chunked; closed
 *   413 body_too_large     Content-Length above max_body_bytes; closed
 *   417 expectation_failed Expect other than 100-continue; closed
 *   431 head_too_large     request line and headers above max_head_bytes, or more than 64 headers; closed
 *   501 not_implemented    TRACE and CONNECT; closed
 *   503 overloaded         Retry-After: 1. Over max_connections or max_buffered_bytes: closed. Over
 *                          max_inflight, or after max_wait_ms in which others had their turn: kept
 *   505 version            HTTP/x.y other than 1.0 and 1.1; closed
 *
 * Every other method is passed on with its text: 404 and 405 are for the handler to say.
 *
 * Memory: an idle connection holds no buffer. One with a request under way holds one read buffer of 16 KiB,
 * which grows as body bytes arrive, never above max_head_bytes + the announced body; what all connections
 * hold above the first 16 KiB is bounded by max_buffered_bytes. While a request is handled or its reply
 * unsent, nothing more is read.
 *
 * Threads: a server belongs to the thread of its loop; create it before the loop runs or on that thread.
 * Several servers (one a loop) share one set of listeners, which also holds the counts that max_connections,
 * max_inflight and max_buffered_bytes are compared with. Functions marked "any thread" may be called from
 * any. Ownership: listeners outlive their servers. */
#ifndef DD_HTTP_HTTP_H
#define DD_HTTP_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "loop/loop.h"
#include "stats/stats.h"

struct dd_http_listeners;
struct dd_http_server;

/* ---- listening sockets ---- */

/* addresses: comma separated; "127.0.0.1:8080", "[::1]:8080", "[::]:8080" (IPv4 too),
 * "unix:/run/dedupd.sock". Hosts are numeric; port 0 lets the system choose. A Unix socket gets mode 0660;
 * one left behind by a dead process is replaced. DD_INVALID: cannot be read. DD_LOCKED: an address is in use.
 * DD_IO: the system refused. Each is logged. */
enum dd_err dd_http_listen(const char *addresses, struct dd_http_listeners **out) DD_MUST_USE;
/* Closes the sockets and removes the Unix ones from the file system. */
void dd_http_listeners_destroy(struct dd_http_listeners *l);
/* The addresses really bound, comma separated, in the syntax of dd_http_listen. Valid until destroy. Any
 * thread. */
const char *dd_http_listeners_text(const struct dd_http_listeners *l);
/* Whether all of them can be reached from this machine only (loopback or Unix). Any thread. */
bool dd_http_listeners_local(const struct dd_http_listeners *l);
/* Connections open and requests with the handler, over all servers. Any thread. */
unsigned dd_http_listeners_connections(const struct dd_http_listeners *l);
unsigned dd_http_listeners_inflight(const struct dd_http_listeners *l);

/* ---- requests ---- */

enum dd_http_method {
    DD_HTTP_GET,
    DD_HTTP_HEAD,
    DD_HTTP_POST,
    DD_HTTP_PUT,
    DD_HTTP_DELETE,
    DD_HTTP_PATCH,
    DD_HTTP_OPTIONS,
    DD_HTTP_TRACE,
    DD_HTTP_CONNECT,
    DD_HTTP_OTHER, /* any other token: see method_text */
};

/* Valid from the call of the handler until dd_http_reply, also when the client is gone by then. */
struct dd_http_request {
    enum dd_http_method method;
    struct dd_slice method_text;
    struct dd_slice path;  /* as sent, from the first '/' ("*" for OPTIONS *); not percent-decoded */
    struct dd_slice query; /* as sent, after '?'; empty when there is none */
    struct dd_slice body;  /* whole, in one piece */
    void *user;            /* the handler's */
};

/* Called on the loop's thread for each complete request, never from inside dd_http_reply. It must see to it
 * that dd_http_reply is called exactly once, now or later, on the same thread. */
typedef void (*dd_http_handler)(void *ctx, struct dd_http_request *req);

/* The first header of that name (lower case), without surrounding blanks; ptr is NULL when there is none.
 * Host, Content-Length, Content-Type and Authorization never occur twice: such requests are refused. */
struct dd_slice dd_http_request_header(const struct dd_http_request *req, const char *name);
struct dd_loop *dd_http_request_loop(const struct dd_http_request *req);
/* Whether the client is on this machine: a loopback address or a Unix socket. */
bool dd_http_request_local(const struct dd_http_request *req);

#define DD_HTTP_PEER_TEXT 64
/* "203.0.113.7:4711", "[2001:db8::1]:4711" or "unix"; returns out. */
const char *dd_http_request_peer(const struct dd_http_request *req, char out[DD_HTTP_PEER_TEXT]);
/* The client is known to have gone: work for it may be dropped. The reply is still due. A client that closes
 * in an orderly way cannot be told from one that half-closes and waits, and does not count as gone. */
bool dd_http_request_gone(const struct dd_http_request *req);

/* Memory until the reply, 16-byte aligned and not zeroed; NULL when there is none. The first arena_bytes of a
 * request cost no malloc. */
void *dd_http_request_alloc(struct dd_http_request *req, size_t size);
/* An empty buffer to build the reply's body in, reused from request to request. */
struct dd_buf *dd_http_request_scratch(struct dd_http_request *req);

/* ---- replies ---- */

/* Adds a header to the coming reply. name is trusted; control bytes in value become '?'. */
void dd_http_reply_header(struct dd_http_request *req, const char *name, struct dd_slice value);
/* Sends the reply and ends the request: req must not be used afterwards. Date, Content-Length and Connection
 * are added; HEAD gets Content-Length without the body. content_type may be NULL. body is read before the
 * call returns and may lie in the request's own memory. */
void dd_http_reply(struct dd_http_request *req, unsigned status, const char *content_type,
                   struct dd_slice body);
/* dd_http_reply with {"error":{"code":"...","message":"..."}}; both are escaped. */
void dd_http_reply_error(struct dd_http_request *req, unsigned status, const char *code, const char *message);
/* "Not Found" for 404; "Unknown" for a status not in the table. */
const char *dd_http_status_text(unsigned status);

/* ---- paths and queries (pure) ---- */

/* Takes the next segment off *rest: "/a/b" gives "a", "b", then false. "" between slashes is a segment. */
bool dd_http_next_segment(struct dd_slice *rest, struct dd_slice *segment);
/* Takes the next name=value off a query; value is empty without '='. false at the end. Neither is decoded. */
bool dd_http_next_param(struct dd_slice *rest, struct dd_slice *name, struct dd_slice *value);
/* Appends the percent-decoded bytes; in a query '+' is a space. DD_INVALID: a '%' without two hexadecimal
 * digits; out is then as before. */
enum dd_err dd_http_decode_segment(struct dd_slice raw, struct dd_buf *out) DD_MUST_USE;
enum dd_err dd_http_decode_param(struct dd_slice raw, struct dd_buf *out) DD_MUST_USE;

/* ---- the server ---- */

struct dd_http_options {
    const char *name;         /* the label listener="..." of its metrics */
    unsigned max_connections; /* over all servers of the listeners */
    unsigned max_inflight;    /* requests with the handler, over all servers */
    size_t max_body_bytes;
    size_t max_head_bytes;     /* at most 65,535 */
    size_t max_buffered_bytes; /* see Memory above */
    size_t arena_bytes;
    int max_wait_ms; /* a request that waited longer for its turn is answered 503 at once; 0: no such limit */
    const char *always_path; /* requests for it are served whatever the load: a probe must not take an
                                overloaded server for a dead one. NULL: none. Borrowed */
    int head_timeout_ms;     /* from the first byte of a request to the end of its head */
    int body_timeout_ms;     /* from there to the last byte of the body */
    int write_timeout_ms;    /* from the reply until the client took all of it */
    int idle_timeout_ms;     /* between requests, and before the first */
    int linger_timeout_ms;   /* after an error: how long input is thrown away so that the client can read the
                                answer */
};

/* name "data", 10,000 connections, 2,000 in flight, 1 MiB, 8 KiB, 256 MiB, 16 KiB; no limit of waiting; 10 s,
 * 10 s, 30 s, 75 s, 2 s. */
void dd_http_options_init(struct dd_http_options *o);

enum dd_err dd_http_server_create(struct dd_loop *loop, const struct dd_http_options *options,
                                  struct dd_stats *stats, struct dd_http_listeners *listeners,
                                  dd_http_handler handler, void *ctx,
                                  struct dd_http_server **out) DD_MUST_USE;
/* Closes everything. Requests still with the handler stay valid and must still be replied to; the server's
 * memory goes with the last of them. */
void dd_http_server_destroy(struct dd_http_server *s);

/* To stop without losing a request: drain, wait for load balancers to notice, stop_accepting, close_idle,
 * wait until inflight is 0 (or a deadline), destroy. */

/* From now on every reply closes its connection; new connections are still accepted. */
void dd_http_server_drain(struct dd_http_server *s);
void dd_http_server_stop_accepting(struct dd_http_server *s);
/* Closes the connections of which no byte of a request was received. */
void dd_http_server_close_idle(struct dd_http_server *s);
/* Requests with the handler and replies not yet taken by the client. Any thread. */
unsigned dd_http_server_inflight(const struct dd_http_server *s);

#endif
