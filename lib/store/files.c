#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum dd_err dd_file_write_all(int fd, const void *p, size_t n)
{
    const char *at = p;
    while (n > 0) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return DD_IO;
        at += put;
        n -= (size_t)put;
    }
    return DD_OK;
}

enum dd_err dd_file_read_all(int fd, void *p, size_t n)
{
    char *at = p;
    while (n > 0) {
        ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return DD_IO;
        if (got == 0) return DD_CORRUPT;
        at += got;
        n -= (size_t)got;
    }
    return DD_OK;
}

enum dd_err dd_file_sync_parent(const char *path)
{
    char *copy = strdup(path);
    if (!copy) return DD_NO_MEMORY;
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    if (fd < 0) return DD_IO;
    enum dd_err err = fsync(fd) == 0 ? DD_OK : DD_IO;
    close(fd);
    return err;
}

static enum dd_err make_one(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ? DD_OK : DD_IO;
}

enum dd_err dd_dir_make(const char *path)
{
    char *copy = strdup(path);
    if (!copy) return DD_NO_MEMORY;
    enum dd_err err = DD_OK;
    for (char *at = strchr(copy + 1, '/'); at && err == DD_OK; at = strchr(at + 1, '/')) {
        *at = 0;
        err = make_one(copy);
        *at = '/';
    }
    if (err == DD_OK) err = make_one(copy);
    struct stat st;
    if (err == DD_OK && (stat(copy, &st) != 0 || !S_ISDIR(st.st_mode))) err = DD_IO;
    free(copy);
    return err;
}

uint64_t dd_disk_free(const char *path)
{
    struct statvfs fs;
    if (statvfs(path, &fs) != 0) return 0;
    return (uint64_t)fs.f_bavail * fs.f_frsize;
}
