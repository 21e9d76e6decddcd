/* The options of dedupctl filters: one row each. A wrong one is named, with what it may be. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filters.h"
#include "filters_workload.h"

struct reader {
    struct dd_filters_args *args;
    const char *option, *value;
    const char *mode_option; /* the option that chose the mode */
};

static enum dd_err wrong(const struct reader *r, const char *may_be)
{
    fprintf(stderr, "dedupctl: filters: %s: \"%s\" is not %s\n", r->option, r->value, may_be);
    return DD_INVALID;
}

/* A decimal number of low .. high that ends at *end. */
static bool number(const char *text, uint64_t low, uint64_t high, uint64_t *out, const char **end)
{
    char *stop = NULL;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    *out = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0 && *out >= low && *out <= high;
}

static enum dd_err whole(const struct reader *r, uint64_t low, uint64_t high, uint64_t *out)
{
    const char *end = "";
    char may_be[80];
    if (number(r->value, low, high, out, &end) && *end == 0) return DD_OK;
    snprintf(may_be, sizeof may_be, "a whole number of %llu to %llu", (unsigned long long)low,
             (unsigned long long)high);
    return wrong(r, may_be);
}

static enum dd_err whole32(const struct reader *r, uint32_t low, uint32_t high, uint32_t *out)
{
    uint64_t v = 0;
    enum dd_err err = whole(r, low, high, &v);
    if (err == DD_OK) *out = (uint32_t)v;
    return err;
}

#define ITEMS_MAX 200000 /* the service's default cap of a period */

static enum dd_err read_items(struct reader *r)
{
    struct dd_filters_args *a = r->args;
    const char *at = r->value;
    uint64_t v = 0;
    for (a->items_n = 0; a->items_n < DD_FILTERS_SIZES_MAX; at++) {
        if (!number(at, 1, ITEMS_MAX, &v, &at)) break;
        a->items[a->items_n++] = (uint32_t)v;
        if (*at == 0) return DD_OK;
        if (*at != ',') break;
    }
    return wrong(r, "a list of at most 32 whole numbers of 1 to 200000, as in 100,1000,10000");
}

static enum dd_err read_fpr(struct reader *r)
{
    char *end = NULL;
    double v = strtod(r->value, &end);
    if (end == r->value || *end != 0 || !(v >= 1e-4 && v <= 0.05))
        return wrong(r, "a rate of 0.0001 to 0.05");
    r->args->fpr = v;
    return DD_OK;
}

static enum dd_err read_users(struct reader *r)
{
    return whole32(r, 1, 10000000, &r->args->users);
}

static enum dd_err read_id_bytes(struct reader *r)
{
    return whole32(r, 8, 256, &r->args->id_bytes);
}

static enum dd_err read_probes(struct reader *r)
{
    return whole32(r, 1000, 40000000, &r->args->probes);
}

static enum dd_err read_seed(struct reader *r)
{
    return whole(r, 0, UINT64_MAX, &r->args->seed);
}

static enum dd_err read_kind(struct reader *r)
{
    if (dd_filter_kind_parse(dd_slice_str(r->value), &r->args->kind) == DD_OK) return DD_OK;
    return wrong(r, "one of bloom, counting, cuckoo, compact");
}

static enum dd_err read_file(struct reader *r)
{
    r->args->file = r->value;
    return DD_OK;
}

static enum dd_err read_dir(struct reader *r)
{
    r->args->dir = r->value;
    return DD_OK;
}

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
}

static enum dd_err read_plot(struct reader *r)
{
    r->args->plot = r->value;
    return ends_in(r->value, ".svg") || ends_in(r->value, ".png") ? DD_OK
                                                                  : wrong(r, "a file name in .svg or .png");
}

static enum dd_err set_mode(struct reader *r, enum dd_filters_mode mode)
{
    if (r->mode_option && r->args->mode != mode) {
        fprintf(stderr, "dedupctl: filters: %s does not go with %s\n", r->option, r->mode_option);
        return DD_INVALID;
    }
    r->mode_option = r->option;
    r->args->mode = mode;
    return DD_OK;
}

static enum dd_err read_preset(struct reader *r)
{
    static const char *const names[] = {"articles", "memory", "scale"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(r->value, names[i])) return set_mode(r, (enum dd_filters_mode)(DD_FILTERS_ARTICLES + i));
    return wrong(r, "one of articles, memory, scale");
}

static enum dd_err read_population(struct reader *r)
{
    return set_mode(r, DD_FILTERS_POPULATION);
}

static enum dd_err read_targets(struct reader *r)
{
    return set_mode(r, DD_FILTERS_TARGETS);
}

static enum dd_err read_json(struct reader *r)
{
    r->args->json = true;
    return DD_OK;
}

static enum dd_err read_help(struct reader *r)
{
    r->args->mode = DD_FILTERS_HELP;
    return DD_OK;
}

#define ANY      (~0u)
#define IN(mode) (1u << (mode))

