/* The disk guard, also on a really full disk: a small tmpfs, where the test may mount one. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#define P month(100)

START_TEST(disk_guard_refuses_writes_and_serves_reads)
{
    struct fixture f;
    fixture_open(&f);
    add(f.store, "anna", P, 1);
    dd_store_close(f.store, true);
    f.options.min_free_bytes = UINT64_MAX / 4;
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    ck_assert_err(try_add(f.store, "anna", P, 2, UINT64_MAX, NULL), DD_DISK_FULL);
    ck_assert(has(f.store, "anna", P, 1) && !has(f.store, "anna", P, 2));
    struct dd_store_status st;
    dd_store_get_status(f.store, &st);
    ck_assert(!st.writable && st.guard);
    ck_assert_uint_gt(st.free_bytes, 0);
    dd_store_close(f.store, true);
    f.options.min_free_bytes = 0;
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    add(f.store, "anna", P, 2);
    fixture_close(&f);
}
END_TEST

START_TEST(disk_guard_refuses_to_make_a_store)
{
    struct fixture f;
    fixture_prepare(&f);
    f.options.min_free_bytes = UINT64_MAX / 4;
    ck_assert_err(dd_store_open(&f.options, f.stats, &f.store), DD_DISK_FULL);
    f.options.min_free_bytes = 0;
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    fixture_close(&f);
}
END_TEST

/* What was queued when the guard comes on is refused too, and told so. */
START_TEST(disk_guard_refuses_what_is_queued)
{
    struct fixture f;
    fixture_open(&f);
    struct gate g;
    struct dd_buf operand = operand_of(1);
    struct dd_store_op op = {
        .scene = SCENE, .user = dd_slice_str("anna"), .period = P, .operand = dd_buf_slice(&operand)};
    sem_t done;
    sem_init(&done, 0, 0);
    struct dd_store_batch b = {.ops = &op, .n = 1, .done = (void (*)(void *))(void *)sem_post, .arg = &done};
    gate_shut(&g, f.store, "gate");
    ck_assert_err(dd_store_write(f.store, &b), DD_PENDING);
    f.store->options.min_free_bytes = UINT64_MAX / 4; /* the writer is held: nobody reads it now */
    gate_open(&g);
    sem_wait(&done);
    ck_assert_err(b.err, DD_DISK_FULL);
    dd_buf_free(&operand);
    fixture_close(&f);
}
END_TEST

/* ---- tmpfs ---- */

#define MOUNT_BYTES (64 << 20)
#define MIN_FREE    (16 << 20)

/* Mounted by the parent of the test's process, so that it goes away however the test ends. */
static char *small_disk;
static bool mounted;

static void mount_small(void)
{
    char options[64];
    snprintf(options, sizeof options, "size=%d", MOUNT_BYTES);
    small_disk = unit_mkdir();
    mounted = mount("tmpfs", small_disk, "tmpfs", 0, options) == 0;
    if (!mounted) printf("full disk: skipped, no permission to mount a tmpfs (%s)\n", strerror(errno));
}

static void unmount_small(void)
{
    if (mounted) umount2(small_disk, MNT_DETACH);
    unit_rmdir(small_disk);
}

/* Writes sets of 4 KB until a write is refused. Returns how many were acknowledged. */
static uint32_t write_until_refused(struct dd_store *s, uint32_t from, enum dd_err *why)
{
    static uint32_t fps[1000];
    static const struct dd_filter_policy policy = {
        .kind = DD_FILTER_BLOOM, .fpr = 0.0003, .capacity = 1000, .cap = 200000, .growth = 2};
    char user[16];
    for (uint32_t i = from;; i++) {
        for (uint32_t j = 0; j < 1000; j++)
            fps[j] = (i * 1000 + j) * 2654435761u;
        struct dd_buf operand = {0};
        ck_assert_ok(dd_filter_operand(&policy, 0, fps, 1000, &operand));
        snprintf(user, sizeof user, "u%u", i % 20000);
        struct dd_store_op op = {.scene = SCENE,
                                 .user = dd_slice_str(user),
                                 .period = P,
                                 .operand = dd_buf_slice(&operand),
                                 .read_number = UINT64_MAX};
        struct dd_store_batch b = {.ops = &op, .n = 1};
        *why = dd_store_write_wait(s, &b);
        dd_buf_free(&operand);
        if (*why != DD_OK) return i;
        ck_assert_uint_lt(i - from, 40000);
    }
}

