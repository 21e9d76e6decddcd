/* A program run as a child, with its ends of sockets in place of standard input and output.
 *
 * Threads: any one thread. Ownership: dd_child_end reaps. */
#ifndef DD_CTL_FILTERS_CHILD_H
#define DD_CTL_FILTERS_CHILD_H

#include <sys/types.h>

#include "base/bytes.h"
#include "base/err.h"

struct dd_child {
    pid_t pid; /* 0: none */
    int in;    /* what we write to is its standard input; -1: it has none */
    int out;   /* what we read is its standard output; -1: it writes to the given file */
};

/* argv[0] is looked up in PATH. output: a descriptor for its standard output, or -1: a socket, at child->out.
 * DD_NOT_FOUND: no such program. DD_IO. */
enum dd_err dd_child_start(struct dd_child *child, char *const argv[], int output) DD_MUST_USE;

/* Writes all of it; DD_IO when the child no longer reads. */
enum dd_err dd_child_write(struct dd_child *child, struct dd_slice bytes) DD_MUST_USE;

/* Closes both sockets, sends the signal unless it is 0, waits. DD_OK: it exited with 0, or was sent a signal;
 * DD_IO otherwise. Nothing happens for a zeroed child. */
enum dd_err dd_child_end(struct dd_child *child, int signal);

#endif
