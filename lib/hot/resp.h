/* Writes commands in the Redis protocol (RESP2) into a buffer: hiredis' own formatting allocates several
 * times a command.
 *
 * Threads: no shared state. Ownership: appends to the caller's buffer; the owner checks dd_buf_ok. */
#ifndef DD_HOT_RESP_H
#define DD_HOT_RESP_H

#include <stdint.h>

#include "base/bytes.h"

/* A command of `args` arguments, its name included; exactly that many dd_resp_arg* calls follow. */
void dd_resp_begin(struct dd_buf *b, unsigned args, const char *name);
void dd_resp_arg(struct dd_buf *b, struct dd_slice arg);
void dd_resp_arg_str(struct dd_buf *b, const char *arg);
void dd_resp_arg_i64(struct dd_buf *b, int64_t arg);
/* One argument in two pieces. */
void dd_resp_arg_pair(struct dd_buf *b, struct dd_slice head, struct dd_slice tail);

/* The whole AUTH command; user NULL: the default user. */
void dd_resp_auth(struct dd_buf *b, const char *user, const char *password);

#endif
