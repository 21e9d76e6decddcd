/* Keys of the hot tier in Redis: pure encoding, private to lib/hot. proto/storage.md, "Redis keys", is the
 * contract.
 *
 *   dd:{<scene>/<user>}:d                      deliveries
 *   dd:{<scene>/<user>}:p:<store>:<period>     pending
 *   dd:{<scene>/<user>}:c:<store>              cached filter sets, one field a period
 *   dd:a:<store>:<slot>:<part>                 who is active in a slot: members <scene>/<user>/<period>
 *   dd:s:<store>                               slot names: <start>-<end>, seconds since 1970
 *   dd:g:<store>                               generation and beat (server.h)
 *   dd:n                                       stores and the processes that hold them
 *
 * Scene and user are escaped: every byte other than [A-Za-z0-9_.~:@+=,-] becomes %XX. So no id can hold the
 * brace that ends the hash tag, nor the '/' that parts the two, nor bytes that hurt a terminal; and the tag
 * is never empty.
 *
 * Threads: pure functions. Ownership: appends to the caller's buffer; the owner checks dd_buf_ok. */
#ifndef DD_HOT_KEYS_H
#define DD_HOT_KEYS_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/period.h"

/* Parts of a slot, so that no key and no command grows with the number of users. */
#define DD_HOT_PARTS 16

/* Longest text of a slot with NUL: two signed 64-bit numbers and a dash. */
#define DD_HOT_SLOT_TEXT 48

#define DD_HOT_KEY_STORES "dd:n"

void dd_hot_escape(struct dd_buf *out, struct dd_slice bytes);
/* The inverse, exactly: DD_INVALID for a byte that must have been escaped, a broken escape, or an escape of a
 * byte that needs none (so that one id has one key). out then holds what was read so far. */
enum dd_err dd_hot_unescape(struct dd_slice text, struct dd_buf *out) DD_MUST_USE;

/* "dd:{scene/user}:", which begins every key of a user. */
void dd_hot_key_user(struct dd_buf *out, struct dd_slice scene, struct dd_slice user);
/* What follows it. */
void dd_hot_key_add_deliveries(struct dd_buf *out);
void dd_hot_key_add_pending(struct dd_buf *out, struct dd_slice store, struct dd_period period);
void dd_hot_key_add_cached(struct dd_buf *out, struct dd_slice store);

void dd_hot_key_bucket(struct dd_buf *out, struct dd_slice store, int64_t start_s, int64_t end_s,
                       unsigned part);
void dd_hot_key_slots(struct dd_buf *out, struct dd_slice store);
void dd_hot_key_generation(struct dd_buf *out, struct dd_slice store);

/* The part of a user's slot entries, 0..DD_HOT_PARTS - 1: the same in every process and version. */
unsigned dd_hot_part_of(struct dd_slice scene, struct dd_slice user);

/* The name of a slot, and back: DD_INVALID unless it is exactly what slot_name writes and start < end. */
void dd_hot_slot_name(struct dd_buf *out, int64_t start_s, int64_t end_s);
enum dd_err dd_hot_slot_parse(struct dd_slice text, int64_t *start_s, int64_t *end_s) DD_MUST_USE;

/* A bucket member, and back. Parsing appends the bytes of scene and user to `bytes` and gives their lengths;
 * the user follows the scene. DD_INVALID for anything that dd_hot_member does not write. */
void dd_hot_member(struct dd_buf *out, struct dd_slice scene, struct dd_slice user, struct dd_period period);
enum dd_err dd_hot_member_parse(struct dd_slice text, struct dd_buf *bytes, size_t *scene_len,
                                size_t *user_len, struct dd_period *period) DD_MUST_USE;

#endif
