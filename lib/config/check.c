/* What no option can be judged for on its own. Runs only when every option is good by itself. */
#include <stdio.h>

#include "base/file.h"
#include "config/load.h"

#define WINDOW_FOREVER 1

/* One line break at the end is the editor's, not the password's. */
static struct dd_slice without_line_break(struct dd_slice text)
{
    if (text.len && text.ptr[text.len - 1] == '\n') text.len--;
    if (text.len && text.ptr[text.len - 1] == '\r') text.len--;
    return text;
}

static void take_password(struct dd_config *cfg, struct dd_slice password, struct dd_report *report)
{
    if (password.len < 1 || password.len > DD_REDIS_PASSWORD_MAX || memchr(password.ptr, 0, password.len) ||
        memchr(password.ptr, '\n', password.len))
        dd_report_add(report, "", "redis.password_file", "the password must be one line of 1..%d bytes",
                      DD_REDIS_PASSWORD_MAX);
    else
        memcpy(cfg->redis.server.password, password.ptr, password.len); /* zeroed before: ends in NUL */
}

static void read_password(struct dd_config *cfg, struct dd_report *report)
{
    struct dd_buf text = {0};
    enum dd_err err = dd_file_read(cfg->redis.password_file, DD_REDIS_PASSWORD_MAX + 2, &text, NULL);
    if (err == DD_OK || err == DD_TOO_LARGE) {
        take_password(cfg, without_line_break(dd_buf_slice(&text)), report);
    } else {
        dd_report_add(report, "", "redis.password_file", "%s cannot be read: %s", cfg->redis.password_file,
                      dd_file_why(err));
        dd_report_raise(report, err);
    }
    if (text.data) explicit_bzero(text.data, text.cap);
    dd_buf_free(&text);
}

static void check_redis(struct dd_config *cfg, struct dd_report *report)
{
    char why[200];
    if (dd_redis_url_parse(dd_slice_str(cfg->redis.url), &cfg->redis.server, why, sizeof why) != DD_OK)
        dd_report_add(report, "", "redis.url", "%s", why);
    if (!*cfg->redis.url || !*cfg->redis.password_file) return;
    if (*cfg->redis.server.password)
        dd_report_add(report, "", "redis.password_file", "the URL has a password already; keep one of them");
    else
        read_password(cfg, report);
}

static bool is_given(const struct dd_scene_config *s, const char *field)
{
    const struct dd_option *opt = dd_option_find(&dd_scene_table, dd_slice_str(field));
    return opt && s->given >> (opt - dd_scene_table.rows) & 1;
}

static void refuse(const struct dd_scene_config *s, const char *field, const char *text,
                   struct dd_report *report)
{
    char prefix[DD_SCENE_PREFIX];
    snprintf(prefix, sizeof prefix, "scenes.%s.", s->name);
    dd_report_add(report, prefix, field, "%s", text);
}

/* dd_filter_policy_check says "field: what is wrong"; its fields are named as the options are. */
static void check_policy(const struct dd_scene_config *s, struct dd_report *report)
{
    char why[256];
    if (dd_filter_policy_check(&s->policy, why, sizeof why) == DD_OK) return;
    char *colon = strchr(why, ':');
    if (colon) *colon = '\0';
    refuse(s, why, colon ? colon + 1 + strspn(colon + 1, " ") : "", report);
}

/* A cap that nobody set gives way to the fpr and the window that somebody did. */
static void fit_cap(struct dd_scene_config *s, struct dd_report *report)
{
    char text[120];
    int64_t most = dd_filter_cap_most(s->fpr / (double)s->window);
    if (is_given(s, "cap") || s->cap <= most) return;
    s->cap_lowered_from = s->cap;
    s->cap = most;
    if (s->capacity <= most) return;
    snprintf(text, sizeof text, "%lld is more than the %lld items of a period that this fpr and window allow",
             (long long)s->capacity, (long long)most);
    refuse(s, "capacity", text, report);
}

static void check_scene(struct dd_scene_config *s, struct dd_report *report)
{
    char text[100];
    if (s->period == DD_PERIOD_FOREVER && !is_given(s, "window")) s->window = WINDOW_FOREVER;
    if (s->period == DD_PERIOD_FOREVER && s->window != WINDOW_FOREVER) {
        snprintf(text, sizeof text, "%d is out of range (allowed with period forever: 1)", (int)s->window);
        refuse(s, "window", text, report);
    }
    fit_cap(s, report);
    s->policy = (struct dd_filter_policy){
        .kind = s->filter,
        .on_full = s->on_full,
        .fpr = s->fpr / (double)s->window,
        .capacity = (uint32_t)s->capacity,
        .cap = (uint32_t)s->cap,
        .growth = (uint8_t)s->growth,
        .max_layers = (uint8_t)s->max_layers,
        .fingerprint_bits = (uint8_t)s->fingerprint_bits,
        .tightening = (uint8_t)s->tightening,
    };
    if (s->cap >= s->capacity || !s->cap_lowered_from) check_policy(s, report);
}

static void check_migrate(struct dd_config *cfg, struct dd_report *report)
{
    char why[200];
    const struct dd_scene_config *scene = dd_config_scene(cfg, dd_slice_str(cfg->migrate.scene));
    if (dd_redis_url_parse(dd_slice_str(cfg->migrate.source), &cfg->migrate.server, why, sizeof why) != DD_OK)
        dd_report_add(report, "", "migrate.source", "%s", why);
    if (cfg->migrate.mode == DD_CONFIG_MIGRATE_OFF) return;
    if (!*cfg->migrate.source && !*cfg->redis.url)
        dd_report_add(report, "", "migrate.mode", "%s needs migrate.source or redis.url",
                      cfg->migrate.mode == DD_CONFIG_MIGRATE_DUAL ? "dual" : "done");
    if (!scene)
        dd_report_add(report, "", "migrate.scene", "there is no scene \"%s\"", cfg->migrate.scene);
    else if (scene->filter == DD_FILTER_COUNTING)
        dd_report_add(
            report, "", "migrate.scene",
            "a scene with filter counting cannot be migrated to: a repeated migration counts twice");
}

void dd_load_check(struct dd_config *cfg, struct dd_report *report)
{
    report->source = "";
    if (cfg->ingest.mode == DD_CONFIG_INGEST_STAGED && !*cfg->redis.url)
        dd_report_add(report, "", "ingest.mode", "staged needs redis.url");
    check_redis(cfg, report);
    for (size_t i = 0; i < cfg->scene_count; i++)
        check_scene(&cfg->scenes[i], report);
    check_migrate(cfg, report);
}
