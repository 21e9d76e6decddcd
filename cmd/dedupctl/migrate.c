/* migrate: moves users from the exact store of migrate.source, in a running server, and compares the two.
 * The server does the work: ending this program ends only the watching. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "bar.h"

#define POLL_MS 200
#define PATH    "/admin/migration"

static const char help[] =
    "usage: dedupctl migrate [--active-days N] [--rate USERS_PER_SECOND] [--json]\n"
    "       dedupctl migrate --pause | --status\n"
    "       dedupctl migrate verify [--sample N] [--json]\n"
    "\n"
    "Walks over the old keys and migrates each user, those who were active in the last N days first; goes on "
    "with\n"
    "a walk that was paused, and watches one that runs. The server does it (migrate.mode must be dual): "
    "ending\n"
    "dedupctl does not end the walk, --pause does. It may be repeated: what was migrated is not read again, "
    "but\n"
    "what writers have added to old keys since. Entries within migrate.margin_s (300 s) before a user's mark "
    "are "
    "read\n"
    "again each time, so a second walk reports some too.\n"
    "What stands in its way (the old Redis is away) is said while it does; after --timeout seconds (10) "
    "without "
    "any\n"
    "progress dedupctl ends with exit code 1, and the server goes on trying.\n"
    "\n"
    "verify compares both stores on N real entries of migrated users and on ids that nobody saw. Exit code "
    "1\n"
    "when an entry is missing, or when more ids are dropped than the scene's fpr explains.\n"
    "\n"
    "  dedupctl migrate --active-days 30 --rate 2000\n"
    "  dedupctl migrate verify --sample 100000\n";

static double number(const json_t *v, const char *name)
{
    return json_number_value(json_object_get(v, name));
}

static const char *text(const json_t *v, const char *name)
{
    const char *t = json_string_value(json_object_get(v, name));
    return t ? t : "?";
}

/* NULL: *code says why. conflict_is_fine: 409 "exists" means that it runs already. */
static json_t *ask(const struct dd_ctl *ctl, const char *method, const char *path, const char *body,
                   bool conflict_is_fine, int *code)
{
    struct dd_reply reply;
    json_error_t e;
    json_t *v = NULL;
    *code = dd_ctl_call(ctl, ctl->admin, method, path, body, &reply);
    if (*code != DD_CTL_OK) return NULL;
    bool exists = conflict_is_fine && reply.status == 409 &&
                  memmem(reply.body.data, reply.body.len, "\"exists\"", 8);
    if (reply.status >= 300 && !exists)
        *code = dd_ctl_complain(&reply);
    else if (!(v = json_loadb((const char *)reply.body.data, reply.body.len, 0, &e)))
        *code = DD_CTL_FAILED;
    dd_reply_reset(&reply);
    if (!v || !exists) return v;
    json_decref(v);
    return ask(ctl, "GET", PATH, NULL, false, code);
}

/* ---- the walk ---- */

static void print_bytes(const json_t *b)
{
    double sampled = number(b, "sampled"), before = number(b, "bytes_before"),
           after = number(b, "bytes_after");
    if (sampled <= 0) return;
    printf("bytes a user, of %.0f sampled: %.0f before (Redis), %.0f after (filter sets)\n", sampled,
           before / sampled, after / sampled);
}

static void print_report(const json_t *v)
{
    const json_t *b = json_object_get(v, "bulk");
    double ms = number(b, "ended_ms") - number(b, "started_ms");
    printf("%s: %.0f users, %.0f entries migrated", text(b, "state"), number(b, "users"),
           number(b, "entries"));
    if (ms > 0) printf(" in %.1f s", ms / 1000);
    printf("\nskipped: %.0f entries older than the window, %.0f keys of another type, %.0f too large, %.0f "
           "erased users\n",
           number(b, "skipped"), number(b, "wrong_type"), number(b, "too_large"), number(b, "erased"));
    print_bytes(b);
    if (*text(v, "last_error")) printf("last error: %s\n", text(v, "last_error"));
}

