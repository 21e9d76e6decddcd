#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "config/load.h"

#define PIECE 4096

static enum dd_err read_all(int fd, size_t max, struct dd_buf *out)
{
    for (;;) {
        if (!dd_buf_reserve(out, PIECE)) return DD_NO_MEMORY;
        ssize_t n = read(fd, out->data + out->len, PIECE);
        if (n == 0) return DD_OK;
        if (n < 0 && errno != EINTR) return DD_IO;
        if (n > 0) out->len += (size_t)n;
        if (out->len > max) return DD_TOO_LARGE;
    }
}

enum dd_err dd_file_read(const char *path, size_t max, struct dd_buf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return DD_IO;
    enum dd_err err = read_all(fd, max, out);
    int saved = errno;
    close(fd); /* nothing was written: its result says nothing */
    errno = saved;
    return err;
}
