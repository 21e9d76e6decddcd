/* Logging: one line an event on standard error, `time level event key=value ...`, written with one write(2).
 *
 *   2026-11-30T17:46:31.123Z info store.open path=/var/lib/dedupd users=12
 *
 * The logger is the one piece of mutable state at file level in dedupd. Lines are cut at 1,000 bytes. Control
 * bytes are replaced by '?', so that no input can forge a line.
 *
 * Threads: any thread, no lock (a line is one write). */
#ifndef DD_BASE_LOG_H
#define DD_BASE_LOG_H

#include "base/bytes.h"
#include "base/err.h"

enum dd_log_level { DD_LOG_DEBUG, DD_LOG_INFO, DD_LOG_WARN, DD_LOG_ERROR };

void dd_log_set_level(enum dd_log_level lowest);
/* "debug", "info", "warn", "error"; DD_INVALID otherwise. */
enum dd_err dd_log_level_parse(struct dd_slice text, enum dd_log_level *out) DD_MUST_USE;

/* event: "area.what"; fmt: "key=value ..." or "" for none. */
void dd_log(enum dd_log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define dd_debug(...) dd_log(DD_LOG_DEBUG, __VA_ARGS__)
#define dd_info(...)  dd_log(DD_LOG_INFO, __VA_ARGS__)
#define dd_warn(...)  dd_log(DD_LOG_WARN, __VA_ARGS__)
#define dd_error(...) dd_log(DD_LOG_ERROR, __VA_ARGS__)

#endif
