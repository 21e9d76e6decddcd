/* What every unit test shares: the check library, temporary directories, and one line per suite.
 *
 * A file tests/unit/<module>/test_<what>.c defines `Suite *suite_<what>(void)`; tests/unit/<module>/main.c
 * lists them. */
#ifndef DD_TESTS_UNIT_H
#define DD_TESTS_UNIT_H

#include <check.h>

#include "base/bytes.h"
#include "base/err.h"

#define ck_assert_ok(expr)                                                                                   \
    do {                                                                                                     \
        enum dd_err ck_err_ = (expr);                                                                        \
        ck_assert_msg(ck_err_ == DD_OK, "%s: %s", #expr, dd_err_name(ck_err_));                              \
    } while (0)

#define ck_assert_err(expr, expected)                                                                        \
    do {                                                                                                     \
        enum dd_err ck_err_ = (expr);                                                                        \
        ck_assert_msg(ck_err_ == (expected), "%s: %s, not %s", #expr, dd_err_name(ck_err_),                  \
                      dd_err_name(expected));                                                                \
    } while (0)

/* A new empty directory under $TMPDIR; unit_rmdir removes it with everything below. The path is the caller's
 * to free through unit_rmdir. */
char *unit_mkdir(void);
void unit_rmdir(char *path);

/* How long to wait for what must come: ms times the environment's PATIENCE. A slow machine or build sets it
 * (tests/run.sh: 2 and 3); never shorter. */
int64_t unit_patience_ms(int64_t ms);

/* Runs all suites; returns the exit status for main. */
int unit_run(Suite **suites, unsigned n);

#endif
