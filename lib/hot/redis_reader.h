/* How replies are built: in an arena of the connection instead of two allocations an element. Private to
 * lib/hot.
 *
 * A reply of 100 deliveries and their scores has 200 elements: building and freeing them with hiredis' own
 * functions took more time than everything else that a fetch does (see redis_reader.c).
 *
 * Threads: the connection's. Ownership: one reply at a time; all of it goes when hiredis frees it, after its
 * callback. */
#ifndef DD_HOT_REDIS_READER_H
#define DD_HOT_REDIS_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct redisReader;
struct redisReply;

struct dd_redis_replies {
    struct dd_arena arena;
    const unsigned *awaited; /* commands without a reply; NULL: not counted */
    bool unasked;            /* one came that nobody awaits */
};

/* From now on the reader builds in `to`, which must outlive it. A reply that nobody awaits is refused, which
 * fails the connection: hiredis would end the process. DD_NO_MEMORY: the reader is as it was. */
enum dd_err dd_redis_build_in(struct redisReader *reader, struct dd_redis_replies *to) DD_MUST_USE;

/* A fingerprint, which sets of pending keep as signed 32-bit decimal. false: it is not one. */
bool dd_redis_read_fp(const struct redisReply *e, uint32_t *out);

#endif
