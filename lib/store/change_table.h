/* The layout of a change table: private to change.c and change_file.c. */
#ifndef DD_STORE_CHANGE_TABLE_H
#define DD_STORE_CHANGE_TABLE_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/hash.h"
#include "store/change.h"

struct dd_change {
    uint64_t incarnation;
    _Atomic uint64_t number;  /* of the last published commit */
    uint32_t cells_per_table; /* a power of two */
    unsigned tables;
    _Atomic uint64_t *cells; /* table after table */
};

/* All zero, also the incarnation. DD_INVALID: sizes outside the bounds of change.h. DD_NO_MEMORY. */
enum dd_err dd_change_alloc(uint32_t cells, unsigned tables, struct dd_change **out) DD_MUST_USE;

#endif
