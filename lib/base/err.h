/* The error table of dedupd: one row gives the code, its stable name and a text for people.
 *
 * Fallible functions return enum dd_err and put outputs last, by pointer. DD_OK is success. DD_PENDING is the
 * success of an asynchronous start: the callback runs exactly once, later, on the loop that started it. Any
 * other value from a start means that the callback never runs.
 *
 * Threads: pure functions, any thread. */
#ifndef DD_BASE_ERR_H
#define DD_BASE_ERR_H

#define DD_ERR_MAP(X)                                                                                        \
    X(OK, "ok", "success")                                                                                   \
    X(PENDING, "pending", "started; the callback follows")                                                   \
    X(INVALID, "invalid", "invalid argument or input")                                                       \
    X(TOO_LARGE, "too_large", "over a size limit")                                                           \
    X(NOT_FOUND, "not_found", "no such thing")                                                               \
    X(EXISTS, "exists", "it is there already")                                                               \
    X(NO_MEMORY, "no_memory", "out of memory")                                                               \
    X(IO, "io", "input or output failed")                                                                    \
    X(CORRUPT, "corrupt", "data failed its checksum or its bounds")                                          \
    X(BUSY, "busy", "a queue is full; try again")                                                            \
    X(TIMEOUT, "timeout", "the deadline passed")                                                             \
    X(UNAVAILABLE, "unavailable", "a dependency is away")                                                    \
    X(DISK_FULL, "disk_full", "the disk guard refuses writes")                                               \
    X(EXPIRED, "expired", "older than the window")                                                           \
    X(LIMIT, "limit", "over a cap of this user")                                                             \
    X(LOCKED, "locked", "held by another process")                                                           \
    X(UNSUPPORTED, "unsupported", "this kind cannot do that")                                                \
    X(SHUTDOWN, "shutdown", "shutting down")

enum dd_err {
#define X(id, name, text) DD_##id,
    DD_ERR_MAP(X)
#undef X
};

#define DD_MUST_USE __attribute__((warn_unused_result))

/* The stable name ("not_found") and the text of a code; "unknown" for a value outside the table. Static
 * strings. */
const char *dd_err_name(enum dd_err err);
const char *dd_err_text(enum dd_err err);

#endif