static int show(const struct dd_ctl *ctl, const json_t *v)
{
    if (ctl->json) {
        json_dumpf(v, stdout, JSON_COMPACT);
        putchar('\n');
    } else {
        print_report(v);
    }
    return DD_CTL_OK;
}

static bool is_running(const json_t *v)
{
    return strcmp(text(json_object_get(v, "bulk"), "state"), "running") == 0;
}

/* What a walk has done, and since when it has done nothing while something fails. */
struct pace {
    struct dd_clock clock;
    struct dd_mono since;
    double users, entries, progress;
    char error[160]; /* the one that was printed last; "": none */
};

static void print_error(struct pace *p, struct dd_bar *bar, const char *error)
{
    if (strcmp(error, p->error) == 0) return;
    snprintf(p->error, sizeof p->error, "%s", error);
    dd_bar_end(bar);
    if (*error)
        fprintf(stderr, "dedupctl: %s (the server tries again)\n", error);
    else
        fputs("dedupctl: it goes on\n", stderr);
}

/* false: an error has stood in its way for timeout_s. */
static bool gets_on(struct pace *p, struct dd_bar *bar, const struct dd_ctl *ctl, const json_t *v)
{
    const json_t *b = json_object_get(v, "bulk");
    double users = number(b, "users"), entries = number(b, "entries"), progress = number(b, "progress");
    bool moved = users > p->users || entries > p->entries || progress > p->progress;
    struct dd_mono now = dd_clock_mono(&p->clock);
    print_error(p, bar, text(v, "last_error"));
    if (moved || !*p->error) p->since = now;
    p->users = users;
    p->entries = entries;
    p->progress = progress;
    if (dd_mono_ms_between(p->since, now) < ctl->timeout_s * 1000) return true;
    dd_bar_end(bar);
    fprintf(stderr,
            "dedupctl: nothing was migrated for %ld s: %s\n"
            "dedupctl: the server goes on trying; dedupctl migrate watches it again, --pause ends it\n",
            ctl->timeout_s, p->error);
    return false;
}

/* Takes v. A server that restarts goes on with the walk, so a few unanswered questions are waited out. */
static json_t *watch(const struct dd_ctl *ctl, json_t *v, int *code)
{
    struct dd_bar bar;
    struct pace pace = {.users = 0};
    unsigned silent = 0;
    dd_bar_begin(&bar, "users");
    dd_clock_init(&pace.clock, 0);
    pace.since = dd_clock_mono(&pace.clock);
    while (v && is_running(v)) {
        const json_t *b = json_object_get(v, "bulk");
        double users = number(b, "users"), share = number(b, "progress");
        dd_bar_show(&bar, (uint64_t)users, share > 0 ? (uint64_t)(users / share) : 0);
        if (!gets_on(&pace, &bar, ctl, v) || !dd_ctl_wait_ms(POLL_MS)) break;
        json_t *next = ask(ctl, "GET", PATH, NULL, false, code);
        silent = next ? 0 : silent + 1;
        if (next || silent > 50) {
            json_decref(v);
            v = next;
        }
    }
    dd_bar_end(&bar);
    return v;
}

static int walk(const struct dd_ctl *ctl, long active_days, long rate)
{
    char body[160];
    int code;
    snprintf(body, sizeof body, "{\"bulk\":\"start\",\"active_days\":%ld,\"rate_users_s\":%ld}", active_days,
             rate);
    json_t *v = watch(ctl, ask(ctl, "POST", PATH, body, true, &code), &code);
    if (!v) return code == DD_CTL_OK ? DD_CTL_FAILED : code;
    bool done = strcmp(text(json_object_get(v, "bulk"), "state"), "done") == 0;
    show(ctl, v);
    json_decref(v);
    return done ? DD_CTL_OK : DD_CTL_FAILED;
}

static int simple(const struct dd_ctl *ctl, const char *method, const char *body)
{
    int code;
    json_t *v = ask(ctl, method, PATH, body, false, &code);
    if (!v) return code;
    show(ctl, v);
    json_decref(v);
    return DD_CTL_OK;
}

/* ---- verification ---- */

