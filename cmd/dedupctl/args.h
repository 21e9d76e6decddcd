/* Arguments of a subcommand: options from a table, the rest in order.
 *
 * "--name VALUE" and "--name=VALUE"; "--" ends the options; --json and --help are known everywhere. */
#ifndef DD_CTL_ARGS_H
#define DD_CTL_ARGS_H

#include "command.h"

struct dd_ctl_option {
    const char *name;   /* "--scene" */
    const char **value; /* set to the value; or */
    bool *flag;         /* set to true */
};

enum dd_ctl_parsed { DD_CTL_GO_ON, DD_CTL_HELP_SHOWN, DD_CTL_WRONG };

/* options end with a row whose name is NULL. rest gets at most max arguments, *n of them. What is wrong is
 * said on standard error, help is printed on standard output. */
enum dd_ctl_parsed dd_ctl_parse(struct dd_ctl *ctl, const char *help, const struct dd_ctl_option *options,
                                const char **rest, unsigned max, unsigned *n);

/* Appends `text` percent-encoded for a path or a query. */
void dd_ctl_add_encoded(struct dd_buf *out, struct dd_slice text);

/* A JSON string of what a subcommand was given: "path" for a body. */
void dd_ctl_add_json(struct dd_buf *out, const char *text);

#endif
