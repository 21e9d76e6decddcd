/* Counting what is in the store: all sets in one pass for sizes, a sample of users for errors and for Redis.
 */
#include <stdlib.h>

#include "filters_number.h"
#include "filters_population.h"

/* New items tested of each user in the sample, and old ones of each month. */
enum { PROBES = 100, ASKED = 100 };
#define HOT_USERS 1000

struct pass {
    const struct dd_population *p;
    struct dd_census *c;
    uint8_t *dense; /* a bit for each user that has a set with layers */
    enum dd_err err;
};

static bool count_set(void *arg, struct dd_slice scene, struct dd_slice user, struct dd_period period,
                      struct dd_slice blob)
{
    struct pass *pass = arg;
    struct dd_filter_view v;
    uint32_t number = dd_population_user(user, pass->p->users);
    (void)scene, (void)period;
    pass->err = number == UINT32_MAX ? DD_CORRUPT : dd_filter_view_open(&v, blob);
    if (pass->err != DD_OK) return false;
    pass->c->sets++;
    pass->c->bytes += blob.len;
    if (v.layers > 0) {
        pass->dense[number / 8] |= (uint8_t)(1u << number % 8);
    } else {
        pass->c->sparse_sets++;
        pass->c->sparse_over += blob.len > 4 * (size_t)v.sparse_n + 32;
    }
    return true;
}

static enum dd_err count_sets(const struct dd_population *p, struct dd_store *s, struct dd_census *c)
{
    struct pass pass = {.p = p, .c = c, .dense = calloc(p->users / 8 + 1, 1)};
    if (!pass.dense) return DD_NO_MEMORY;
    enum dd_err err = dd_store_each(s, count_set, &pass);
    if (err == DD_OK) err = pass.err;
    for (uint32_t user = 0; user < p->users; user++)
        c->sparse_users += !(pass.dense[user / 8] >> user % 8 & 1);
    free(pass.dense);
    return err;
}

/* How many of n fingerprints the window has. */
static enum dd_err count_seen(const struct dd_store_read *r, const uint32_t *fps, size_t n, uint64_t *seen_n)
{
    uint8_t seen[PROBES > ASKED ? PROBES : ASKED] = {0};
    for (unsigned i = 0; i < r->n; i++) {
        struct dd_filter_view v;
        enum dd_err err = dd_filter_view_open(&v, r->set[i].blob);
        if (err != DD_OK) return err;
        *seen_n += dd_filter_view_test(&v, fps, n, seen, 1);
    }
    return DD_OK;
}

static enum dd_err test_errors(const struct dd_population *p, const struct dd_store_read *r, uint32_t user,
                               struct dd_census *c)
{
    uint32_t fps[PROBES > ASKED ? PROBES : ASKED];
    uint64_t present = 0;
    dd_population_fingerprints(p, user, DD_POPULATION_MONTHS, 0, PROBES,
                               fps); /* a month that is not stored */
    enum dd_err err = count_seen(r, fps, PROBES, &c->hits);
    c->trials += PROBES;
    for (int month = 0; err == DD_OK && month < DD_POPULATION_MONTHS; month++) {
        uint32_t n = dd_population_items(p, user, month);
        if (n > ASKED) n = ASKED;
        dd_population_fingerprints(p, user, month, 0, n, fps);
        err = count_seen(r, fps, n, &present);
        c->asked += n;
        c->forgotten += n;
    }
    c->forgotten -= present;
    return err;
}

static enum dd_err weigh_hot(struct dd_own_redis *redis, const struct dd_store_read *r, struct dd_census *c)
{
    struct dd_slice blobs[DD_POPULATION_MONTHS];
    uint64_t bytes = 0;
    for (unsigned i = 0; i < r->n; i++)
        blobs[i] = r->set[i].blob;
    enum dd_err err = dd_own_redis_cached(redis, r->user, blobs, r->n, &bytes);
    if (err != DD_OK) return err;
    c->hot_bytes += bytes;
    c->hot_users++;
    return DD_OK;
}

static enum dd_err sample_user(const struct dd_population *p, struct dd_store *s, uint32_t user,
                               struct dd_own_redis *redis, struct dd_census *c)
{
    char name[DD_POPULATION_NAME];
    struct dd_store_read r = {.scene = dd_slice_str("home"), .user = dd_population_name(user, name)};
    for (int month = 0; month < DD_POPULATION_MONTHS; month++)
        r.periods[r.n++] = dd_population_period(month);
    enum dd_err err = dd_store_read_wait(s, &r);
    if (err == DD_OK) err = test_errors(p, &r, user, c);
    if (err == DD_OK && redis && c->hot_users < HOT_USERS) err = weigh_hot(redis, &r, c);
    dd_store_read_release(&r);
    return err;
}

enum dd_err dd_population_census(const struct dd_population *p, struct dd_store *s, uint32_t probes,
                                 struct dd_own_redis *redis, struct dd_census *out)
{
    *out = (struct dd_census){.items = dd_population_all_items(p)};
    enum dd_err err = count_sets(p, s, out);
    uint32_t sample = (probes + PROBES - 1) / PROBES;
    for (uint32_t i = 0; err == DD_OK && i < sample && i < p->users; i++) {
        uint32_t user = sample < p->users ? (uint32_t)(dd_random_at(p->seed, i, 77) % p->users) : i;
        err = sample_user(p, s, user, redis, out);
    }
    return err;
}
