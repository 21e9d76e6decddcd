#include "config/report.h"

#include <stdarg.h>
#include <stdio.h>

#define QUOTE_MAX 200

void dd_report_quote(struct dd_buf *out, const char *text)
{
    size_t n = 0;
    for (; n < QUOTE_MAX && text[n]; n++)
        dd_buf_add_u8(out, (uint8_t)text[n] < 0x20 || text[n] == 0x7f ? '?' : (uint8_t)text[n]);
    if (text[n]) dd_buf_add_str(out, "...");
}

static int rank(enum dd_err err)
{
    return err == DD_NO_MEMORY ? 3 : err == DD_IO ? 2 : err != DD_OK;
}

void dd_report_raise(struct dd_report *r, enum dd_err err)
{
    if (rank(err) > rank(r->err)) r->err = err;
}

void dd_report_add(struct dd_report *r, const char *prefix, const char *name, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (*r->source) {
        dd_report_quote(r->text, r->source);
        dd_buf_add_str(r->text, ": ");
    }
    dd_report_quote(r->text, prefix);
    dd_report_quote(r->text, name);
    if (*prefix || *name) dd_buf_add_str(r->text, ": ");
    dd_buf_add_str(r->text, line);
    dd_buf_add_str(r->text, "\n");
    dd_report_raise(r, dd_buf_ok(r->text) ? DD_INVALID : DD_NO_MEMORY);
}
