/* Reading small files: what is no file must not keep the reader waiting. */
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "unit.h"

static char *dir, path[300];
static struct dd_buf out;

static void begin(void)
{
    dir = unit_mkdir();
    snprintf(path, sizeof path, "%s/file", dir);
    out = (struct dd_buf){0};
}

static void end(void)
{
    dd_buf_free(&out);
    unit_rmdir(dir);
}

static void write_file(size_t n)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    for (size_t i = 0; i < n; i++)
        fputc('a' + (int)(i % 26), f);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(whole_files)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 10000};
    struct stat st;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        write_file(sizes[i]);
        dd_buf_reset(&out);
        ck_assert_ok(dd_file_read(path, 10000, &out, &st));
        ck_assert_uint_eq(out.len, sizes[i]);
        ck_assert_int_eq(st.st_size, (long)sizes[i]);
        for (size_t k = 0; k < out.len; k++)
            ck_assert_int_eq(out.data[k], 'a' + (int)(k % 26));
    }
    ck_assert_err(dd_file_read(path, 9999, &out, NULL), DD_TOO_LARGE);
}
END_TEST

START_TEST(no_files)
{
    ck_assert_err(dd_file_read(path, 100, &out, NULL), DD_IO);
    ck_assert_str_eq(dd_file_why(DD_IO), "No such file or directory");
    ck_assert_err(dd_file_read(dir, 100, &out, NULL), DD_IO);
    ck_assert_str_eq(dd_file_why(DD_IO), "Is a directory");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_err(dd_file_read(path, 100, &out, NULL), DD_INVALID); /* nobody will ever write to it */
    ck_assert_str_eq(dd_file_why(DD_INVALID), "it is not a regular file");
    ck_assert_err(dd_file_read("/dev/zero", 100, &out, NULL), DD_INVALID);
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

Suite *suite_file(void);
Suite *suite_file(void)
{
    Suite *s = suite_create("base/file");
    TCase *t = tcase_create("file");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, whole_files);
    tcase_add_test(t, no_files);
    suite_add_tcase(s, t);
    return s;
}
