/* Exposures from lines. So many are read at a time, sorted by user and period, and each set gets one operand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "load.h"

#define LINES_AT_ONCE 65536

struct exposure {
    struct dd_slice user; /* in users; set when all are read */
    size_t user_at, user_len;
    struct dd_period period;
    uint32_t fp;
};

struct lines {
    struct dd_loader *l;
    int64_t now_ms;
    struct dd_load_lines *count;
    struct exposure *exposure;
    size_t n;
    struct dd_buf users;
    uint32_t *fps;
};

static int by_set(const void *x, const void *y)
{
    const struct exposure *a = x, *b = y;
    int users = dd_slice_cmp(a->user, b->user);
    if (users) return users;
    return (a->period.ordinal > b->period.ordinal) - (a->period.ordinal < b->period.ordinal);
}

static bool same_set(const struct exposure *a, const struct exposure *b)
{
    return dd_slice_eq(a->user, b->user) && dd_period_eq(a->period, b->period);
}

/* Gives what was read to the loader. */
static enum dd_err flush(struct lines *x)
{
    enum dd_err err = dd_buf_ok(&x->users) ? DD_OK : DD_NO_MEMORY;
    if (err != DD_OK) return err;
    for (size_t i = 0; i < x->n; i++)
        x->exposure[i].user = dd_slice_of(x->users.data + x->exposure[i].user_at, x->exposure[i].user_len);
    qsort(x->exposure, x->n, sizeof *x->exposure, by_set);
    for (size_t i = 0, j; err == DD_OK && i < x->n; i = j) {
        for (j = i; j < x->n && same_set(&x->exposure[i], &x->exposure[j]); j++)
            x->fps[j - i] = x->exposure[j].fp;
        err = dd_loader_add(x->l, x->exposure[i].user, x->exposure[i].period, 0, x->fps, j - i);
    }
    x->n = 0;
    dd_buf_reset(&x->users);
    return err;
}

static bool read_ms(const char *text, int64_t *ms)
{
    char *end;
    errno = 0;
    *ms = strtoll(text, &end, 10);
    return end != text && (*end == 0 || *end == '\n' || *end == '\r') && errno == 0 && *ms >= 100000000000;
}

/* user TAB item TAB milliseconds. false: it is not. Milliseconds that can only be seconds are wrong too. */
static bool split(char *line, struct dd_slice *user, struct dd_slice *item, int64_t *ms)
{
    char *tab = strchr(line, '\t'), *tab2 = tab ? strchr(tab + 1, '\t') : NULL;
    if (!tab2 || !read_ms(tab2 + 1, ms)) return false;
    *user = dd_slice_of(line, (size_t)(tab - line));
    *item = dd_slice_of(tab + 1, (size_t)(tab2 - tab - 1));
    return user->len >= 1 && user->len <= DD_LOAD_USER_BYTES && item->len >= 1 &&
           item->len <= DD_LOAD_ITEM_BYTES;
}

static enum dd_err take_line(struct lines *x, char *line)
{
    struct dd_loader *l = x->l;
    struct dd_slice user, item;
    int64_t ms;
    x->count->lines++;
    if (!split(line, &user, &item, &ms)) {
        if (!x->count->wrong++) x->count->first_wrong = x->count->lines;
        return DD_OK;
    }
    struct dd_period now = dd_period_at(l->period, (struct dd_wall){x->now_ms}),
                     p = dd_period_at(l->period, (struct dd_wall){ms});
    if (ms > x->now_ms || p.ordinal <= now.ordinal - (int32_t)l->window) {
        x->count->outside++;
        return DD_OK;
    }
    uint64_t seed = dd_hash_user_seed(dd_store_secret(l->store), l->scene, user);
    x->exposure[x->n++] = (struct exposure){
        .user_at = x->users.len, .user_len = user.len, .period = p, .fp = dd_hash_fingerprint(seed, item)};
    dd_buf_add_slice(&x->users, user);
    return x->n < LINES_AT_ONCE ? DD_OK : flush(x);
}

static enum dd_err take_all(struct lines *x, FILE *from, uint64_t total, struct dd_bar *bar)
{
    char *line = NULL;
    size_t cap = 0;
    uint64_t bytes = 0;
    enum dd_err err = DD_OK;
    for (ssize_t n; err == DD_OK && (n = getline(&line, &cap, from)) > 0;) {
        bytes += (uint64_t)n;
        if (memchr(line, 0, (size_t)n)) line[0] = 0; /* wrong: it would be cut short */
        err = take_line(x, line);
        if (x->count->lines % 1024 == 0) dd_bar_show(bar, bytes, total);
    }
    free(line);
    if (err == DD_OK && ferror(from)) err = DD_IO;
    return err == DD_OK ? flush(x) : err;
}

enum dd_err dd_load_lines(struct dd_loader *l, FILE *from, uint64_t total, int64_t now_ms, struct dd_bar *bar,
                          struct dd_load_lines *out)
{
    struct lines x = {.l = l, .now_ms = now_ms, .count = out};
    *out = (struct dd_load_lines){0};
    x.exposure = malloc(LINES_AT_ONCE * sizeof *x.exposure);
    x.fps = malloc(LINES_AT_ONCE * sizeof *x.fps);
    enum dd_err err = x.exposure && x.fps ? take_all(&x, from, total, bar) : DD_NO_MEMORY;
    if (err == DD_OK) err = dd_loader_finish(l);
    free(x.exposure);
    free(x.fps);
    dd_buf_free(&x.users);
    return err;
}
