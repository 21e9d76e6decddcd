/* GET and DELETE /users/{user}, GET /users/{user}/filter: one user, for operators. */
#include <stdio.h>

#include "api/base64.h"
#include "api/json.h"
#include "api/operator.h"

static struct dd_buf *scratch(struct dd_api_call *c)
{
    struct dd_buf *out = dd_http_request_scratch(c->origin.req);
    dd_buf_reset(out);
    return out;
}

static void answer(struct dd_api_call *c, const struct dd_buf *out)
{
    dd_api_answer_buf(&c->origin, 200, DD_API_JSON, out);
    dd_api_call_release(c);
}

static void answer_failed(struct dd_api_call *c, enum dd_err err, const char *not_found)
{
    if (err == DD_NOT_FOUND)
        dd_api_answer_fail(&c->origin, 404, "not_found", NULL, "%s", not_found);
    else
        dd_api_answer_err(&c->origin, err);
    dd_api_call_release(c);
}

static void add_member(struct dd_buf *out, const char *name, struct dd_slice text)
{
    dd_buf_addf(out, "\"%s\":", name);
    dd_json_add_string(out, text);
}

/* ---- GET /users/{user} ---- */

static void add_deliveries(struct dd_buf *out, const struct dd_inspect_scene *s, int64_t now_ms)
{
    dd_buf_add_str(out, "\"deliveries\":[");
    for (unsigned i = s->recent_n; i-- > 0;) { /* newest first */
        int64_t age = now_ms - s->recent[i].at_ms;
        dd_buf_addf(out, "{\"age_ms\":%lld,", (long long)(age > 0 ? age : 0));
        add_member(out, "item", s->recent[i].id);
        dd_buf_add_str(out, i ? "}," : "}");
    }
    dd_buf_add_str(out, "],");
}

static void add_set(struct dd_buf *out, const struct dd_inspect_period *p)
{
    const struct dd_filter_info *f = &p->info;
    dd_buf_add_str(out, "\"stored\":");
    if (!p->stored)
        dd_buf_add_str(out, "null");
    else if (!p->sound)
        dd_buf_add_str(out, "{\"corrupt\":true}");
    else {
        dd_buf_addf(out, "{\"kind\":\"%s\",\"sparse\":%s,\"items\":%u,\"capacity\":%u,\"layers\":%u,",
                    dd_filter_kind_name(f->kind), f->sparse ? "true" : "false", f->items, f->capacity,
                    f->layers);
        dd_buf_addf(out, "\"fill\":%.4f,\"bytes\":%zu,\"fpr\":%.3g,\"damaged\":%s}", f->fill, f->bytes,
                    f->fpr, f->damaged ? "true" : "false");
    }
}

static void add_periods(struct dd_buf *out, const struct dd_inspect_scene *s, int64_t now_ms)
{
    static const char *const caches[] = {
        [DD_CACHE_NONE] = "none", [DD_CACHE_VALID] = "valid", [DD_CACHE_STALE] = "stale"};
    char text[DD_PERIOD_TEXT];
    dd_buf_add_str(out, "\"periods\":[");
    for (unsigned i = 0; i < s->period_n; i++) {
        const struct dd_inspect_period *p = &s->period[i];
        dd_buf_addf(out, "%s{\"period\":\"%s\",\"in_window\":%s,\"pending\":%u,", i ? "," : "",
                    dd_period_format(p->period, text), p->in_window ? "true" : "false", p->pending);
        add_set(out, p);
        dd_buf_addf(out, ",\"cache\":\"%s\"", caches[p->cache]);
        if (p->cache != DD_CACHE_NONE)
            dd_buf_addf(out, ",\"cache_age_ms\":%lld", (long long)(now_ms - p->cached_ms));
        dd_buf_add_u8(out, '}');
    }
    dd_buf_add_u8(out, ']');
}

static void add_migration(struct dd_buf *out, const struct dd_migrate_mark *m)
{
    if (!m->migrated && !m->erased) {
        dd_buf_add_str(out, "null");
        return;
    }
    dd_buf_add_str(out, "{\"migrated_ms\":");
    dd_buf_addf(out, m->migrated ? "%lld" : "null", (long long)m->mark_ms);
    dd_buf_add_str(out, ",\"erased_ms\":");
    dd_buf_addf(out, m->erased ? "%lld" : "null", (long long)m->erased_ms);
    dd_buf_addf(out, ",\"entries\":%llu,\"skipped\":%llu}", (unsigned long long)m->entries,
                (unsigned long long)m->skipped);
}

