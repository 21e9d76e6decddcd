/* A subcommand of dedupctl: one file a family, one row in the table of main.c.
 *
 * Exit codes, the same everywhere: 0 done, 1 the server said no or something is wrong, 2 wrong usage, 3 no
 * answer. */
#ifndef DD_CTL_COMMAND_H
#define DD_CTL_COMMAND_H

#include <jansson.h>
#include <stdbool.h>

#include "client.h"

enum dd_ctl_exit { DD_CTL_OK = 0, DD_CTL_FAILED = 1, DD_CTL_USAGE = 2, DD_CTL_NO_ANSWER = 3 };

struct dd_ctl {
    const char *admin, *data; /* base URLs */
    const char *token;        /* NULL: none */
    bool json;                /* print the answer as it came */
    long timeout_s;
    int argc; /* what follows the subcommand */
    char **argv;
};

struct dd_ctl_command {
    const char *name, *usage, *text;
    int (*run)(const struct dd_ctl *ctl); /* returns the exit code */
};

/* Calls `base`path and prints a reason on standard error when no answer came. DD_CTL_OK: *out is an answer.
 */
int dd_ctl_call(const struct dd_ctl *ctl, const char *base, const char *method, const char *path,
                const char *body, struct dd_reply *out);
/* Prints the body as it came, on standard error from status 400 up, which is DD_CTL_FAILED. */
int dd_ctl_print(const struct dd_reply *reply);
/* Calls and prints so. */
int dd_ctl_show(const struct dd_ctl *ctl, const char *base, const char *method, const char *path,
                const char *body);

/* Asks the admin listener. The answer as JSON, which is the caller's to json_decref; NULL: the reason is on
 * standard error and in *code. */
json_t *dd_ctl_ask(const struct dd_ctl *ctl, const char *method, const char *path, const char *body,
                   int *code);

/* Prints an id, which may hold anything, so that it can neither move the cursor nor forge a line: control
 * characters as \\xNN. */
void dd_ctl_print_id(const char *id);

/* Prints an answer that is a refusal on standard error; DD_CTL_FAILED. */
int dd_ctl_complain(const struct dd_reply *reply);

int dd_ctl_health(const struct dd_ctl *given);
int dd_ctl_stats(const struct dd_ctl *given);
int dd_ctl_filters(const struct dd_ctl *ctl);
int dd_ctl_user(const struct dd_ctl *given);
int dd_ctl_export(const struct dd_ctl *given);
int dd_ctl_erase(const struct dd_ctl *given);
int dd_ctl_backup(const struct dd_ctl *given);
int dd_ctl_restore(const struct dd_ctl *given);
int dd_ctl_trace(const struct dd_ctl *given);
int dd_ctl_rebuild(const struct dd_ctl *given);
int dd_ctl_verify(const struct dd_ctl *given);
int dd_ctl_load(const struct dd_ctl *given);
int dd_ctl_migrate(const struct dd_ctl *given);

#endif
