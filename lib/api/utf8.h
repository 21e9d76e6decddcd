/* UTF-8 as the Unicode standard defines it (table 3-7, "Well-Formed UTF-8 Byte Sequences"): no overlong
 * forms, no surrogates, nothing above U+10FFFF. Threads: pure functions. */
#ifndef DD_API_UTF8_H
#define DD_API_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length (1..4) of the character at p, which is before end; 0: not well-formed. */
static inline size_t dd_utf8_length(const uint8_t *p, const uint8_t *end)
{
    if (*p < 0x80) return 1;
    if (*p < 0xc2 || *p > 0xf4) return 0;
    size_t n = *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
    if ((size_t)(end - p) < n) return 0;
    uint8_t lowest = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80;
    uint8_t highest = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < lowest || p[1] > highest) return 0;
    for (size_t i = 2; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return n;
}

/* Writes the character c (at most U+10FFFF, no surrogate) and returns its length, 1..4. */
static inline size_t dd_utf8_put(uint8_t *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (uint8_t)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (uint8_t)(0x80 | (c & 0x3f));
    to[0] = (uint8_t)(lead[n] | c);
    return n;
}

#endif
