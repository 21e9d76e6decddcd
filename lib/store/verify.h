/* Reading every filter set and checking every checksum: RocksDB's of the block, and the set's own.
 *
 * Blocks for as long as the disk takes; serving goes on meanwhile. Where RocksDB cannot read a block, the
 * walk goes on at the next boundary between files, and the sets in between are not seen: `unreadable` counts
 * these places.
 *
 * Threads: any thread that may block. */
#ifndef DD_STORE_VERIFY_H
#define DD_STORE_VERIFY_H

#include "store/store.h"

#define DD_VERIFY_SHOWN 20

struct dd_verify_report {
    uint64_t sets, bytes; /* read */
    uint64_t corrupt;     /* failed their checksum or their bounds */
    uint64_t damaged;     /* sound, but flagged: something was lost when they were repaired */
    uint64_t unreadable;  /* times that the walk was stopped by damage of the files themselves */
    uint64_t quarantined; /* of the corrupt ones */
    unsigned shown;
    struct dd_verify_bad {
        char scene[65], user[129]; /* control bytes and what is not ASCII as '?' */
        struct dd_period period;
    } bad[DD_VERIFY_SHOWN]; /* the first corrupt ones */
};

struct dd_verify_options {
    bool quarantine; /* corrupt sets are put aside and an empty one, flagged damaged, takes their place */
    /* After each set; false: stop. May be NULL. */
    bool (*progress)(void *arg, const struct dd_verify_report *so_far);
    void *arg;
};

/* DD_OK: walked to the end, whatever was found. DD_SHUTDOWN: progress said so. DD_IO, DD_NO_MEMORY. */
enum dd_err dd_store_verify(struct dd_store *s, const struct dd_verify_options *o,
                            struct dd_verify_report *out) DD_MUST_USE;

#endif
