/* Open files: as many as the configuration may need, and never so many connections that the store runs short.
 *
 * Many systems start processes with a soft limit of 1,024, which is for programs that use select(); it is
 * raised as far as the hard limit allows. If that is not enough, fewer connections are taken: past them a
 * client gets a 503, where a store that cannot open a file would stop writing.
 *
 * Threads: main thread, before any other is started. */
#ifndef DD_CMD_FILES_H
#define DD_CMD_FILES_H

#include "config/config.h"

/* Connections of the admin listener, at most. */
#define DD_ADMIN_CONNECTIONS 256

/* Raises the limit; returns http.max_connections, or what there is room for (logged). */
unsigned dd_files_fit(const struct dd_config *c);

/* Of `limit` files, those that may be connections; pure. store: files the store may have open, -1 for no
 * bound. */
unsigned dd_files_for_connections(uint64_t limit, int64_t store);

#endif
