/* Verification: what is bad is counted and named, and what lies behind it is still read. */
#include <glob.h>
#include <sys/stat.h>

#include "fixture.h"
#include "store/verify.h"

#define P month(100)

static void verify(struct fixture *f, bool quarantine, struct dd_verify_report *r)
{
    struct dd_verify_options o = {.quarantine = quarantine};
    ck_assert_ok(dd_store_verify(f->store, &o, r));
}

static void fill(struct fixture *f, int from, int to)
{
    char user[16];
    for (int i = from; i < to; i++) {
        snprintf(user, sizeof user, "u%03d", i);
        add(f->store, user, P, (uint32_t)i);
    }
}

START_TEST(sound_sets)
{
    struct fixture f;
    struct dd_verify_report r;
    fixture_open(&f);
    verify(&f, false, &r);
    ck_assert_uint_eq(r.sets, 0);
    fill(&f, 0, 50);
    flush_memtable(f.store);
    fill(&f, 25, 75); /* the walk merges what is in files and what is not */
    verify(&f, false, &r);
    ck_assert_uint_eq(r.sets, 75);
    ck_assert_uint_gt(r.bytes, 75 * 24);
    ck_assert_uint_eq(r.corrupt + r.damaged + r.unreadable, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(corrupt_sets_are_named_and_put_aside)
{
    struct fixture f;
    struct dd_verify_report r;
    fixture_open(&f);
    fill(&f, 0, 10);
    put_raw(f.store, "u004", P, dd_slice_str("not a set"));
    put_raw(f.store, "\x01 odd \xff", P, dd_slice_str("neither"));
    verify(&f, false, &r);
    ck_assert_uint_eq(r.sets, 11);
    ck_assert_uint_eq(r.corrupt, 2);
    ck_assert_uint_eq(r.quarantined, 0);
    ck_assert_uint_eq(r.shown, 2);
    ck_assert_str_eq(r.bad[0].user, "u004");
    ck_assert_str_eq(r.bad[1].user, "? odd ?");
    ck_assert_str_eq(r.bad[0].scene, "home");
    ck_assert(dd_period_eq(r.bad[0].period, P));
    verify(&f, true, &r);
    ck_assert_uint_eq(r.quarantined, 2);
    fixture_reopen(&f, true);
    verify(&f, true, &r);
    ck_assert_uint_eq(r.corrupt, 0);
    ck_assert_uint_eq(r.damaged, 2);
    fixture_close(&f);
}
END_TEST

static bool after_five(void *arg, const struct dd_verify_report *so_far)
{
    (void)arg;
    return so_far->sets < 5;
}

START_TEST(it_can_be_stopped)
{
    struct fixture f;
    struct dd_verify_report r;
    struct dd_verify_options o = {.progress = after_five};
    fixture_open(&f);
    fill(&f, 0, 10);
    ck_assert_err(dd_store_verify(f.store, &o, &r), DD_SHUTDOWN);
    ck_assert_uint_eq(r.sets, 5);
    fixture_close(&f);
}
END_TEST

/* Flips a byte of the first block of each table file of more than `size` bytes. */
static void damage_files(const struct fixture *f, off_t size)
{
    char pattern[600];
    glob_t files;
    unsigned damaged = 0;
    snprintf(pattern, sizeof pattern, "%s/db/*.sst", f->options.path);
    ck_assert_int_eq(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct stat st;
        ck_assert_int_eq(stat(files.gl_pathv[i], &st), 0);
        if (st.st_size < size) continue;
        FILE *file = fopen(files.gl_pathv[i], "r+b");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(fseek(file, 60, SEEK_SET), 0);
        int byte = fgetc(file);
        ck_assert_int_eq(fseek(file, 60, SEEK_SET), 0);
        ck_assert_int_eq(fputc(byte ^ 0x10, file), byte ^ 0x10);
        ck_assert_int_eq(fclose(file), 0);
        damaged++;
    }
    globfree(&files);
    ck_assert_uint_eq(damaged, 1);
}

/* Three files of disjoint ranges, the middle one damaged: at least what lies behind it is read. */
START_TEST(what_lies_behind_a_damaged_block_is_read)
{
    struct fixture f;
    struct dd_verify_report r;
    fixture_open(&f);
    fill(&f, 0, 20);
    flush_memtable(f.store);
    fill(&f, 100, 400);
    flush_memtable(f.store);
    fill(&f, 900, 920);
    flush_memtable(f.store);
    verify(&f, false, &r);
    ck_assert_uint_eq(r.sets, 340);
    dd_store_close(f.store, false);
    damage_files(&f, 6000);
    ck_assert_ok(dd_store_open(&f.options, f.stats, &f.store));
    verify(&f, false, &r);
    ck_assert_uint_ge(r.unreadable, 1);
    ck_assert_uint_ge(r.sets, 20);
    ck_assert_uint_lt(r.sets, 340);
    ck_assert_uint_eq(r.corrupt, 0);
    fixture_close(&f);
}
END_TEST

Suite *suite_verify(void)
{
    Suite *s = suite_create("store/verify");
    TCase *t = tcase_create("verify");
    tcase_set_timeout(t, TEST_TIMEOUT);
    tcase_add_test(t, sound_sets);
    tcase_add_test(t, corrupt_sets_are_named_and_put_aside);
    tcase_add_test(t, it_can_be_stopped);
    tcase_add_test(t, what_lies_behind_a_damaged_block_is_read);
    suite_add_tcase(s, t);
    return s;
}
