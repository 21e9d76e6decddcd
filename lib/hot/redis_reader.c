/* hiredis builds replies through five functions that may be replaced. These allocate by bumping a pointer,
 * element and text in one step, and free nothing but the whole. The reader parses one reply at a time and
 * hands it to its callback before it begins the next, so one arena is enough.
 *
 * Measured on a fetch of 60 pending, 60 to 100 deliveries and three sets of 2 KB, 64 fetches at once: 33 us
 * of CPU a fetch with hiredis' functions, 18.6 us with these. */
#include "hot/redis_reader.h"

#include <hiredis/hiredis.h>

/* Kept over replies: holds the replies of an ordinary user whole. */
#define FIRST_BYTES (64 << 10)

/* A length that only a broken or hostile server announces: hiredis would reserve memory for all of it at
 * once. */
#define ELEMENTS_MAX 4000000

/* The outermost element remembers where it was built. */
struct root {
    redisReply reply; /* first */
    struct dd_arena *arena;
};

/* A zeroed element with `extra` bytes behind it, put into its parent's array. */
static redisReply *create(const redisReadTask *task, size_t extra, uint8_t **behind)
{
    struct dd_redis_replies *replies = task->privdata;
    struct dd_arena *arena = &replies->arena;
    if (!task->parent && replies->awaited && *replies->awaited == 0) {
        replies->unasked = true;
        return NULL;
    }
    size_t size = task->parent ? sizeof(redisReply) : sizeof(struct root);
    uint8_t *at = dd_arena_alloc(arena, size + extra);
    if (!at) return NULL;
    memset(at, 0, size);
    redisReply *r = (redisReply *)(void *)at;
    r->type = task->type;
    *behind = at + size;
    if (task->parent) {
        redisReply *parent = task->parent->obj;
        parent->element[task->idx] = r;
    } else {
        ((struct root *)(void *)at)->arena = arena;
    }
    return r;
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    uint8_t *behind;
    redisReply *r = create(task, len + 1, &behind);
    if (!r) return NULL;
    memcpy(behind, text, len);
    behind[len] = 0;
    r->str = (char *)behind;
    r->len = len;
    return r;
}

static void *create_array(const redisReadTask *task, int elements)
{
    uint8_t *behind;
    if (elements < 0 || elements > ELEMENTS_MAX) return NULL;
    redisReply *r = create(task, (size_t)elements * sizeof(redisReply *), &behind);
    if (!r) return NULL;
    memset(behind, 0, (size_t)elements * sizeof(redisReply *));
    r->element = (redisReply **)(void *)behind;
    r->elements = (size_t)elements;
    return r;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    uint8_t *behind;
    redisReply *r = create(task, 0, &behind);
    if (r) r->integer = value;
    return r;
}

static void *create_nil(const redisReadTask *task)
{
    uint8_t *behind;
    redisReply *r = create(task, 0, &behind);
    if (r) r->type = REDIS_REPLY_NIL; /* the task has the type of what is missing */
    return r;
}

static void free_reply(void *reply)
{
    if (reply) dd_arena_reset(((struct root *)reply)->arena);
}

enum dd_err dd_redis_build_in(redisReader *reader, struct dd_redis_replies *to)
{
    static const redisReplyObjectFunctions functions = {create_string, create_array, create_integer,
                                                        create_nil, free_reply};
    dd_arena_reset(&to->arena);
    if (!dd_arena_alloc(&to->arena, FIRST_BYTES)) return DD_NO_MEMORY;
    dd_arena_reset(&to->arena);
    reader->fn = (redisReplyObjectFunctions *)(uintptr_t)&functions;
    to->unasked = false;
    reader->privdata = to;
    return DD_OK;
}

bool dd_redis_read_fp(const struct redisReply *e, uint32_t *out)
{
    if (e->type != REDIS_REPLY_STRING || e->len == 0 || e->len > 11) return false;
    bool minus = e->str[0] == '-';
    int64_t v = 0;
    for (size_t i = minus; i < e->len; i++) {
        if (e->str[i] < '0' || e->str[i] > '9') return false;
        v = v * 10 + (e->str[i] - '0');
    }
    if (minus) v = -v;
    if (e->len == minus || v < INT32_MIN || v > INT32_MAX) return false;
    *out = (uint32_t)(int32_t)v;
    return true;
}
