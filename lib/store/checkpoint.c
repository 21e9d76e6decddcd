/* A checkpoint has the layout of a data directory without a saved change table, so starting on it is a
 * restore, and the restored store is a new incarnation. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "store/files.h"
#include "store/store_impl.h"

static enum dd_err create_in(struct dd_store *s, const char *db_path)
{
    char *text = NULL;
    rocksdb_checkpoint_t *c = rocksdb_checkpoint_object_create(s->rocks.db, &text);
    if (c) {
        rocksdb_checkpoint_create(c, db_path, 0,
                                  &text); /* 0: flush first, so that the log need not be copied */
        rocksdb_checkpoint_object_destroy(c);
    }
    enum dd_err err = dd_rocks_take_logged(text, "store.checkpoint_failed", "checkpoint");
    return err == DD_OK || err == DD_DISK_FULL ? err : DD_IO;
}

enum dd_err dd_store_checkpoint(struct dd_store *s, const char *path)
{
    if (atomic_load(&s->guard)) return DD_DISK_FULL;
    if (mkdir(path, 0700) != 0) return errno == EEXIST ? DD_EXISTS : DD_IO;
    char *db_path;
    if (asprintf(&db_path, "%s/%s", path, DD_STORE_DB_DIR) < 0) {
        rmdir(path);
        return DD_NO_MEMORY;
    }
    enum dd_err err = create_in(s, db_path);
    free(db_path);
    if (err == DD_OK) err = dd_file_sync_parent(path);
    if (err != DD_OK) rmdir(path); /* only if nothing is in it */
    return err;
}
