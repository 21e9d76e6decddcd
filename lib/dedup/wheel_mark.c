/* The durable mark that something may be staged in a Redis (staged.h): written before anything is, kept up to
 * date, removed at a clean stop with nothing left. */
#include "base/log.h"
#include "dedup/staged.h"
#include "dedup/wheel_impl.h"

#define BEAT_STEP                                                                                            \
    64 /* beats between two updates of the mark: minutes, far below what counts as another Redis */

bool dd_wheel_is_blind(const struct dd_wheel *w)
{
    return w->blind;
}

void dd_wheel_recall_mark(struct dd_wheel *w)
{
    bool marked = dd_staged_get(w->store, &w->marked_beat);
    atomic_store(&w->marked, marked);
    w->mark_saved = marked;
    if (w->staging && w->options.stage) dd_wheel_keep_mark(w); /* now, not at a tick: staging waits for it */
    if (!marked || w->staging) return;
    if (w->options.abandon_staged) {
        enum dd_err err = dd_staged_clear(w->store);
        dd_warn("staged.abandoned", "result=%s", dd_err_name(err));
        return;
    }
    w->blind = true;
    dd_error("staged.unseen",
             "what=\"an earlier run left exposures in a Redis that is not configured\" effect=\"answers say "
             "partial\" hint=\"set redis.url again, or ingest.abandon_staged if it is gone\"");
}

/* A store that takes no writes (the disk guard) must not keep exposures from being staged, which is what is
 * left then: the mark follows when it does. */
void dd_wheel_keep_mark(struct dd_wheel *w)
{
    int64_t beat = 0;
    bool known = dd_hot_last_beat(w->hot, &beat), marked = atomic_load(&w->marked);
    if (!marked && !w->options.stage) return;
    bool current = beat >= w->marked_beat && beat - w->marked_beat < BEAT_STEP;
    if (marked && w->mark_saved && (!known || current)) return;
    enum dd_err err = dd_staged_put(w->store, beat, !w->mark_saved);
    if (err != DD_OK && !marked)
        dd_warn("staged.mark_not_written", "error=%s effect=\"tried again at every tick\"", dd_err_name(err));
    w->mark_saved = err == DD_OK;
    if (err == DD_OK) w->marked_beat = beat;
    atomic_store(&w->marked, true);
}

/* The loops have ended: nothing is staged any more. */
void dd_wheel_leave_mark(struct dd_wheel *w)
{
    const struct dd_hot_slot *slots;
    unsigned n;
    int64_t beat;
    if (!w->staging || w->displaced || !atomic_load(&w->marked)) return;
    bool empty = dd_hot_staging_slots(w->staging, &slots, &n) == DD_OK && n == 0;
    enum dd_err err = DD_OK;
    if (empty)
        err = dd_staged_clear(w->store);
    else if (dd_hot_last_beat(w->hot, &beat))
        err = dd_staged_put(w->store, beat, false);
    if (err != DD_OK) dd_warn("staged.mark_not_updated", "error=%s", dd_err_name(err));
}
