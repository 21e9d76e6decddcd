/* Plain files and directories: whole reads and writes, durable renames, free space. Private to lib/store and
 * to the history of lib/dedup.
 * Threads: pure functions over the file system. */
#ifndef DD_STORE_FILES_H
#define DD_STORE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* All of it, through short counts and EINTR. DD_IO; reading also DD_CORRUPT at an early end of the file. */
enum dd_err dd_file_write_all(int fd, const void *p, size_t n) DD_MUST_USE;
enum dd_err dd_file_read_all(int fd, void *p, size_t n) DD_MUST_USE;

/* fsync of the directory that holds path, so that a rename or unlink in it survives a power cut. */
enum dd_err dd_file_sync_parent(const char *path) DD_MUST_USE;

/* mkdir -p with mode 0700. DD_OK also when it is there; DD_IO. */
enum dd_err dd_dir_make(const char *path) DD_MUST_USE;

/* Bytes that this process may still write on the file system of path; 0 when it cannot be told. */
uint64_t dd_disk_free(const char *path);

#endif
