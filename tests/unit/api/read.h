/* Reads a body by the path it was sent to, through the codec or through the reference reader, into one form
 * that can be compared. */
#ifndef DD_TESTS_API_READ_H
#define DD_TESTS_API_READ_H

#include "api/codec.h"

enum shape { SHAPE_EXPOSED, SHAPE_FILTER, SHAPE_DELIVERED, SHAPE_COUNT };

struct verdict {
    bool good;
    const char *code; /* static; when not good */
    char field[96];
    struct dd_buf said; /* when good: everything that was read, as text */
};

/* SHAPE_COUNT: no endpoint with a body. */
enum shape shape_of(const char *path);

void verdict_free(struct verdict *v);

/* The codec's. The body is copied to memory that ends with it. */
void read_codec(const struct dd_codec *c, enum shape shape, struct dd_slice body, struct verdict *out);
/* That of a reader over jansson's tree with JSON_REJECT_DUPLICATES: the same rules, written a second time. */
void read_reference(const struct dd_codec *c, enum shape shape, struct dd_slice body, struct verdict *out);

#endif
