#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1000

static _Atomic int lowest_level = DD_LOG_INFO;
static const char *const level_names[] = {"debug", "info", "warn", "error"};

void dd_log_set_level(enum dd_log_level lowest)
{
    atomic_store(&lowest_level, (int)lowest);
}

enum dd_err dd_log_level_parse(struct dd_slice text, enum dd_log_level *out)
{
    for (int i = 0; i < 4; i++) {
        if (!dd_slice_eq(text, dd_slice_str(level_names[i]))) continue;
        *out = (enum dd_log_level)i;
        return DD_OK;
    }
    return DD_INVALID;
}

static int put_prefix(char *line, size_t size, enum dd_log_level level, const char *event)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    char stamp[32];
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &tm);
    return snprintf(line, size, "%s.%03ldZ %s %s", stamp, now.tv_nsec / 1000000, level_names[level], event);
}

void dd_log(enum dd_log_level level, const char *event, const char *fmt, ...)
{
    if ((int)level < atomic_load_explicit(&lowest_level, memory_order_relaxed)) return;
    char line[LINE_MAX_BYTES + 2];
    size_t n = (size_t)put_prefix(line, LINE_MAX_BYTES, level, event);
    if (n > LINE_MAX_BYTES) n = LINE_MAX_BYTES;
    if (*fmt && n < LINE_MAX_BYTES) {
        line[n++] = ' ';
        va_list ap;
        va_start(ap, fmt);
        int more = vsnprintf(line + n, LINE_MAX_BYTES - n + 1, fmt, ap);
        va_end(ap);
        if (more > 0) n += (size_t)more;
        if (n > LINE_MAX_BYTES) n = LINE_MAX_BYTES;
    }
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) line[i] = '?';
    line[n++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, n);
    (void)written; /* nowhere left to report a failing standard error */
}
