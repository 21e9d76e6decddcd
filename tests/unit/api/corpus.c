#include "corpus.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "cases.h"
#include "unit.h"

/* Long bodies make a slow test and damage less of what matters. */
#define SEED_MAX_BYTES 600

static uint64_t next(struct corpus *c)
{
    return dd_mix64(c->state += 0x9e3779b97f4a7c15ULL);
}

static size_t below(struct corpus *c, size_t n)
{
    return n ? (size_t)(next(c) % n) : 0;
}

static bool one_in(struct corpus *c, unsigned n)
{
    return below(c, n) == 0;
}

#define PICK(c, table) (table)[below(c, sizeof(table) / sizeof *(table))]

/* ---- seeds ---- */

static void add_seed(struct corpus *c, const json_t *request)
{
    struct dd_buf body = {0};
    case_body(request, &body);
    if (body.len == 0 || body.len > SEED_MAX_BYTES) {
        dd_buf_free(&body);
        return;
    }
    c->seeds = realloc(c->seeds, (c->seeds_n + 1) * sizeof *c->seeds);
    c->seeds[c->seeds_n++] = body;
}

static void add_file(struct corpus *c, const char *path)
{
    json_t *rows = cases_load(path), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        const json_t *request = json_object_get(row, "request");
        add_seed(c, request ? request : row);
    }
    json_decref(rows);
}

void corpus_init(struct corpus *c, uint64_t seed)
{
    *c = (struct corpus){.state = seed};
    add_file(c, BAD_REQUESTS);
    struct dirent **files;
    int n = scandir(EXAMPLES, &files, NULL, alphasort);
    ck_assert_msg(n > 2, "no examples in %s", EXAMPLES);
    for (int i = 0; i < n; i++) {
        char path[512];
        snprintf(path, sizeof path, EXAMPLES "/%s", files[i]->d_name);
        if (strstr(path, ".json")) add_file(c, path);
        free(files[i]);
    }
    free(files);
}

void corpus_free(struct corpus *c)
{
    for (unsigned i = 0; i < c->seeds_n; i++)
        dd_buf_free(&c->seeds[i]);
    free(c->seeds);
}

/* ---- the grammar ---- */

static const char *const strings[] = {
    "\"a\"",
    "\"u1\"",
    "\"\"",
    "\"exposed\"",
    "\"default\"",
    "\"push\"",
    "\"nope\"",
    "\"caf\\u00e9\"",
    "\"caf\xc3\xa9\"",
    "\"0\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\\u0000\"",
    "\"\\/\\\\\"",
    "\"a\x7f\"",
    "\"\xed\xa0\x80\"",
    "\"e\\u0078posed\"",
    "\"a\\n\"",
};
static const char *const scalars[] = {
    "0",
    "-0",
    "1",
    "2",
    "5",
    "6",
    "100",
    "101",
    "1764500000",
    "1764500000000",
    "253402300799999",
    "64",
    "65",
    "-1",
    "1.0",
    "1e2",
    "true",
    "false",
    "null",
    "9223372036854775807",
    "9223372036854775808",
    "00",
    "1.",
    "-",
    "[]",
    "{}",
    "[1]",
    "tru",
    "nan",
    "253402300800000",
    "100000000",
    "99999999999",
    "-9223372036854775808",
    "-9223372036854775809",
    "{\"a\":1,\"a\":2}",
};
static const char *const names[] = {
    "user",    "items", "candidates", "scene",      "ts",     "events", "limit",  "claim", "window",
    "explain", "min",   "max_seen",   "us\\u0065r", "colour", "",       "events", "items", "caf\xc3\xa9",
};

static void add_space(struct corpus *c, struct dd_buf *out)
{
    static const char *const spaces[] = {" ", "\n", "\t\r\n ", "  "};
    if (one_in(c, 12)) dd_buf_add_str(out, PICK(c, spaces));
}

static void add_string(struct corpus *c, struct dd_buf *out)
{
    static const unsigned edges[] = {1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 255, 256, 257};
    if (!one_in(c, 30)) {
        dd_buf_add_str(out, PICK(c, strings));
        return;
    }
    unsigned n = PICK(c, edges);
    dd_buf_add_u8(out, '"');
    for (unsigned i = 0; i < n; i++)
        dd_buf_add_u8(out, (uint8_t)('a' + i % 26));
    dd_buf_add_u8(out, '"');
}

static void add_number(struct corpus *c, struct dd_buf *out)
{
    size_t bits = below(c, 64);
    dd_buf_add_i64(out, (int64_t)next(c) >> bits);
}

static void add_item(struct corpus *c, struct dd_buf *out)
{
    if (one_in(c, 60))
        dd_buf_add_str(out, PICK(c, scalars));
    else if (one_in(c, 3))
        add_number(c, out);
    else if (one_in(c, 3))
        dd_buf_add_str(out, "\"plain-id\"");
    else
        add_string(c, out);
}

static void add_list(struct corpus *c, struct dd_buf *out)
{
    dd_buf_add_u8(out, '[');
    for (size_t n = below(c, 8), i = 0; i < n; i++) {
        if (i) dd_buf_add_u8(out, ',');
        add_space(c, out);
        add_item(c, out);
        add_space(c, out);
    }
    dd_buf_add_u8(out, ']');
}

static void add_object(struct corpus *c, enum shape shape, bool inside, struct dd_buf *out);

