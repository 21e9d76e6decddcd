/* Errors of loading, gathered as text. Internal to lib/config.
 *
 * Threads, Ownership: belongs to one load; borrows the text buffer. */
#ifndef DD_CONFIG_REPORT_H
#define DD_CONFIG_REPORT_H

#include "base/bytes.h"
#include "base/err.h"

struct dd_report {
    struct dd_buf *text;
    const char *source; /* what each line begins with: a file, a variable, "--set" */
    enum dd_err err;    /* DD_OK until the first error; DD_NO_MEMORY, then DD_IO, win over DD_INVALID */
};

/* "source: prefix name: text\n", without the blank. */
void dd_report_add(struct dd_report *r, const char *prefix, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Takes an error that has no line of its own, or whose line is there already. */
void dd_report_raise(struct dd_report *r, enum dd_err err);

/* Appends text of unknown origin: control bytes as '?', cut at 200 bytes. */
void dd_report_quote(struct dd_buf *out, const char *text);

#endif
