/* From the body of a request to the call that lib/dedup takes: POST /exposed, /filter and /delivered.
 *
 * One pass over the body, in place: ids are slices of it (or of the arena, where they hold escapes), and
 * `echo` of an item is its token exactly as it was sent, so that an answer returns 9007199254740993 and
 * "caf\u00e9" unchanged. Nothing is handed on before the whole body was read and found good.
 *
 * Limits: user 1..128 bytes, item 1..256 bytes or an integer of 64 bits with sign, and those of struct
 * dd_codec. Unknown fields, repeated fields and null are errors.
 *
 * Ownership: a call's slices borrow the body and the arena. Threads: pure functions. */
#ifndef DD_API_CODEC_H
#define DD_API_CODEC_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"
#include "dedup/dedup.h"

struct dd_codec {
    const struct dd_scenes *scenes;
    unsigned max_candidates; /* of one /filter */
    unsigned max_items;      /* of one /exposed or /delivered, all events together */
    unsigned max_events;     /* of one /exposed */
};

/* What was wrong, ready for the answer. */
struct dd_api_error {
    int status;       /* 400 to 599 */
    const char *code; /* static; proto/openapi.yaml lists them */
    char field[96];   /* path such as `events[2].items[3]`; "" when it is about no field. Cut at a character's
                         end */
    char message[256];
};

/* "invalid_json", "invalid_field", "missing_field", "unknown_field", "unsupported", "too_many" (all 400) and
 * "no_memory" (503) are what reading gives. DD_OK: the "in" part of *out is filled but for done, finished and
 * arg. DD_INVALID, DD_NO_MEMORY: *err is filled, *out is not to be used. */
enum dd_err dd_codec_exposed(const struct dd_codec *c, struct dd_slice body, struct dd_arena *arena,
                             struct dd_exposed_call *out, bool *batch, struct dd_api_error *err) DD_MUST_USE;
enum dd_err dd_codec_filter(const struct dd_codec *c, struct dd_slice body, struct dd_arena *arena,
                            struct dd_filter_call *out, struct dd_api_error *err) DD_MUST_USE;
enum dd_err dd_codec_delivered(const struct dd_codec *c, struct dd_slice body, struct dd_arena *arena,
                               struct dd_delivered_call *out, struct dd_api_error *err) DD_MUST_USE;

#endif
