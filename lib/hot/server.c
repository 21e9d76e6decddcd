#include "hot/server.h"

#include <stdio.h>

#include "base/log.h"

/* Samples are ten seconds apart and one a connection: far fewer than this between two that are compared. */
#define BEAT_AHEAD_MAX (1 << 20)
/* Samples of several connections are observed in another order than they were taken. */
#define BEAT_BEHIND_MAX 1024

void dd_server_init(struct dd_server *s)
{
    *s = (struct dd_server){0};
    pthread_mutex_init(&s->lock, NULL);
    atomic_init(&s->recent_lost_ms, INT64_MIN);
    atomic_init(&s->run, 0);
    atomic_init(&s->promise, DD_HOT_PROMISE_NONE);
}

void dd_server_reset(struct dd_server *s)
{
    pthread_mutex_destroy(&s->lock);
}

int64_t dd_server_new_beat(uint64_t random)
{
    return (int64_t)(random >> 10) + ((int64_t)1 << 40); /* below 2^55 */
}

/* ---- reading ---- */

static uint64_t number(struct dd_slice text)
{
    uint64_t v = 0;
    for (size_t i = 0; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9' && v < UINT64_MAX / 100; i++)
        v = v * 10 + (uint64_t)(text.ptr[i] - '0');
    return v;
}

static bool is(struct dd_slice text, const char *word)
{
    return dd_slice_eq(text, dd_slice_str(word));
}

static bool begins(struct dd_slice text, const char *word)
{
    size_t n = strlen(word);
    return text.len >= n && memcmp(text.ptr, word, n) == 0;
}

static enum dd_server_eviction eviction_of(struct dd_slice policy)
{
    if (begins(policy, "allkeys")) return DD_EVICT_ANY;
    if (begins(policy, "volatile")) return DD_EVICT_WITH_TTL;
    return is(policy, "noeviction") ? DD_EVICT_NONE : DD_EVICT_UNKNOWN;
}

static bool has_other_than(struct dd_slice text, uint8_t c)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] != c) return true;
    return false;
}

static void read_field(struct dd_server_sample *out, struct dd_slice name, struct dd_slice value)
{
    if (is(name, "run_id") && value.len < sizeof out->run_id) {
        memcpy(out->run_id, value.ptr, value.len);
        out->run_id[value.len] = 0;
        out->has_info = true;
    } else if (is(name, "aof_enabled")) {
        out->aof = is(value, "1");
    } else if (is(name, "maxmemory_policy")) {
        out->eviction = eviction_of(value);
    } else if (is(name, "maxmemory")) {
        out->maxmemory = number(value);
    } else if (is(name, "used_memory")) {
        out->used_memory = number(value);
    } else if (is(name, "evicted_keys")) {
        out->evicted_keys = number(value);
    } else if (is(name, "connected_slaves")) {
        out->replicas = (unsigned)number(value);
    } else if (is(name, "master_replid2")) {
        out->promoted = has_other_than(value, '0');
    }
}

void dd_server_read_info(struct dd_server_sample *out, struct dd_slice info)
{
    size_t at = 0;
    while (at < info.len) {
        const uint8_t *line = info.ptr + at, *end = memchr(line, '\n', info.len - at);
        size_t n = end ? (size_t)(end - line) : info.len - at;
        at += n + 1;
        if (n && line[n - 1] == '\r') n--;
        const uint8_t *colon = n ? memchr(line, ':', n) : NULL;
        if (!colon) continue;
        size_t name = (size_t)(colon - line);
        read_field(out, dd_slice_of(line, name), dd_slice_of(colon + 1, n - name - 1));
    }
}

static enum dd_hot_fsync fsync_of(struct dd_slice value)
{
    if (is(value, "always")) return DD_HOT_FSYNC_ALWAYS;
    if (is(value, "everysec")) return DD_HOT_FSYNC_EVERYSEC;
    return is(value, "no") ? DD_HOT_FSYNC_NO : DD_HOT_FSYNC_UNKNOWN;
}

void dd_server_read_config(struct dd_server_sample *out, struct dd_slice name, struct dd_slice value)
{
    if (is(name, "appendfsync")) {
        out->fsync = fsync_of(value);
        out->has_config = true;
    } else if (is(name, "appendonly")) {
        out->aof = is(value, "yes");
    } else if (is(name, "maxmemory-policy")) {
        out->eviction = eviction_of(value);
    } else if (is(name, "maxmemory")) {
        out->maxmemory = number(value);
    }
}

/* ---- comparing ---- */

/* Nothing acknowledged can be missing after this server was killed and started again. */
static bool is_firm(const struct dd_server_sample *s)
{
    return s->has_config && s->aof && s->fsync == DD_HOT_FSYNC_ALWAYS && s->replicas == 0 && !s->promoted;
}

enum continuity { CONTINUES, BROKEN, UNSURE };

static enum continuity continuity_of(const struct dd_server_sample *old, const struct dd_server_sample *new,
                                     bool restarted)
{
    if (!old->has_beat || !new->has_beat) return UNSURE;
    int64_t ahead = new->beat - old->beat;
    if (ahead > 0) return ahead < BEAT_AHEAD_MAX ? CONTINUES : BROKEN;
    return !restarted && ahead > -BEAT_BEHIND_MAX ? CONTINUES : BROKEN;
}

static void note_recent_lost(struct dd_server *s, int64_t now_ms, const char *why)
{
    atomic_store_explicit(&s->recent_lost_ms, now_ms, memory_order_relaxed);
    dd_warn("hot.deliveries_may_be_lost", "why=\"%s\"", why);
}

static void note_loss(struct dd_server *s, int64_t now_ms)
{
    s->losses++;
    s->last_loss_ms = now_ms;
    dd_error("hot.redis_lost_data",
             "what=\"keys vanished or are older than before: what was staged there is lost\"");
    note_recent_lost(s, now_ms, "redis lost data");
}

