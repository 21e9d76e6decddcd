/* What users saw: made up (every user the same number of items, ids of a given length) or read from a file of
 * `user<TAB>item` lines.
 *
 * Limits: a file of at most 1 GiB, users of 1 to 128 bytes and items of 1 to 256, as the service takes them.
 * Threads: one. Ownership: ids point into their own buffer, or into the workload. */
#ifndef DD_CTL_FILTERS_WORKLOAD_H
#define DD_CTL_FILTERS_WORKLOAD_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

/* A list of ids; a zeroed struct is empty. */
struct dd_ids {
    struct dd_slice *id;
    size_t n, room;
    struct dd_buf bytes;
};

void dd_ids_free(struct dd_ids *ids);

struct dd_workload {
    uint32_t users;
    uint32_t items;    /* of each user; 0: from the file */
    uint32_t id_bytes; /* of made-up ids, 8 .. 256 */
    struct dd_workload_line {
        struct dd_slice user, item;
        size_t number;
    } * line; /* of a file, by user, then in its order */
    size_t lines;
    size_t *first; /* first line of each user; users + 1 values */
    struct dd_buf text;
};

/* Most items of a made-up user: their numbers must leave room for as many others in 8 digits. */
#define DD_WORKLOAD_ITEMS_MAX 10000000u

/* DD_INVALID: a line that is not user<TAB>item, an empty file; DD_TOO_LARGE; DD_IO; DD_NO_MEMORY. why: a
 * sentence. */
enum dd_err dd_workload_read(struct dd_workload *w, const char *path, char *why, size_t why_size) DD_MUST_USE;
void dd_workload_free(struct dd_workload *w);

uint64_t dd_workload_items(const struct dd_workload *w); /* of all users; repeats count */
/* The ids of a user, in their order. */
enum dd_err dd_workload_user(const struct dd_workload *w, uint32_t user, struct dd_ids *out) DD_MUST_USE;
/* n ids that no user has, other ones for other values of from. */
enum dd_err dd_workload_unseen(const struct dd_workload *w, uint64_t from, size_t n,
                               struct dd_ids *out) DD_MUST_USE;

#endif
