/* Who this process is among those that share a Redis: the entry in the register of stores (hot/staging.h).
 *
 * Threads: main thread. Ownership: texts live in the struct. */
#ifndef DD_CMD_IDENTITY_H
#define DD_CMD_IDENTITY_H

#include "base/err.h"
#include "hot/staging.h"

struct dd_identity {
    struct dd_hot_boot boot; /* its texts are the arrays below */
    char boot_id[33], place[200], admin[128];
};

/* A random boot id; the place is machine id, device and inode of the data directory (which must exist): the
 * same when the directory is opened again, another for a copy of it. */
enum dd_err dd_identity_make(const char *data_dir, struct dd_identity *out) DD_MUST_USE;

/* Registers before anything is served. DD_LOCKED: a living process holds a copy of this store (logged: its
 * place and admin address). DD_OK also when Redis is away: the wheel registers when it is back. */
enum dd_err dd_identity_register(const struct dd_identity *id, struct dd_hot *hot) DD_MUST_USE;

#endif
