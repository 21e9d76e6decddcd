/* What a handler may ask about its request. */
#include <arpa/inet.h>
#include <stdio.h>

#include "http/impl.h"

struct dd_slice dd_http_request_header(const struct dd_http_request *req, const char *name)
{
    const struct dd_http_work *w = dd_http_conn_of(req)->work;
    const uint8_t *bytes = w->in + w->in_start;
    size_t len = strlen(name);
    for (unsigned i = 0; i < w->head.field_count; i++) {
        const struct dd_http_field *f = &w->head.fields[i];
        if (f->name.len == len && dd_http_same_word(dd_http_span_slice(bytes, f->name), name))
            return dd_http_span_slice(bytes, f->value);
    }
    return dd_slice_of(NULL, 0);
}

struct dd_loop *dd_http_request_loop(const struct dd_http_request *req)
{
    return dd_http_conn_of(req)->server->loop;
}

bool dd_http_request_gone(const struct dd_http_request *req)
{
    return dd_http_conn_of(req)->gone;
}

bool dd_http_request_local(const struct dd_http_request *req)
{
    const struct dd_http_peer *p = &dd_http_conn_of(req)->peer;
    if (p->family != AF_INET && p->family != AF_INET6) return true;
    if (IN6_IS_ADDR_V4MAPPED(&p->address)) return p->address.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&p->address);
}

const char *dd_http_request_peer(const struct dd_http_request *req, char out[DD_HTTP_PEER_TEXT])
{
    const struct dd_http_peer *p = &dd_http_conn_of(req)->peer;
    char address[INET6_ADDRSTRLEN] = "?";
    bool v4 = IN6_IS_ADDR_V4MAPPED(&p->address);
    if (p->family != AF_INET && p->family != AF_INET6) {
        snprintf(out, DD_HTTP_PEER_TEXT, "unix");
        return out;
    }
    inet_ntop(v4 ? AF_INET : AF_INET6, p->address.s6_addr + (v4 ? 12 : 0), address, sizeof address);
    snprintf(out, DD_HTTP_PEER_TEXT, v4 ? "%s:%u" : "[%s]:%u", address, p->port);
    return out;
}
