/* The option table: what one row says, and what can be done with it. Internal to lib/config and its tests.
 *
 * A row knows where its value lives (an offset into struct dd_config or struct dd_scene_config), so that one
 * piece of code sets, compares, copies and prints all options.
 *
 * Threads: the tables are constant. Ownership: texts in a struct belong to that struct. */
#ifndef DD_CONFIG_OPTION_H
#define DD_CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "config/report.h"

/* What a row's field is: int64_t, double, bool, an enum, char *. */
enum dd_option_type { DD_OPTION_INT, DD_OPTION_REAL, DD_OPTION_BOOL, DD_OPTION_CHOICE, DD_OPTION_TEXT };

enum dd_option_flags {
    DD_OPTION_RELOAD = 1,   /* may change at run time (SIGHUP) */
    DD_OPTION_SECRET = 2,   /* a URL that may hold a password */
    DD_OPTION_POWER2 = 4,   /* only powers of two */
    DD_OPTION_OR_MINUS1 = 8 /* -1 is allowed besides the range */
};

struct dd_choice {
    const char *name; /* NULL ends the list */
    int value;
};

/* Judges a text: true, or false with a sentence in why. */
typedef bool dd_option_check(const char *text, char *why, size_t why_size);

struct dd_option {
    const char *name; /* "http.workers"; in the scene table without "scenes.<name>." */
    enum dd_option_type type;
    size_t offset;
    const char *initial;             /* the default, as text */
    double min, max;                 /* INT (within 2^53, so exact) and REAL */
    const struct dd_choice *choices; /* CHOICE */
    dd_option_check *check;          /* TEXT; NULL: anything */
    const char *unit;                /* "ms", "" for none; TEXT: what it may be */
    unsigned flags;
    const char *text;
};

struct dd_table {
    const struct dd_option *rows;
    size_t count;
};

extern const struct dd_table dd_config_table, dd_scene_table;

/* Where rows of a table are set: a struct, and what stands before the names in errors ("scenes.push."). */
struct dd_target {
    const struct dd_table *table;
    void *base;
    const char *prefix;
    uint64_t *given; /* bit i is set when row i is assigned; NULL: not kept */
};

/* NULL: none of that name. */
const struct dd_option *dd_option_find(const struct dd_table *table, struct dd_slice name);
/* Whether some name begins with this one and a dot. */
bool dd_option_is_section(const struct dd_table *table, struct dd_slice name);

#define DD_OPTION_TEXT_MAX 160

/* "DEDUPD_HTTP_WORKERS" for prefix "DEDUPD_" and http.workers: upper case, other bytes than [A-Z0-9] as _. */
const char *dd_option_env(const char *prefix, struct dd_slice name, char out[DD_OPTION_TEXT_MAX]);
/* What is allowed, for people: "0..256", "debug, info, warn, error". */
const char *dd_option_range(const struct dd_option *opt, char out[DD_OPTION_TEXT_MAX]);
/* The shortest of 15 or 17 digits that reads back as the same number. */
const char *dd_number_text(double v, char out[DD_OPTION_TEXT_MAX]);

int64_t dd_option_int(const struct dd_option *opt, const void *base);
double dd_option_real(const struct dd_option *opt, const void *base);
bool dd_option_bool(const struct dd_option *opt, const void *base);
/* The name of a choice, or the text. Never NULL in a loaded configuration. */
const char *dd_option_string(const struct dd_option *opt, const void *base);

/* Appends the value as --set takes it, secrets masked. */
void dd_option_format(const struct dd_option *opt, const void *base, struct dd_buf *out);
bool dd_option_equal(const struct dd_option *opt, const void *a, const void *b);
/* false: no memory, nothing changed. */
bool dd_option_copy(const struct dd_option *opt, void *to, const void *from);
/* Frees a text, after overwriting it. */
void dd_option_release(const struct dd_option *opt, void *base);

/* A value on its way in. Texts are borrowed. */
struct dd_value {
    enum dd_value_kind { DD_VALUE_NUMBER, DD_VALUE_BOOL, DD_VALUE_STRING, DD_VALUE_OTHER } kind;
    double number;
    bool flag;
    const char *string; /* STRING; OTHER: what it is, for people ("null", "an array") */
};

/* Reads a text of the environment or of --set as the row's type; what does not read becomes a STRING, which
 * dd_option_assign then refuses. */
struct dd_value dd_value_read(const struct dd_option *opt, const char *text);

/* Checks the value and stores it in the target; otherwise reports why not and changes nothing. */
void dd_option_assign(const struct dd_target *to, const struct dd_option *opt, struct dd_value v,
                      struct dd_report *report);
/* Every row's default. */
void dd_option_assign_defaults(const struct dd_target *to, struct dd_report *report);

/* Reports an unknown name, with the nearest known one if there is a near one. */
void dd_option_unknown(const struct dd_target *to, const char *name, struct dd_report *report);

#endif
