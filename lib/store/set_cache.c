#include "store/set_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "filter/filter.h"

#define PARTS 16

/* A guess of an entry's bytes, for the number of chains. */
#define TYPICAL_BYTES 512

struct part {
    pthread_mutex_t lock;
    size_t mask;
    struct dd_set_entry **chains;
    uint32_t *asked; /* by the same index: the hash of the last set that was read and not kept */
    struct dd_set_entry *newest, *oldest;
    uint64_t bytes, max;
};

struct dd_set_cache {
    struct part part[PARTS];
};

static struct part *part_of(struct dd_set_cache *c, uint64_t hash)
{
    return &c->part[hash >> 60];
}

void dd_set_entry_release(struct dd_set_entry *e)
{
    if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1) free(e);
}

/* ---- under the part's lock ---- */

static struct dd_set_entry **find(struct part *p, struct dd_slice key, uint64_t hash)
{
    struct dd_set_entry **at = &p->chains[hash & p->mask];
    while (*at && ((*at)->hash != hash || !dd_slice_eq((*at)->key, key)))
        at = &(*at)->chain;
    return at;
}

static void unlink_age(struct part *p, struct dd_set_entry *e)
{
    *(e->newer ? &e->newer->older : &p->newest) = e->older;
    *(e->older ? &e->older->newer : &p->oldest) = e->newer;
}

static void link_newest(struct part *p, struct dd_set_entry *e)
{
    e->newer = NULL;
    e->older = p->newest;
    *(p->newest ? &p->newest->newer : &p->oldest) = e;
    p->newest = e;
}

static void take_out(struct part *p, struct dd_set_entry **at)
{
    struct dd_set_entry *e = *at;
    *at = e->chain;
    unlink_age(p, e);
    p->bytes -= e->bytes;
    dd_set_entry_release(e);
}

static void put_in(struct part *p, struct dd_set_entry *e)
{
    struct dd_set_entry **at = find(p, e->key, e->hash);
    if (*at) take_out(p, at);
    while (p->oldest && p->bytes + e->bytes > p->max) {
        at = find(p, p->oldest->key, p->oldest->hash);
        if (!*at) break; /* cannot be: every entry is in its chain */
        take_out(p, at);
    }
    e->chain = p->chains[e->hash & p->mask];
    p->chains[e->hash & p->mask] = e;
    link_newest(p, e);
    p->bytes += e->bytes;
}

/* ---- the cache ---- */

static enum dd_err part_init(struct part *p, uint64_t max)
{
    size_t chains = 16;
    while (chains * TYPICAL_BYTES < max)
        chains *= 2;
    pthread_mutex_init(&p->lock, NULL);
    p->mask = chains - 1;
    p->chains = calloc(chains, sizeof(struct dd_set_entry *));
    p->asked = calloc(chains, sizeof *p->asked);
    uint64_t tables = chains * (sizeof(struct dd_set_entry *) + sizeof *p->asked);
    p->max = max > tables ? max - tables : 0;
    return p->chains && p->asked ? DD_OK : DD_NO_MEMORY;
}

enum dd_err dd_set_cache_create(uint64_t bytes, struct dd_set_cache **out)
{
    struct dd_set_cache *c = calloc(1, sizeof *c);
    enum dd_err err = c ? DD_OK : DD_NO_MEMORY;
    for (unsigned i = 0; c && i < PARTS; i++)
        if (part_init(&c->part[i], bytes / PARTS) != DD_OK) err = DD_NO_MEMORY;
    if (err == DD_OK)
        *out = c;
    else
        dd_set_cache_destroy(c);
    return err;
}

void dd_set_cache_destroy(struct dd_set_cache *c)
{
    if (!c) return;
    for (unsigned i = 0; i < PARTS; i++) {
        struct part *p = &c->part[i];
        while (p->oldest)
            take_out(p, find(p, p->oldest->key, p->oldest->hash));
        free(p->chains);
        free(p->asked);
        pthread_mutex_destroy(&p->lock);
    }
    free(c);
}

struct dd_set_entry *dd_set_cache_get(struct dd_set_cache *c, struct dd_slice key, uint64_t hash,
                                      uint64_t cell)
{
    struct part *p = part_of(c, hash);
    pthread_mutex_lock(&p->lock);
    struct dd_set_entry *e = *find(p, key, hash);
    if (e && e->number < cell) e = NULL; /* what is read next takes its place */
    if (e) {
        atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
        unlink_age(p, e);
        link_newest(p, e);
    }
    pthread_mutex_unlock(&p->lock);
    return e;
}

/* Whether the set is to be kept: it is there in an older state, or was asked for before. */
static bool is_wanted(struct part *p, struct dd_slice key, uint64_t hash, uint64_t number)
{
    uint32_t *asked = &p->asked[hash & p->mask], mark = (uint32_t)(hash >> 24) | 1;
    pthread_mutex_lock(&p->lock);
    const struct dd_set_entry *e = *find(p, key, hash);
    bool wanted = e ? e->number < number : *asked == mark;
    *asked = mark;
    pthread_mutex_unlock(&p->lock);
    return wanted;
}

static struct dd_set_entry *entry_of(struct dd_slice key, uint64_t hash, struct dd_slice blob,
                                     uint64_t number)
{
    size_t bytes = sizeof(struct dd_set_entry) + key.len + blob.len;
    struct dd_set_entry *e = malloc(bytes);
    if (!e) return NULL;
    uint8_t *at = (uint8_t *)(e + 1);
    *e = (struct dd_set_entry){.blob = dd_slice_of(at, blob.len),
                               .number = number,
                               .hash = hash,
                               .bytes = bytes,
                               .key = dd_slice_of(at + blob.len, key.len)};
    atomic_init(&e->refs, 1);
    if (blob.len) memcpy(at, blob.ptr, blob.len);
    memcpy(at + blob.len, key.ptr, key.len);
    return e;
}

void dd_set_cache_put(struct dd_set_cache *c, struct dd_slice key, uint64_t hash, struct dd_slice blob,
                      uint64_t number)
{
    struct part *p = part_of(c, hash);
    struct dd_filter_view view;
    if (sizeof(struct dd_set_entry) + key.len + blob.len > p->max) return;
    if (!is_wanted(p, key, hash, number)) return;
    if (dd_filter_view_open(&view, blob) != DD_OK || view.damaged) return;
    struct dd_set_entry *e = entry_of(key, hash, blob, number);
    if (!e) return;
    pthread_mutex_lock(&p->lock);
    struct dd_set_entry *there = *find(p, key, hash);
    if (there && there->number >= number)
        dd_set_entry_release(e);
    else
        put_in(p, e);
    pthread_mutex_unlock(&p->lock);
}
