#include "unit.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *unit_mkdir(void)
{
    const char *tmp = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/dedupd-unit-XXXXXX", tmp ? tmp : "/tmp");
    char *made = strdup(path);
    ck_assert_ptr_nonnull(made);
    ck_assert_ptr_nonnull(mkdtemp(made));
    return made;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void unit_rmdir(char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

int64_t unit_patience_ms(int64_t ms)
{
    const char *text = getenv("PATIENCE");
    double times = text ? strtod(text, NULL) : 1;
    return times > 1 ? (int64_t)((double)ms * times) : ms;
}

/* Without a process for each test (CK_FORK=no) check cannot end one that hangs. */
#define HANG_MS (900 * 1000)

static void end_if_it_hangs(void)
{
    const char *fork = getenv("CK_FORK");
    if (fork && strcmp(fork, "no") == 0) alarm((unsigned)(unit_patience_ms(HANG_MS) / 1000));
}

int unit_run(Suite **suites, unsigned n)
{
    end_if_it_hangs();
    SRunner *runner = srunner_create(suites[0]);
    for (unsigned i = 1; i < n; i++)
        srunner_add_suite(runner, suites[i]);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
