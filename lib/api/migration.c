/* GET and POST /admin/migration, POST /admin/migration/verify: moving from an exact store, for operators. */
#include "api/json.h"
#include "api/operator.h"
#include "dedup/migrate.h"

typedef unsigned long long ull;

#define SAMPLE_MAX 10000000

/* NULL: answered. */
static struct dd_migrate *migration(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_dedup *d = al->api->options.dedup;
    struct dd_migrate *m = d ? dd_dedup_migrate(d) : NULL;
    if (!m)
        dd_api_answer_fail(o, 409, "unsupported", NULL,
                           "nothing is migrated: migrate.mode is off in the configuration");
    return m;
}

static void add_bulk(struct dd_buf *out, const struct dd_migrate_status *s)
{
    static const char *const states[] = {[DD_BULK_NEVER] = "never",
                                         [DD_BULK_RUNNING] = "running",
                                         [DD_BULK_PAUSED] = "paused",
                                         [DD_BULK_DONE] = "done"};
    const struct dd_bulk *b = &s->bulk;
    dd_buf_addf(out, "\"bulk\":{\"state\":\"%s\",\"pass\":%u,\"passes\":%u,\"progress\":%.4f,",
                states[b->state], b->pass < b->passes ? b->pass + 1 : b->passes, b->passes, s->progress);
    dd_buf_addf(out, "\"active_days\":%u,\"rate_users_s\":%u,\"started_ms\":%lld,\"ended_ms\":%lld,",
                b->active_days, b->rate_users_s, (long long)b->started_ms, (long long)b->ended_ms);
    dd_buf_addf(out, "\"keys\":%llu,\"users\":%llu,\"entries\":%llu,\"skipped\":%llu,", (ull)b->keys,
                (ull)b->users, (ull)b->entries, (ull)b->skipped);
    dd_buf_addf(out, "\"wrong_type\":%llu,\"too_large\":%llu,\"erased\":%llu,", (ull)b->wrong_type,
                (ull)b->too_large, (ull)b->erased);
    dd_buf_addf(out, "\"sampled\":%llu,\"bytes_before\":%llu,\"bytes_after\":%llu},", (ull)b->sampled,
                (ull)b->bytes_before, (ull)b->bytes_after);
}

static void add_verify(struct dd_buf *out, const struct dd_migrate_status *s)
{
    const struct dd_migrate_verify *v = &s->verify;
    if (!v->started_ms) {
        dd_buf_add_str(out, "\"verify\":null,");
        return;
    }
    dd_buf_addf(out, "\"verify\":{\"running\":%s,\"result\":\"%s\",\"sample\":%u,",
                v->running ? "true" : "false", v->running ? "running" : dd_err_name(v->err), v->sample);
    dd_buf_addf(out, "\"users\":%llu,\"unmigrated\":%llu,\"entries\":%llu,\"missing\":%llu,", (ull)v->users,
                (ull)v->unmigrated, (ull)v->entries, (ull)v->missing);
    dd_buf_addf(out, "\"newer\":%llu,\"never\":%llu,\"false_positives\":%llu},", (ull)v->newer, (ull)v->never,
                (ull)v->false_positives);
}

static void answer_status(const struct dd_api_origin *o, unsigned status, struct dd_migrate *m)
{
    struct dd_migrate_status s;
    dd_migrate_get_status(m, &s);
    struct dd_buf *out = dd_http_request_scratch(o->req);
    dd_buf_reset(out);
    dd_buf_addf(out, "{\"mode\":\"%s\",\"lazy\":%s,\"queued\":%llu,\"dropped\":%llu,",
                s.dual ? "dual" : "done", s.lazy ? "true" : "false", (ull)s.queued, (ull)s.dropped);
    dd_buf_addf(out,
                "\"users\":%llu,\"entries\":%llu,\"skipped\":%llu,\"wrong_type\":%llu,\"too_large\":%llu,",
                (ull)s.users, (ull)s.entries, (ull)s.skipped, (ull)s.wrong_type, (ull)s.too_large);
    dd_buf_addf(out, "\"fpr\":%.3g,", s.fpr);
    add_bulk(out, &s);
    add_verify(out, &s);
    dd_buf_add_str(out, "\"last_error\":");
    dd_json_add_string(out, dd_slice_str(s.last_error));
    dd_buf_add_u8(out, '}');
    dd_api_answer_buf(o, status, DD_API_JSON, out);
}

void dd_api_migration(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    struct dd_migrate *m = migration(al, o);
    if (m) answer_status(o, 200, m);
}

/* A number of the body; otherwise when it is not there. false: answered. */
static bool read_number(const struct dd_api_origin *o, json_t *body, const char *name, json_int_t most,
                        unsigned *out)
{
    json_t *v = json_object_get(body, name);
    if (!v) return true;
    json_int_t n = json_integer_value(v);
    if (json_is_integer(v) && n >= 0 && n <= most) {
        *out = (unsigned)n;
        return true;
    }
    dd_api_answer_fail(o, 400, "invalid_field", name, "must be a whole number from 0 to %lld",
                       (long long)most);
    return false;
}

static void answer_order(const struct dd_api_origin *o, struct dd_migrate *m, enum dd_err err,
                         const char *what)
{
    if (err == DD_OK)
        answer_status(o, 202, m);
    else if (err == DD_EXISTS)
        dd_api_answer_fail(o, 409, "exists", NULL, "%s is under way already", what);
    else if (err == DD_UNSUPPORTED)
        dd_api_answer_fail(o, 409, "unsupported", NULL, "migrate.mode is done in the configuration");
    else
        dd_api_answer_err(o, err);
}

static void order(const struct dd_api_origin *o, struct dd_migrate *m, json_t *body)
{
    const char *bulk = json_string_value(json_object_get(body, "bulk"));
    unsigned days = 0, rate = 0;
    if (!read_number(o, body, "active_days", 36500, &days) ||
        !read_number(o, body, "rate_users_s", 1000000000, &rate))
        return;
    if (bulk && strcmp(bulk, "start") == 0) {
        answer_order(o, m, dd_migrate_start(m, days, rate), "a walk");
    } else if (bulk && strcmp(bulk, "pause") == 0) {
        dd_migrate_pause(m);
        answer_status(o, 202, m);
    } else {
        dd_api_answer_fail(o, 400, bulk ? "invalid_field" : "missing_field", "bulk",
                           "must be \"start\" or \"pause\"");
    }
}

void dd_api_migration_order(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    static const char *const allowed[] = {"bulk", "active_days", "rate_users_s", NULL};
    struct dd_migrate *m = migration(al, o);
    json_t *body = m ? dd_operator_body(o, allowed) : NULL;
    if (!body) return;
    order(o, m, body);
    json_decref(body);
}

void dd_api_migration_verify(struct dd_api_loop *al, const struct dd_api_origin *o)
{
    static const char *const allowed[] = {"sample", NULL};
    struct dd_migrate *m = migration(al, o);
    json_t *body = m ? dd_operator_body(o, allowed) : NULL;
    unsigned sample = 1000;
    if (!body) return;
    if (read_number(o, body, "sample", SAMPLE_MAX, &sample))
        answer_order(o, m, dd_migrate_verify(m, sample), "a verification");
    json_decref(body);
}
