/* The addresses of a host name, without ever blocking a loop: getaddrinfo may take many seconds when a name
 * server is away. Private to lib/hot.
 *
 * Resolved once when it is created (which blocks), then anew in the background whenever a connection has
 * failed.
 *
 * Threads: get and refresh from any thread. */
#ifndef DD_HOT_RESOLVE_H
#define DD_HOT_RESOLVE_H

#include "base/err.h"

struct dd_resolve;

/* Longest text of an address with NUL, scope included. */
#define DD_RESOLVE_TEXT 80

/* host: a name or an address. A name that cannot be resolved now is not an error. */
enum dd_err dd_resolve_create(const char *host, struct dd_resolve **out) DD_MUST_USE;
void dd_resolve_destroy(struct dd_resolve *r);

/* One of the addresses; attempts go round all of them. IPv4 comes first. DD_NOT_FOUND: none is known. */
enum dd_err dd_resolve_get(struct dd_resolve *r, unsigned attempt, char out[DD_RESOLVE_TEXT]) DD_MUST_USE;
void dd_resolve_refresh(struct dd_resolve *r);

#endif
