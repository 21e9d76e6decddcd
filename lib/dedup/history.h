/* History: the raw ids of exposures, kept beside the filter sets as the cold record from which sets can be
 * rebuilt. Whose: history.mode (nobody's, traced users', everybody's).
 *
 * A record is one exposure event: DD_STORE_RECORD of the set that it goes to, so it expires and is erased
 * with the set. It is committed before the event is acknowledged: in the commit of its merge, or, when the
 * event is staged, in one of its own that comes first (and is synced, since what is staged survives a power
 * cut).
 *
 * Coverage: with mode "all", a period that began after history was switched on has every exposure in it, and
 * a rebuild may replace its set. Other periods are only ever added to. Coverage ends when the process starts
 * with another mode, and when the store was brought back from a checkpoint (what was staged since is not in
 * it).
 *
 * Threads: open and close from the main thread; everything else from any. */
#ifndef DD_DEDUP_HISTORY_H
#define DD_DEDUP_HISTORY_H

#include "base/arena.h"
#include "dedup/dedup.h"
#include "dedup/trace.h"

enum dd_history_mode { DD_HISTORY_OFF, DD_HISTORY_TRACED, DD_HISTORY_ALL };

struct dd_history_options {
    enum dd_history_mode mode;
    const char *data_dir;
    const char *gap; /* a scene whose sets are also written to from elsewhere (a migration): it is not
                        covered while that lasts. NULL: none */
};

struct dd_history;

/* Before the configured scenes are registered in the store: one that it does not know has never been exposed
 * to, and is covered from its beginning. DD_OK also when coverage could not be noted (a full disk): then
 * nothing is covered. DD_IO, DD_CORRUPT, DD_NO_MEMORY. Borrows everything; trace may be NULL. */
enum dd_err dd_history_open(const struct dd_history_options *o, struct dd_store *store,
                            const struct dd_scenes *scenes, struct dd_clock *clock, struct dd_trace *trace,
                            struct dd_history **out) DD_MUST_USE;
void dd_history_close(struct dd_history *h);

enum dd_history_mode dd_history_mode(const struct dd_history *h); /* h may be NULL: off */
/* Whether exposures of this user are to be recorded. h may be NULL. */
bool dd_history_wants(struct dd_history *h, struct dd_slice scene, struct dd_slice user);
/* Whether every exposure that is in the period's sets is in history too. */
bool dd_history_covers(const struct dd_history *h, const struct dd_scene *scene, struct dd_period period);
/* The first period covered, or false: none. */
bool dd_history_covered_from(const struct dd_history *h, const struct dd_scene *scene, struct dd_period *out);

/* ---- records ---- */

#define DD_HISTORY_SUFFIX_BYTES 16

/* A record of n items in the arena. DD_NO_MEMORY. */
enum dd_err dd_history_make(struct dd_history *h, struct dd_arena *arena, int64_t ts_ms,
                            const struct dd_item *items, unsigned n, struct dd_slice *suffix,
                            struct dd_slice *value) DD_MUST_USE;
/* The items of a record, from *rest on (the value, to begin with). false: no more. */
bool dd_history_next_item(struct dd_slice *rest, struct dd_slice *item);
/* Of a value: skips what comes before the items. false: of no known form. */
bool dd_history_open_record(struct dd_slice value, int64_t *ts_ms, struct dd_slice *rest);

/* ---- erasing while exposures are staged ---- */

/* An exposure writes its record, then stages, and both must be there or neither: an erase (or forget) in
 * between would take the record and leave what is staged, and a rebuild would lose it. So whoever takes
 * records away stands between enter and leave, and a staged exposure is acknowledged only if nobody stood
 * there since before its record was written; otherwise it is answered 503 and sent again. Per hash of the
 * user, so that others are not disturbed. h may be NULL. */
void dd_history_enter(struct dd_history *h, struct dd_slice user);
void dd_history_leave(struct dd_history *h, struct dd_slice user);
uint64_t dd_history_calm(const struct dd_history *h, struct dd_slice user);
bool dd_history_stayed_calm(const struct dd_history *h, struct dd_slice user, uint64_t since);

#endif
