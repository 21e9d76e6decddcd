/* erase: users, from the command line or from a file with one user a line. Erasing is idempotent, so a run
 * that was interrupted or failed in part is simply repeated. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "bar.h"

#define ARGS_MAX 1000
#define TRIES    5
#define AGAIN_MS 1000

static const char help[] =
    "usage: dedupctl erase USER... | --file FILE   [--scene SCENE] [--period PERIOD] [--legacy] [--json]\n"
    "\n"
    "Erases everything that is known of the users: deliveries, staged exposures, cached sets, filter sets. "
    "FILE\n"
    "has one user a line; - is standard input. What a busy or restarting server refuses is tried again a "
    "few\n"
    "times; users that could not be erased are named, and the exit code is 1. It may be repeated.\n"
    "--legacy: while users are being migrated, their keys in the old store are deleted too.\n"
    "Backups keep the users until they are deleted themselves.\n"
    "\n"
    "  dedupctl erase u123 u456\n"
    "  dedupctl erase --file users.txt\n"
    "  dedupctl erase u123 --scene push --period 2026-11\n";

struct erase {
    const struct dd_ctl *ctl;
    const char *scene, *period;
    bool legacy; /* the old store's key too */
    struct dd_client *client;
    struct dd_bar bar;
    uint64_t total, users, failed, sets, keys;
    json_t *others; /* store id -> admin address: not asked */
};

static bool make_path(const struct erase *e, struct dd_slice user, struct dd_buf *out)
{
    const char *next = "?";
    dd_buf_reset(out);
    dd_buf_add_str(out, "/users/");
    dd_ctl_add_encoded(out, user);
    if (e->scene) {
        dd_buf_add_str(out, "?scene=");
        dd_ctl_add_encoded(out, dd_slice_str(e->scene));
        next = "&";
    }
    if (e->period) {
        dd_buf_addf(out, "%speriod=", next);
        dd_ctl_add_encoded(out, dd_slice_str(e->period));
        next = "&";
    }
    if (e->legacy) dd_buf_addf(out, "%slegacy=delete", next);
    dd_buf_add_u8(out, 0);
    return dd_buf_ok(out);
}

/* false: it is not the answer to an erase. */
static bool add_up(struct erase *e, const struct dd_buf *body)
{
    json_error_t error;
    size_t i;
    const json_t *other;
    json_t *v = json_loadb((const char *)body->data, body->len, 0, &error);
    const json_t *removed = json_object_get(v, "removed");
    e->sets += (uint64_t)json_integer_value(json_object_get(removed, "sets"));
    e->keys += (uint64_t)json_integer_value(json_object_get(removed, "keys"));
    json_array_foreach(json_object_get(v, "not_asked"), i, other)
    {
        const char *store = json_string_value(json_object_get(other, "store"));
        json_t *admin = json_object_get(other, "admin");
        if (store && json_is_string(admin)) json_object_set(e->others, store, admin);
    }
    bool answered = json_is_object(removed);
    json_decref(v);
    return answered;
}

/* One try. DD_CTL_NO_ANSWER: no answer, or one that asks to try again. */
static int try_one(struct erase *e, const char *path, struct dd_buf *why)
{
    struct dd_reply reply;
    dd_buf_reset(why);
    if (dd_client_call(e->client, "DELETE", path, NULL, &reply) != DD_OK) {
        dd_buf_add_str(why, dd_client_error(e->client));
        dd_reply_reset(&reply);
        return DD_CTL_NO_ANSWER;
    }
    int code = reply.status == 200 ? DD_CTL_OK : reply.status == 503 ? DD_CTL_NO_ANSWER : DD_CTL_FAILED;
    if (code != DD_CTL_OK) {
        dd_buf_add_slice(why, dd_buf_slice(&reply.body));
    } else if (!add_up(e, &reply.body)) {
        dd_buf_add_str(why, "the answer is not dedupd's");
        code = DD_CTL_FAILED;
    }
    dd_reply_reset(&reply);
    return code;
}

