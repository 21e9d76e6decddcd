#include "dedup/tally.h"

#include <stdatomic.h>
#include <stdlib.h>

#define CELLS 65536 /* 256 KB; at a million active users a cell serves 15 of them */

struct dd_tally {
    _Atomic uint32_t cell[CELLS];
};

enum dd_err dd_tally_create(struct dd_tally **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? DD_OK : DD_NO_MEMORY;
}

void dd_tally_destroy(struct dd_tally *t)
{
    free(t);
}

bool dd_tally_is_due(struct dd_tally *t, uint64_t hash, uint32_t n, uint32_t cap)
{
    uint32_t have = atomic_load_explicit(&t->cell[hash % CELLS], memory_order_relaxed);
    return (uint64_t)have + n > cap / 8;
}

void dd_tally_add(struct dd_tally *t, uint64_t hash, uint32_t n)
{
    atomic_fetch_add_explicit(&t->cell[hash % CELLS], n, memory_order_relaxed);
}

void dd_tally_restart(struct dd_tally *t, uint64_t hash)
{
    atomic_store_explicit(&t->cell[hash % CELLS], 0, memory_order_relaxed);
}
