/* Reading small files whole: configuration, secrets.
 *
 * Threads: any. Ownership: out is the caller's; secrets in it are the caller's to wipe. */
#ifndef DD_BASE_FILE_H
#define DD_BASE_FILE_H

#include <stddef.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/err.h"

/* Appends a file of at most max bytes to out; *st (may be NULL) is of the file that was read. DD_OK; DD_IO:
 * see errno; DD_INVALID: a pipe or a device (which could keep a server waiting for ever); DD_TOO_LARGE;
 * DD_NO_MEMORY. */
enum dd_err dd_file_read(const char *path, size_t max, struct dd_buf *out, struct stat *st) DD_MUST_USE;
/* The reason in words, before errno changes. */
const char *dd_file_why(enum dd_err err);

#endif
