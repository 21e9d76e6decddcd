/* An arena: memory of one request, given out by bumping a pointer and released all at once.
 *
 * The first block is kept over dd_arena_reset, so that a reused arena serves an ordinary request without
 * malloc. Ownership: everything allocated lives until reset or free. Threads: one arena belongs to one thread
 * at a time. */
#ifndef DD_BASE_ARENA_H
#define DD_BASE_ARENA_H

#include <stddef.h>

#include "base/bytes.h"

struct dd_arena_block;

struct dd_arena {
    struct dd_arena_block *first, *last;
    size_t used, cap; /* of the last block */
    size_t total;     /* bytes of all blocks */
};

/* A zeroed struct is a valid empty arena. */
void dd_arena_reset(struct dd_arena *a);
void dd_arena_free(struct dd_arena *a);

/* n bytes aligned to 16, uninitialised; NULL: no memory. n may be 0 (a unique pointer). */
void *dd_arena_alloc(struct dd_arena *a, size_t n);
/* count * size bytes, zeroed; NULL: no memory or overflow. */
void *dd_arena_calloc(struct dd_arena *a, size_t count, size_t size);
/* A copy; a slice with ptr NULL and len 0 when there is no memory or nothing to copy. */
struct dd_slice dd_arena_copy(struct dd_arena *a, struct dd_slice s);

#endif
