/* What Redis takes for a user's cached sets: a private redis-server without a port, asked with MEMORY USAGE.
 *
 * Threads: one. Ownership: close ends the server. */
#ifndef DD_CTL_FILTERS_REDIS_H
#define DD_CTL_FILTERS_REDIS_H

#include "base/bytes.h"
#include "base/err.h"
#include "filters_child.h"

struct dd_own_redis {
    struct dd_child server;
    int fd; /* -1: not there */
};

/* Starts it with its socket in dir. DD_NOT_FOUND: no redis-server; DD_IO, DD_TIMEOUT (20 s), DD_TOO_LARGE:
 * the directory's name is too long for a socket. */
enum dd_err dd_own_redis_open(struct dd_own_redis *r, const char *dir) DD_MUST_USE;
void dd_own_redis_close(struct dd_own_redis *r);

/* Bytes of the hash that the service keeps for a user: one field a period, each with its header and blob.
 * DD_IO. */
enum dd_err dd_own_redis_cached(struct dd_own_redis *r, struct dd_slice user, const struct dd_slice *blobs,
                                unsigned n, uint64_t *bytes) DD_MUST_USE;

#endif
