/* Merging inside RocksDB. The rules, each learnt from its source or by experiment (7.8):
 *
 * - The C wrapper copies (pointer, length) before it looks at *success, so both are set on every path.
 * - full_merge runs in reads, flushes and compactions. partial_merge runs in flushes and compactions only,
 *   when the base is not in sight; it unites, or chains of operands would grow without bound. Only where
 *   layers are limited and the order of operands decides what is kept does it refuse, which leaves them as
 *   they are: there are at most max_successive_merges of a key in a file.
 * - The result is malloc memory; RocksDB frees it, as delete_value is NULL.
 * - Of a full merge, out of memory is the one refusal. RocksDB itself would throw and end the process;
 * refusing loses nothing.
 *
 * A read carries out every merge that is not yet folded, and partial_merge does not help it. So the chain in
 * a memtable is bounded (max_successive_merges in rocks.c): past the bound RocksDB reads, merges and puts
 * within the write. Measured with 5,000 merges of one item for one user, each committed alone; median of a
 * read of three periods, and CPU of one merge for other users in batches of 100:
 *
 *   bound    after 100   after 1,000   after 5,000   flushed   merge
 *   none        8 us        95 us         636 us      176 us   1.8 us
 *   256         8 us        40 us          17 us        2 us   3.0 us
 *   64          4 us         5 us          13 us        3 us   3.7 us
 *   16          3 us         4 us           7 us        2 us   3.0 us
 *
 * 64: a user who stays below it in one memtable costs the writer no read, and one above it costs the readers
 * nothing that they would notice. A flush leaves at most one operand of a key in a file. */
#include "store/merge_op.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "filter/filter.h"

#define OPERANDS_ON_STACK 32

struct dd_merge_op {
    pthread_mutex_t lock; /* guards the list */
    struct dd_aside *head, **tail;
    unsigned waiting;
    size_t waiting_bytes;
    struct dd_counter *skipped, *base_damaged, *aside_lost;
    /* Calls that have returned. What it counts is of no use; that leaving is a release and destroying an
     * acquire puts every call before the end for the thread sanitizer too, which cannot see RocksDB's own
     * locks. */
    _Atomic uint64_t left;
};

enum dd_err dd_merge_op_create(struct dd_stats *stats, struct dd_merge_op **out)
{
    struct dd_merge_op *m = calloc(1, sizeof *m);
    if (!m) return DD_NO_MEMORY;
    pthread_mutex_init(&m->lock, NULL);
    m->tail = &m->head;
    m->skipped = dd_stats_counter(stats, "dedupd_store_operands_skipped_total",
                                  "Merge operands that could not be read and were left out");
    m->base_damaged = dd_stats_counter(stats, "dedupd_store_merge_base_damaged_total",
                                       "Merges onto a stored set that could not be read");
    m->aside_lost = dd_stats_counter(stats, "dedupd_store_aside_lost_total",
                                     "Unreadable sets met by a merge whose bytes could not be kept aside");
    *out = m;
    return DD_OK;
}

static void free_list(struct dd_aside *a)
{
    while (a) {
        struct dd_aside *next = a->next;
        free(a);
        a = next;
    }
}

