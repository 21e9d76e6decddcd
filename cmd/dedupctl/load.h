/* dedupctl load: exposures written straight into a data directory that no process uses.
 *
 * A set is read, merged with what comes and written whole on the store's writer thread, so what is left
 * behind is finished sets and not operands that a later read must merge. Loading the same exposures again
 * changes nothing. Two batches take turns: one is filled while the other is written.
 *
 * Threads: one caller. Ownership: a loader borrows the store; slices given to it are copied. */
#ifndef DD_CTL_LOAD_H
#define DD_CTL_LOAD_H

#include <semaphore.h>
#include <stdio.h>

#include "bar.h"
#include "filter/filter.h"
#include "store/store.h"

#define DD_LOAD_OPS        256
#define DD_LOAD_USER_BYTES 128
#define DD_LOAD_ITEM_BYTES 256

struct dd_loader;

struct dd_load_batch {
    struct dd_store_batch batch;
    struct dd_store_op op[DD_LOAD_OPS];
    struct dd_load_set {
        struct dd_loader *loader;
        uint8_t user[DD_LOAD_USER_BYTES];
        size_t from, to; /* of the operand in operands */
    } set[DD_LOAD_OPS];
    unsigned n;
    struct dd_buf operands;
    bool flying; /* given to the store */
    sem_t landed;
};

struct dd_loader {
    struct dd_store *store;
    struct dd_slice scene;
    enum dd_period_kind period;
    unsigned window;
    struct dd_filter_policy policy;
    struct dd_load_batch half[2];
    unsigned filling;     /* which half */
    uint64_t sets, items; /* given to it */
};

void dd_loader_init(struct dd_loader *l, struct dd_store *store);
void dd_loader_free(struct dd_loader *l);

/* Adds fingerprints to the set of a user (1..128 bytes) and period. hint: see dd_filter_operand. An error,
 * also of an earlier add, is DD_DISK_FULL, DD_IO, DD_CORRUPT, DD_NO_MEMORY or DD_INVALID. */
enum dd_err dd_loader_add(struct dd_loader *l, struct dd_slice user, struct dd_period period, uint32_t hint,
                          const uint32_t *fps, size_t n) DD_MUST_USE;
/* Waits until all that was added is in the store. */
enum dd_err dd_loader_finish(struct dd_loader *l) DD_MUST_USE;

/* ---- which scene ---- */

/* Texts as they were given; NULL: the server's default. */
struct dd_load_scene {
    const char *name, *period, *window, *fpr, *filter, *capacity;
};

/* Scene, period, window and policy of the loader, which borrows the name. false: it is said on standard error
 * which is wrong. */
bool dd_load_scene(const struct dd_load_scene *given, struct dd_loader *l);

/* ---- where exposures come from ---- */

struct dd_load_synthetic {
    uint32_t users, months, items, catalogue;
    uint64_t seed;
};

/* Users user-00000000 and up; in each month `items` of the catalogue item-0000000000000000000 and up. */
enum dd_err dd_load_synthetic(struct dd_loader *l, const struct dd_load_synthetic *s, int64_t now_ms,
                              struct dd_bar *bar) DD_MUST_USE;

struct dd_load_lines {
    uint64_t lines, wrong, first_wrong; /* wrong: not user, item, milliseconds; the number of the first */
    uint64_t outside;                   /* older than the window, or in the future */
};

/* Lines of user TAB item TAB milliseconds since 1970, in any order; best grouped by user. total: bytes of the
 * file, 0 unknown. */
enum dd_err dd_load_lines(struct dd_loader *l, FILE *from, uint64_t total, int64_t now_ms, struct dd_bar *bar,
                          struct dd_load_lines *out) DD_MUST_USE;

#endif
