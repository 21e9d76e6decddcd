/* Sorted lists of 32-bit fingerprints: what a light user has, what an operand is, and what follows full
 * layers.
 *
 * Searches halve the list without branches. Guessing the place from the value (fingerprints are uniform)
 * takes fewer steps, but each is a mispredicted branch: measured 14 ns against 7 at 50 entries. */
#include "filter/internal.h"

#define BLOCK 16 /* insertion sort below this length */

static void insertion_sort(uint32_t *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t x = v[i];
        size_t j = i;
        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

static void merge_two(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, uint32_t *out)
{
    size_t i = 0, j = 0;
    while (i < na && j < nb)
        *out++ = b[j] < a[i] ? b[j++] : a[i++];
    memcpy(out, a + i, (na - i) * sizeof *a);
    memcpy(out + (na - i), b + j, (nb - j) * sizeof *b);
}

/* Merges runs 2i and 2i + 1 from v into out; returns how many runs there are then. */
static size_t merge_pairs(const uint32_t *v, size_t *starts, size_t runs, uint32_t *out)
{
    size_t made = 0;
    for (size_t i = 0; i < runs; i += 2) {
        size_t from = starts[i], middle = starts[i + 1], to = i + 1 < runs ? starts[i + 2] : middle;
        merge_two(v + from, middle - from, v + middle, to - middle, out + from);
        starts[made++] = from;
    }
    starts[made] = starts[runs];
    return made;
}

void dd_list_merge_runs(uint32_t *v, size_t *starts, size_t runs, uint32_t *scratch)
{
    if (runs < 2) return;
    uint32_t *from = v, *to = scratch;
    while (runs > 1) {
        runs = merge_pairs(from, starts, runs, to);
        uint32_t *swap = from;
        from = to, to = swap;
    }
    if (from != v) memcpy(v, from, starts[1] * sizeof *v);
}

static void merge_width(const uint32_t *v, size_t n, size_t width, uint32_t *out)
{
    for (size_t i = 0; i < n; i += 2 * width) {
        size_t middle = i + width < n ? i + width : n, to = i + 2 * width < n ? i + 2 * width : n;
        merge_two(v + i, middle - i, v + middle, to - middle, out + i);
    }
}

void dd_list_sort(uint32_t *v, size_t n, uint32_t *scratch)
{
    for (size_t i = 0; i < n; i += BLOCK)
        insertion_sort(v + i, n - i < BLOCK ? n - i : BLOCK);
    uint32_t *from = v, *to = scratch;
    for (size_t width = BLOCK; width < n; width *= 2) {
        merge_width(from, n, width, to);
        uint32_t *swap = from;
        from = to, to = swap;
    }
    if (from != v) memcpy(v, from, n * sizeof *v);
}

size_t dd_list_limit_copies(uint32_t *v, size_t n, unsigned copies)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept >= copies && v[kept - copies] == v[i]) continue;
        v[kept++] = v[i];
    }
    return kept;
}

size_t dd_list_union(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, uint32_t *out,
                     unsigned copies)
{
    merge_two(a, na, b, nb, out);
    return dd_list_limit_copies(out, na + nb, copies);
}

size_t dd_list_distinct(const uint32_t *v, size_t n)
{
    size_t distinct = 0;
    for (size_t i = 0; i < n; i++)
        distinct += i == 0 || v[i] != v[i - 1];
    return distinct;
}

static uint32_t entry(const uint8_t *list, size_t i)
{
    return dd_get_le32(list + 4 * i);
}

/* Index of the first entry that is not below fp; n when there is none. Any list, sorted or not, ends in 0 ..
 * n. The number of steps depends on n alone and the choice in each is arithmetic: nothing to mispredict. */
static inline size_t lower_bound(const uint8_t *list, size_t n, uint32_t fp)
{
    size_t low = 0;
    while (n > 1) {
        size_t half = n / 2;
        low += half & -(size_t)(entry(list, low + half - 1) < fp);
        n -= half;
    }
    return low + (n == 1 && entry(list, low) < fp);
}

unsigned dd_list_count(const uint8_t *list, uint32_t n, uint32_t fp)
{
    unsigned copies = 0;
    for (size_t i = lower_bound(list, n, fp); i < n && entry(list, i) == fp && copies < DD_FILTER_COPIES; i++)
        copies++;
    return copies;
}

size_t dd_list_test(const uint8_t *list, uint32_t n, const uint32_t *fps, size_t count, uint8_t *seen,
                    uint8_t mark)
{
    size_t found = 0;
    for (size_t c = 0; n > 0 && c < count; c++) {
        if (seen[c] != 0) continue;
        size_t i = lower_bound(list, n, fps[c]);
        if (i == n || entry(list, i) != fps[c]) continue;
        seen[c] = mark;
        found++;
    }
    return found;
}

typedef uint32_t four __attribute__((vector_size(16)));

/* What dd_list_check counts, four neighbours at a time; returns how many pairs. A list is checked whenever
 * its blob is opened: 0.25 ns an entry, where one at a time took 0.8. */
static size_t check_fours(const uint8_t *list, uint32_t n, uint32_t *descents, uint32_t *equals)
{
    four before, here, less = {0}, same = {0}; /* a comparison gives -1 where it holds */
    size_t pairs = 0;
    for (; pairs + 4 < n; pairs += 4) {
        memcpy(&before, list + 4 * pairs, sizeof before);
        memcpy(&here, list + 4 * pairs + 4, sizeof here);
        less -= (four)(here < before);
        same -= (four)(here == before);
    }
    for (int k = 0; k < 4; k++)
        *descents += less[k], *equals += same[k];
    return pairs;
}

bool dd_list_check(const uint8_t *list, uint32_t n, bool repeats, uint32_t *distinct)
{
    uint32_t descents = 0, equals = 0;
    size_t i = 1 + check_fours(list, n, &descents, &equals);
    for (; i < n; i++) {
        uint32_t before = entry(list, i - 1), here = entry(list, i);
        descents += here < before;
        equals += here == before;
    }
    *distinct = n - equals;
    return descents == 0 && (repeats || equals == 0);
}
