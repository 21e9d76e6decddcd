/* A simulated population and what a real store makes of it.
 *
 * Every user has a level, log-normal with median 60 items a month and sigma 1.4, and varies about it by 35 %
 * a month; a month has 1 to 20,000 items. Nothing is kept: items are made again from the seed.
 *
 * Loading: month after month, ten visits a month, users in turn; each visit is one operand, 256 of them a
 * commit, as the flush of an hour brings them. So every set is made by the store's own merges. */
#ifndef DD_CTL_FILTERS_POPULATION_H
#define DD_CTL_FILTERS_POPULATION_H

#include "filters.h"
#include "filters_progress.h"
#include "filters_redis.h"
#include "store/store.h"

enum { DD_POPULATION_MONTHS = 3, DD_POPULATION_VISITS = 10, DD_POPULATION_TAIL = 20000 };

struct dd_population {
    uint32_t users;
    uint64_t seed;
    struct dd_filter_policy policy;
    bool hinted; /* operands carry the size of the user's month before */
    const struct dd_secret *secret;
};

/* The name of a user, and the user of a name (UINT32_MAX: none). */
#define DD_POPULATION_NAME 16
struct dd_slice dd_population_name(uint32_t user, char out[DD_POPULATION_NAME]);
uint32_t dd_population_user(struct dd_slice name, uint32_t users);

/* Items of a user in a month, 0 .. 2; -1: the month before them, which gives hints and is not stored. */
uint32_t dd_population_items(const struct dd_population *p, uint32_t user, int month);
uint64_t dd_population_all_items(const struct dd_population *p);
struct dd_period dd_population_period(int month);
/* Fingerprints of items from .. from + n - 1 of a month. */
void dd_population_fingerprints(const struct dd_population *p, uint32_t user, int month, uint32_t from,
                                uint32_t n, uint32_t *out);

/* Everything into the store. label: for the progress bar. DD_SHUTDOWN: interrupted; else what the store says.
 */
enum dd_err dd_population_load(const struct dd_population *p, struct dd_store *s, struct dd_progress *bar,
                               const char *label) DD_MUST_USE;

/* What is in the store then. */
struct dd_census {
    uint64_t items, sets, bytes;                     /* of all sets */
    uint64_t sparse_sets, sparse_users, sparse_over; /* over: sparse sets above 4 bytes an item + 32 */
    uint64_t disk_bytes;                             /* of RocksDB's table files after a compaction */
    uint64_t hits, trials;                           /* items never added, over the window of three months */
    uint64_t forgotten, asked;                       /* items added */
    uint64_t hot_bytes, hot_users; /* of users' cached sets in Redis; 0 users: not measured */
    double load_s;
};

/* probes: items never added to be tested, over a sample of users. redis NULL: not measured. */
enum dd_err dd_population_census(const struct dd_population *p, struct dd_store *s, uint32_t probes,
                                 struct dd_own_redis *redis, struct dd_census *out) DD_MUST_USE;

/* A store in the new directory `dir`, loaded, counted, closed and removed. */
enum dd_err dd_population_run(struct dd_population *p, const char *dir, uint32_t probes,
                              struct dd_own_redis *redis, struct dd_progress *bar,
                              struct dd_census *out) DD_MUST_USE;

/* A directory below dir (NULL: TMPDIR, /tmp); what is wrong is said on standard error. The caller frees and
 * removes it. */
enum dd_err dd_filters_make_dir(const char *dir, char **out) DD_MUST_USE;
void dd_filters_remove_dir(const char *dir);

#endif
