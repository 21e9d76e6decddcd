/* The scene's options go through the server's own table and checks, so what is left out, what is allowed and
 * what is said about a wrong value are the server's. */
#include <stdio.h>

#include "config/config.h"
#include "load.h"

#define SETS_MAX 5

static bool add(struct dd_buf *set, const char *scene, const char *option, const char *value)
{
    dd_buf_addf(set, "scenes.%s.%s=%s", scene, option, value);
    dd_buf_add_u8(set, 0);
    return dd_buf_ok(set);
}

/* A line each, without the source that none of them has here: "--set: scenes.home.fpr: 2 is ..." */
static void print_errors(const struct dd_buf *errors)
{
    const char *at = (const char *)errors->data, *end = at + errors->len;
    while (at && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at), skip = n > 7 && memcmp(at, "--set: ", 7) == 0 ? 7 : 0;
        fprintf(stderr, "dedupctl: %.*s\n", (int)(n - skip), at + skip);
        at += n + 1;
    }
}

/* NULL: it is said why. */
static struct dd_config *load_config(const char *const *sets, size_t n)
{
    struct dd_config_sources from = {.sets = sets, .set_count = n};
    struct dd_buf errors = {0};
    struct dd_config *cfg;
    if (dd_config_load(&from, &cfg, &errors) != DD_OK) print_errors(&errors);
    dd_buf_free(&errors);
    return cfg;
}

/* At least one option is always set: that makes the scene. */
static bool default_capacity(char out[24])
{
    struct dd_config *cfg = load_config(NULL, 0);
    if (!cfg) return false;
    snprintf(out, 24, "%lld", (long long)dd_config_scene(cfg, dd_slice_str("default"))->capacity);
    dd_config_destroy(cfg);
    return true;
}

static bool take(const struct dd_config *cfg, const char *name, struct dd_loader *l)
{
    const struct dd_scene_config *s = dd_config_scene(cfg, dd_slice_str(name));
    if (s->filter == DD_FILTER_COUNTING) {
        fprintf(stderr, "dedupctl: --filter counting cannot be loaded: loading again would count again\n");
        return false;
    }
    l->scene = dd_slice_str(name);
    l->period = s->period;
    l->window = (unsigned)s->window;
    l->policy = s->policy;
    return true;
}

bool dd_load_scene(const struct dd_load_scene *g, struct dd_loader *l)
{
    char capacity[24];
    const char *names[SETS_MAX] = {"capacity", "period", "window", "fpr", "filter"}, *sets[SETS_MAX];
    const char *values[SETS_MAX] = {g->capacity, g->period, g->window, g->fpr, g->filter};
    struct dd_buf text[SETS_MAX] = {{0}};
    size_t n = 0;
    bool good = g->capacity || default_capacity(capacity);
    if (!g->capacity) values[0] = capacity;
    for (size_t i = 0; good && i < SETS_MAX; i++) {
        if (!values[i]) continue;
        good = add(&text[n], g->name, names[i], values[i]);
        sets[n] = (const char *)text[n].data;
        n++;
    }
    struct dd_config *cfg = good ? load_config(sets, n) : NULL;
    good = cfg && take(cfg, g->name, l);
    dd_config_destroy(cfg);
    for (size_t i = 0; i < SETS_MAX; i++)
        dd_buf_free(&text[i]);
    return good;
}
