/* dedupctl: the operator's tool, over the HTTP interface. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static const struct dd_ctl_command commands[] = {
    {"health", "", "state of the server and of each part; exit code 0 when it can serve", dd_ctl_health},
    {"stats", "", "traffic, latencies, hit ratios, sizes, as JSON", dd_ctl_stats},
    {"filters", "[--help]", "compare filter structures on your numbers; asks no server", dd_ctl_filters},
    {"user", "USER", "what is known of one user", dd_ctl_user},
    {"export", "USER", "a user's filter set, to test candidates elsewhere", dd_ctl_export},
    {"erase", "USER... | --file FILE", "forget users altogether", dd_ctl_erase},
    {"migrate", "[verify]", "move users from an exact store in Redis; compare both", dd_ctl_migrate},
    {"trace", "on|off|show USER", "record in plain text what one user is shown", dd_ctl_trace},
    {"rebuild", "--user U | --scene S | --all", "filter sets anew from history", dd_ctl_rebuild},
    {"backup", "DIR", "a checkpoint of the store, while it serves", dd_ctl_backup},
    {"restore", "FROM TO", "a data directory from a backup; asks no server", dd_ctl_restore},
    {"verify", "[--data-dir DIR]", "read everything, check every checksum", dd_ctl_verify},
    {"load", "--data-dir DIR --file FILE", "exposures from a file into a stopped server's data", dd_ctl_load},
};

static void print_usage(FILE *to)
{
    fprintf(to, "usage: dedupctl [options] COMMAND [arguments]\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(to, "  %s %-*s %s\n", commands[i].name, (int)(30 - strlen(commands[i].name)),
                commands[i].usage, commands[i].text);
    fprintf(to, "\noptions:\n"
                "  --data URL     data listener (DEDUPCTL_DATA, http://127.0.0.1:8080)\n"
                "  --admin URL    admin listener (DEDUPCTL_ADMIN, http://127.0.0.1:8081)\n"
                "                 either may be unix:///path\n"
                "  --token TOKEN  bearer token (DEDUPCTL_TOKEN)\n"
                "  --timeout S    seconds to wait for an answer (10)\n"
                "  --json         print answers as they come\n"
                "  --help, --version\n"
                "\nexit codes: 0 done, 1 the server said no, 2 wrong usage, 3 no answer\n"
                "\nexample:\n  dedupctl --data http://10.0.0.5:8080 health\n");
}

static const char *from_environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/* The value of option `name` at argv[*i] ("--name VALUE" or "--name=VALUE"), or NULL. */
static const char *option_value(int argc, char **argv, int *i, const char *name)
{
    const char *arg = argv[*i];
    size_t len = strlen(name);
    if (!arg || strncmp(arg, name, len)) return NULL;
    if (arg[len] == '=') return arg + len + 1;
    return arg[len] == 0 && *i + 1 < argc ? argv[++*i] : NULL;
}

/* Reads options up to the subcommand; returns its place in argv, or -1 after a wrong option. */
static int read_options(int argc, char **argv, struct dd_ctl *ctl)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *v;
        if (!strcmp(argv[i], "--json"))
            ctl->json = true;
        else if ((v = option_value(argc, argv, &i, "--admin")))
            ctl->admin = v;
        else if ((v = option_value(argc, argv, &i, "--data")))
            ctl->data = v;
        else if ((v = option_value(argc, argv, &i, "--token")))
            ctl->token = v;
        else if ((v = option_value(argc, argv, &i, "--timeout")) && atol(v) > 0)
            ctl->timeout_s = atol(v);
        else {
            fprintf(stderr, "dedupctl: unknown or incomplete option %s\n", argv[i]);
            return -1;
        }
    }
    return i;
}

int main(int argc, char **argv)
{
    struct dd_ctl ctl = {.admin = from_environment("DEDUPCTL_ADMIN", "http://127.0.0.1:8081"),
                         .data = from_environment("DEDUPCTL_DATA", "http://127.0.0.1:8080"),
                         .token = from_environment("DEDUPCTL_TOKEN", NULL),
                         .timeout_s = 10};
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        print_usage(stdout);
        return DD_CTL_OK;
    }
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        printf("dedupctl %s\n", DD_VERSION);
        return DD_CTL_OK;
    }
    int at = read_options(argc, argv, &ctl);
    for (size_t i = 0; at > 0 && at < argc && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[at], commands[i].name)) continue;
        ctl.argc = argc - at - 1;
        ctl.argv = argv + at + 1;
        return commands[i].run(&ctl);
    }
    if (at > 0 && at < argc) fprintf(stderr, "dedupctl: unknown command %s\n", argv[at]);
    print_usage(stderr);
    return DD_CTL_USAGE;
}
