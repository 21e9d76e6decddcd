/* A population for benchmarks: everybody alike, so that a figure means something. Period by period and user
 * by user, which is the order of the keys: files come out sorted and need no compaction. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "load.h"

#define ITEM_BYTES 24 /* item- and 19 digits */

/* "item-%019u", without the cost of a format for hundreds of millions. */
static struct dd_slice item_name(uint32_t number, char out[ITEM_BYTES])
{
    memcpy(out, "item-000000000000000000", 23);
    for (int at = ITEM_BYTES - 1; at >= 5; at--) {
        out[at] = (char)('0' + number % 10);
        number /= 10;
    }
    return dd_slice_of(out, ITEM_BYTES);
}

static void fingerprints(const struct dd_load_synthetic *s, uint64_t user_seed, uint32_t user, uint32_t month,
                         uint32_t *out)
{
    char name[ITEM_BYTES];
    uint64_t state = dd_mix64(s->seed ^ (uint64_t)month << 40 ^ user);
    for (uint32_t i = 0; i < s->items; i++) {
        state += 0x9e3779b97f4a7c15ULL;
        uint32_t item = (uint32_t)(dd_mix64(state) % s->catalogue);
        out[i] = dd_hash_fingerprint(user_seed, item_name(item, name));
    }
}

enum dd_err dd_load_synthetic(struct dd_loader *l, const struct dd_load_synthetic *s, int64_t now_ms,
                              struct dd_bar *bar)
{
    const struct dd_secret *secret = dd_store_secret(l->store);
    struct dd_period now = dd_period_at(l->period, (struct dd_wall){now_ms});
    uint32_t *fps = malloc((s->items + 1) * sizeof *fps);
    enum dd_err err = fps ? DD_OK : DD_NO_MEMORY;
    for (uint32_t month = s->months; err == DD_OK && month-- > 0;) { /* oldest first */
        struct dd_period p = {now.kind, now.ordinal - (int32_t)month};
        uint32_t hint = month + 1 < s->months ? s->items : 0; /* as a flush would know the month before */
        for (uint32_t u = 0; err == DD_OK && u < s->users; u++) {
            char name[24];
            snprintf(name, sizeof name, "user-%08u", u);
            struct dd_slice user = dd_slice_str(name);
            fingerprints(s, dd_hash_user_seed(secret, l->scene, user), u, month, fps);
            err = dd_loader_add(l, user, p, hint, fps, s->items);
            if (u % 64 == 0) dd_bar_show(bar, l->sets, (uint64_t)s->users * s->months);
        }
    }
    free(fps);
    return err == DD_OK ? dd_loader_finish(l) : err;
}
