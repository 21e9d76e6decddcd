/* Marks of recent erases: which merges carry something that was read before an erase. Private to lib/store.
 *
 * A flush or a migration reads items elsewhere and merges them later; if the set was erased in between, the
 * operand must not bring them back. A mark is (hash of the key, number of the erasing commit). The table is
 * bounded: when a mark has to go, its number becomes the floor, and an operand read before the floor is
 * answered "read again", since it can no longer be told whether its own set was erased. Stripping it instead
 * would lose somebody else's exposures.
 *
 * 64-bit hashes: two of the 65,536 kept marks and a million operands in flight meet with probability 4e-9.
 * Threads: the writer thread only. */
#ifndef DD_STORE_ERASE_MARKS_H
#define DD_STORE_ERASE_MARKS_H

#include <stdint.h>

#include "base/err.h"

#define DD_MARK_BUCKETS 16384
#define DD_MARK_WAYS    4

struct dd_erase_marks {
    uint64_t floor; /* the highest number of a mark that had to go; 0: none */
    struct dd_erase_mark {
        uint64_t key_hash, number; /* number 0: free */
    } mark[DD_MARK_BUCKETS][DD_MARK_WAYS];
};

enum dd_mark_verdict { DD_MARK_KEEP, DD_MARK_STRIP, DD_MARK_READ_AGAIN };

enum dd_err dd_marks_create(struct dd_erase_marks **out) DD_MUST_USE;
void dd_marks_destroy(struct dd_erase_marks *m);

/* number: of the commit that erases, above every earlier one. */
void dd_marks_add(struct dd_erase_marks *m, uint64_t key_hash, uint64_t number);
enum dd_mark_verdict dd_marks_judge(const struct dd_erase_marks *m, uint64_t key_hash, uint64_t read_number);

#endif