static void compare(struct dd_server *s, const struct dd_server_sample *new, int64_t now_ms)
{
    const struct dd_server_sample *old = &s->last;
    bool restarted = old->has_info && new->has_info &&strcmp(old->run_id, new->run_id) != 0;
    enum continuity c = continuity_of(old, new, restarted || s->expected);
    if (restarted) {
        s->restarts++;
        dd_warn("hot.redis_restarted", "old=%s new=%s continues=%s", old->run_id, new->run_id,
                c == CONTINUES ? "yes"
                : c == BROKEN  ? "no"
                               : "unknown");
    }
    if (restarted || c == BROKEN) atomic_fetch_add(&s->run, 1);
    if (c == BROKEN) {
        note_loss(s, now_ms);
    } else if (restarted && (c == UNSURE || !is_firm(old) || !is_firm(new))) {
        note_recent_lost(s, now_ms, "redis restarted and may have lost its last writes");
    } else if (!restarted && !s->expected &&
               new->evicted_keys > old->evicted_keys &&new->eviction != DD_EVICT_NONE) {
        note_recent_lost(s, now_ms, "redis evicts keys");
    }
}

static void fill_durability(const struct dd_server *s, struct dd_hot_durability *out);

static enum dd_hot_promise promise_of(const struct dd_hot_durability *d)
{
    if (!d->known || d->evicts_without_ttl) return DD_HOT_PROMISE_NONE;
    if (dd_hot_durability_is_firm(d)) return DD_HOT_PROMISE_FIRM;
    return d->aof ? DD_HOT_PROMISE_WEAK : DD_HOT_PROMISE_MEMORY;
}

void dd_server_observe(struct dd_server *s, const struct dd_server_sample *sample, int64_t now_ms)
{
    pthread_mutex_lock(&s->lock);
    int64_t beat = s->last.beat;
    bool had_beat = s->met && s->last.has_beat;
    if (s->met) compare(s, sample, now_ms);
    bool same = s->met && strcmp(s->last.run_id, sample->run_id) == 0;
    s->met = true;
    s->expected = false;
    s->last = *sample;
    /* A sample that was overtaken must not lower the beat; one that could not beat keeps the last known. */
    bool overtaken = sample->has_beat && same && sample->beat < beat && sample->beat > beat - BEAT_BEHIND_MAX;
    if (had_beat && (!sample->has_beat || overtaken)) {
        s->last.beat = beat;
        s->last.has_beat = true;
    }
    struct dd_hot_durability d;
    fill_durability(s, &d);
    atomic_store(&s->promise, (int)promise_of(&d));
    pthread_mutex_unlock(&s->lock);
}

void dd_server_expect(struct dd_server *s, int64_t beat)
{
    pthread_mutex_lock(&s->lock);
    s->met = s->expected = true;
    s->last = (struct dd_server_sample){.has_beat = true, .beat = beat};
    pthread_mutex_unlock(&s->lock);
}

bool dd_server_last_beat(struct dd_server *s, int64_t *beat)
{
    pthread_mutex_lock(&s->lock);
    bool known = s->met && !s->expected && s->last.has_beat;
    *beat = s->last.beat;
    pthread_mutex_unlock(&s->lock);
    return known;
}

/* ---- telling ---- */

static void warn(struct dd_hot_durability *d, const char *text)
{
    size_t n = strlen(d->warnings);
    snprintf(d->warnings + n, sizeof d->warnings - n, "%s%s", n ? "; " : "", text);
}

static void add_warnings(struct dd_hot_durability *d)
{
    if (!d->known) return;
    if (!d->readable)
        warn(d, "Redis does not let its settings be read (CONFIG GET)");
    else if (!d->aof)
        warn(d, "appendonly is off: a Redis that dies loses what is staged");
    else if (d->fsync != DD_HOT_FSYNC_ALWAYS)
        warn(d, d->fsync == DD_HOT_FSYNC_NO
                    ? "appendfsync is no: a power cut loses what is staged"
                    : "appendfsync is not always: up to 2 s of what is staged can be lost");
    if (d->evicts_without_ttl) warn(d, "maxmemory-policy evicts keys without a TTL: nothing can be staged");
    if (d->replicated) warn(d, "Redis is replicated asynchronously: a fail-over can lose the last writes");
    if (d->losses) warn(d, "Redis has lost data since the start");
}

static void fill_durability(const struct dd_server *s, struct dd_hot_durability *out)
{
    const struct dd_server_sample *l = &s->last;
    *out = (struct dd_hot_durability){
        .known = s->met && l->has_info,
        .readable = l->has_config,
        .aof = l->aof,
        .fsync = l->fsync,
        .evicts_without_ttl = l->maxmemory > 0 && l->eviction == DD_EVICT_ANY,
        .evicts_with_ttl = l->maxmemory > 0 && l->eviction == DD_EVICT_WITH_TTL,
        .replicated = l->replicas > 0 || l->promoted,
        .maxmemory = l->maxmemory,
        .used_memory = l->used_memory,
        .restarts = s->restarts,
        .losses = s->losses,
        .last_loss_ms = s->last_loss_ms,
    };
}

void dd_server_durability(struct dd_server *s, struct dd_hot_durability *out)
{
    pthread_mutex_lock(&s->lock);
    fill_durability(s, out);
    pthread_mutex_unlock(&s->lock);
    add_warnings(out);
}

bool dd_hot_durability_is_firm(const struct dd_hot_durability *d)
{
    return d->known && d->readable && d->aof && d->fsync == DD_HOT_FSYNC_ALWAYS && !d->evicts_without_ttl &&
           !d->replicated;
}