static const struct option {
    const char *name;
    bool has_value;
    enum dd_err (*read)(struct reader *r);
    unsigned modes; /* that heed it */
} options[] = {
    {"--help", false, read_help, ANY},
    {"-h", false, read_help, ANY},
    {"--json", false, read_json, ANY},
    {"--preset", true, read_preset, ANY},
    {"--population", false, read_population, ANY},
    {"--targets", false, read_targets, ANY},
    {"--seed", true, read_seed, ANY},
    {"--items", true, read_items, IN(DD_FILTERS_COMPARE) | IN(DD_FILTERS_MEMORY)},
    {"--fpr", true, read_fpr, IN(DD_FILTERS_COMPARE) | IN(DD_FILTERS_SCALE) | IN(DD_FILTERS_POPULATION)},
    {"--users", true, read_users, ANY},
    {"--id-bytes", true, read_id_bytes, IN(DD_FILTERS_COMPARE) | IN(DD_FILTERS_MEMORY)},
    {"--probes", true, read_probes, ANY},
    {"--file", true, read_file, IN(DD_FILTERS_COMPARE)},
    {"--plot", true, read_plot, IN(DD_FILTERS_COMPARE) | IN(DD_FILTERS_MEMORY)},
    {"--kind", true, read_kind, IN(DD_FILTERS_POPULATION)},
    {"--dir", true, read_dir, IN(DD_FILTERS_POPULATION) | IN(DD_FILTERS_TARGETS)},
};

enum { OPTIONS = sizeof options / sizeof *options };

/* The option at argv[*i] and its value, as --name VALUE or --name=VALUE. */
static const struct option *find(const struct dd_ctl *ctl, int *i, const char **value)
{
    const char *word = ctl->argv[*i];
    for (int j = 0; j < OPTIONS; j++) {
        size_t len = strlen(options[j].name);
        if (strncmp(word, options[j].name, len) != 0) continue;
        if (word[len] == 0) {
            *value = options[j].has_value && *i + 1 < ctl->argc ? ctl->argv[++*i] : NULL;
            return &options[j];
        }
        if (word[len] == '=' && options[j].has_value) {
            *value = word + len + 1;
            return &options[j];
        }
    }
    return NULL;
}

static enum dd_err read_all(const struct dd_ctl *ctl, struct reader *r, bool given[OPTIONS])
{
    for (int i = 0; i < ctl->argc; i++) {
        const struct option *o = find(ctl, &i, &r->value);
        if (!o) {
            fprintf(stderr, "dedupctl: filters: unknown option %s (dedupctl filters --help)\n", ctl->argv[i]);
            return DD_INVALID;
        }
        r->option = o->name;
        if (o->has_value && !r->value) {
            fprintf(stderr, "dedupctl: filters: %s needs a value\n", o->name);
            return DD_INVALID;
        }
        enum dd_err err = o->read(r);
        if (err != DD_OK) return err;
        given[o - options] = true;
    }
    return DD_OK;
}

/* An option that its mode would ignore is an error. */
static enum dd_err check_together(const struct reader *r, const bool given[OPTIONS])
{
    const struct dd_filters_args *a = r->args;
    for (int i = 0; i < OPTIONS; i++) {
        if (!given[i] || options[i].modes & IN(a->mode)) continue;
        fprintf(stderr, "dedupctl: filters: %s does not go with %s\n", options[i].name,
                r->mode_option ? r->mode_option : "a comparison");
        return DD_INVALID;
    }
    if (a->file && (a->items_n > 0 || a->users > 0)) {
        fprintf(stderr,
                "dedupctl: filters: --file has users and items of its own: neither --items nor --users\n");
        return DD_INVALID;
    }
    if (a->plot && a->file) {
        fprintf(stderr, "dedupctl: filters: --plot draws several sizes: --items, not --file\n");
        return DD_INVALID;
    }
    return DD_OK;
}

/* The most items of a period for which equal fingerprints leave half of the share. */
static uint32_t cap_at(double fpr)
{
    double most = floor(fpr / DD_FILTERS_WINDOW / 2 * 4294967296.0);
    return most < ITEMS_MAX ? (uint32_t)most : ITEMS_MAX;
}

static enum dd_err check_cap(const struct dd_filters_args *a)
{
    for (unsigned i = 0; i < a->items_n; i++) {
        if (a->items[i] <= cap_at(a->fpr)) continue;
        fprintf(stderr,
                "dedupctl: filters: --items: %u is more than %u, the most that --fpr %g can be kept for\n",
                a->items[i], cap_at(a->fpr), a->fpr);
        return DD_INVALID;
    }
    return DD_OK;
}

enum dd_err dd_filters_args_read(const struct dd_ctl *ctl, struct dd_filters_args *out)
{
    bool given[OPTIONS] = {false};
    struct reader r = {.args = out};
    *out = (struct dd_filters_args){
        .fpr = 0.001, .id_bytes = 16, .probes = 400000, .seed = 1, .json = ctl->json};
    enum dd_err err = read_all(ctl, &r, given);
    if (err == DD_OK && out->mode != DD_FILTERS_HELP) err = check_together(&r, given);
    if (err == DD_OK) err = check_cap(out);
    return err;
}

struct dd_filter_policy dd_filters_policy(const struct dd_filters_args *a, enum dd_filter_kind kind)
{
    struct dd_filter_policy p = dd_filter_policy_default();
    p.kind = kind;
    p.fpr = a->fpr / DD_FILTERS_WINDOW;
    p.cap = cap_at(a->fpr);
    return p;
}
