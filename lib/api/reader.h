/* One request body on its way through the codec: the scanner, where we are in the body, and what was wrong
 * first. Private to lib/api's codec.
 *
 * Every function returns false after it filled the error; the first failure stays.
 * Threads: one reader belongs to one thread. Ownership: borrows everything. */
#ifndef DD_API_READER_H
#define DD_API_READER_H

#include "api/codec.h"
#include "api/json.h"

struct dd_fields;

struct dd_reader {
    struct dd_json json;
    const struct dd_codec *codec;
    struct dd_arena *arena;
    struct dd_api_error *err; /* filled at the first failure */
    /* where we are, for the path of an error */
    int event;         /* -1: not inside events */
    const char *field; /* NULL: none */
    int item;          /* -1: none */
    /* all items of the request */
    struct dd_item *items;
    unsigned items_n, items_cap;
    /* the events of /exposed */
    struct dd_fields *events;
    unsigned events_n, events_cap;
};

void dd_reader_init(struct dd_reader *r, const struct dd_codec *c, struct dd_slice body,
                    struct dd_arena *arena, struct dd_api_error *err);

/* Fills the error with status 400, the path of where we are, and the message. */
bool dd_reader_fail(struct dd_reader *r, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The scanner has failed: "invalid_json" with the byte, or "no_memory". */
bool dd_reader_fail_json(struct dd_reader *r);
bool dd_reader_fail_memory(struct dd_reader *r);
/* What stands next is no value, or one of another type. must: what it must be, after "must be". */
bool dd_reader_fail_type(struct dd_reader *r, const char *must);

/* Each reads one value of a type and checks its bounds. */
bool dd_read_text(struct dd_reader *r, size_t max_bytes, struct dd_slice *out); /* 1..max_bytes */
bool dd_read_integer(struct dd_reader *r, int64_t *out);
bool dd_read_number_in(struct dd_reader *r, unsigned max, unsigned *out); /* 1..max */
bool dd_read_bool(struct dd_reader *r, bool *out);

#endif
