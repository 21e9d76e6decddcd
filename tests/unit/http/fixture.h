/* A server in a thread of its own and clients on blocking sockets, with deadlines instead of hangs. */
#ifndef DD_TESTS_UNIT_HTTP_FIXTURE_H
#define DD_TESTS_UNIT_HTTP_FIXTURE_H

#include <pthread.h>

#include "http/http.h"
#include "suites.h"

#define PARKED_MAX 64

/* The handler answers by path:
 *   /echo    the request's body                    /big?n   n bytes of 'x'
 *   /show    "METHOD path?query body" and X-Peer   /park    keeps the request until fixture_unpark
 *   /block?n keeps the loop busy for n ms          /live    "live" */
struct fixture {
    struct dd_http_options options;
    struct dd_loop *loop;
    struct dd_stats *stats;
    struct dd_http_listeners *listeners;
    struct dd_http_server *server;
    pthread_t thread;
    int port;
    char *dir; /* for Unix sockets */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct dd_http_request *parked[PARKED_MAX];
    unsigned parked_count, handled;
};

extern struct fixture fx;

/* Options with their defaults, to be changed before fixture_start. */
void fixture_init(void);
void fixture_start(const char *addresses); /* NULL: "127.0.0.1:0" */
void fixture_stop(void);

/* Runs fn(&fx) on the loop's thread and waits for it. */
void fixture_on_loop(void (*fn)(void *arg));
/* Waits for a turn of the loop. */
void fixture_settle(void);
void fixture_wait_parked(unsigned n);
/* Replies to all parked requests with "late", on the loop. Returns how many of them were marked as gone. */
unsigned fixture_unpark(void);
unsigned fixture_handled(void);
/* Waits until the server has that many connections. */
void fixture_wait_connections(unsigned n);
uint64_t fixture_counter(const char *what); /* dedupd_http_<what>_total{listener="data"} */

struct client {
    int fd;
    char *data; /* received, not yet taken */
    size_t len, cap;
};

struct response {
    unsigned status;
    char head[4096];
    char *body; /* with a NUL behind it */
    size_t len;
};

struct client client_open(void);
struct client client_open_unix(const char *path);
void client_close(struct client *c);
void client_reset(struct client *c); /* closes with RST */
void client_send(struct client *c, const char *text);
void client_send_bytes(struct client *c, const void *p, size_t n);
/* One response; fails the test when there is none within 20 s. no_body: to a HEAD. */
struct response client_read(struct client *c, bool no_body);
void response_free(struct response *r);
const char *response_header(const struct response *r,
                            const char *name); /* "" when absent; valid until the next call */
/* Fails the test unless the server closes within 20 s, without sending more. */
void client_expect_end(struct client *c);
/* A response with that status and, in its body, that text; text may be NULL. */
void client_expect(struct client *c, unsigned status, const char *text);

int64_t now_ms(void);

#endif
