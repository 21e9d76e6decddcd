#include "hot/script.h"

#include <stdio.h>

#include <hiredis/hiredis.h>

#include "hot/resp.h"

/* Time is that of Redis, so that the clocks of hosts need not agree. A register entry is
 * "boot \t seen_ms \t place \t admin", place and admin escaped. */
#define REGISTER_HEAD                                                                                        \
    "local t = redis.call('TIME')\n"                                                                         \
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"                                                    \
    "local old = redis.call('HGET', KEYS[1], ARGV[1])\n"                                                     \
    "local boot, seen, place\n"                                                                              \
    "if old then boot, seen, place = string.match(old, '^([^\\t]*)\\t(%d+)\\t([^\\t]*)\\t') end\n"

#define REGISTER_SET(seen)                                                                                   \
    "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. '\\t' .. string.format('%.0f', " seen                   \
    ") .. '\\t' .. ARGV[3] .. '\\t' .. ARGV[4])\n"                                                           \
    "return ''"

static const char *const texts[DD_SCRIPTS] = {
    /* KEYS: slot names, then the parts of the slot. ARGV: its name. 1: dropped, 0: something is in it. */
    [DD_SCRIPT_DROP_SLOT] = "for i = 2, #KEYS do\n"
                            "  if redis.call('EXISTS', KEYS[i]) == 1 then return 0 end\n"
                            "end\n"
                            "redis.call('SREM', KEYS[1], ARGV[1])\n"
                            "return 1",
    /* KEYS: dd:n. ARGV: store, boot, place, admin, alive_ms. Gives '' or the entry of the one that lives. */
    [DD_SCRIPT_REGISTER] = REGISTER_HEAD
    "if boot and boot ~= ARGV[2] and place ~= ARGV[3] and now - seen < tonumber(ARGV[5]) then\n"
    "  return old\n"
    "end\n" REGISTER_SET("now"),
    [DD_SCRIPT_BEAT] = REGISTER_HEAD "if boot and boot ~= ARGV[2] then return old end\n" REGISTER_SET("now"),
    [DD_SCRIPT_LEAVE] = REGISTER_HEAD "if boot ~= ARGV[2] then return '' end\n" REGISTER_SET("0"),
};

void dd_script_forget(struct dd_scripts *all)
{
    *all = (struct dd_scripts){0};
}

enum dd_err dd_script_load(struct dd_scripts *all, struct dd_sync *s, enum dd_script which)
{
    if (all->sha[which][0]) return DD_OK;
    const struct redisReply *reply;
    dd_resp_begin(&s->command, 3, "SCRIPT");
    dd_resp_arg_str(&s->command, "LOAD");
    dd_resp_arg_str(&s->command, texts[which]);
    enum dd_err err = dd_sync_call(s, &reply);
    if (err) return err;
    if (reply->type != REDIS_REPLY_STRING || reply->len != 40) return DD_IO;
    snprintf(all->sha[which], sizeof all->sha[which], "%s", reply->str);
    return DD_OK;
}

void dd_script_begin(struct dd_scripts *all, struct dd_sync *s, enum dd_script which, unsigned keys,
                     unsigned args)
{
    dd_resp_begin(&s->command, 3 + keys + args, "EVALSHA");
    dd_resp_arg_str(&s->command, all->sha[which]);
    dd_resp_arg_i64(&s->command, keys);
}

bool dd_script_is_missing(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0;
}
