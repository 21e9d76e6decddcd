/* restore: a data directory from a checkpoint, without a server.
 *
 * Table files never change, so they are hard-linked where that is possible and copied where not. Everything
 * else is copied. What a clean stop left beside the database (change table, deliveries) is not taken: the
 * restored store is a new incarnation, and no cached set of the old one is believed. But for one: a backup's
 * note that nothing was staged when it was made.
 *
 * Whoever restores (root, mostly) is seldom whom dedupd runs as, and dedupd must be able to open what is
 * made: a new TO gets the owner of FROM, an empty one that is there keeps its own, and what is in it gets
 * TO's. A file of another owner is not linked, since giving it away would change the backup.
 *
 * The database is assembled under another name and renamed at the end, so that what an interrupted restore
 * leaves is not taken for a store. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "dedup/staged.h"

static const char help[] =
    "usage: dedupctl restore FROM TO [--json]\n"
    "\n"
    "Makes the data directory TO (new or empty) from the backup FROM. Then start "
    "dedupd with data_dir TO. The\n"
    "process that held the store must have ended: a store cannot live twice on one "
    "Redis. Exposures that were\n"
    "staged and not yet flushed are still in that Redis and are folded in; with "
    "another Redis they are lost.\n"
    "A new TO and what is in it get the owner of FROM, an empty one that is there keeps "
    "its own, if you may\n"
    "give files away (root). Else, or when FROM belongs to somebody else than dedupd "
    "runs as:\n"
    "chown -R dedupd:dedupd TO.\n"
    "\n"
    "  dedupctl restore /var/lib/dedupd/backups/2026-11-30 /var/lib/dedupd-new\n";

struct restore {
    char from[4096], to[4096]; /* of the databases */
    uid_t uid;                 /* the owner of what is made */
    gid_t gid;
    bool not_mine; /* it should be somebody else's, and cannot */
    unsigned files, linked;
    uint64_t bytes;
};

static int fail(const char *path, const char *why)
{
    fprintf(stderr, "dedupctl: %s: %s\n", path, why);
    return DD_CTL_FAILED;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* LOCK and logs for people are the old process's. */
static bool is_wanted(const char *name)
{
    return name[0] != '.' && strcmp(name, "LOCK") != 0 && strncmp(name, "LOG", 3) != 0;
}

static bool copy_bytes(int from, int to, uint64_t *bytes)
{
    static char block[1 << 16];
    for (;;) {
        ssize_t got = read(from, block, sizeof block);
        if (got == 0) return fsync(to) == 0;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        for (ssize_t at = 0; at < got;) {
            ssize_t put = write(to, block + at, (size_t)(got - at));
            if (put < 0 && errno != EINTR) return false;
            if (put > 0) at += put;
        }
        *bytes += (uint64_t)got;
    }
}

static bool copy_file(const char *from, const char *to, uint64_t *bytes)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
    bool good = in >= 0 && (out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) >= 0;
    if (good) good = copy_bytes(in, out, bytes);
    int error = errno;
    if (in >= 0) close(in);
    if (out >= 0 && close(out) != 0) good = false;
    errno = error;
    return good;
}

static void give_away(struct restore *r, const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || (st.st_uid == r->uid && st.st_gid == r->gid)) return;
    if (lchown(path, r->uid, r->gid) != 0) r->not_mine = true;
}

static int take_file(struct restore *r, const char *name)
{
    char from[5000], to[5000];
    struct stat st;
    snprintf(from, sizeof from, "%s/%s", r->from, name);
    snprintf(to, sizeof to, "%s/%s", r->to, name);
    if (stat(from, &st) != 0) return fail(from, strerror(errno));
    if (!S_ISREG(st.st_mode)) return DD_CTL_OK;
    r->files++;
    bool theirs = st.st_uid == r->uid && st.st_gid == r->gid;
    if (ends_with(name, ".sst") && theirs && link(from, to) == 0) {
        r->linked++;
        r->bytes += (uint64_t)st.st_size;
        return DD_CTL_OK;
    }
    if (!copy_file(from, to, &r->bytes)) return fail(to, strerror(errno));
    give_away(r, to);
    return DD_CTL_OK;
}

