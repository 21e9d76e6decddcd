/* glibc's getaddrinfo_a runs the resolution on a thread of its own. One request at a time; its outcome is
 * collected by the next refresh, which every failed attempt to connect calls. */
#include "hot/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESSES 8

struct dd_resolve {
    pthread_mutex_t lock;
    char *host;
    bool literal, running;
    struct gaicb request;
    struct addrinfo hints;
    char address[ADDRESSES][DD_RESOLVE_TEXT];
    unsigned n;
};

static void add_family(struct dd_resolve *r, const struct addrinfo *list, int family)
{
    for (; list && r->n < ADDRESSES; list = list->ai_next)
        if (list->ai_family == family && getnameinfo(list->ai_addr, list->ai_addrlen, r->address[r->n],
                                                     DD_RESOLVE_TEXT, NULL, 0, NI_NUMERICHOST) == 0)
            r->n++;
}

static void take(struct dd_resolve *r, const struct addrinfo *list)
{
    if (!list) return;
    r->n = 0;
    add_family(r, list, AF_INET);
    add_family(r, list, AF_INET6);
}

static bool is_literal(const char *host)
{
    struct in6_addr any;
    return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

enum dd_err dd_resolve_create(const char *host, struct dd_resolve **out)
{
    struct dd_resolve *r = calloc(1, sizeof *r);
    if (!r) return DD_NO_MEMORY;
    r->host = strdup(host);
    if (!r->host) {
        free(r);
        return DD_NO_MEMORY;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->literal = is_literal(host);
    r->hints.ai_socktype = SOCK_STREAM;
    struct addrinfo *list = NULL;
    if (r->literal) {
        strncpy(r->address[0], host, DD_RESOLVE_TEXT - 1);
        r->n = 1;
    } else if (getaddrinfo(host, NULL, &r->hints, &list) == 0) {
        take(r, list);
        freeaddrinfo(list);
    }
    *out = r;
    return DD_OK;
}

/* Takes the outcome of a finished request. */
static void collect(struct dd_resolve *r)
{
    if (!r->running) return;
    int status = gai_error(&r->request);
    if (status == EAI_INPROGRESS) return;
    r->running = false;
    if (status == 0) take(r, r->request.ar_result);
    if (r->request.ar_result) freeaddrinfo(r->request.ar_result);
    r->request.ar_result = NULL;
}

void dd_resolve_refresh(struct dd_resolve *r)
{
    if (r->literal) return;
    pthread_mutex_lock(&r->lock);
    collect(r);
    if (!r->running) {
        r->request = (struct gaicb){.ar_name = r->host, .ar_request = &r->hints};
        struct gaicb *list[1] = {&r->request};
        r->running = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) == 0;
    }
    pthread_mutex_unlock(&r->lock);
}

enum dd_err dd_resolve_get(struct dd_resolve *r, unsigned attempt, char out[DD_RESOLVE_TEXT])
{
    pthread_mutex_lock(&r->lock);
    collect(r);
    enum dd_err err = r->n ? DD_OK : DD_NOT_FOUND;
    if (!err) memcpy(out, r->address[attempt % r->n], DD_RESOLVE_TEXT);
    pthread_mutex_unlock(&r->lock);
    return err;
}

void dd_resolve_destroy(struct dd_resolve *r)
{
    if (!r) return;
    const struct gaicb *list[1] = {&r->request};
    if (r->running && gai_cancel(&r->request) == EAI_NOTCANCELED)
        while (gai_error(&r->request) == EAI_INPROGRESS)
            (void)gai_suspend(list, 1, NULL); /* bounded by the resolver's own time-outs */
    collect(r);
    pthread_mutex_destroy(&r->lock);
    free(r->host);
    free(r);
}
