/* Deliveries on disk between a clean stop and the next start (embedded mode).
 *
 *   file   magic "ddrecent", version u64le 1
 *          a record a user, then a record whose scene length is 0xffffffff and the checksum u64le
 *   user   u32le length of scene, u32le of user, u32le of the block, u32le deliveries, i64le last_ms, i64le
 * ttl_ms, scene, user, block (deliveries.h)
 *
 * The checksum is XXH3-64 chained over the records (the seed of each is the hash of what came before), so
 * that the file is written in one pass without holding a copy. It is used once: load deletes it, since after
 * a crash it would bring back an older state, and as nothing is lost by a missing file but the protection of
 * the last minutes. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "hot/memory_table.h"

#define HEADER   16
#define RECORD   32
#define END_MARK UINT32_MAX

static const uint8_t file_header[HEADER] = "ddrecent\1\0\0\0\0\0\0";

static enum dd_err put(FILE *f, struct dd_slice bytes, uint64_t *sum)
{
    *sum = dd_hash64(bytes, *sum);
    return bytes.len == 0 || fwrite(bytes.ptr, bytes.len, 1, f) == 1 ? DD_OK : DD_IO;
}

static enum dd_err put_user(FILE *f, const struct dd_mem_user *u, uint64_t *sum)
{
    uint8_t head[RECORD];
    dd_put_le32(head, u->scene_len);
    dd_put_le32(head + 4, u->user_len);
    dd_put_le32(head + 8, u->list.len);
    dd_put_le32(head + 12, u->list.count);
    dd_put_le64(head + 16, (uint64_t)u->last_ms);
    dd_put_le64(head + 24, (uint64_t)u->ttl_ms);
    if (put(f, dd_slice_of(head, sizeof head), sum)) return DD_IO;
    if (put(f, dd_slice_of(u->key, u->scene_len + u->user_len), sum)) return DD_IO;
    return put(f, dd_slice_of(u->list.data, u->list.len), sum);
}

static enum dd_err put_all(struct dd_mem *m, FILE *f)
{
    uint64_t sum = 0;
    if (put(f, dd_slice_of(file_header, HEADER), &sum)) return DD_IO;
    for (unsigned i = 0; i < DD_MEM_SHARDS; i++)
        for (struct dd_mem_user *u = m->shard[i].oldest; u; u = u->newer)
            if (put_user(f, u, &sum)) return DD_IO;
    uint8_t tail[12];
    dd_put_le32(tail, END_MARK);
    dd_put_le64(tail + 4, sum);
    return fwrite(tail, sizeof tail, 1, f) == 1 ? DD_OK : DD_IO;
}

static enum dd_err sync_directory(const char *path)
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

static enum dd_err write_file(struct dd_mem *m, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return DD_IO;
    FILE *f = fdopen(fd, "w");
    if (!f) {
        close(fd);
        return DD_NO_MEMORY;
    }
    enum dd_err err = put_all(m, f);
    if (!err && (fflush(f) != 0 || fsync(fd) != 0)) err = DD_IO;
    if (fclose(f) != 0 && !err) err = DD_IO;
    return err;
}

enum dd_err dd_mem_save(struct dd_mem *m, const char *path)
{
    struct dd_buf beside = {0};
    dd_buf_addf(&beside, "%s.new", path);
    if (!dd_buf_ok(&beside)) return DD_NO_MEMORY;
    const char *name = (const char *)beside.data; /* dd_buf_addf ends it with NUL */
    enum dd_err err = write_file(m, name);
    if (!err && rename(name, path) != 0) err = DD_IO;
    if (err) unlink(name);
    dd_buf_free(&beside);
    return err ? err : sync_directory(path);
}

/* ---- load ---- */

struct record {
    struct dd_slice scene, user, block;
    uint32_t count;
    int64_t last_ms, ttl_ms;
};

