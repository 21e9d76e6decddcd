/* Records: what is kept in plain beside the filter sets. Those of a set's history are written by
 * DD_STORE_RECORD and begin with the set's key, so they expire and are erased with it; others are written by
 * DD_STORE_PUT (store.h).
 *
 * Everything here blocks and must not be called on a loop. Slices given to a visitor are valid until it
 * returns. Threads: any. */
#ifndef DD_STORE_HISTORY_H
#define DD_STORE_HISTORY_H

#include "store/store.h"

struct dd_store_scan {
    enum dd_store_family family;
    struct dd_slice prefix;
    /* The walk begins behind this key (before it, when reverse), which need not exist. Empty: at the end of
     * the prefix's range that it comes from. */
    struct dd_slice from;
    bool reverse;
};

/* Every key that begins with the prefix, from a snapshot; ends when visit returns false. DD_OK, DD_CORRUPT,
 * DD_IO. */
typedef bool (*dd_store_scan_visit)(void *arg, struct dd_slice key, struct dd_slice value);
enum dd_err dd_store_scan(struct dd_store *s, const struct dd_store_scan *scan, dd_store_scan_visit visit,
                          void *arg) DD_MUST_USE;

/* The records of one set; visit gets their suffixes. DD_INVALID: a name outside 1..255 bytes. */
enum dd_err dd_store_each_record(struct dd_store *s, struct dd_slice scene, struct dd_slice user,
                                 struct dd_period period, dd_store_scan_visit visit, void *arg) DD_MUST_USE;

/* Every set that has records, in key order, whether it is stored or not: one seek for each. Ends when visit
 * returns false. */
typedef bool (*dd_store_recorded_visit)(void *arg, struct dd_slice scene, struct dd_slice user,
                                        struct dd_period period);
enum dd_err dd_store_each_recorded(struct dd_store *s, dd_store_recorded_visit visit, void *arg) DD_MUST_USE;

#endif
