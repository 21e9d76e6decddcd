/* Listening sockets. One socket an address, shared by all loops: each loop registers it and takes a few
 * connections a turn, so that load follows the loops that have time. One socket a loop (SO_REUSEPORT) was the
 * alternative; it hashes a handful of keep-alive connections unevenly, lets a second process steal the port,
 * and resets the queue of a socket that is closed. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "base/log.h"
#include "http/impl.h"

#define BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn, 4096 by default since Linux 5.4 */

static int open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1, off = 0;
    if (fd < 0 || family == AF_UNIX) return fd;
    /* Inherited by accepted sockets; replies are one write each, so Nagle could only delay. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    return fd;
}

/* The system refused. */
static enum dd_err failed(const char *host, unsigned port)
{
    int why = errno;
    dd_error("http.listen", "address=%s port=%u error=\"%s\"", host, port, strerror(why));
    return why == EADDRINUSE ? DD_LOCKED : DD_IO;
}

static enum dd_err refused(const char *addresses, const char *why)
{
    dd_error("http.listen", "addresses=\"%s\" error=\"%s\" expected=\"%s\"", addresses, why,
             "numeric address:port, [v6]:port or unix:/path");
    return DD_INVALID;
}

static enum dd_err resolve(const struct dd_address *a, struct addrinfo **out)
{
    char port[8];
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    snprintf(port, sizeof port, "%u", a->port);
    return getaddrinfo(a->host, port, &hints, out) == 0 ? DD_OK : DD_NO_MEMORY; /* its syntax was checked */
}

static bool is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
}

static void describe(int fd, struct dd_http_listeners *l)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    char host[INET6_ADDRSTRLEN], port[8];
    struct sockaddr *sa = (struct sockaddr *)&bound;
    if (getsockname(fd, sa, &size) != 0) return;
    if (getnameinfo(sa, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return;
    dd_buf_addf(&l->text, sa->sa_family == AF_INET6 ? "%s[%s]:%s" : "%s%s:%s", l->text.len ? "," : "", host,
                port);
    l->local = l->local && is_loopback(sa);
}

static enum dd_err listen_tcp(const struct dd_address *a, struct dd_http_listeners *l)
{
    struct addrinfo *found;
    enum dd_err err = resolve(a, &found);
    if (err != DD_OK) return err;
    int fd = open_socket(found->ai_family);
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0)
        err = failed(a->host, a->port);
    freeaddrinfo(found);
    if (err != DD_OK) {
        if (fd >= 0) close(fd);
        return err;
    }
    l->items[l->count++] = (struct dd_http_listener){.fd = fd};
    describe(fd, l);
    return DD_OK;
}

/* Removes the socket of a process that is gone: it exists, is a socket, and nobody answers. */
static void remove_stale(const struct sockaddr_un *at)
{
    struct stat st;
    if (lstat(at->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode)) return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 && errno == ECONNREFUSED)
        unlink(at->sun_path);
    close(fd);
}

static enum dd_err listen_unix(const char *path, struct dd_http_listeners *l)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    _Static_assert(sizeof at.sun_path == sizeof((struct dd_address *)0)->path, "a path that was read fits");
    memcpy(at.sun_path, path, strlen(path));
    char *owned = strdup(path);
    if (!owned) return DD_NO_MEMORY;
    remove_stale(&at);
    int fd = open_socket(AF_UNIX);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    /* Nobody can connect before listen, so the mode is in place for the first who tries. */
    if (!bound || chmod(path, 0660) != 0 || listen(fd, BACKLOG) != 0) {
        enum dd_err err = failed(path, 0);
        if (bound) unlink(path);
        if (fd >= 0) close(fd);
        free(owned);
        return err;
    }
    l->items[l->count++] = (struct dd_http_listener){fd, owned};
    dd_buf_addf(&l->text, "%sunix:%s", l->text.len ? "," : "", path);
    return DD_OK;
}

static enum dd_err listen_on(const struct dd_address *a, struct dd_http_listeners *l)
{
    return a->kind == DD_ADDRESS_UNIX ? listen_unix(a->path, l) : listen_tcp(a, l);
}

static enum dd_err listen_all(const char *addresses, struct dd_http_listeners *l)
{
    char why[200];
    struct dd_slice rest = dd_slice_str(addresses);
    struct dd_address a;
    enum dd_err err;
    while ((err = dd_address_next(&rest, &a, why, sizeof why)) == DD_OK) {
        if (l->count == DD_HTTP_LISTENERS_MAX) return refused(addresses, "too many addresses");
        err = listen_on(&a, l);
        if (err != DD_OK) return err;
    }
    if (err == DD_INVALID) return refused(addresses, why);
    return l->count ? DD_OK : refused(addresses, "at least one address is needed");
}

enum dd_err dd_http_listen(const char *addresses, struct dd_http_listeners **out)
{
    struct dd_http_listeners *l = calloc(1, sizeof *l);
    if (!l) return DD_NO_MEMORY;
    l->local = true;
    enum dd_err err = listen_all(addresses, l);
    if (err == DD_OK) {
        dd_buf_add_u8(&l->text, 0);
        if (dd_buf_ok(&l->text)) {
            *out = l;
            return DD_OK;
        }
        err = DD_NO_MEMORY;
    }
    dd_http_listeners_destroy(l);
    return err;
}

void dd_http_listeners_destroy(struct dd_http_listeners *l)
{
    if (!l) return;
    for (unsigned i = 0; i < l->count; i++) {
        if (l->items[i].unlink_path) unlink(l->items[i].unlink_path);
        free(l->items[i].unlink_path);
        close(l->items[i].fd);
    }
    dd_buf_free(&l->text);
    free(l);
}

const char *dd_http_listeners_text(const struct dd_http_listeners *l)
{
    return (const char *)l->text.data;
}

bool dd_http_listeners_local(const struct dd_http_listeners *l)
{
    return l->local;
}

unsigned dd_http_listeners_connections(const struct dd_http_listeners *l)
{
    return atomic_load(&l->connections);
}

unsigned dd_http_listeners_inflight(const struct dd_http_listeners *l)
{
    return atomic_load(&l->inflight);
}
