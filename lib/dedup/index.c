#include "dedup/index.h"

static enum dd_err allocate(struct dd_index *ix, unsigned n, struct dd_arena *arena)
{
    uint32_t slots = 8;
    while (slots < n * 2)
        slots *= 2;
    ix->mask = slots - 1;
    ix->slot = dd_arena_calloc(arena, slots, sizeof *ix->slot);
    ix->fps = dd_arena_alloc(arena, n * sizeof *ix->fps);
    ix->reason = dd_arena_calloc(arena, n, 1);
    return ix->slot && ix->fps && ix->reason ? DD_OK : DD_NO_MEMORY;
}

/* The number of the item with this id, or that of the free slot to take: found tells which. */
static uint32_t find(const struct dd_index *ix, uint32_t fp, struct dd_slice id, uint32_t *item)
{
    uint32_t at = fp & ix->mask;
    for (; ix->slot[at]; at = (at + 1) & ix->mask) {
        *item = ix->slot[at] - 1;
        if (ix->fps[*item] == fp && dd_slice_eq(ix->items[*item].id, id)) return at;
    }
    *item = UINT32_MAX;
    return at;
}

enum dd_err dd_index_build(struct dd_index *ix, struct dd_item *items, unsigned n, uint64_t seed,
                           struct dd_arena *arena)
{
    *ix = (struct dd_index){.items = items, .n = n, .seed = seed};
    if (allocate(ix, n, arena) != DD_OK) return DD_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t fp = dd_hash_fingerprint(seed, items[i].id), same;
        items[i].fp = ix->fps[i] = fp;
        uint32_t at = find(ix, fp, items[i].id, &same);
        if (same != UINT32_MAX)
            ix->reason[i] = DD_REASON_REPEAT;
        else
            ix->slot[at] = i + 1;
    }
    return DD_OK;
}

static unsigned mark(struct dd_index *ix, uint32_t item, uint8_t reason)
{
    if (ix->reason[item] == DD_REASON_UNSEEN) {
        ix->reason[item] = reason;
        return 1;
    }
    if (reason < ix->reason[item]) ix->reason[item] = reason;
    return 0;
}

enum dd_err dd_index_allow(struct dd_index *ix, unsigned max_seen, struct dd_arena *arena)
{
    ix->times = dd_arena_calloc(arena, ix->n, sizeof *ix->times);
    ix->first = dd_arena_calloc(arena, ix->n, 1);
    ix->max_seen = max_seen;
    return ix->times && ix->first ? DD_OK : DD_NO_MEMORY;
}

/* At most DD_WINDOW_MAX sets, each of at most 15 times: no overflow. */
static unsigned mark_seen(struct dd_index *ix, uint32_t item, uint8_t reason, unsigned times)
{
    if (!ix->times) return mark(ix, item, reason);
    if (times == 0) return 0;
    if (ix->times[item] == 0 || reason < ix->first[item]) ix->first[item] = reason;
    ix->times[item] = (uint16_t)(ix->times[item] + times);
    return ix->times[item] > ix->max_seen ? mark(ix, item, ix->first[item]) : 0;
}

unsigned dd_index_mark_id(struct dd_index *ix, struct dd_slice id, uint8_t reason)
{
    uint32_t item;
    find(ix, dd_hash_fingerprint(ix->seed, id), id, &item);
    return item == UINT32_MAX ? 0 : mark(ix, item, reason);
}

unsigned dd_index_mark_fp(struct dd_index *ix, uint32_t fp, uint8_t reason)
{
    unsigned marked = 0;
    for (uint32_t at = fp & ix->mask; ix->slot[at]; at = (at + 1) & ix->mask) {
        uint32_t item = ix->slot[at] - 1;
        if (ix->fps[item] == fp) marked += mark_seen(ix, item, reason, 1);
    }
    return marked;
}

static unsigned mark_counted(struct dd_index *ix, const struct dd_filter_view *set, uint8_t reason)
{
    unsigned marked = 0;
    for (uint32_t i = 0; i < ix->n; i++)
        if (ix->reason[i] != DD_REASON_REPEAT)
            marked += mark_seen(ix, i, reason, dd_filter_view_count(set, ix->fps[i]));
    return marked;
}

unsigned dd_index_mark_set(struct dd_index *ix, const struct dd_filter_view *set, uint8_t reason, bool exact,
                           uint8_t *scratch)
{
    if (ix->times) return mark_counted(ix, set, reason);
    if (!exact) return (unsigned)dd_filter_view_test(set, ix->fps, ix->n, ix->reason, reason);
    unsigned marked = 0;
    memset(scratch, 0, ix->n);
    dd_filter_view_test(set, ix->fps, ix->n, scratch, 1);
    for (uint32_t i = 0; i < ix->n; i++)
        if (scratch[i] && ix->reason[i] != DD_REASON_REPEAT) marked += mark(ix, i, reason);
    return marked;
}
