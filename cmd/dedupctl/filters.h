/* dedupctl filters: the structures that can remember what a user saw, side by side on the user's own numbers.
 * What the files filters_*.c share: the options, and one function per mode. */
#ifndef DD_CTL_FILTERS_H
#define DD_CTL_FILTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "command.h"
#include "filter/filter.h"

#define DD_FILTERS_SIZES_MAX 32

/* A period's share is promise / DD_FILTERS_WINDOW, as in the service with its default window. */
#define DD_FILTERS_WINDOW 3

enum dd_filters_mode {
    DD_FILTERS_COMPARE,
    DD_FILTERS_ARTICLES,
    DD_FILTERS_MEMORY,
    DD_FILTERS_SCALE,
    DD_FILTERS_POPULATION,
    DD_FILTERS_TARGETS,
    DD_FILTERS_HELP
};

struct dd_filters_args {
    enum dd_filters_mode mode;
    uint32_t items[DD_FILTERS_SIZES_MAX]; /* of one user; ascending is not required */
    unsigned items_n;
    double fpr;        /* the promise over the window */
    uint32_t users;    /* 0: the mode's default */
    uint32_t id_bytes; /* of a made-up item id */
    uint32_t probes;   /* items never added that are tested, over all users of a row */
    uint64_t seed;
    enum dd_filter_kind kind; /* population: this kind only; 0: all */
    const char *file, *plot, *dir;
    bool json;
};

/* Reads ctl->argv. DD_OK; DD_INVALID: a sentence that names the option is on standard error. */
enum dd_err dd_filters_args_read(const struct dd_ctl *ctl, struct dd_filters_args *out) DD_MUST_USE;
void dd_filters_print_help(void);

/* The policy of a kind at the promise of the options. */
struct dd_filter_policy dd_filters_policy(const struct dd_filters_args *a, enum dd_filter_kind kind);

/* The modes. Each prints its table or JSON on standard output and returns the exit code. */
int dd_filters_compare(const struct dd_filters_args *given);
int dd_filters_articles(const struct dd_filters_args *a);
int dd_filters_memory(const struct dd_filters_args *given);
int dd_filters_scale(const struct dd_filters_args *a);
int dd_filters_population(const struct dd_filters_args *a);
int dd_filters_targets(const struct dd_filters_args *a);

/* Prints "dedupctl: what: text of err" and returns DD_CTL_FAILED; DD_CTL_OK for DD_OK. */
int dd_filters_exit(enum dd_err err, const char *what);

#endif