static uint32_t missing(struct dd_store *s, uint32_t acknowledged)
{
    char user[16];
    uint32_t n = 0;
    for (uint32_t i = 0; i < acknowledged; i++) {
        snprintf(user, sizeof user, "u%u", i % 20000);
        n += !has(s, user, P, i * 1000 * 2654435761u);
    }
    return n;
}

static bool is_writable(void *arg)
{
    struct dd_store_status st;
    dd_store_get_status(arg, &st);
    return st.writable;
}

static bool is_guarded(void *arg)
{
    return !is_writable(arg);
}

static void make_ballast(const char *path, off_t bytes)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(posix_fallocate(fd, 0, bytes), 0);
    close(fd);
}

static void fill_the_disk(struct fixture *f)
{
    char ballast[600];
    enum dd_err why;
    snprintf(ballast, sizeof ballast, "%s/ballast", f->dir);
    make_ballast(ballast, 8 << 20);
    uint32_t acknowledged = write_until_refused(f->store, 0, &why);
    ck_assert_err(why, DD_DISK_FULL);
    ck_assert_uint_gt(acknowledged, 500);
    ck_assert_uint_eq(missing(f->store, acknowledged), 0); /* reads go on */

    /* A neighbour takes the rest; then an operator makes room: no restart is needed. */
    char hog[600];
    snprintf(hog, sizeof hog, "%s/hog", f->dir);
    uint64_t left = atomic_load(&f->store->free_bytes);
    if (left > 2 << 20) make_ballast(hog, (off_t)left - (1 << 20));
    wait_until(is_guarded, f->store);
    ck_assert_err(try_add(f->store, "anna", P, 1, UINT64_MAX, NULL), DD_DISK_FULL);
    unlink(hog);
    unlink(ballast);
    wait_until(is_writable, f->store);
    uint32_t more = write_until_refused(f->store, acknowledged, &why);
    ck_assert_err(why, DD_DISK_FULL);
    ck_assert_uint_gt(more, acknowledged);
    fixture_reopen(f, true);
    ck_assert_uint_eq(missing(f->store, more), 0);
    printf("full tmpfs: %u sets acknowledged, %u after making room, none missing\n", acknowledged, more);
}

START_TEST(disk_full_keeps_the_process_and_every_acknowledged_write)
{
    if (!mounted) return;
    struct fixture f = {.dir = small_disk, .options = test_options(small_disk)};
    f.options.min_free_bytes = MIN_FREE;
    ck_assert_ok(dd_stats_create(&f.stats));
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    fill_the_disk(&f);
    dd_store_close(f.store, true);
    dd_stats_destroy(f.stats);
}
END_TEST

Suite *suite_disk(void)
{
    Suite *s = suite_create("store disk");
    TCase *t = tcase_create("disk");
    tcase_set_timeout(t, 2 * TEST_TIMEOUT);
    tcase_add_test(t, disk_guard_refuses_writes_and_serves_reads);
    tcase_add_test(t, disk_guard_refuses_to_make_a_store);
    tcase_add_test(t, disk_guard_refuses_what_is_queued);
    suite_add_tcase(s, t);
    t = tcase_create("full disk");
    tcase_set_timeout(t, 2 * TEST_TIMEOUT);
    tcase_add_unchecked_fixture(t, mount_small, unmount_small);
    tcase_add_test(t, disk_full_keeps_the_process_and_every_acknowledged_write);
    suite_add_tcase(s, t);
    return s;
}
