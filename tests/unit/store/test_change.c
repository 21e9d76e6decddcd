#include "fixture.h"

#include <fcntl.h>

#define CELLS 1024

static struct dd_change *make(void)
{
    struct dd_change *c;
    ck_assert_ok(dd_change_create(CELLS, 4, &c));
    return c;
}

static void commit_one(struct dd_change *c, struct dd_period p, uint64_t user)
{
    uint64_t n = dd_change_number(c) + 1;
    dd_change_publish_number(c, n);
    dd_change_raise(c, p, user, n);
}

START_TEST(change_sizes_are_checked)
{
    struct dd_change *c;
    ck_assert_err(dd_change_create(512, 4, &c), DD_INVALID);
    ck_assert_err(dd_change_create(1025, 4, &c), DD_INVALID);
    ck_assert_err(dd_change_create(1u << 29, 4, &c), DD_INVALID);
    ck_assert_err(dd_change_create(1024, 0, &c), DD_INVALID);
    ck_assert_err(dd_change_create(1024, DD_WINDOW_MAX + 3, &c), DD_INVALID);
    ck_assert_ok(dd_change_create(1024, DD_WINDOW_MAX + 2, &c));
    dd_change_destroy(c);
    dd_change_destroy(NULL);
}
END_TEST

START_TEST(change_incarnations_differ)
{
    struct dd_change *a = make(), *b = make();
    ck_assert(dd_change_incarnation(a) != dd_change_incarnation(b));
    ck_assert_uint_eq(dd_change_number(a), 0);
    dd_change_destroy(a);
    dd_change_destroy(b);
}
END_TEST

START_TEST(change_a_commit_raises_one_cell)
{
    struct dd_change *c = make();
    for (int i = 0; i < 5; i++)
        commit_one(c, month(8), 1);
    commit_one(c, month(9), 1 + CELLS); /* same cell index, other table */
    ck_assert_uint_eq(dd_change_number(c), 6);
    ck_assert_uint_eq(dd_change_cell(c, month(8), 1), 5);
    ck_assert_uint_eq(dd_change_cell(c, month(9), 1), 6);
    ck_assert_uint_eq(dd_change_cell(c, month(8), 2), 0);
    ck_assert_uint_eq(dd_change_cell(c, month(8), 1 + CELLS), 5); /* two users in one cell: a needless read */
    ck_assert_uint_eq(dd_change_cell(c, month(12), 1), 5);        /* the table passes on to a newer period */
    dd_change_destroy(c);
}
END_TEST

/* A set is valid if its number, loaded before the store was read, is at least the user's cell now. */
static bool fresh(const struct dd_change *c, uint64_t number, struct dd_period p, uint64_t user)
{
    return number >= dd_change_cell(c, p, user);
}

START_TEST(change_a_fill_with_an_old_number_is_stale)
{
    struct dd_change *c = make();
    commit_one(c, month(1), 7);
    uint64_t before = dd_change_number(c);
    ck_assert(fresh(c, before, month(1), 7));
    commit_one(c, month(1), 8); /* somebody else */
    ck_assert(fresh(c, before, month(1), 7));
    commit_one(c, month(1), 7); /* between the filler's read and its put */
    ck_assert(!fresh(c, before, month(1), 7));
    ck_assert(fresh(c, dd_change_number(c), month(1), 7));
    dd_change_destroy(c);
}
END_TEST

/* ---- the file ---- */

struct file {
    char *dir, path[600];
};

static struct file file_make(void)
{
    struct file f = {.dir = unit_mkdir()};
    snprintf(f.path, sizeof f.path, "%s/change.table", f.dir);
    return f;
}

static uint64_t save_one(const struct file *f)
{
    struct dd_change *c = make();
    for (uint64_t i = 0; i < 100; i++)
        commit_one(c, month((int32_t)(i % 4)), i * 31);
    uint64_t incarnation = dd_change_incarnation(c);
    ck_assert_ok(dd_change_save(c, f->path));
    dd_change_destroy(c);
    return incarnation;
}

START_TEST(change_saved_once_loaded_once)
{
    struct file f = file_make();
    uint64_t incarnation = save_one(&f);
    struct dd_change *c = NULL;
    ck_assert_ok(dd_change_load(f.path, CELLS, 4, &c));
    ck_assert_uint_eq(dd_change_incarnation(c), incarnation);
    ck_assert_uint_eq(dd_change_number(c), 100);
    for (uint64_t i = 0; i < 100; i++)
        ck_assert_uint_eq(dd_change_cell(c, month((int32_t)(i % 4)), i * 31), i + 1);
    dd_change_destroy(c);
    ck_assert_err(dd_change_load(f.path, CELLS, 4, &c), DD_NOT_FOUND);
    unit_rmdir(f.dir);
}
END_TEST

START_TEST(change_other_sizes_are_refused_and_used_up)
{
    struct file f = file_make();
    struct dd_change *c;
    save_one(&f);
    ck_assert_err(dd_change_load(f.path, CELLS, 3, &c), DD_CORRUPT);
    ck_assert_int_ne(access(f.path, F_OK), 0);
    save_one(&f);
    ck_assert_err(dd_change_load(f.path, 2 * CELLS, 2, &c), DD_CORRUPT); /* as many bytes, other shape */
    ck_assert_err(dd_change_load(f.path, CELLS, 4, &c), DD_NOT_FOUND);
    unit_rmdir(f.dir);
}
END_TEST

static void flip(const char *path, off_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

START_TEST(change_flipped_bytes_are_refused)
{
    struct file f = file_make();
    static const off_t places[] = {0, 7, 9, 13, 16, 24, 33, 40, 5000, 40 + CELLS * 4 * 8 - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct dd_change *c;
        save_one(&f);
        flip(f.path, places[i]);
        ck_assert_err(dd_change_load(f.path, CELLS, 4, &c), DD_CORRUPT);
        ck_assert_int_ne(access(f.path, F_OK), 0);
    }
    unit_rmdir(f.dir);
}
END_TEST

START_TEST(change_truncated_files_are_refused)
{
    struct file f = file_make();
    static const off_t sizes[] = {0, 1, 39, 40, 1000, 40 + CELLS * 4 * 8 - 1, 40 + CELLS * 4 * 8 + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct dd_change *c;
        save_one(&f);
        ck_assert_int_eq(truncate(f.path, sizes[i]), 0);
        ck_assert_err(dd_change_load(f.path, CELLS, 4, &c), DD_CORRUPT);
    }
    unit_rmdir(f.dir);
}
END_TEST

START_TEST(change_saving_into_nowhere_fails)
{
    struct dd_change *c = make();
    ck_assert_err(dd_change_save(c, "/nonexistent/dir/change.table"), DD_IO);
    dd_change_destroy(c);
}
END_TEST

Suite *suite_change(void)
{
    Suite *s = suite_create("change table");
    TCase *t = tcase_create("change");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, change_sizes_are_checked);
    tcase_add_test(t, change_incarnations_differ);
    tcase_add_test(t, change_a_commit_raises_one_cell);
    tcase_add_test(t, change_a_fill_with_an_old_number_is_stale);
    tcase_add_test(t, change_saved_once_loaded_once);
    tcase_add_test(t, change_other_sizes_are_refused_and_used_up);
    tcase_add_test(t, change_flipped_bytes_are_refused);
    tcase_add_test(t, change_truncated_files_are_refused);
    tcase_add_test(t, change_saving_into_nowhere_fails);
    suite_add_tcase(s, t);
    return s;
}
