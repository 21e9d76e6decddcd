/* The address of a Redis server as a URL.
 *
 *   redis://[user[:password]@]host[:port][/db]     port 6379, db 0 unless given; an IPv6 literal in brackets
 *   unix://[user[:password]@]/path[?db=N]
 *   (empty)                                        no server: embedded
 *
 * User, password and path may be percent-encoded (%40 for @); an encoded NUL is refused. rediss:// (TLS) is
 * not supported and says so.
 *
 * Threads: pure functions, any thread. Ownership: the struct holds its own bytes; it may hold a password. */
#ifndef DD_CONFIG_REDIS_URL_H
#define DD_CONFIG_REDIS_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

#define DD_REDIS_USER_MAX     128
#define DD_REDIS_PASSWORD_MAX 512

struct dd_redis_url {
    char host[256]; /* "" with a path; IPv6 without its brackets */
    uint16_t port;  /* 0 with a path */
    char path[108]; /* "" with a host; 108 is what a socket address holds, NUL included */
    char user[DD_REDIS_USER_MAX + 1];
    char password[DD_REDIS_PASSWORD_MAX + 1];
    int db; /* 0..65535 */
};

/* DD_OK, or DD_INVALID with a sentence in why that quotes nothing of the URL (it may hold a password). *out
 * is zeroed first, and is all zero for the empty URL. */
enum dd_err dd_redis_url_parse(struct dd_slice url, struct dd_redis_url *out, char *why,
                               size_t why_size) DD_MUST_USE;

static inline bool dd_redis_url_is_set(const struct dd_redis_url *u)
{
    return u->host[0] || u->path[0];
}

/* Appends the URL with its password, or all that stands before an @ when there is no colon, as ***. */
void dd_redis_url_mask(struct dd_slice url, struct dd_buf *out);

#endif