static void inspect_done(void *arg)
{
    struct dd_api_call *c = arg;
    const struct dd_inspect_call *x = &c->u.inspect;
    if (x->err == DD_INVALID) {
        dd_operator_no_scene(c);
        return;
    }
    if (x->err != DD_OK) {
        answer_failed(c, x->err, "nothing is known of this user");
        return;
    }
    int64_t now_ms = dd_clock_wall(c->al->api->options.clock).ms;
    struct dd_buf *out = scratch(c);
    dd_buf_add_u8(out, '{');
    add_member(out, "user", x->user);
    dd_buf_addf(out, ",\"history\":\"%s\",\"scenes\":[", x->partial ? "partial" : "full");
    for (unsigned i = 0; i < x->scene_n; i++) {
        dd_buf_addf(out, "%s{\"scene\":\"%s\",\"configured\":%s,", i ? "," : "", x->scenes[i].scene->name,
                    x->scenes[i].configured ? "true" : "false");
        add_deliveries(out, &x->scenes[i], now_ms);
        add_periods(out, &x->scenes[i], now_ms);
        dd_buf_add_u8(out, '}');
    }
    dd_buf_add_str(out, "],\"trace\":");
    if (x->traced) {
        dd_buf_add_u8(out, '{');
        dd_api_add_trace(out, &x->trace);
        dd_buf_add_u8(out, '}');
    } else {
        dd_buf_add_str(out, "null");
    }
    dd_buf_add_str(out, ",\"migration\":");
    add_migration(out, &x->migration);
    dd_buf_add_u8(out, '}');
    answer(c, out);
}

void dd_api_user(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_operator_params p;
    struct dd_api_call *c = dd_operator_take(al, o);
    if (!c || !dd_operator_params(c, DD_PARAM_SCENE, &p)) return;
    c->u.inspect = (struct dd_inspect_call){
        .scene = p.scene_name, .user = p.user, .arena = &c->arena, .done = inspect_done, .arg = c};
    dd_user_inspect(al->dl, &c->u.inspect);
}

/* ---- DELETE /users/{user} ---- */

static void add_others(struct dd_buf *out, const struct dd_erase_call *x)
{
    dd_buf_add_str(out, "\"not_asked\":[");
    for (unsigned i = 0; i < x->others_n; i++) {
        dd_buf_add_str(out, i ? ",{" : "{");
        add_member(out, "store", dd_slice_str(x->others[i].store));
        dd_buf_add_u8(out, ',');
        add_member(out, "admin", dd_slice_str(x->others[i].admin));
        dd_buf_addf(out, ",\"seen_ms\":%lld}", (long long)x->others[i].seen_ms);
    }
    dd_buf_add_u8(out, ']');
}

static void erase_done(void *arg)
{
    struct dd_api_call *c = arg;
    const struct dd_erase_call *x = &c->u.erase;
    if (x->err == DD_NOT_FOUND) {
        dd_operator_no_scene(c);
        return;
    }
    if (x->err == DD_INVALID) {
        dd_api_answer_fail(&c->origin, 400, "invalid_field", "period", "is not of the scene's kind");
        dd_api_call_release(c);
        return;
    }
    if (x->err != DD_OK) {
        answer_failed(c, x->err, "");
        return;
    }
    struct dd_buf *out = scratch(c);
    dd_buf_add_u8(out, '{');
    add_member(out, "user", x->user);
    dd_buf_addf(out, ",\"scenes\":%u,\"removed\":{\"sets\":%u,\"keys\":%u,\"records\":%u},", x->scenes,
                x->sets, x->keys, x->records);
    add_others(out, x);
    dd_buf_add_u8(out, '}');
    answer(c, out);
}

