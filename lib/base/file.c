#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PIECE 4096

static enum dd_err read_all(int fd, size_t max, struct dd_buf *out)
{
    size_t before = out->len;
    for (;;) {
        if (!dd_buf_reserve(out, PIECE)) return DD_NO_MEMORY;
        ssize_t n = read(fd, out->data + out->len, PIECE);
        if (n == 0) return DD_OK;
        if (n < 0 && errno != EINTR) return DD_IO;
        if (n > 0) out->len += (size_t)n;
        if (out->len - before > max) return DD_TOO_LARGE;
    }
}

enum dd_err dd_file_read(const char *path, size_t max, struct dd_buf *out, struct stat *st)
{
    struct stat here;
    if (!st) st = &here;
    int fd = open(path,
                  O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* or a pipe without a writer would be waited for */
    if (fd < 0) return DD_IO;
    enum dd_err err = fstat(fd, st) == 0 ? DD_OK : DD_IO;
    if (err == DD_OK && S_ISDIR(st->st_mode)) {
        errno = EISDIR;
        err = DD_IO;
    }
    if (err == DD_OK && !S_ISREG(st->st_mode)) err = DD_INVALID;
    if (err == DD_OK) err = read_all(fd, max, out);
    int saved = errno;
    close(fd); /* nothing was written: its result says nothing */
    errno = saved;
    return err;
}

const char *dd_file_why(enum dd_err err)
{
    if (err == DD_IO) return strerror(errno);
    return err == DD_INVALID ? "it is not a regular file" : dd_err_text(err);
}
