/* One look-up at a time, on a thread of its own that is not waited for: whoever is last, the thread or the
 * owner, frees the job. Its outcome is collected by the next get or refresh. */
#include "hot/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESSES 8

static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};

struct job {
    _Atomic int refs; /* 2 while the thread runs, 1 when its result stands */
    struct addrinfo *list;
    char host[];
};

struct dd_resolve {
    pthread_mutex_t lock;
    char *host;
    bool literal;
    struct job *job; /* NULL: none runs */
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
    struct addrinfo *list = NULL;
    if (r->literal) {
        strncpy(r->address[0], host, DD_RESOLVE_TEXT - 1);
        r->n = 1;
    } else if (getaddrinfo(host, NULL, &hints, &list) == 0) {
        take(r, list);
        freeaddrinfo(list);
    }
    *out = r;
    return DD_OK;
}

/* ---- in the background ---- */

static void release(struct job *job)
{
    if (atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) != 1) return;
    if (job->list) freeaddrinfo(job->list);
    free(job);
}

static void *look_up(void *arg)
{
    struct job *job = arg;
    if (getaddrinfo(job->host, NULL, &hints, &job->list) != 0) job->list = NULL;
    release(job);
    return NULL;
}

static void start(struct dd_resolve *r)
{
    size_t size = strlen(r->host) + 1;
    struct job *job = calloc(1, sizeof *job + size);
    if (!job) return;
    memcpy(job->host, r->host, size);
    atomic_init(&job->refs, 2);
    pthread_t thread;
    if (pthread_create(&thread, NULL, look_up, job) != 0) {
        free(job);
        return;
    }
    pthread_detach(thread);
    r->job = job;
}

static void collect(struct dd_resolve *r)
{
    if (!r->job || atomic_load_explicit(&r->job->refs, memory_order_acquire) != 1) return;
    take(r, r->job->list);
    release(r->job);
    r->job = NULL;
}

void dd_resolve_refresh(struct dd_resolve *r)
{
    if (r->literal) return;
    pthread_mutex_lock(&r->lock);
    collect(r);
    if (!r->job) start(r);
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
    if (r->job) release(r->job);
    pthread_mutex_destroy(&r->lock);
    free(r->host);
    free(r);
}