void dd_api_user_erase(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_operator_params p;
    struct dd_api_call *c = dd_operator_take(al, o);
    if (!c || !dd_operator_params(c, DD_PARAM_SCENE | DD_PARAM_PERIOD | DD_PARAM_LEGACY, &p)) return;
    if (p.legacy && !dd_dedup_migrate(al->api->options.dedup)) {
        dd_api_answer_fail(o, 409, "unsupported", "legacy", "nothing is migrated: migrate.mode is off");
        dd_api_call_release(c);
        return;
    }
    c->u.erase = (struct dd_erase_call){.scene = p.scene_name,
                                        .one_period = p.has_period,
                                        .period = p.period,
                                        .user = p.user,
                                        .legacy = p.legacy,
                                        .arena = &c->arena,
                                        .done = erase_done,
                                        .arg = c};
    dd_user_erase(al->api->options.admin, al->dl, &c->u.erase);
}

/* ---- GET /users/{user}/filter ---- */

static void add_export_headers(struct dd_api_call *c, const char *seed, const char *period)
{
    const struct dd_export_call *x = &c->u.export;
    struct dd_http_request *req = c->origin.req;
    dd_http_reply_header(req, "Dedupd-Seed", dd_slice_str(seed));
    dd_http_reply_header(req, "Dedupd-Scene", dd_slice_str(x->scene->name));
    dd_http_reply_header(req, "Dedupd-Period", dd_slice_str(period));
    dd_http_reply_header(req, "Dedupd-History", dd_slice_str(x->partial ? "partial" : "full"));
}

static void add_export(struct dd_buf *out, const struct dd_export_call *x, const char *seed,
                       const char *period)
{
    dd_buf_add_u8(out, '{');
    add_member(out, "user", x->user);
    dd_buf_addf(out, ",\"scene\":\"%s\",\"period\":\"%s\",\"seed\":\"%s\",", x->scene->name, period, seed);
    dd_buf_addf(out, "\"pending\":%u,\"history\":\"%s\",\"bytes\":%zu,", x->pending,
                x->partial ? "partial" : "full", x->blob.len);
    add_member(
        out, "law",
        dd_slice_str("fingerprint of an item: the upper 32 bits of XXH3-64 of its id (an integer's decimal "
                     "text) with the seed; how a set is tested for it: proto/storage.md, Filter set"));
    dd_buf_add_str(out, ",\"blob\":\"");
    dd_base64_add(out, x->blob);
    dd_buf_add_str(out, "\"}");
}

static bool wants_bytes(const struct dd_http_request *req)
{
    struct dd_slice accept = dd_http_request_header(req, "accept");
    static const char type[] = "application/octet-stream";
    return accept.ptr && memmem(accept.ptr, accept.len, type, sizeof type - 1);
}

static void export_done(void *arg)
{
    struct dd_api_call *c = arg;
    const struct dd_export_call *x = &c->u.export;
    char seed[17], period[DD_PERIOD_TEXT];
    if (x->err != DD_OK) {
        answer_failed(c, x->err, "there is no filter set of this user, scene and period");
        return;
    }
    snprintf(seed, sizeof seed, "%016llx", (unsigned long long)x->seed);
    dd_period_format(x->period, period);
    if (wants_bytes(c->origin.req)) {
        add_export_headers(c, seed, period);
        dd_api_answer(&c->origin, 200, "application/octet-stream", x->blob);
        dd_api_call_release(c);
        return;
    }
    struct dd_buf *out = scratch(c);
    add_export(out, x, seed, period);
    answer(c, out);
}

void dd_api_user_filter(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_operator_params p;
    struct dd_api_call *c = dd_operator_take(al, o);
    if (!c || !dd_operator_params(c, DD_PARAM_SCENE | DD_PARAM_PERIOD, &p)) return;
    if (!p.scene_name.len) p.scene = dd_scenes_find(al->api->options.scenes, p.scene_name);
    if (!p.scene) {
        dd_operator_no_scene(c);
        return;
    }
    if (!p.has_period) p.period = dd_period_at(p.scene->period, dd_clock_period_now(al->api->options.clock));
    if (p.period.kind != p.scene->period) {
        dd_api_answer_fail(o, 400, "invalid_field", "period", "is not of the scene's kind");
        dd_api_call_release(c);
        return;
    }
    c->u.export = (struct dd_export_call){.scene = p.scene,
                                          .user = p.user,
                                          .period = p.period,
                                          .arena = &c->arena,
                                          .done = export_done,
                                          .arg = c};
    dd_user_export(al->dl, &c->u.export);
}
