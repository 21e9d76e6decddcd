/* The change table: how a cached filter set proves that it is fresh, so that nothing ever has to be
 * invalidated.
 *
 * Every write to a store passes through one writer thread, which numbers its commits. For each period there
 * is a table of 64-bit cells; a cell holds the number of the last commit that touched any (scene, user)
 * hashing to it. A cached set carries the number that its reader loaded before it read the store. It is valid
 * if and only if that number is at least the user's cell, looked up after the user's pending was read. Two
 * users in one cell cost a needless read, never a wrong answer.
 *
 * Orders that must not change (proto/storage.md, "Change table"):
 *   writer   store commit -> dd_change_publish_number -> dd_change_raise -> acknowledgement, or removal
 *            from pending
 *   filler   n = dd_change_number -> store read -> put (n, set) into the cache
 *   reader   pending and cached set read -> dd_change_cell -> compare; the store is read last
 *
 * There are `tables` tables, a period uses number ordinal mod tables: when a table passes to a newer period
 * its cells hold lower numbers of an older one, which costs needless reads at the beginning and nothing else,
 * so it is never cleared.
 *
 * Numbers belong to an incarnation, a random id that every cached set carries too. A clean stop saves tables,
 * number and incarnation to a file; the next start uses it once and deletes it. Any other start is a new
 * incarnation.
 *
 * Threads: publish on the writer thread only; number and cell on any thread, lock-free. */
#ifndef DD_STORE_CHANGE_H
#define DD_STORE_CHANGE_H

#include <stdint.h>

#include "base/err.h"
#include "base/period.h"

struct dd_change;

/* cells: per table, a power of two from 1,024 to 2^28 (8 bytes each). tables: 1..DD_WINDOW_MAX + 2; at least
 * the longest window + 1. The incarnation is random and the number 0. */
enum dd_err dd_change_create(uint32_t cells, unsigned tables, struct dd_change **out) DD_MUST_USE;
void dd_change_destroy(struct dd_change *c);

uint64_t dd_change_incarnation(const struct dd_change *c);
/* The number of the last published commit (acquire). */
uint64_t dd_change_number(const struct dd_change *c);
/* The cell of a user's period (acquire). user_hash: dd_hash_user_seed of (scene, user). */
uint64_t dd_change_cell(const struct dd_change *c, struct dd_period period, uint64_t user_hash);

/* Writer thread, after the commit: makes `number` the published one. number = dd_change_number + 1. */
void dd_change_publish_number(struct dd_change *c, uint64_t number);
/* Writer thread, after dd_change_publish_number(number): raises the cell of one user's period to number. */
void dd_change_raise(struct dd_change *c, struct dd_period period, uint64_t user_hash, uint64_t number);

/* Saves everything to path (write to a temporary file, fsync, rename, fsync of the directory). Not concurrent
 * with publish. */
enum dd_err dd_change_save(const struct dd_change *c, const char *path) DD_MUST_USE;
/* Reads a file of dd_change_save and deletes it, always: it may be used once. DD_NOT_FOUND, DD_CORRUPT (also
 * when sizes differ from the configured ones), DD_IO. */
enum dd_err dd_change_load(const char *path, uint32_t cells, unsigned tables,
                           struct dd_change **out) DD_MUST_USE;

#endif