static void erase_one(struct erase *e, struct dd_slice user)
{
    struct dd_buf path = {0}, why = {0};
    int code = make_path(e, user, &path) ? DD_CTL_NO_ANSWER : DD_CTL_FAILED;
    for (int i = 0; i < TRIES && code == DD_CTL_NO_ANSWER; i++) {
        if (i && !dd_ctl_wait_ms(AGAIN_MS)) break;
        code = try_one(e, (char *)path.data, &why);
    }
    e->users++;
    if (code != DD_CTL_OK) {
        e->failed++;
        dd_bar_end(&e->bar);
        fprintf(stderr, "dedupctl: %.*s: not erased: %.*s\n", (int)user.len, (const char *)user.ptr,
                (int)why.len, why.len ? (const char *)why.data : "");
    }
    dd_bar_show(&e->bar, e->users, e->total);
    dd_buf_free(&path);
    dd_buf_free(&why);
}

/* Calls erase_one, or only counts, for each line that is not empty. */
static int each_line(struct erase *e, FILE *f, bool count)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    while ((len = getline(&line, &size, f)) > 0) {
        while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
            len--;
        if (!len) continue;
        if (count)
            e->total++;
        else
            erase_one(e, dd_slice_of(line, (size_t)len));
    }
    free(line);
    return ferror(f) ? DD_CTL_FAILED : DD_CTL_OK;
}

static int erase_file(struct erase *e, const char *name)
{
    bool standard = strcmp(name, "-") == 0;
    FILE *f = standard ? stdin : fopen(name, "r");
    if (!f) {
        fprintf(stderr, "dedupctl: %s: %s\n", name, strerror(errno));
        return DD_CTL_FAILED;
    }
    int code = DD_CTL_OK;
    if (!standard && fseek(f, 0, SEEK_SET) == 0) { /* counted first, for the bar, where that is possible */
        code = each_line(e, f, true);
        rewind(f);
    }
    if (code == DD_CTL_OK) code = each_line(e, f, false);
    if (!standard) (void)fclose(f); /* it was only read */
    return code;
}

static void report(const struct erase *e)
{
    const char *store;
    json_t *admin;
    if (e->ctl->json) {
        json_t *v = json_pack("{s:I,s:I,s:I,s:I,s:O}", "users", (json_int_t)e->users, "failed",
                              (json_int_t)e->failed, "sets", (json_int_t)e->sets, "keys", (json_int_t)e->keys,
                              "not_asked", e->others);
        json_dumpf(v, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(v);
        return;
    }
    printf("%llu users erased, %llu failed: %llu filter sets and %llu keys removed\n",
           (unsigned long long)(e->users - e->failed), (unsigned long long)e->failed,
           (unsigned long long)e->sets, (unsigned long long)e->keys);
    json_object_foreach(e->others, store, admin)
        printf("not asked: store %s%s%s\n", store, *json_string_value(admin) ? ", admin listener " : "",
               json_string_value(admin));
}

static int run(struct erase *e, const char *file, const char **users, unsigned n)
{
    e->others = json_object();
    e->total = n;
    dd_bar_begin(&e->bar, "users");
    int code = file ? erase_file(e, file) : DD_CTL_OK;
    for (unsigned i = 0; i < n; i++)
        erase_one(e, dd_slice_str(users[i]));
    dd_bar_end(&e->bar);
    report(e);
    json_decref(e->others);
    return e->failed ? DD_CTL_FAILED : code;
}

int dd_ctl_erase(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    struct erase e = {.ctl = &ctl};
    const char *file = NULL, *users[ARGS_MAX];
    unsigned n;
    const struct dd_ctl_option options[] = {{"--file", &file, NULL},
                                            {"--scene", &e.scene, NULL},
                                            {"--period", &e.period, NULL},
                                            {"--legacy", NULL, &e.legacy},
                                            {NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, help, options, users, ARGS_MAX, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    bool one = (file != NULL) != (n > 0); /* either a file or users */
    if (parsed == DD_CTL_GO_ON && !one) fputs(help, stderr);
    if (parsed != DD_CTL_GO_ON || !one) return DD_CTL_USAGE;
    if (dd_client_create(ctl.admin, ctl.token, ctl.timeout_s, &e.client) != DD_OK) {
        fprintf(stderr, "dedupctl: %s: not an address of the form http://host:port or unix:///path\n",
                ctl.admin);
        return DD_CTL_USAGE;
    }
    int code = run(&e, file, users, n);
    dd_client_destroy(e.client);
    return code;
}
