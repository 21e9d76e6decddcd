/* A flush is on disk before anything leaves Redis: its commit is synced also where single writes are not. The
 * seam: this program's fdatasync and fsync are the ones below, for RocksDB too. */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "world.h"

static _Atomic unsigned syncs;

int fdatasync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fsync, fd);
}

static struct world w;

static void expose(const char *user, enum dd_durability expected)
{
    int item = 1;
    ck_assert_ok(world_exposed(&w, "default", user, &item, 1, DD_TS_NOW));
    ck_assert_int_eq(w.last_durability, expected);
}

START_TEST(a_flush_is_synced_and_a_direct_write_is_not)
{
    world_init(&w, true);
    unsigned before = atomic_load(&syncs);
    expose("u1", DD_DURABLE_WAL);
    ck_assert_uint_eq(atomic_load(&syncs), before);
    world_close(&w, true);
    w.wheel_options.stage = true;
    w.wheel_options.batch_users = 1;
    world_open(&w);
    world_wait_staging(&w);
    before = atomic_load(&syncs);
    for (int i = 0; i < 5; i++) {
        char user[8];
        snprintf(user, sizeof user, "u%d", i);
        expose(user, DD_DURABLE_STAGED);
    }
    ck_assert_uint_eq(atomic_load(&syncs), before);
    world_flush(&w, true);
    ck_assert_ok(w.flush.err);
    ck_assert_uint_eq(w.flush.users, 5);
    ck_assert_uint_ge(atomic_load(&syncs), before + 2); /* a page may hold more than it was asked for */
    world_free(&w);
}
END_TEST

Suite *suite_durable(void);
Suite *suite_durable(void)
{
    Suite *s = suite_create("dedup/durable");
    TCase *t = tcase_create("durable");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_flush_is_synced_and_a_direct_write_is_not);
    suite_add_tcase(s, t);
    return s;
}
