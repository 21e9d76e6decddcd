/* A checkpoint has the layout of a data directory without a saved change table, so starting on it is a
 * restore, and the restored store is a new incarnation. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
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

/* Whether the last part of path begins as one of the names in a data directory (proto/storage.md): what is
 * written anew goes through NAME.tmp or the like. */
static bool has_name_of_ours(const char *path)
{
    static const char *const names[] = {DD_STORE_DB_DIR, "change.table", "history.lineage",
                                        "deliveries.saved", "nothing.staged"};
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    const char *name = basename(copy);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) == 0 && (!name[n] || name[n] == '.')) return true;
    }
    return false;
}

/* Whether path would be one of the store's own files, or lies in the database's directory, where RocksDB
 * removes what it does not know. */
static bool is_ours(const struct dd_store *s, const char *path)
{
    char data[PATH_MAX], db[PATH_MAX], real[PATH_MAX], parent[PATH_MAX];
    if (snprintf(parent, sizeof parent, "%s", path) >= (int)sizeof parent) return false;
    if (!realpath(s->path, data) || !realpath(s->db_path, db) || !realpath(dirname(parent), real))
        return false;
    size_t n = strlen(db);
    bool in_db = strncmp(real, db, n) == 0 && (real[n] == '/' || !real[n]);
    return in_db || (strcmp(real, data) == 0 && has_name_of_ours(path));
}

static enum dd_err make_directory(const char *path)
{
    if (mkdir(path, 0700) == 0) return DD_OK;
    int error = errno;
    if (error == EEXIST) return DD_EXISTS;
    dd_error("store.checkpoint_failed", "path=\"%s\" error=\"%s\"", path, strerror(error));
    return error == ENOSPC ? DD_DISK_FULL : DD_IO;
}

enum dd_err dd_store_checkpoint(struct dd_store *s, const char *path)
{
    if (atomic_load(&s->guard)) return DD_DISK_FULL;
    if (is_ours(s, path)) return DD_INVALID;
    enum dd_err err = make_directory(path);
    if (err != DD_OK) return err;
    char *db_path;
    if (asprintf(&db_path, "%s/%s", path, DD_STORE_DB_DIR) < 0) {
        rmdir(path);
        return DD_NO_MEMORY;
    }
    err = create_in(s, db_path);
    free(db_path);
    if (err == DD_OK) err = dd_file_sync_parent(path);
    if (err != DD_OK) rmdir(path); /* only if nothing is in it */
    return err;
}
