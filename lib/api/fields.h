/* The fields of request bodies: one table of names, one reader for each. Private to lib/api's codec.
 *
 * A shape is a set of fields that may stand in an object; dd_fields_read reads one object of that shape. */
#ifndef DD_API_FIELDS_H
#define DD_API_FIELDS_H

#include "api/reader.h"

enum dd_field {
    DD_FIELD_USER,
    DD_FIELD_ITEMS,
    DD_FIELD_CANDIDATES,
    DD_FIELD_SCENE,
    DD_FIELD_TS,
    DD_FIELD_EVENTS,
    DD_FIELD_LIMIT,
    DD_FIELD_CLAIM,
    DD_FIELD_WINDOW,
    DD_FIELD_EXPLAIN,
    DD_FIELD_MIN,
    DD_FIELD_MAX_SEEN,
    DD_FIELD_COUNT
};

#define DD_FIELD_BIT(f) (1u << (f))

/* What one object said. Items stand in the reader's list: first..first+n of it. */
struct dd_fields {
    unsigned seen; /* DD_FIELD_BIT of each field that was there */
    struct dd_slice user;
    const struct dd_scene *scene; /* of the field, or "default" */
    unsigned items_first, items_n;
    int64_t ts_ms;
    unsigned limit, window, max_seen; /* 0: not given */
    enum dd_claim claim;
    bool explain;
};

/* Reads the object that peek announced, whose fields are those of `shape`. false: the reader's error is
 * filled. */
bool dd_fields_read(struct dd_reader *r, unsigned shape, struct dd_fields *out);

/* Are all of `needed` (DD_FIELD_BIT) there? false: "missing_field" names the first. */
bool dd_fields_require(struct dd_reader *r, const struct dd_fields *f, unsigned needed);

/* Fails naming a field, outside of reading it. */
bool dd_fields_fail(struct dd_reader *r, enum dd_field f, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
