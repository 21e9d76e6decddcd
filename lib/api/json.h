/* A strict pull scanner for JSON (RFC 8259) over one contiguous text: no tree, no copy, no look-back.
 *
 * The caller asks for what it expects, in the order of the text:
 *
 *     dd_json_init(&j, body, arena);
 *     if (dd_json_peek(&j) == DD_JSON_OBJECT) {
 *         dd_json_open(&j);
 *         for (bool first = true; dd_json_next_member(&j, first, &key); first = false)
 *             ... read exactly one value ...
 *     }
 *     if (!dd_json_finish(&j)) ... j.error says what is wrong at byte dd_json_offset(&j) ...
 *
 * Accepted is what jansson accepts with JSON_REJECT_DUPLICATES, with two differences by design: finding equal
 * keys is the caller's (it knows its keys), and values can only be read, not skipped, so that nesting is
 * never deeper than the caller's own code. Refused: UTF-8 that is not well-formed, NUL (raw or \u0000),
 * control bytes in strings, lone surrogates, leading zeros, a byte order mark, comments, trailing commas,
 * anything after the value.
 *
 * The first failure sticks: error is set and every later call fails.
 * Ownership: slices point into the text, or into the arena for strings that hold escapes; the scanner owns
 * nothing. Threads: one scanner belongs to one thread. */
#ifndef DD_API_JSON_H
#define DD_API_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"

/* What stands next. DD_JSON_NONE: no value can begin here, or the text has ended. */
enum dd_json_type {
    DD_JSON_NONE,
    DD_JSON_OBJECT,
    DD_JSON_ARRAY,
    DD_JSON_STRING,
    DD_JSON_NUMBER,
    DD_JSON_TRUE,
    DD_JSON_FALSE,
    DD_JSON_NULL,
};

struct dd_json {
    const uint8_t *begin, *at, *end;
    struct dd_arena *arena;
    const char *error; /* static text for people; NULL while all is well */
    bool no_memory;    /* the failure was the arena's, not the text's */
};

/* raw: the token as it stands in the text, with quotes and escapes. */
struct dd_json_string {
    struct dd_slice text, raw;
};

struct dd_json_number {
    struct dd_slice raw;
    bool is_integer; /* no fraction, no exponent */
    bool fits;       /* an integer that fits 64 bits with sign: value is set */
    int64_t value;
};

void dd_json_init(struct dd_json *j, struct dd_slice text, struct dd_arena *arena);

/* Skips white space and looks; consumes nothing else. */
enum dd_json_type dd_json_peek(struct dd_json *j);

/* Consumes the bracket that peek announced. */
void dd_json_open(struct dd_json *j);

/* After dd_json_open, with first true, and then after each value with first false. true: a value follows (of
 * a member: its key was read). false: the container was closed and consumed, or error is set. */
bool dd_json_next_member(struct dd_json *j, bool first, struct dd_slice *key);
bool dd_json_next_element(struct dd_json *j, bool first);

/* Each reads one whole value of that type; false: error is set. Call them for what peek announced. */
bool dd_json_read_string(struct dd_json *j, struct dd_json_string *out);
bool dd_json_read_number(struct dd_json *j, struct dd_json_number *out);
/* true, false or null: consumes it and gives its type. */
bool dd_json_read_literal(struct dd_json *j, enum dd_json_type *out);

#define DD_JSON_ONES  0x0101010101010101ULL
#define DD_JSON_HIGHS 0x8080808080808080ULL

/* The first byte from p on that is a quote, a backslash, a control byte or not ASCII; end if there is none.
 * x ^ (DD_JSON_ONES * c) has a zero byte where x has c, and subtracting DD_JSON_ONES sets the high bit of a
 * zero byte. A borrow can only disturb bytes above one that is flagged already, so the lowest flag is exact.
 */
static inline const uint8_t *dd_json_skip_plain(const uint8_t *p, const uint8_t *end)
{
    while (end - p >= 8) {
        uint64_t x = dd_get_le64(p);
        uint64_t hit = x | ((x ^ DD_JSON_ONES * '"') - DD_JSON_ONES) |
                       ((x ^ DD_JSON_ONES * '\\') - DD_JSON_ONES) | (x - DD_JSON_ONES * 0x20);
        hit &= DD_JSON_HIGHS;
        if (hit) return p + __builtin_ctzll(hit) / 8;
        p += 8;
    }
    while (p < end && *p != '"' && *p != '\\' && *p >= 0x20 && *p < 0x80)
        p++;
    return p;
}

/* The quick way through a list of ids: true if the next element of an array is a string without escapes and
 * multi-byte characters, with no white space before it; it is consumed, as by dd_json_next_element and
 * dd_json_read_string. Otherwise nothing has happened, and those two say what stands there. */
static inline bool dd_json_take_plain(struct dd_json *j, bool first, struct dd_json_string *out)
{
    const uint8_t *open = j->at;
    if (!first && open < j->end && *open++ != ',') return false;
    if (j->error || open >= j->end || *open != '"') return false;
    const uint8_t *close = dd_json_skip_plain(open + 1, j->end);
    if (close == j->end || *close != '"') return false;
    j->at = close + 1;
    out->text = dd_slice_of(open + 1, (size_t)(close - open - 1));
    out->raw = dd_slice_of(open, (size_t)(close + 1 - open));
    return true;
}

/* true: nothing but white space is left, and nothing failed. */
bool dd_json_finish(struct dd_json *j);

/* Fails on purpose, at the present place (what peek found is not what may stand here). Returns false. */
bool dd_json_fail(struct dd_json *j, const char *error);

/* Bytes from the beginning to the present place: of a failure, to where it was noticed. */
static inline size_t dd_json_offset(const struct dd_json *j)
{
    return (size_t)(j->at - j->begin);
}

/* Appends a JSON string literal, quotes included. Bytes that are not well-formed UTF-8 become U+FFFD. */
void dd_json_add_string(struct dd_buf *out, struct dd_slice text);

#endif
