/* A real server of lib/http with the routes of lib/api over the model of fake.h, and a client that talks to
 * it. Server and client share the thread: the client turns the loop while it waits. */
#ifndef DD_TESTS_API_SERVED_H
#define DD_TESTS_API_SERVED_H

#include "fake.h"
#include "http/http.h"
#include "loop/loop.h"

struct served {
    struct dd_clock clock; /* manual, stands at 2026-11-30T12:00:00Z */
    struct dd_stats *stats;
    struct dd_scenes *scenes;
    struct dd_loop *loop;
    struct dd_http_listeners *listeners;
    struct dd_http_server *server;
    struct dd_api *api;
    struct dd_api_loop *al;
    struct fake fake;
    unsigned port;
};

void served_start(struct served *s, enum dd_api_listener listener);
/* The same behind tokens, which outlive it. */
void served_start_guarded(struct served *s, enum dd_api_listener listener, const struct dd_auth *auth);
void served_stop(struct served *s);

struct reply {
    int status;
    struct dd_buf head; /* NUL-terminated text */
    struct dd_buf body; /* NUL-terminated too; the NUL is not counted */
};

/* Sends on a new connection. headers: NULL or whole lines ending in CRLF. The result is a socket to read
 * from. */
int served_send(struct served *s, const char *method, const char *path, const char *headers,
                struct dd_slice body);
/* Turns the loop until the reply is whole (it ends with the connection); closes the socket. */
void served_receive(struct served *s, int fd, struct reply *out);
/* Turns the loop a few times, so that what was sent arrives. */
void served_turn_until(struct served *s, const unsigned *value, unsigned wanted);

/* Both at once; a POST when there is a body. */
void served_ask(struct served *s, const char *path, const char *body, struct reply *out);
void served_get(struct served *s, const char *path, struct reply *out);
void reply_free(struct reply *r);
/* The value of a header (lower or upper case as sent), or NULL; in a buffer of the caller. */
const char *reply_header(const struct reply *r, const char *name, char *out, size_t size);

#endif
