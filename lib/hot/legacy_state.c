/* Whether the old store answers, for all loops together.
 *
 * Each loop has a connection of its own and tries again up to 20 times a second: the log says that the store
 * went away once, not once a try, and again every minute for as long as it stays away. */
#include <stdio.h>

#include "base/log.h"
#include "hot/legacy_impl.h"

#define REMIND_MS 60000

void dd_legacy_state_init(struct dd_legacy_state *s)
{
    *s = (struct dd_legacy_state){.told = false};
    pthread_mutex_init(&s->lock, NULL);
}

void dd_legacy_state_reset(struct dd_legacy_state *s)
{
    pthread_mutex_destroy(&s->lock);
}

void dd_legacy_state_count(struct dd_legacy *l, int connections, int up)
{
    struct dd_legacy_state *s = &l->state;
    pthread_mutex_lock(&s->lock);
    s->connections += (unsigned)connections;
    s->connections_up += (unsigned)up;
    if (s->connections_up == s->connections)
        s->down_since_ms = 0;
    else if (s->down_since_ms == 0)
        s->down_since_ms = dd_clock_wall(l->hot->clock).ms;
    pthread_mutex_unlock(&s->lock);
}

void dd_legacy_state_changed(struct dd_legacy *l, bool up, const char *reason)
{
    struct dd_legacy_state *s = &l->state;
    struct dd_mono now = dd_clock_mono(l->hot->clock);
    pthread_mutex_lock(&s->lock);
    bool all = s->connections_up == s->connections;
    bool news = (s->up != all || !s->told) && up == all;
    bool remind = !up && !news && dd_mono_ms_between(s->said, now) >= REMIND_MS;
    if (!up) snprintf(s->last_error, sizeof s->last_error, "%s", reason);
    if (news) s->up = all;
    s->told |= news;
    if (news || remind) s->said = now;
    pthread_mutex_unlock(&s->lock);
    if (news && up)
        dd_info("legacy.connected", "");
    else if (news || remind)
        dd_warn("legacy.disconnected",
                "reason=\"%s\" hint=\"answers say partial and offer what only the old keys know\"", reason);
}

void dd_legacy_state_refused(struct dd_legacy *l, const char *words)
{
    struct dd_legacy_state *s = &l->state;
    pthread_mutex_lock(&s->lock);
    snprintf(s->refusal, sizeof s->refusal, "%s", words);
    atomic_store_explicit(&s->refused, true, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
}

void dd_legacy_state_answered(struct dd_legacy *l)
{
    if (atomic_load_explicit(&l->state.refused, memory_order_relaxed))
        atomic_store_explicit(&l->state.refused, false, memory_order_relaxed);
}

void dd_legacy_get_status(struct dd_legacy *l, struct dd_legacy_status *out)
{
    struct dd_legacy_state *s = &l->state;
    *out = (struct dd_legacy_status){.asked = true};
    struct dd_hot_status hot = {.embedded = false};
    if (!l->own) dd_hot_get_status(l->hot, &hot);
    pthread_mutex_lock(&s->lock);
    bool refused = atomic_load_explicit(&s->refused, memory_order_relaxed);
    out->connections = l->own ? s->connections : hot.connections;
    out->connections_up = l->own ? s->connections_up : hot.connections_up;
    out->down_since_ms = l->own ? s->down_since_ms : hot.down_since_ms;
    bool connected = out->connections && out->connections_up == out->connections;
    const char *lost = l->own ? s->last_error : hot.last_error;
    if (!connected)
        snprintf(out->last_error, sizeof out->last_error, "%s", *lost ? lost : "not connected yet");
    else if (refused)
        snprintf(out->last_error, sizeof out->last_error, "redis: %s", s->refusal);
    out->up = connected && !refused;
    pthread_mutex_unlock(&s->lock);
}
