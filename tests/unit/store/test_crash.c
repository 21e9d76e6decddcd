/* kill -9 of a process that writes: what it acknowledged is there. The child is this program, run again,
 * since RocksDB's threads do not survive a fork. */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>

#define P     month(100)
#define USERS 50
#define DEEP  16 /* writes in flight */

struct written {
    struct dd_store_batch batch;
    struct dd_store_op op;
    struct dd_buf operand;
    uint32_t number;
    char user[16];
    sem_t *free_slot;
};

static void tell(void *arg)
{
    struct written *w = arg;
    if (w->batch.err != DD_OK || w->op.result != DD_OK) _exit(3);
    if (write(1, &w->number, sizeof w->number) != sizeof w->number) _exit(4); /* a pipe: whole */
    dd_buf_free(&w->operand);
    sem_post(w->free_slot);
}

int crash_child(const char *dir, bool sync)
{
    struct dd_stats *stats;
    struct dd_store *s;
    struct dd_store_options o = test_options(dir);
    o.write_buffer_bytes = 1 << 16; /* flushes and compactions all the time */
    o.sync = sync;
    if (dd_stats_create(&stats) != DD_OK || dd_store_open(&o, stats, &s) != DD_OK) return 2;
    static struct written w[DEEP];
    sem_t free_slot;
    sem_init(&free_slot, 0, DEEP);
    uint32_t from;
    if (read(0, &from, sizeof from) != sizeof from) return 2;
    for (uint32_t i = from;; i++) {
        sem_wait(&free_slot); /* done comes in the order of writing, so slot i is free */
        struct written *x = &w[i % DEEP];
        snprintf(x->user, sizeof x->user, "u%u", i % USERS);
        *x = (struct written){
            .number = i, .free_slot = &free_slot, .operand = unchecked_operand_of(i * 2654435761u)};
        snprintf(x->user, sizeof x->user, "u%u", i % USERS);
        x->op = (struct dd_store_op){.scene = SCENE,
                                     .user = dd_slice_str(x->user),
                                     .period = P,
                                     .operand = dd_buf_slice(&x->operand),
                                     .read_number = UINT64_MAX};
        x->batch = (struct dd_store_batch){.ops = &x->op, .n = 1, .done = tell, .arg = x};
        if (dd_store_write(s, &x->batch) != DD_PENDING) return 5;
    }
}

struct child {
    pid_t pid;
    int in, out;
};

static struct child spawn(char *const *argv)
{
    int in[2], out[2];
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[0]), close(in[1]), close(out[0]), close(out[1]);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    return (struct child){pid, in[1], out[0]};
}

static int end(struct child *c, int signal)
{
    int status = 0;
    if (signal) kill(c->pid, signal);
    waitpid(c->pid, &status, 0);
    close(c->in);
    close(c->out);
    return status;
}

/* One round: starts at number `from`, kills after `count` acknowledgements, returns the last number
 * acknowledged + 1. */
static uint32_t round_of(const char *dir, bool sync, uint32_t from, uint32_t count)
{
    char *argv[] = {"unit-store", "--crash-child", (char *)dir, sync ? "1" : "0", NULL};
    struct child c = spawn(argv);
    ck_assert_int_eq(write(c.in, &from, sizeof from), sizeof from);
    uint32_t number, last = from;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_int_eq(read(c.out, &number, sizeof number), sizeof number);
        ck_assert_uint_eq(number, last);
        last = number + 1;
    }
    kill(c.pid, SIGKILL);
    while (read(c.out, &number, sizeof number) == sizeof number) /* acknowledged before it died */
        last = number + 1;
    int status = end(&c, 0);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return last;
}

START_TEST(crash_loses_nothing_acknowledged)
{
    struct fixture f;
    fixture_prepare(&f);
    bool sync = _i == 1;
    uint32_t last = 0;
    for (uint32_t round = 0; round < 5; round++)
        last = round_of(f.dir, sync, last, (sync ? 100 : 1500) + round * 173);
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    uint32_t missing = 0;
    char user[16];
    for (uint32_t i = 0; i < last; i++) {
        snprintf(user, sizeof user, "u%u", i % USERS);
        missing += !has(f.store, user, P, i * 2654435761u);
    }
    printf("kill -9, sync=%d: 5 rounds, %u acknowledged, %u missing\n", sync, last, missing);
    ck_assert_uint_eq(missing, 0);
    fixture_close(&f);
}
END_TEST

int lock_child(const char *dir)
{
    struct dd_stats *stats;
    struct dd_store *s;
    struct dd_store_options o = test_options(dir);
    if (dd_stats_create(&stats) != DD_OK) return 1;
    enum dd_err err = dd_store_open(&o, stats, &s);
    if (err == DD_OK) dd_store_close(s, true);
    dd_stats_destroy(stats);
    return err == DD_LOCKED ? 42 : err == DD_OK ? 43 : 44;
}

START_TEST(crash_another_process_is_locked_out_until_the_end)
{
    struct fixture f;
    fixture_open(&f);
    char *argv[] = {"unit-store", "--lock-child", f.dir, NULL};
    struct child c = spawn(argv);
    int status = end(&c, 0);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 42);
    dd_store_close(f.store, true);
    c = spawn(argv);
    status = end(&c, 0);
    ck_assert_int_eq(WEXITSTATUS(status), 43);
    f.store = NULL;
    fixture_close(&f);
}
END_TEST

Suite *suite_crash(void)
{
    Suite *s = suite_create("store crash");
    TCase *t = tcase_create("crash");
    tcase_set_timeout(t, 2 * TEST_TIMEOUT);
    tcase_add_loop_test(t, crash_loses_nothing_acknowledged, 0, 2);
    tcase_add_test(t, crash_another_process_is_locked_out_until_the_end);
    suite_add_tcase(s, t);
    return s;
}
