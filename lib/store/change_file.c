/* The file that carries a change table over a clean restart.
 *
 *    0  magic "ddchg\0\0\1"      8 bytes
 *    8  cells per table          u32 little-endian
 *   12  tables                   u32
 *   16  incarnation              u64
 *   24  number                   u64
 *   32  checksum                 u64, XXH3 of everything else: cells first, then the 32 bytes above
 *   40  cells                    u64 each, table after table
 *
 * It may be used once: a second use would judge cached sets by cells that miss the commits made since the
 * first. So loading removes the file, durably, before anything is returned. */
#include "store/change_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/files.h"

#define HEADER 40

static const uint8_t magic[8] = {'d', 'd', 'c', 'h', 'g', 0, 0, 1};

static size_t cells_bytes(const struct dd_change *c)
{
    return (size_t)c->cells_per_table * c->tables * sizeof *c->cells;
}

static void header_encode(const struct dd_change *c, uint8_t h[HEADER])
{
    memcpy(h, magic, sizeof magic);
    dd_put_le32(h + 8, c->cells_per_table);
    dd_put_le32(h + 12, c->tables);
    dd_put_le64(h + 16, c->incarnation);
    dd_put_le64(h + 24, dd_change_number(c));
    uint64_t cells = dd_hash64(dd_slice_of((const void *)c->cells, cells_bytes(c)), 0);
    dd_put_le64(h + 32, dd_hash64(dd_slice_of(h, 32), cells));
}

static enum dd_err save_to(const struct dd_change *c, int fd)
{
    uint8_t header[HEADER];
    header_encode(c, header);
    enum dd_err err = dd_file_write_all(fd, header, sizeof header);
    if (err == DD_OK) err = dd_file_write_all(fd, (const void *)c->cells, cells_bytes(c));
    if (err == DD_OK && fsync(fd) != 0) err = DD_IO;
    return err;
}

enum dd_err dd_change_save(const struct dd_change *c, const char *path)
{
    char *temporary;
    if (asprintf(&temporary, "%s.new", path) < 0) return DD_NO_MEMORY;
    enum dd_err err = DD_IO;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) goto out;
    err = save_to(c, fd);
    if (close(fd) != 0 && err == DD_OK) err = DD_IO;
    if (err == DD_OK && rename(temporary, path) != 0) err = DD_IO;
    if (err == DD_OK) err = dd_file_sync_parent(path);
    if (err != DD_OK) unlink(temporary);
out:
    free(temporary);
    return err;
}

static enum dd_err load_from(struct dd_change *c, int fd)
{
    struct stat st;
    uint8_t header[HEADER], expected[HEADER];
    if (fstat(fd, &st) != 0) return DD_IO;
    if ((uint64_t)st.st_size != HEADER + (uint64_t)cells_bytes(c)) return DD_CORRUPT;
    enum dd_err err = dd_file_read_all(fd, header, sizeof header);
    if (err == DD_OK) err = dd_file_read_all(fd, (void *)c->cells, cells_bytes(c));
    if (err != DD_OK) return err;
    c->incarnation = dd_get_le64(header + 16);
    atomic_store_explicit(&c->number, dd_get_le64(header + 24), memory_order_relaxed);
    header_encode(c, expected); /* magic and sizes are compared by it too */
    return memcmp(header, expected, sizeof header) == 0 ? DD_OK : DD_CORRUPT;
}

enum dd_err dd_change_load(const char *path, uint32_t cells, unsigned tables, struct dd_change **out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? DD_NOT_FOUND : DD_IO;
    struct dd_change *c = NULL;
    enum dd_err err = dd_change_alloc(cells, tables, &c);
    if (err == DD_OK) err = load_from(c, fd);
    close(fd);
    /* Removed whatever it was, and before it is used: see above. */
    if (unlink(path) != 0 || dd_file_sync_parent(path) != DD_OK) err = DD_IO;
    if (err != DD_OK) {
        dd_change_destroy(c);
        return err;
    }
    *out = c;
    return DD_OK;
}
