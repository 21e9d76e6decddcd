/* The mark that exposures of this store may stand in Redis and nowhere else.
 *
 * It is written to the store, synced, before the first exposure is staged, and removed at a clean stop with
 * no slot left. So a start that cannot see that Redis (no URL any more) knows that it may miss something and
 * answers partial; and a start that meets a Redis without the data (emptied, another database, an older
 * snapshot) notices, because the mark carries the beat that Redis had (hot/staging.h).
 *
 * The exception: a store that takes no writes (a full disk). Staging is all that is left then and goes on
 * without the mark, which is tried again at every tick; a crash before it is written, together with a Redis
 * that is emptied, would go unnoticed.
 *
 * A checkpoint has the mark too. If all slots were flushed before it and nothing was pending, a note lies
 * beside its database: what was acknowledged before is all in it, so the restored store claims nothing.
 *
 * Threads: blocking; not on a loop. */
#ifndef DD_DEDUP_STAGED_H
#define DD_DEDUP_STAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "hot/staging.h"
#include "store/store.h"

/* Whether the mark is there; *beat: what Redis last had, 0 unknown. */
bool dd_staged_get(struct dd_store *store, int64_t *beat);
/* sync: before anything is staged; not for a newer beat. */
enum dd_err dd_staged_put(struct dd_store *store, int64_t beat, bool sync) DD_MUST_USE;
enum dd_err dd_staged_clear(struct dd_store *store) DD_MUST_USE;

/* The note's name in a data directory: a backup's, and a restored one's until its first start. */
#define DD_STAGED_NOTE "nothing.staged"

/* Writes the note, durably. DD_OK, DD_IO: there is none, and the mark of the checkpoint counts. */
enum dd_err dd_staged_note(const char *data_dir) DD_MUST_USE;
/* At the start, first of all: where the note is, it is removed and then the mark. Failing in between leaves
 * the mark, the careful side. */
void dd_staged_settle(struct dd_store *store, const char *data_dir);

/* At the start, before anything is asked of Redis: tells the hot tier which beat to expect. */
void dd_staged_recall(struct dd_store *store, struct dd_hot *hot);

#endif
