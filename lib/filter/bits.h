/* Fields of up to 32 bits at any bit offset, little-endian, by one 8-byte load.
 *
 * The load may reach 7 bytes past the field. In a blob the 8-byte checksum follows every body; while a set is
 * built, dd_filter_room_after keeps as much reserved. */
#ifndef DD_FILTER_BITS_H
#define DD_FILTER_BITS_H

#include "base/bytes.h"

static inline uint32_t dd_bits_get(const uint8_t *p, uint64_t bit, unsigned width)
{
    return (uint32_t)(dd_get_le64(p + bit / 8) >> bit % 8 & ((1ULL << width) - 1));
}

static inline void dd_bits_put(uint8_t *p, uint64_t bit, unsigned width, uint32_t value)
{
    uint64_t mask = ((1ULL << width) - 1) << bit % 8, old = dd_get_le64(p + bit / 8);
    dd_put_le64(p + bit / 8, (old & ~mask) | (uint64_t)value << bit % 8);
}

/* Set bits of a word, without the instruction that baseline x86-64 does not have (a library call there). */
static inline unsigned dd_bits_count(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555ULL;
    x = (x & 0x3333333333333333ULL) + (x >> 2 & 0x3333333333333333ULL);
    return (unsigned)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL) * 0x0101010101010101ULL >> 56);
}

#endif