static void add_events(struct corpus *c, struct dd_buf *out)
{
    dd_buf_add_u8(out, '[');
    for (size_t n = below(c, 6), i = 0; i < n; i++) {
        if (i) dd_buf_add_u8(out, ',');
        if (one_in(c, 25))
            dd_buf_add_str(out, PICK(c, scalars));
        else
            add_object(c, SHAPE_EXPOSED, true, out);
    }
    dd_buf_add_u8(out, ']');
}

static const char *const scenes[] = {"\"default\"", "\"push\"", "\"likes\""};

static void add_value(struct corpus *c, const char *name, struct dd_buf *out)
{
    bool list = strcmp(name, "items") == 0 || strcmp(name, "candidates") == 0;
    if (one_in(c, 20))
        dd_buf_add_str(out, PICK(c, scalars));
    else if (list)
        add_list(c, out);
    else if (strcmp(name, "events") == 0)
        add_events(c, out);
    else if (strcmp(name, "user") == 0)
        dd_buf_add_str(out, one_in(c, 4) ? PICK(c, strings) : "\"u1\"");
    else if (strcmp(name, "scene") == 0)
        dd_buf_add_str(out, PICK(c, scenes));
    else if (strcmp(name, "explain") == 0)
        dd_buf_add_str(out, one_in(c, 2) ? "true" : "false");
    else if (strcmp(name, "claim") == 0)
        dd_buf_add_str(out, one_in(c, 2) ? "true" : "\"exposed\"");
    else if (strcmp(name, "ts") == 0 || one_in(c, 4))
        dd_buf_add_str(out, PICK(c, scalars));
    else
        dd_buf_add_i64(out, 1 + (int64_t)below(c, 4));
}

static void add_field(struct corpus *c, const char *name, struct dd_buf *out)
{
    if (out->data[out->len - 1] != '{') dd_buf_add_u8(out, ',');
    add_space(c, out);
    dd_buf_addf(out, "\"%s\"", name);
    add_space(c, out);
    dd_buf_add_u8(out, ':');
    add_space(c, out);
    add_value(c, name, out);
}

/* Mostly what the shape needs and may have, now and then anything. */
static void add_object(struct corpus *c, enum shape shape, bool inside, struct dd_buf *out)
{
    static const char *const of_filter[] = {"scene", "limit", "claim", "window", "explain", "max_seen"};
    bool batch = shape == SHAPE_EXPOSED && !inside && one_in(c, 3), swap = one_in(c, 2);
    const char *list = shape == SHAPE_FILTER ? "candidates" : "items";
    dd_buf_add_u8(out, '{');
    if (batch) add_field(c, "events", out);
    if (!batch && !swap && !one_in(c, 30)) add_field(c, "user", out);
    if (!batch && !one_in(c, 30)) add_field(c, list, out);
    if (!batch && swap && !one_in(c, 30)) add_field(c, "user", out);
    for (size_t n = shape == SHAPE_FILTER ? below(c, 4) : 0; n > 0; n--)
        add_field(c, PICK(c, of_filter), out);
    if (shape == SHAPE_EXPOSED && !batch && one_in(c, 3)) add_field(c, "ts", out);
    if (one_in(c, 12)) add_field(c, PICK(c, names), out);
    dd_buf_add_u8(out, '}');
}

/* ---- damage ---- */

static void replace(struct dd_buf *b, size_t at, size_t gone, const char *text)
{
    struct dd_buf made = {0};
    dd_buf_add(&made, b->data, at);
    dd_buf_add_str(&made, text);
    dd_buf_add(&made, b->data + at + gone, b->len - at - gone);
    dd_buf_reset(b);
    dd_buf_add_slice(b, dd_buf_slice(&made));
    dd_buf_free(&made);
}

static void damage(struct corpus *c, struct dd_buf *b)
{
    static const char *const tokens[] = {",",    ":",       "{",    "}",    "[",    "]",         "\"",   "\\",
                                         "\\u",  "\\ud83d", "0",    "-",    ".",    "e",         " ",    "\n",
                                         "\x01", "\xc3",    "\xff", "null", "true", "\"user\":", "\"a\""};
    size_t at = below(c, b->len + 1), left = b->len - at;
    switch (below(c, 6)) {
    case 0: /* a byte changes, NUL included */
        if (left) b->data[at] = (uint8_t)next(c);
        break;
    case 1: /* a bit flips */
        if (left) b->data[at] ^= (uint8_t)(1u << below(c, 8));
        break;
    case 2: /* a few bytes vanish */
        replace(b, at, below(c, left < 6 ? left + 1 : 6), "");
        break;
    case 3: /* cut short */
        b->len = at;
        break;
    case 4: /* a piece is repeated */
        if (left) {
            char piece[24];
            snprintf(piece, sizeof piece, "%.*s", (int)(left < 20 ? left : 20), (const char *)b->data + at);
            replace(b, at, 0, piece);
        }
        break;
    default:
        replace(b, at, 0, PICK(c, tokens));
    }
}

void corpus_next(struct corpus *c, enum shape shape, struct dd_buf *out)
{
    dd_buf_reset(out);
    if (one_in(c, 3))
        dd_buf_add_slice(out, dd_buf_slice(&c->seeds[below(c, c->seeds_n)]));
    else
        add_object(c, shape, false, out);
    if (!one_in(c, 3)) return;
    for (size_t n = 1 + below(c, 3); n > 0; n--)
        damage(c, out);
}