void dd_merge_op_destroy(struct dd_merge_op *m)
{
    if (!m) return;
    (void)atomic_load_explicit(&m->left, memory_order_acquire);
    free_list(m->head);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

struct dd_aside *dd_merge_op_take_aside(struct dd_merge_op *m)
{
    pthread_mutex_lock(&m->lock);
    struct dd_aside *list = m->head;
    m->head = NULL;
    m->tail = &m->head;
    m->waiting = 0;
    m->waiting_bytes = 0;
    pthread_mutex_unlock(&m->lock);
    return list;
}

static bool is_waiting(const struct dd_merge_op *m, struct dd_slice key)
{
    for (const struct dd_aside *a = m->head; a; a = a->next)
        if (dd_slice_eq(dd_slice_of(a->bytes, a->key_len), key)) return true;
    return false;
}

/* A read of the key meets the same base again and again until the writer has replaced it, so once is enough.
 */
static bool append_aside(struct dd_merge_op *m, struct dd_slice key, struct dd_slice value)
{
    if (is_waiting(m, key)) return true;
    if (m->waiting == DD_ASIDE_MAX || m->waiting_bytes + value.len > DD_ASIDE_BYTES_MAX) return false;
    struct dd_aside *a = malloc(sizeof *a + key.len + value.len);
    if (!a) return false;
    *a = (struct dd_aside){NULL, key.len, value.len};
    memcpy(a->bytes, key.ptr, key.len);
    memcpy(a->bytes + key.len, value.ptr, value.len);
    *m->tail = a;
    m->tail = &a->next;
    m->waiting++;
    m->waiting_bytes += value.len;
    return true;
}

static void keep_aside(struct dd_merge_op *m, struct dd_slice key, struct dd_slice value)
{
    dd_count(m->base_damaged, 1);
    pthread_mutex_lock(&m->lock);
    bool kept = append_aside(m, key, value);
    pthread_mutex_unlock(&m->lock);
    if (!kept) dd_count(m->aside_lost, 1);
}

/* RocksDB's two arrays as slices: on the caller's stack when few. NULL: no memory. */
static struct dd_slice *to_slices(const char *const *list, const size_t *lens, int n, struct dd_slice *few)
{
    struct dd_slice *s = n <= OPERANDS_ON_STACK ? few : malloc((size_t)n * sizeof *s);
    for (int i = 0; s && i < n; i++)
        s[i] = dd_slice_of(list[i], lens[i]);
    return s;
}

static char *hand_over(enum dd_err err, struct dd_buf *b, unsigned char *success, size_t *len)
{
    if (err == DD_OK && !b->data) dd_buf_reserve(b, 1); /* an empty result still needs an address */
    bool good = err == DD_OK && b->data;
    *success = good;
    *len = good ? b->len : 0;
    if (!good) dd_buf_free(b);
    return good ? (char *)b->data : NULL; /* now RocksDB's */
}

static char *full_merge(void *state, const char *key, size_t key_len, const char *base, size_t base_len,
                        const char *const *list, const size_t *lens, int n, unsigned char *success,
                        size_t *len)
{
    struct dd_merge_op *m = state;
    struct dd_slice few[OPERANDS_ON_STACK], *operands = to_slices(list, lens, n, few);
    struct dd_slice base_slice = dd_slice_of(base, base ? base_len : 0);
    struct dd_filter_merge_report report = {0};
    struct dd_buf out = {0};
    enum dd_err err = operands ? dd_filter_merge(base_slice, operands, (size_t)n, &out, &report)
                               : DD_NO_MEMORY;
    if (operands != few) free(operands);
    if (report.skipped) dd_count(m->skipped, report.skipped);
    if (err == DD_OK && base && report.base_damaged) keep_aside(m, dd_slice_of(key, key_len), base_slice);
    atomic_fetch_add_explicit(&m->left, 1, memory_order_release);
    return hand_over(err, &out, success, len);
}

static char *partial_merge(void *state, const char *key, size_t key_len, const char *const *list,
                           const size_t *lens, int n, unsigned char *success, size_t *len)
{
    (void)key, (void)key_len;
    struct dd_merge_op *m = state;
    struct dd_slice few[OPERANDS_ON_STACK], *operands = to_slices(list, lens, n, few);
    struct dd_filter_merge_report report = {0};
    struct dd_buf out = {0};
    enum dd_err err = operands ? DD_OK : DD_NO_MEMORY;
    if (err == DD_OK && dd_filter_keep_apart(operands, (size_t)n)) err = DD_UNSUPPORTED;
    if (err == DD_OK) err = dd_filter_partial_merge(operands, (size_t)n, &out, &report);
    if (operands != few) free(operands);
    if (report.skipped) dd_count(m->skipped, report.skipped);
    atomic_fetch_add_explicit(&m->left, 1, memory_order_release);
    return hand_over(err, &out, success, len);
}

static const char *name(void *state)
{
    (void)state;
    return "dedupd.filter_set.1"; /* stored in the database: never change it */
}

static void keep_state(void *state)
{
    (void)state; /* shared by several operators, destroyed by dd_merge_op_destroy */
}

rocksdb_mergeoperator_t *dd_merge_op_rocks(struct dd_merge_op *m)
{
    return rocksdb_mergeoperator_create(m, keep_state, full_merge, partial_merge, NULL, name);
}
