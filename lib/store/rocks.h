/* RocksDB as the store uses it: opening with the right options, and errors as enum dd_err. Private to
 * lib/store.
 *
 * RocksDB's C API reports errors as text only; dd_rocks_err knows the prefixes of version 7.8.
 *
 * Threads: everything may be used by any thread, except that writes come from the writer thread alone.
 * Ownership: dd_rocks_close wants every iterator and pinned value released (the Debian build aborts
 * otherwise). */
#ifndef DD_STORE_ROCKS_H
#define DD_STORE_ROCKS_H

#include <rocksdb/c.h>

#include "base/bytes.h"
#include "store/merge_op.h"
#include "store/store.h"

enum dd_family { DD_FAMILY_SETS, DD_FAMILY_META, DD_FAMILY_HISTORY, DD_FAMILIES };

/* The most families a directory may have: ours and what a later version may have added. */
#define DD_ROCKS_FAMILIES_MAX 16

struct dd_rocks {
    rocksdb_t *db;
    rocksdb_column_family_handle_t *family[DD_ROCKS_FAMILIES_MAX]; /* ours first, as in enum dd_family */
    size_t families;
    rocksdb_readoptions_t *read;        /* may block */
    rocksdb_readoptions_t *read_memory; /* memtables and block cache only, else DD_PENDING */
    rocksdb_writeoptions_t *write, *write_sync;
};

/* Opens or creates the database in dir. merge receives what the merge operator could not read. The reason of
 * a failure is logged. DD_LOCKED, DD_CORRUPT, DD_IO, DD_DISK_FULL, DD_NO_MEMORY, DD_UNSUPPORTED (too many
 * families). */
enum dd_err dd_rocks_open(struct dd_rocks *r, const char *dir, const struct dd_store_options *o,
                          struct dd_merge_op *merge) DD_MUST_USE;
void dd_rocks_close(struct dd_rocks *r);

/* The class of an error text. NULL: DD_OK. DD_PENDING: "Result incomplete", the read would block. */
enum dd_err dd_rocks_err(const char *text);
/* The same, and frees the text. */
enum dd_err dd_rocks_take(char *text) DD_MUST_USE;
/* The same, and logs the text as `event what="..." error="..."`. */
enum dd_err dd_rocks_take_logged(char *text, const char *event, const char *what) DD_MUST_USE;

/* The current value of a key, appended to out. DD_NOT_FOUND, DD_CORRUPT, DD_IO, DD_NO_MEMORY. May block. */
enum dd_err dd_rocks_get(struct dd_rocks *r, enum dd_family family, struct dd_slice key,
                         struct dd_buf *out) DD_MUST_USE;

/* An integer property, summed over the families; 0 when unknown. */
uint64_t dd_rocks_property(struct dd_rocks *r, const char *name);

#endif