/* Cuts the next record off *rest. DD_NOT_FOUND: it is the end mark. */
static enum dd_err next_record(struct dd_slice *rest, struct record *r, uint64_t *sum)
{
    if (rest->len < 12) return DD_CORRUPT;
    uint64_t scene = dd_get_le32(rest->ptr);
    if (scene == END_MARK) return DD_NOT_FOUND;
    if (rest->len < RECORD) return DD_CORRUPT;
    uint64_t user = dd_get_le32(rest->ptr + 4), block = dd_get_le32(rest->ptr + 8);
    if (rest->len - RECORD < scene + user + block) return DD_CORRUPT;
    const uint8_t *p = rest->ptr + RECORD;
    *r = (struct record){.scene = dd_slice_of(p, scene),
                         .user = dd_slice_of(p + scene, user),
                         .block = dd_slice_of(p + scene + user, block),
                         .count = dd_get_le32(rest->ptr + 12),
                         .last_ms = (int64_t)dd_get_le64(rest->ptr + 16),
                         .ttl_ms = (int64_t)dd_get_le64(rest->ptr + 24)};
    *sum = dd_hash64(dd_slice_of(rest->ptr, RECORD), *sum);
    *sum = dd_hash64(dd_slice_of(p, scene + user), *sum);
    *sum = dd_hash64(r->block, *sum);
    size_t total = RECORD + scene + user + block;
    *rest = dd_slice_of(rest->ptr + total, rest->len - total);
    return dd_deliveries_are_sound(r->block, r->count) ? DD_OK : DD_CORRUPT;
}

static void add_user(struct dd_mem *m, const struct record *r)
{
    uint64_t hash = dd_mem_hash(r->scene, r->user);
    struct dd_mem_shard *s = dd_mem_shard_of(m, hash);
    pthread_mutex_lock(&s->lock);
    struct dd_mem_user *u = r->count ? dd_mem_obtain(m, s, hash, r->scene, r->user) : NULL;
    if (u && u->list.count == 0) {
        u->list.data = malloc(r->block.len);
        if (u->list.data) {
            memcpy(u->list.data, r->block.ptr, r->block.len);
            u->list.len = u->list.cap = (uint32_t)r->block.len;
            u->list.count = r->count;
        }
        u->last_ms = r->last_ms;
        u->ttl_ms = r->ttl_ms;
        dd_mem_account(m, 0, u->list.cap);
    }
    pthread_mutex_unlock(&s->lock);
    dd_mem_shrink(m, s, r->last_ms);
}

/* Two passes: nothing is added before everything was verified. */
static enum dd_err load_bytes(struct dd_mem *m, struct dd_slice all)
{
    if (all.len < HEADER || memcmp(all.ptr, file_header, HEADER) != 0) return DD_CORRUPT;
    struct dd_slice body = dd_slice_of(all.ptr + HEADER, all.len - HEADER), rest = body;
    uint64_t sum = dd_hash64(dd_slice_of(file_header, HEADER), 0);
    struct record r;
    enum dd_err err;
    do {
        err = next_record(&rest, &r, &sum);
    } while (!err);
    if (err != DD_NOT_FOUND || rest.len != 12 || dd_get_le64(rest.ptr + 4) != sum) return DD_CORRUPT;
    rest = body;
    while (next_record(&rest, &r, &sum) == DD_OK)
        add_user(m, &r);
    return DD_OK;
}

static enum dd_err load_file(struct dd_mem *m, int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return DD_IO;
    if (st.st_size == 0) return DD_CORRUPT;
    size_t size = (size_t)st.st_size;
    void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) return DD_IO;
    enum dd_err err = load_bytes(m, dd_slice_of(map, size));
    munmap(map, size);
    return err;
}

enum dd_err dd_mem_load(struct dd_mem *m, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? DD_NOT_FOUND : DD_IO;
    enum dd_err err = load_file(m, fd);
    close(fd);
    if (unlink(path) != 0 || sync_directory(path)) {
        dd_warn("hot.memory_file_stays", "path=%s", path);
        if (!err) err = DD_IO;
    }
    return err;
}
