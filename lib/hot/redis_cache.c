/* Filling the cache: HSET and PEXPIRE, which nobody waits for. A fill that is lost costs one read of the
 * store; so it is left out as soon as the connection is half full, and requests keep the other half. */
#include <hiredis/async.h>

#include "base/hash.h"
#include "hot/internal.h"
#include "hot/keys.h"
#include "hot/resp.h"
#include "hot/value.h"

/* Up to a tenth less, so that what was filled together does not lapse together. */
static int64_t jittered(int64_t ttl_ms, uint64_t random)
{
    return ttl_ms - (int64_t)(random % (uint64_t)(ttl_ms / 10 + 1));
}

static void put_field(struct dd_hot_loop *hl, struct dd_period period, const struct dd_hot_value *v)
{
    uint8_t header[DD_HOT_VALUE_HEADER];
    char text[DD_PERIOD_TEXT];
    dd_hot_value_header(v, header);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 4, "HSET");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    dd_resp_arg_str(&hl->command, dd_period_format(period, text));
    dd_resp_arg_pair(&hl->command, dd_slice_of(header, sizeof header), v->blob);
}

void dd_hot_cache_put(struct dd_hot_loop *hl, struct dd_slice scene, struct dd_slice user,
                      struct dd_period period, uint64_t incarnation, uint64_t number, int64_t now_ms,
                      int64_t ttl_ms, struct dd_slice blob)
{
    if (hl->h->embedded || ttl_ms <= 0) return;
    if (!dd_redis_has_room(&hl->conn) || dd_redis_may_send(&hl->conn, 2)) {
        dd_count(hl->h->count.put_skipped, 1);
        return;
    }
    dd_hot_begin_user(hl, scene, user);
    dd_hot_key_add_cached(&hl->key, hl->h->store);
    struct dd_hot_value v = {incarnation, number, now_ms, blob};
    put_field(hl, period, &v);
    dd_hot_send_forgotten(hl);
    hl->conn.random = dd_mix64(hl->conn.random + (uint64_t)now_ms);
    dd_buf_reset(&hl->command);
    dd_resp_begin(&hl->command, 3, "PEXPIRE");
    dd_resp_arg(&hl->command, dd_buf_slice(&hl->key));
    dd_resp_arg_i64(&hl->command, jittered(ttl_ms, hl->conn.random));
    dd_hot_send_forgotten(hl); /* if it fails, the next fill sets a life */
}
