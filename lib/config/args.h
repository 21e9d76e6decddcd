/* The command line of dedupd.
 *
 *   --config FILE        --set NAME=VALUE (repeatable)
 *   --check-config       --print-config       --print-reference
 *   --help, -h           --version
 *
 * "--config=FILE" and "--set=NAME=VALUE" do as well. Of several actions the first one counts.
 *
 * Threads: pure functions. Ownership: texts are borrowed from argv; dd_args_reset frees the list of --set. */
#ifndef DD_CONFIG_ARGS_H
#define DD_CONFIG_ARGS_H

#include "base/bytes.h"
#include "base/err.h"
#include "config/config.h"

enum dd_args_action {
    DD_ARGS_RUN,
    DD_ARGS_CHECK_CONFIG,
    DD_ARGS_PRINT_CONFIG,
    DD_ARGS_PRINT_REFERENCE,
    DD_ARGS_HELP,
    DD_ARGS_VERSION
};

struct dd_args {
    enum dd_args_action action;
    const char *file;
    const char **sets;
    size_t set_count;
};

/* DD_OK; DD_INVALID with a line in errors; DD_NO_MEMORY. dd_args_reset is allowed after all of them. */
enum dd_err dd_args_parse(int argc, char *const *argv, struct dd_args *out,
                          struct dd_buf *errors) DD_MUST_USE;
void dd_args_reset(struct dd_args *args);

/* The sources that these arguments and this environment (environ) make. Borrows both. */
struct dd_config_sources dd_args_sources(const struct dd_args *args, char *const *environment);

/* Text for --help, ending in a line break. */
void dd_args_help(struct dd_buf *out);

#endif
