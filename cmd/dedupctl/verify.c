/* verify: reads every filter set and checks every checksum, in a running server or in a directory that no
 * process uses. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "bar.h"
#include "base/log.h"
#include "store/verify.h"

#define POLL_MS 200
#define PATH    "/admin/verify"

static const char help[] = "usage: dedupctl verify [--data-dir DIR] [--quarantine] [--json]\n"
                           "\n"
                           "Reads every filter set and checks every checksum. Without --data-dir the running "
                           "server does it while serving;\n"
                           "with it, DIR (a backup, or the data directory of a stopped server) is opened "
                           "here. --quarantine puts bad sets\n"
                           "aside: those users' answers say \"partial\", and new exposures are kept. Exit "
                           "code 1 when anything is bad.\n"
                           "\n"
                           "  dedupctl verify\n"
                           "  dedupctl verify --data-dir /var/lib/dedupd/backups/2026-11-30\n";

/* ---- a report, from either side ---- */

static json_t *report_of(const struct dd_verify_report *r, enum dd_err err)
{
    char period[DD_PERIOD_TEXT];
    json_t *bad = json_array();
    for (unsigned i = 0; i < r->shown; i++)
        json_array_append_new(bad,
                              json_pack("{s:s,s:s,s:s}", "user", r->bad[i].user, "scene", r->bad[i].scene,
                                        "period", dd_period_format(r->bad[i].period, period)));
    return json_pack("{s:b,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "running", 0, "result", dd_err_name(err),
                     "sets", (json_int_t)r->sets, "bytes", (json_int_t)r->bytes, "corrupt",
                     (json_int_t)r->corrupt, "damaged", (json_int_t)r->damaged, "unreadable",
                     (json_int_t)r->unreadable, "quarantined", (json_int_t)r->quarantined, "bad", bad);
}

static long long number(const json_t *v, const char *name)
{
    return json_integer_value(json_object_get(v, name));
}

static void print_text(const json_t *v)
{
    size_t i;
    const json_t *bad;
    long long corrupt = number(v, "corrupt");
    printf("%lld sets, %.1f MB read: %lld corrupt, %lld damaged earlier, %lld unreadable places in files\n",
           number(v, "sets"), (double)number(v, "bytes") / 1e6, corrupt, number(v, "damaged"),
           number(v, "unreadable"));
    json_array_foreach(json_object_get(v, "bad"), i, bad) printf(
        "corrupt: user %s, scene %s, period %s\n", json_string_value(json_object_get(bad, "user")),
        json_string_value(json_object_get(bad, "scene")), json_string_value(json_object_get(bad, "period")));
    if (corrupt) printf("%lld put aside\n", number(v, "quarantined"));
}

static int conclude(const struct dd_ctl *ctl, const json_t *v)
{
    const char *result = json_string_value(json_object_get(v, "result"));
    if (ctl->json) {
        json_dumpf(v, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        print_text(v);
    }
    bool whole = result && strcmp(result, "ok") == 0;
    if (!whole)
        fprintf(stderr, "dedupctl: the verification did not come to its end: %s\n", result ? result : "?");
    bool sound = !number(v, "corrupt") && !number(v, "unreadable");
    return whole && sound ? DD_CTL_OK : DD_CTL_FAILED;
}

/* ---- here ---- */

static bool on_progress(void *arg, const struct dd_verify_report *so_far)
{
    dd_bar_show(arg, so_far->sets, 0);
    return true;
}

static enum dd_err verify_here(const char *dir, bool quarantine, struct dd_verify_report *report)
{
    struct dd_store_options so = {.path = dir,
                                  .block_cache_bytes = 8 << 20,
                                  .write_buffer_bytes = 8 << 20,
                                  .max_open_files = 256,
                                  .pool_threads = 1,
                                  .pool_queue = 16,
                                  .change_cells = 1024,
                                  .change_tables = 4,
                                  .batch_max = 16};
    struct dd_stats *stats;
    struct dd_store *store;
    struct dd_bar bar;
    enum dd_err err = dd_stats_create(&stats);
    if (err != DD_OK) return err;
    err = dd_store_open(&so, stats, &store);
    if (err == DD_OK) {
        dd_bar_begin(&bar, "sets");
        struct dd_verify_options o = {.quarantine = quarantine, .progress = on_progress, .arg = &bar};
        err = dd_store_verify(store, &o, report);
        dd_bar_end(&bar);
        dd_store_close(store, false); /* finishes what was put aside */
    }
    dd_stats_destroy(stats);
    return err;
}

static int run_here(const struct dd_ctl *ctl, const char *dir, bool quarantine)
{
    struct dd_verify_report report = {0};
    struct dd_buf current = {0};
    dd_buf_addf(&current, "%s/db/CURRENT", dir);
    dd_buf_add_u8(&current, 0);
    bool there = dd_buf_ok(&current) && access((char *)current.data, R_OK) == 0;
    dd_buf_free(&current);
    if (!there) { /* opening would make a new store there */
        fprintf(stderr, "dedupctl: %s: there is no db/CURRENT in it\n", dir);
        return DD_CTL_FAILED;
    }
    dd_log_set_level(DD_LOG_WARN);
    enum dd_err err = verify_here(dir, quarantine, &report);
    if (err == DD_LOCKED) {
        fprintf(stderr, "dedupctl: %s: a running dedupd holds it; leave out --data-dir\n", dir);
        return DD_CTL_FAILED;
    }
    json_t *v = report_of(&report, err);
    int code = conclude(ctl, v);
    json_decref(v);
    return code;
}

/* ---- in the server ---- */

static int run_there(const struct dd_ctl *ctl, bool quarantine)
{
    struct dd_bar bar;
    int code;
    json_t *v = dd_ctl_ask(ctl, "POST", PATH, quarantine ? "{\"quarantine\":true}" : "{}", &code);
    dd_bar_begin(&bar, "sets");
    while (v && json_is_true(json_object_get(v, "running"))) {
        dd_bar_show(&bar, (uint64_t)number(v, "sets"), (uint64_t)number(v, "sets_estimate"));
        json_decref(v);
        v = dd_ctl_wait_ms(POLL_MS) ? dd_ctl_ask(ctl, "GET", PATH, NULL, &code) : NULL;
    }
    dd_bar_end(&bar);
    if (!v) return code == DD_CTL_OK ? DD_CTL_FAILED : code;
    code = conclude(ctl, v);
    json_decref(v);
    return code;
}

int dd_ctl_verify(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    const char *dir = NULL, *none;
    bool quarantine = false;
    unsigned n;
    const struct dd_ctl_option options[] = {
        {"--data-dir", &dir, NULL}, {"--quarantine", NULL, &quarantine}, {NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, help, options, &none, 0, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    if (parsed == DD_CTL_WRONG) return DD_CTL_USAGE;
    return dir ? run_here(&ctl, dir, quarantine) : run_there(&ctl, quarantine);
}