/* Wilson's interval (1927) for k of n at 95 %. */
static void interval(double k, double n, double *low, double *high)
{
    const double z = 1.96, z2 = z * z;
    double p = k / n, middle = p + z2 / (2 * n), width = z * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    *low = fmax(0, (middle - width) / (1 + z2 / n));
    *high = (middle + width) / (1 + z2 / n);
}

/* Whether what was seen agrees with the promise. */
static bool judge(const struct dd_ctl *ctl, const json_t *v)
{
    const json_t *r = json_object_get(v, "verify");
    double missing = number(r, "missing"), never = number(r, "never"), wrong = number(r, "false_positives");
    double fpr = number(v, "fpr"), low = 0, high = 1;
    if (never > 0) interval(wrong, never, &low, &high);
    bool whole = strcmp(text(r, "result"), "ok") == 0, kept = low <= fpr;
    if (ctl->json) {
        json_dumpf(v, stdout, JSON_COMPACT);
        putchar('\n');
        return whole && missing == 0 && kept;
    }
    printf("%.0f entries of %.0f users compared: %.0f missing\n", number(r, "entries"), number(r, "users"),
           missing);
    if (missing > 0)
        printf("missing: of user %s, among others; the log names them\n", text(r, "missing_user"));
    if (number(r, "newer") > 0)
        printf("%.0f elements were added since: their old keys answer, until you migrate again\n",
               number(r, "newer"));
    if (number(r, "unmigrated") > 0)
        printf("%.0f users are not migrated yet: their old keys answer\n", number(r, "unmigrated"));
    printf("%.0f ids that nobody saw: %.0f dropped, a rate of %.5f to %.5f (95 %%); promised: at most %g\n",
           never, wrong, low, high, fpr);
    if (!whole) printf("not finished: %s\n", text(r, "result"));
    return whole && missing == 0 && kept;
}

static int verify(const struct dd_ctl *ctl, long sample)
{
    char body[64];
    struct dd_bar bar;
    int code;
    snprintf(body, sizeof body, "{\"sample\":%ld}", sample);
    json_t *v = ask(ctl, "POST", PATH "/verify", body, true, &code);
    dd_bar_begin(&bar, "entries");
    while (v && json_is_true(json_object_get(json_object_get(v, "verify"), "running"))) {
        dd_bar_show(&bar, (uint64_t)number(json_object_get(v, "verify"), "entries"), (uint64_t)sample);
        json_decref(v);
        v = dd_ctl_wait_ms(POLL_MS) ? ask(ctl, "GET", PATH, NULL, false, &code) : NULL;
    }
    dd_bar_end(&bar);
    if (!v) return code == DD_CTL_OK ? DD_CTL_FAILED : code;
    bool good = judge(ctl, v);
    json_decref(v);
    return good ? DD_CTL_OK : DD_CTL_FAILED;
}

/* ---- arguments ---- */

/* -1: not a number. */
static long whole(const char *given, long otherwise)
{
    char *end;
    if (!given) return otherwise;
    long n = strtol(given, &end, 10);
    return *end || end == given || n < 0 || n > 1000000000 ? -1 : n;
}

int dd_ctl_migrate(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    const char *days = NULL, *rate = NULL, *sample = NULL, *what = NULL;
    bool pause = false, status = false;
    unsigned n;
    const struct dd_ctl_option options[] = {{"--active-days", &days, NULL}, {"--rate", &rate, NULL},
                                            {"--sample", &sample, NULL},    {"--pause", NULL, &pause},
                                            {"--status", NULL, &status},    {NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, help, options, &what, 1, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    long d = whole(days, 0), r = whole(rate, 0), s = whole(sample, 1000);
    bool is_verify = n && strcmp(what, "verify") == 0;
    bool good = parsed == DD_CTL_GO_ON && (!n || is_verify) && d >= 0 && r >= 0 && s > 0 &&
                !(pause && status);
    if (parsed == DD_CTL_GO_ON && !good) fputs(help, stderr);
    if (!good) return DD_CTL_USAGE;
    if (is_verify) return verify(&ctl, s);
    if (pause) return simple(&ctl, "POST", "{\"bulk\":\"pause\"}");
    if (status) return simple(&ctl, "GET", NULL);
    return walk(&ctl, d, r);
}
