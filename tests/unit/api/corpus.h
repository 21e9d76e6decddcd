/* Bodies for the differential test: made from a grammar that knows the fields and their edges, then damaged.
 * Seeded, so that a run can be repeated. */
#ifndef DD_TESTS_API_CORPUS_H
#define DD_TESTS_API_CORPUS_H

#include "base/bytes.h"
#include "read.h"

struct corpus {
    uint64_t state;
    struct dd_buf *seeds; /* bodies of the examples and of the bad requests; short ones only */
    unsigned seeds_n;
};

void corpus_init(struct corpus *c, uint64_t seed);
void corpus_free(struct corpus *c);
/* The next body, for a shape. */
void corpus_next(struct corpus *c, enum shape shape, struct dd_buf *out);

#endif
