/* Bytes: a borrowed slice, an owned growing buffer, and fixed-width integers at unaligned places.
 *
 * A slice travels as one value and is never read past its length; it need not end in NUL. A buffer that fails
 * to grow becomes `failed`: later appends do nothing, and the owner checks once at the end with dd_buf_ok.
 *
 * Ownership: a slice borrows. A buffer owns its memory until dd_buf_free; dd_buf_reset keeps the memory for
 * reuse. Threads: no shared state; one buffer belongs to one thread at a time. */
#ifndef DD_BASE_BYTES_H
#define DD_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dd_slice {
    const uint8_t *ptr;
    size_t len;
};

static inline struct dd_slice dd_slice_of(const void *ptr, size_t len)
{
    return (struct dd_slice){(const uint8_t *)ptr, len};
}

/* The bytes of a C string, without its NUL. */
static inline struct dd_slice dd_slice_str(const char *s)
{
    return dd_slice_of(s, strlen(s));
}

static inline bool dd_slice_eq(struct dd_slice a, struct dd_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Bytewise order, a prefix first: <0, 0, >0. */
int dd_slice_cmp(struct dd_slice a, struct dd_slice b);

struct dd_buf {
    uint8_t *data;
    size_t len, cap;
    bool failed;
};

static inline struct dd_slice dd_buf_slice(const struct dd_buf *b)
{
    return dd_slice_of(b->data, b->len);
}

static inline bool dd_buf_ok(const struct dd_buf *b)
{
    return !b->failed;
}

/* Empty without releasing memory; also clears `failed`. A zeroed struct is a valid empty buffer. */
void dd_buf_reset(struct dd_buf *b);
void dd_buf_free(struct dd_buf *b);

/* Makes room for n more bytes. false: no memory; the buffer is `failed` and unchanged. */
bool dd_buf_reserve(struct dd_buf *b, size_t n);

void dd_buf_add(struct dd_buf *b, const void *p, size_t n);
void dd_buf_add_slice(struct dd_buf *b, struct dd_slice s);
void dd_buf_add_str(struct dd_buf *b, const char *s);
void dd_buf_add_u8(struct dd_buf *b, uint8_t v);
void dd_buf_add_i64(struct dd_buf *b, int64_t v); /* decimal text */
void dd_buf_addf(struct dd_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends n bytes and returns where they begin, uninitialised; NULL: no memory. Valid until the next append.
 */
uint8_t *dd_buf_extend(struct dd_buf *b, size_t n);

/* Little-endian and big-endian integers at any alignment. */
static inline uint32_t dd_get_le32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v; /* little-endian hosts only: bytes.c refuses to compile elsewhere */
}

static inline uint64_t dd_get_le64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint16_t dd_get_le16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void dd_put_le16(uint8_t *p, uint16_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline void dd_put_le32(uint8_t *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline void dd_put_le64(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline uint32_t dd_get_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void dd_put_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24), p[1] = (uint8_t)(v >> 16), p[2] = (uint8_t)(v >> 8), p[3] = (uint8_t)v;
}

#endif
