#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

#define ALIGN       16
#define FIRST_BLOCK 8192 /* holds a request of 100 candidates whole */

struct dd_arena_block {
    struct dd_arena_block *next;
    size_t cap;
    alignas(ALIGN) unsigned char bytes[];
};

static void free_after(struct dd_arena_block *b)
{
    while (b) {
        struct dd_arena_block *next = b->next;
        free(b);
        b = next;
    }
}

void dd_arena_reset(struct dd_arena *a)
{
    if (!a->first) return;
    free_after(a->first->next);
    a->first->next = NULL;
    a->last = a->first;
    a->used = 0;
    a->cap = a->total = a->first->cap;
}

void dd_arena_free(struct dd_arena *a)
{
    free_after(a->first);
    *a = (struct dd_arena){0};
}

static int add_block(struct dd_arena *a, size_t n)
{
    size_t cap = a->total ? a->total : FIRST_BLOCK; /* doubles the arena */
    if (cap < n) cap = n;
    if (cap > SIZE_MAX - sizeof(struct dd_arena_block)) return 0;
    struct dd_arena_block *b = malloc(sizeof *b + cap);
    if (!b) return 0;
    b->next = NULL;
    b->cap = cap;
    if (a->last)
        a->last->next = b;
    else
        a->first = b;
    a->last = b;
    a->used = 0;
    a->cap = cap;
    a->total += cap;
    return 1;
}

void *dd_arena_alloc(struct dd_arena *a, size_t n)
{
    if (n > SIZE_MAX / 2) return NULL;
    n = (n + ALIGN - 1) / ALIGN * ALIGN + (n == 0 ? ALIGN : 0);
    if (n > a->cap - a->used && !add_block(a, n)) return NULL;
    void *at = a->last->bytes + a->used;
    a->used += n;
    return at;
}

void *dd_arena_calloc(struct dd_arena *a, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size) return NULL;
    void *at = dd_arena_alloc(a, count * size);
    if (at) memset(at, 0, count * size);
    return at;
}

struct dd_slice dd_arena_copy(struct dd_arena *a, struct dd_slice s)
{
    uint8_t *at = s.len ? dd_arena_alloc(a, s.len) : NULL;
    if (!at) return dd_slice_of(NULL, 0);
    memcpy(at, s.ptr, s.len);
    return dd_slice_of(at, s.len);
}
