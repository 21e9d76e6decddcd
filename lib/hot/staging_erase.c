/* Erasing a user from the hot tier. Entries in slots stay: they name a user without pending, and leave with
 * their slot. */
#include <hiredis/hiredis.h>

#include "hot/keys.h"
#include "hot/resp.h"
#include "hot/staging_internal.h"

/* s->key holds the user's prefix of `prefix` bytes and is appended to by the caller. */
static void begin_key(struct dd_hot_staging *s, size_t prefix)
{
    s->key.len = prefix;
}

static enum dd_err erase_keys(struct dd_hot_staging *s, struct dd_slice scene, struct dd_slice user,
                              const struct dd_period *periods, unsigned n, unsigned *removed)
{
    enum dd_err err = dd_sync_begin(&s->sync);
    if (err) return err;
    dd_buf_reset(&s->key);
    dd_hot_key_user(&s->key, scene, user);
    size_t prefix = s->key.len;
    dd_resp_begin(&s->sync.command, 3 + n, "UNLINK");
    dd_hot_key_add_deliveries(&s->key);
    dd_staging_arg_key(s);
    begin_key(s, prefix);
    dd_hot_key_add_cached(&s->key, s->h->store);
    dd_staging_arg_key(s);
    for (unsigned i = 0; i < n; i++) {
        begin_key(s, prefix);
        dd_hot_key_add_pending(&s->key, s->h->store, periods[i]);
        dd_staging_arg_key(s);
    }
    const struct redisReply *reply;
    err = dd_sync_call(&s->sync, &reply);
    if (err) return err;
    if (reply->type != REDIS_REPLY_INTEGER) return DD_IO;
    *removed = (unsigned)reply->integer;
    return DD_OK;
}

enum dd_err dd_hot_erase(struct dd_hot *h, struct dd_hot_staging *s, struct dd_slice scene,
                         struct dd_slice user, const struct dd_period *periods, unsigned n, unsigned *removed)
{
    *removed = 0;
    if (!h->embedded && !s) return DD_INVALID;
    enum dd_err err = h->embedded ? DD_OK : erase_keys(s, scene, user, periods, n, removed);
    if (err) return err;
    *removed += dd_mem_erase(h->mem, scene, user);
    return DD_OK;
}
