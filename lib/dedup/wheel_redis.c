/* What the wheel asks of Redis beyond its slots: whether it may be staged in, and who holds the store. */
#include "base/log.h"
#include "dedup/wheel_impl.h"

/* ---- what Redis promises ---- */

enum dd_wheel_staging dd_wheel_staging(const struct dd_wheel *w)
{
    if (!w->options.stage || !atomic_load(&w->marked)) return DD_STAGING_OFF;
    switch (dd_hot_promise(w->hot)) {
    case DD_HOT_PROMISE_FIRM:
        return DD_STAGING_FIRM;
    case DD_HOT_PROMISE_WEAK:
        return DD_STAGING_VOLATILE;
    case DD_HOT_PROMISE_MEMORY:
        return w->options.allow_volatile ? DD_STAGING_VOLATILE : DD_STAGING_OFF;
    case DD_HOT_PROMISE_NONE:
        break;
    }
    return DD_STAGING_OFF;
}

void dd_wheel_log_staging(struct dd_wheel *w)
{
    static const char *const names[] = {"off", "firm", "volatile"};
    struct dd_hot_durability d;
    enum dd_wheel_staging now = dd_wheel_staging(w);
    if (now == w->logged_staging) return;
    w->logged_staging = now;
    dd_hot_get_durability(w->hot, &d);
    if (now == DD_STAGING_OFF)
        dd_error("wheel.staging_off", "reason=\"%s\" effect=\"exposures are written to the store directly\"",
                 d.evicts_without_ttl ? "maxmemory-policy evicts keys without a TTL" : d.warnings);
    else
        dd_info("wheel.staging", "durability=%s warnings=\"%s\"", names[now], d.warnings);
}

/* Redis away: it is judged when it comes, and nothing is staged until then. */
enum dd_err dd_wheel_refuse_evicting(struct dd_wheel *w)
{
    struct dd_hot_durability d;
    if (!w->options.stage || !w->options.refuse_evicting) return DD_OK;
    if (dd_hot_staging_ask_settings(w->staging) != DD_OK) return DD_OK;
    dd_hot_get_durability(w->hot, &d);
    if (!d.evicts_without_ttl) return DD_OK;
    dd_error("wheel.evicting_redis",
             "reason=\"ingest.mode is staged and maxmemory-policy evicts keys without a TTL\" "
             "hint=\"set maxmemory-policy volatile-lru\"");
    return DD_INVALID;
}

/* ---- the register of stores ---- */

/* Registers first when Redis was away at the start. */
void dd_wheel_beat(struct dd_wheel *w, bool at_once)
{
    const struct dd_hot_boot *boot = w->options.boot;
    struct dd_mono now = dd_clock_mono(w->clock);
    if (!boot || w->displaced) return;
    bool due = at_once || dd_mono_ms_between(w->last_beat, now) >= boot->alive_ms / 3;
    if (w->registered && !due) return;
    struct dd_hot_holder other;
    enum dd_err err = w->registered ? dd_hot_boot_beat(w->staging, boot, &other)
                                    : dd_hot_boot_register(w->staging, boot, &other);
    if (err == DD_OK) {
        w->registered = true;
        w->last_beat = now;
    }
    if (err != DD_LOCKED) return;
    w->displaced = true;
    dd_error("store.displaced", "by_boot=%s place=%s admin=%s effect=\"this process stops\"", other.boot_id,
             other.place, other.admin);
    if (w->options.displaced) w->options.displaced(w->options.displaced_arg);
}
