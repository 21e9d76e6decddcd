/* backup: a checkpoint of the store, made by the server while it serves. */
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"

#define PATIENCE_S 3600 /* flushing every slot takes as long as there is staged */

static const char help[] =
    "usage: dedupctl backup DIR [--json]\n"
    "\n"
    "Makes a checkpoint of the running server's store in the new directory DIR on the server's machine (hard "
    "links\n"
    "on the same file system: seconds, and no space at first). All slots are flushed before; what is still "
    "staged\n"
    "in Redis at that moment is named with its count, since only Redis has it. Exit code 1 when not "
    "everything\n"
    "could be flushed (Redis away); the backup is then what the store held.\n"
    "DIR must be where the server may write, which under systemd is /var/lib/dedupd, and not in its "
    "DATA_DIR/db.\n"
    "Copy DIR elsewhere with any tool. `dedupctl verify --data-dir DIR` reads it, `dedupctl restore DIR NEW` "
    "makes\n"
    "a data directory of it. A backup keeps users that are erased later: delete old ones.\n"
    "\n"
    "  dedupctl backup /var/lib/dedupd/backups/2026-11-30\n";

/* The directory is the server's: a relative name is meant from here. */
static bool make_body(const char *dir, struct dd_buf *out)
{
    char here[PATH_MAX] = "";
    struct dd_buf path = {0};
    if (dir[0] != '/' && !getcwd(here, sizeof here)) return false;
    dd_buf_addf(&path, "%s%s%s", here, *here ? "/" : "", dir);
    dd_buf_add_u8(&path, 0);
    dd_buf_add_str(out, "{\"path\":");
    if (dd_buf_ok(&path)) dd_ctl_add_json(out, (char *)path.data);
    dd_buf_add_str(out, "}");
    dd_buf_add_u8(out, 0);
    bool good = dd_buf_ok(&path) && dd_buf_ok(out);
    dd_buf_free(&path);
    return good;
}

static int print_backup(const struct dd_ctl *ctl, const struct dd_buf *body)
{
    json_error_t e;
    json_t *v = json_loadb((const char *)body->data, body->len, 0, &e);
    const json_t *pending = json_object_get(v, "pending");
    bool flushed = json_is_true(json_object_get(v, "flushed"));
    const char *path = json_string_value(json_object_get(v, "path"));
    if (ctl->json)
        printf("%.*s\n", (int)body->len, (const char *)body->data);
    else if (path)
        printf("backup in %s\n", path);
    if (!ctl->json && json_is_object(pending))
        printf("staged since, and in Redis only: %lld items of %lld users\n",
               (long long)json_integer_value(json_object_get(pending, "items")),
               (long long)json_integer_value(json_object_get(pending, "users")));
    if (!flushed)
        fprintf(stderr,
                "dedupctl: not everything staged could be flushed: the backup holds what the store held\n");
    json_decref(v);
    return flushed ? DD_CTL_OK : DD_CTL_FAILED;
}

int dd_ctl_backup(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    const char *dir = NULL;
    unsigned n;
    const struct dd_ctl_option options[] = {{NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, help, options, &dir, 1, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    if (parsed == DD_CTL_GO_ON && !n) fputs(help, stderr);
    if (parsed != DD_CTL_GO_ON || !n) return DD_CTL_USAGE;
    if (ctl.timeout_s < PATIENCE_S) ctl.timeout_s = PATIENCE_S;
    struct dd_buf body = {0};
    struct dd_reply reply;
    int code = make_body(dir, &body) ? DD_CTL_OK : DD_CTL_FAILED;
    if (code == DD_CTL_OK)
        code = dd_ctl_call(&ctl, ctl.admin, "POST", "/admin/checkpoint", (char *)body.data, &reply);
    if (code == DD_CTL_OK) {
        code = reply.status == 200 ? print_backup(&ctl, &reply.body) : dd_ctl_complain(&reply);
        dd_reply_reset(&reply);
    }
    dd_buf_free(&body);
    return code;
}
