/* What the hot tier remembers of this store's last clean stop: the field <store>:stop of dd:n, "<incarnation>
 * <number>" in decimal. The store saves its change table with the same two; only when both agree is the table
 * taken up again, so that a restored checkpoint or a copied directory cannot. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "hot/internal.h"
#include "hot/keys.h"
#include "hot/resp.h"
#include "hot/sync.h"

static void add_field(struct dd_sync *s, const struct dd_hot *h)
{
    dd_resp_arg_str(&s->command, DD_HOT_KEY_STORES);
    dd_resp_arg_pair(&s->command, h->store, dd_slice_str(":stop"));
}

static enum dd_err read_pair(const struct redisReply *reply, uint64_t *incarnation, uint64_t *number)
{
    if (reply->type != REDIS_REPLY_STRING) return DD_NOT_FOUND;
    int end = 0;
    int n = sscanf(reply->str, "%" SCNu64 " %" SCNu64 "%n", incarnation, number, &end);
    return n == 2 && (size_t)end == reply->len ? DD_OK : DD_NOT_FOUND;
}

enum dd_err dd_hot_witness_get(struct dd_hot *h, uint64_t *incarnation, uint64_t *number)
{
    if (h->embedded) return DD_NOT_FOUND;
    struct dd_sync s = {.o = &h->o, .resolve = h->resolve};
    const struct redisReply *reply;
    enum dd_err err = dd_sync_begin(&s);
    if (!err) {
        dd_resp_begin(&s.command, 3, "HGET");
        add_field(&s, h);
        err = dd_sync_call(&s, &reply);
    }
    if (!err) err = read_pair(reply, incarnation, number);
    dd_sync_close(&s);
    return err == DD_IO ? DD_UNAVAILABLE : err;
}

enum dd_err dd_hot_witness_put(struct dd_hot *h, uint64_t incarnation, uint64_t number)
{
    if (h->embedded) return DD_UNAVAILABLE;
    struct dd_sync s = {.o = &h->o, .resolve = h->resolve};
    const struct redisReply *reply;
    char text[48];
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, incarnation, number);
    enum dd_err err = dd_sync_begin(&s);
    if (!err) {
        dd_resp_begin(&s.command, 4, "HSET");
        add_field(&s, h);
        dd_resp_arg_str(&s.command, text);
        err = dd_sync_call(&s, &reply);
    }
    dd_sync_close(&s);
    return err == DD_IO ? DD_UNAVAILABLE : err;
}
