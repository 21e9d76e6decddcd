/* Trace: what one user was shown, in plain text, for the users that an operator names and for nobody else.
 * Filters cannot be read back; support must be able to answer "what did he see?".
 *
 * Bounded: at most DD_TRACE_USERS_MAX users, 1..90 days each, max_entries entries each (the oldest go). After
 * its days nothing more is recorded; entries go when they are older than that many days, and the trace itself
 * when its last entry may have.
 *
 * Requests of users who are not traced pay one load of a byte. Notes of the others are queued; a thread
 * writes them. What does not fit the queue (4 MB) is counted as dropped, never waited for. A crash loses what
 * is queued; a clean stop nothing.
 *
 * Threads: dd_trace_begin to dd_trace_end and dd_trace_get from any; what is marked "blocks" not on a loop.
 */
#ifndef DD_DEDUP_TRACE_H
#define DD_DEDUP_TRACE_H

#include "base/clock.h"
#include "dedup/dedup.h"
#include "store/store.h"

#define DD_TRACE_USERS_MAX   1000
#define DD_TRACE_DAYS_MAX    90
#define DD_TRACE_ENTRIES_MAX 10000

struct dd_trace;

/* Takes up the traces that the store remembers and starts the thread. DD_OK, DD_CORRUPT, DD_IO, DD_NO_MEMORY.
 * Borrows everything. */
enum dd_err dd_trace_create(struct dd_store *store, struct dd_clock *clock, struct dd_stats *stats,
                            struct dd_trace **out) DD_MUST_USE;
/* Writes what is queued, then ends the thread. */
void dd_trace_destroy(struct dd_trace *t);

/* ---- recording ---- */

enum dd_trace_what { DD_TRACE_EXPOSED = 1, DD_TRACE_DELIVERED };
enum dd_trace_source { DD_TRACE_BY_REQUEST = 1, DD_TRACE_BY_CLAIM }; /* its own request, or a /filter */

struct dd_trace_note;

/* Whether exposures and deliveries of the user in this scene are recorded now. t may be NULL. */
bool dd_trace_is_on(struct dd_trace *t, struct dd_slice scene, struct dd_slice user);
/* NULL: the user is not traced (or no memory: counted as dropped). Add items, then end, which takes it over;
 * both do nothing with NULL. */
struct dd_trace_note *dd_trace_begin(struct dd_trace *t, struct dd_slice scene, struct dd_slice user,
                                     enum dd_trace_what what, enum dd_trace_source source, int64_t ts_ms);
void dd_trace_add(struct dd_trace_note *n, struct dd_slice item);
void dd_trace_end(struct dd_trace *t, struct dd_trace_note *n);

/* All at once; chosen says which of the items, NULL: the first n. */
void dd_trace_items(struct dd_trace *t, struct dd_slice scene, struct dd_slice user, enum dd_trace_what what,
                    enum dd_trace_source source, int64_t ts_ms, const struct dd_item *items,
                    const uint32_t *chosen, unsigned n);

/* ---- for operators ---- */

struct dd_trace_state {
    char scene[DD_SCENE_NAME_MAX + 1]; /* empty: every scene */
    unsigned days, max_entries;
    int64_t started_ms, until_ms;
    bool active; /* until_ms has not come */
    uint64_t entries;
};

/* DD_NOT_FOUND: there is no trace of this user. */
enum dd_err dd_trace_get(struct dd_trace *t, struct dd_slice user, struct dd_trace_state *out) DD_MUST_USE;

/* Begins, or begins anew with these bounds and keeps the entries. Durable when it returns. Blocks. DD_LIMIT:
 * DD_TRACE_USERS_MAX are traced. DD_DISK_FULL, DD_IO, DD_NO_MEMORY, DD_SHUTDOWN. */
enum dd_err dd_trace_start(struct dd_trace *t, struct dd_slice user, struct dd_slice scene, unsigned days,
                           struct dd_trace_state *out) DD_MUST_USE;

/* Stops and removes every entry: nothing of the user is left and nothing follows. *removed: entries. With a
 * scene only that scene's entries go, and a trace of another scene or of all goes on. Blocks. DD_NOT_FOUND:
 * there was no trace. Others as above: call again. */
enum dd_err dd_trace_stop(struct dd_trace *t, struct dd_slice user, struct dd_slice only_scene,
                          uint64_t *removed) DD_MUST_USE;

#define DD_TRACE_CURSOR_BYTES 12 /* opaque */

struct dd_trace_entry {
    int64_t at_ms, ts_ms; /* when it was recorded; the event's own time */
    enum dd_trace_what what;
    enum dd_trace_source source;
    struct dd_slice scene, item;
    struct dd_slice cursor; /* to go on behind this entry */
};

/* Newest first, behind the cursor `before` (empty: from the newest), only of the scene if one is given; ends
 * when visit returns false. Slices live until visit returns. Blocks. */
typedef bool (*dd_trace_visit)(void *arg, const struct dd_trace_entry *e);
enum dd_err dd_trace_show(struct dd_trace *t, struct dd_slice user, struct dd_slice scene,
                          struct dd_slice before, dd_trace_visit visit, void *arg) DD_MUST_USE;

/* Returns when everything noted before has been written, or could not be. For tests. */
void dd_trace_settle(struct dd_trace *t);

#endif
