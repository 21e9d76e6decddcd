/* Sockets rather than pipes: writing to one that nobody reads any more is an error here and not a SIGPIPE. */
#include "filters_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <stdbool.h>
#include <unistd.h>

/* Signals are blocked in this process while it works (filters_progress.h); the child has none blocked. */
static int spawn(pid_t *pid, char *const argv[], int in, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    int rc = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    if (rc == 0) rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (rc == 0) rc = posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

static void close_open(int fd)
{
    if (fd >= 0) close(fd);
}

enum dd_err dd_child_start(struct dd_child *child, char *const argv[], int output)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    *child = (struct dd_child){.in = -1, .out = -1};
    bool ok = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) == 0;
    if (ok && output < 0) ok = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) == 0;
    int rc = ok ? spawn(&child->pid, argv, in[1], output < 0 ? out[1] : output) : EIO;
    close_open(in[1]);
    close_open(out[1]);
    if (rc == 0) {
        child->in = in[0], child->out = out[0];
        return DD_OK;
    }
    close_open(in[0]);
    close_open(out[0]);
    child->pid = 0;
    return rc == ENOENT ? DD_NOT_FOUND : DD_IO;
}

enum dd_err dd_child_write(struct dd_child *child, struct dd_slice bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(child->in, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return DD_IO;
        bytes.ptr += n, bytes.len -= (size_t)n;
    }
    return DD_OK;
}

enum dd_err dd_child_end(struct dd_child *child, int signal)
{
    if (child->pid <= 0) return DD_OK;
    int status = 0;
    close_open(child->in);
    close_open(child->out);
    if (signal != 0) kill(child->pid, signal);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
    }
    *child = (struct dd_child){.in = -1, .out = -1};
    return signal != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0) ? DD_OK : DD_IO;
}
