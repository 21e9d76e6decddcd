/* Addresses to listen on, as text: a list separated by commas, blanks around an address ignored.
 *
 *   127.0.0.1:8080   [::1]:8080   [::]:8080   unix:/run/dedupd.sock
 *
 * Hosts are numeric: a name would be bound to what it means at that moment. Port 0 lets the system choose.
 * The configuration is checked and listening is done with this one function, so that what the one takes the
 * other understands.
 *
 * Threads: pure functions, any thread. Ownership: an address holds its own bytes. */
#ifndef DD_BASE_ADDRESS_H
#define DD_BASE_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* The most addresses of a list that can be listened on. */
#define DD_ADDRESSES_MAX 16

enum dd_address_kind { DD_ADDRESS_INET, DD_ADDRESS_UNIX };

struct dd_address {
    enum dd_address_kind kind;
    char host[64]; /* inet: IPv4, or IPv6 without its brackets */
    uint16_t port;
    char path[108]; /* unix */
};

/* Takes the first address off the list. DD_NOT_FOUND: the list is at its end. DD_INVALID with a sentence in
 * why, which quotes nothing; the list is then of no further use. */
enum dd_err dd_address_next(struct dd_slice *list, struct dd_address *out, char *why,
                            size_t why_size) DD_MUST_USE;

/* "host:port" (a name too; nothing is resolved) or "[v6]:port". default_port: taken when there is none;
 * negative: then it must be there. host_size: at least 2. DD_INVALID with a sentence in why that quotes
 * nothing. */
enum dd_err dd_address_host_port(struct dd_slice text, int default_port, char *host, size_t host_size,
                                 uint16_t *port, char *why, size_t why_size) DD_MUST_USE;

#endif
