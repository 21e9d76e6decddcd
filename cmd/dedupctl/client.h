/* A blocking HTTP client for the subcommands, on libcurl. The only file of dedupctl that includes it.
 *
 * Threads: one client, one thread. Ownership: a reply belongs to the caller until dd_reply_reset. */
#ifndef DD_CTL_CLIENT_H
#define DD_CTL_CLIENT_H

#include "base/bytes.h"
#include "base/err.h"

struct dd_client;

struct dd_reply {
    long status;        /* HTTP status */
    struct dd_buf body; /* whole; at most 64 MiB */
};

/* url: base such as http://127.0.0.1:8081 or unix:///run/dedupd-admin.sock. token: NULL or a bearer token.
 * DD_INVALID: neither form; DD_NO_MEMORY. */
enum dd_err dd_client_create(const char *url, const char *token, long timeout_s,
                             struct dd_client **out) DD_MUST_USE;
void dd_client_destroy(struct dd_client *c);

/* path begins with '/'; body NULL: none, else JSON. DD_OK: an answer came, whatever its status. DD_TIMEOUT,
 * DD_UNAVAILABLE (dd_client_error says why), DD_TOO_LARGE, DD_NO_MEMORY. */
enum dd_err dd_client_call(struct dd_client *c, const char *method, const char *path, const char *body,
                           struct dd_reply *out) DD_MUST_USE;
/* Why the last call failed, for people. Valid until the next call. */
const char *dd_client_error(const struct dd_client *c);

void dd_reply_reset(struct dd_reply *r);

#endif
