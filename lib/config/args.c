#include "config/args.h"

#include <stdlib.h>

#include "config/report.h"

/* Flags without a value: each asks for an action. */
static const struct {
    const char *flag;
    enum dd_args_action action;
} actions[] = {
    {"--check-config", DD_ARGS_CHECK_CONFIG},
    {"--print-config", DD_ARGS_PRINT_CONFIG},
    {"--print-reference", DD_ARGS_PRINT_REFERENCE},
    {"--help", DD_ARGS_HELP},
    {"-h", DD_ARGS_HELP},
    {"--version", DD_ARGS_VERSION},
};

static const char help[] =
    "usage: dedupd [--config FILE] [--set NAME=VALUE]...\n"
    "\n"
    "  --config FILE      read options from a JSON file\n"
    "  --set NAME=VALUE   set one option, such as http.listen=127.0.0.1:0 (repeatable; wins over all else)\n"
    "  --check-config     read all options, report every error, and exit: 0 when there is none\n"
    "  --print-config     print the options in effect as JSON, passwords masked, and exit\n"
    "  --print-reference  print the reference of all options in Markdown, and exit\n"
    "  -h, --help         print this, and exit\n"
    "  --version          print the version, and exit\n"
    "\n"
    "The environment sets options too: DEDUPD_HTTP_WORKERS=4 for http.workers. It wins over the file.\n"
    "\n"
    "  dedupd --set data_dir=/tmp/dedupd                              embedded, in one process\n"
    "  dedupd --config dedupd.json --set redis.url=redis://10.0.0.5   with Redis as the hot tier\n"
    "  dedupd --config dedupd.json --check-config                     before a restart\n";

void dd_args_help(struct dd_buf *out)
{
    dd_buf_add_str(out, help);
}

/* The value of "--flag value" (then *i moves on) or "--flag=value". false: not this flag. NULL value: it is
 * missing. */
static bool take_value(int argc, char *const *argv, int *i, const char *flag, const char **value)
{
    size_t n = strlen(flag);
    if (strncmp(argv[*i], flag, n)) return false;
    if (argv[*i][n] == '=') {
        *value = argv[*i] + n + 1;
        return true;
    }
    if (argv[*i][n]) return false;
    *value = *i + 1 < argc ? argv[++*i] : NULL;
    return true;
}

static bool take_action(const char *arg, struct dd_args *out)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(arg, actions[i].flag)) continue;
        if (out->action == DD_ARGS_RUN) out->action = actions[i].action;
        return true;
    }
    return false;
}

static void parse_one(int argc, char *const *argv, int *i, struct dd_args *out, struct dd_report *report)
{
    const char *value = NULL;
    if (take_value(argc, argv, i, "--config", &value)) {
        if (!value || !*value)
            dd_report_add(report, "", "--config", "needs a file");
        else if (out->file)
            dd_report_add(report, "", "--config", "is there twice");
        out->file = value;
    } else if (take_value(argc, argv, i, "--set", &value)) {
        if (value)
            out->sets[out->set_count++] = value;
        else
            dd_report_add(report, "", "--set", "needs name=value");
    } else if (!take_action(argv[*i], out)) {
        dd_report_add(report, "", argv[*i], "unknown argument; see --help");
    }
}

enum dd_err dd_args_parse(int argc, char *const *argv, struct dd_args *out, struct dd_buf *errors)
{
    struct dd_report report = {errors, "", DD_OK};
    *out = (struct dd_args){.action = DD_ARGS_RUN};
    out->sets = calloc((size_t)argc + 1, sizeof *out->sets); /* never more than there are arguments */
    if (!out->sets) return DD_NO_MEMORY;
    for (int i = 1; i < argc; i++)
        parse_one(argc, argv, &i, out, &report);
    return report.err;
}

void dd_args_reset(struct dd_args *args)
{
    free(args->sets);
    *args = (struct dd_args){0};
}

struct dd_config_sources dd_args_sources(const struct dd_args *args, char *const *environment)
{
    return (struct dd_config_sources){args->file, environment, args->sets, args->set_count};
}
