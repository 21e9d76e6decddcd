/* Loading from texts: what the configuration tests share. */
#ifndef DD_TESTS_UNIT_CONFIG_SUPPORT_H
#define DD_TESTS_UNIT_CONFIG_SUPPORT_H

#include "config/config.h"
#include "unit.h"

struct loaded {
    enum dd_err err;
    struct dd_config *cfg; /* NULL after an error */
    struct dd_buf errors;  /* ends in NUL: (char *)errors.data is the text */
};

/* Loads from a file of this text (NULL: no file), an environment and a list of --set, both ended by NULL and
 * either may be NULL. */
struct loaded load_all(const char *json, const char *const *environment, const char *const *sets);
struct loaded load_json(const char *json);
struct loaded load_set(const char *assignment);
void loaded_free(struct loaded *l);

/* What dd_config_print gives, ending in NUL; the caller frees. */
char *printed(const struct dd_config *cfg);

/* Loads, and expects an error whose text contains this. */
void expect_json_error(const char *json, enum dd_err err, const char *text);
void expect_set_error(const char *assignment, const char *text);

#define ck_assert_contains(haystack, needle)                                                                 \
    ck_assert_msg(strstr((haystack), (needle)) != NULL, "\"%s\" not in \"%s\"", (needle), (haystack))
#define ck_assert_lacks(haystack, needle)                                                                    \
    ck_assert_msg(strstr((haystack), (needle)) == NULL, "\"%s\" in \"%s\"", (needle), (haystack))

/* A test case with a time limit that the sanitizers keep. */
TCase *case_of(Suite *s, const char *name);

#endif
