/* What the tests of the store share: a store in a temporary directory, and short words for writing and
 * reading. */
#ifndef DD_TESTS_STORE_FIXTURE_H
#define DD_TESTS_STORE_FIXTURE_H

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "filter/filter.h"
#include "store/store_impl.h"
#include "unit.h"

#define TEST_TIMEOUT 60

struct fixture {
    char *dir;
    struct dd_stats *stats;
    struct dd_store_options options;
    struct dd_store *store;
};

/* A new store in a new directory, small buffers; and one that is opened by the test itself. */
void fixture_open(struct fixture *f);
void fixture_prepare(struct fixture *f);
void fixture_close(struct fixture *f);
void fixture_reopen(struct fixture *f, bool clean);

struct dd_store_options test_options(const char *dir);

static inline struct dd_period month(int32_t ordinal)
{
    return (struct dd_period){DD_PERIOD_MONTH, ordinal};
}

#define SCENE dd_slice_str("home")

/* An operand of one item; the caller frees. */
struct dd_buf operand_of(uint32_t fp);
struct dd_buf unchecked_operand_of(uint32_t fp); /* for a child process, where check cannot report */

/* Merges one item, waits, and fails the test unless the result is DD_OK. */
void add(struct dd_store *s, const char *user, struct dd_period p, uint32_t fp);
enum dd_err try_add(struct dd_store *s, const char *user, struct dd_period p, uint32_t fp,
                    uint64_t read_number, struct dd_store_op *out);
enum dd_err erase_set(struct dd_store *s, const char *user, struct dd_period p);
enum dd_err update_set(struct dd_store *s, const char *user, struct dd_period p,
                       enum dd_err (*update)(void *, struct dd_slice, struct dd_buf *), void *arg,
                       struct dd_store_op *out);

/* Whether the set holds the item; fails the test when it cannot be read. */
bool has(struct dd_store *s, const char *user, struct dd_period p, uint32_t fp);
/* The blob as stored, appended to out. */
enum dd_err blob_of(struct dd_store *s, const char *user, struct dd_period p, struct dd_buf *out);
bool is_damaged(struct dd_store *s, const char *user, struct dd_period p);

/* Puts bytes under a set's key behind the store's back, flushed to a file if asked. */
void put_raw(struct dd_store *s, const char *user, struct dd_period p, struct dd_slice bytes);
void flush_memtable(struct dd_store *s);
/* Rewrites everything, so that every merge is carried out. */
void compact_all(struct dd_store *s);
/* What the meta family keeps aside of a set. */
enum dd_err quarantined(struct dd_store *s, const char *user, struct dd_period p, struct dd_buf *out);

/* Waits until the condition holds, at most 30 s; fails the test otherwise. */
void wait_until(bool (*condition)(void *arg), void *arg);
uint64_t disk_bytes_under(const char *path);

/* An update that holds the writer thread until it is released. */
struct gate {
    sem_t entered, leave;
    struct dd_store_op op;
    struct dd_store_batch batch;
};
void gate_shut(struct gate *g, struct dd_store *s, const char *user);
void gate_open(struct gate *g);

Suite *suite_change(void);
Suite *suite_keys(void);
Suite *suite_marks(void);
Suite *suite_store(void);
Suite *suite_order(void);
Suite *suite_ordered(void);
Suite *suite_outdate(void);
Suite *suite_update(void);
Suite *suite_verify(void);
Suite *suite_set_cache(void);
Suite *suite_expire(void);
Suite *suite_corrupt(void);
Suite *suite_disk(void);
Suite *suite_failure(void);
Suite *suite_crash(void);
Suite *suite_threads(void);
Suite *suite_records(void);

/* The other end of test_crash.c: run as a child process. */
int crash_child(const char *dir, bool sync);
int lock_child(const char *dir);

#endif