static int take_all(struct restore *r)
{
    DIR *d = opendir(r->from);
    if (!d) return fail(r->from, strerror(errno));
    int code = DD_CTL_OK;
    for (const struct dirent *e; code == DD_CTL_OK && (e = readdir(d));)
        if (is_wanted(e->d_name)) code = take_file(r, e->d_name);
    closedir(d);
    return code;
}

/* The note that nothing was staged (dedup/staged.h), if it is there. */
static int take_note(struct restore *r, const char *from_dir, const char *to_dir)
{
    char from[5000], to[5000];
    snprintf(from, sizeof from, "%s/" DD_STAGED_NOTE, from_dir);
    snprintf(to, sizeof to, "%s/" DD_STAGED_NOTE, to_dir);
    if (access(from, F_OK) != 0) return DD_CTL_OK;
    if (!copy_file(from, to, &r->bytes)) return fail(to, strerror(errno));
    r->files++;
    give_away(r, to);
    return DD_CTL_OK;
}

/* Copying the database of a running process would tear it. */
static bool is_in_use(const char *db)
{
    char path[5000];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(path, sizeof path, "%s/LOCK", db);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    bool held = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    close(fd);
    return held;
}

static bool sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return false;
    bool good = fsync(fd) == 0;
    return close(fd) == 0 && good;
}

static int take_owner(struct restore *r, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return fail(path, strerror(errno));
    r->uid = st.st_uid;
    r->gid = st.st_gid;
    return DD_CTL_OK;
}

/* New, or empty. */
static int make_target(struct restore *r, const char *from, const char *to)
{
    if (mkdir(to, 0700) == 0) {
        int code = take_owner(r, from);
        if (code == DD_CTL_OK) give_away(r, to);
        return code;
    }
    DIR *d = errno == EEXIST ? opendir(to) : NULL;
    if (!d) return fail(to, strerror(errno));
    bool empty = true;
    for (const struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) empty = false;
    closedir(d);
    return empty ? take_owner(r, to) : fail(to, "is not empty; name a new directory");
}

static int restore(struct restore *r, const char *from, const char *to)
{
    char current[5000], final[4096];
    if (strlen(from) > 4000 || strlen(to) > 4000) return fail(to, "the name is too long");
    snprintf(r->from, sizeof r->from, "%s/db", from);
    snprintf(r->to, sizeof r->to, "%s/db.partial", to);
    snprintf(final, sizeof final, "%s/db", to);
    snprintf(current, sizeof current, "%s/CURRENT", r->from);
    if (access(current, R_OK) != 0) return fail(from, "is no backup: there is no db/CURRENT in it");
    if (is_in_use(r->from)) return fail(from, "is in use by a running dedupd; make a backup of it first");
    int code = make_target(r, from, to);
    if (code == DD_CTL_OK && mkdir(r->to, 0700) != 0) code = fail(r->to, strerror(errno));
    if (code == DD_CTL_OK) give_away(r, r->to);
    if (code == DD_CTL_OK) code = take_all(r);
    if (code == DD_CTL_OK) code = take_note(r, from, to);
    if (code != DD_CTL_OK) return code;
    bool good = sync_directory(r->to) && rename(r->to, final) == 0 && sync_directory(to);
    return good ? DD_CTL_OK : fail(final, strerror(errno));
}

int dd_ctl_restore(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    struct restore r = {.files = 0};
    const char *dirs[2];
    unsigned n;
    const struct dd_ctl_option options[] = {{NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, help, options, dirs, 2, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    if (parsed == DD_CTL_GO_ON && n != 2) fputs(help, stderr);
    if (parsed != DD_CTL_GO_ON || n != 2) return DD_CTL_USAGE;
    int code = restore(&r, dirs[0], dirs[1]);
    if (code != DD_CTL_OK) return code;
    if (r.not_mine)
        fprintf(stderr,
                "dedupctl: %s could not be given to its owner (uid %u, gid %u); dedupd may need chown -R\n",
                dirs[1], (unsigned)r.uid, (unsigned)r.gid);
    if (ctl.json)
        printf("{\"files\":%u,\"linked\":%u,\"bytes\":%llu}\n", r.files, r.linked,
               (unsigned long long)r.bytes);
    else
        printf("%s: %u files, %.1f MB (%u of them linked). Start dedupd with data_dir %s.\n", dirs[1],
               r.files, (double)r.bytes / 1e6, r.linked, dirs[1]);
    return DD_CTL_OK;
}
