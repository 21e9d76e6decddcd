#include "filters.h"

#include <stdio.h>

static const char help[] =
    "usage: dedupctl filters [options]                     all structures on made-up users\n"
    "       dedupctl filters --file FILE                   the same on your own users and items\n"
    "       dedupctl filters --preset articles|memory|scale  comparisons published elsewhere\n"
    "       dedupctl filters --population                  months of a population in a real store\n"
    "       dedupctl filters --targets                     sizes and times against their targets\n"
    "\n"
    "No server is asked: everything is measured in this process.\n"
    "\n"
    "  --items N[,N...]  items of a user (100,1000,10000)\n"
    "  --users U         users of each row (20; population 100000)\n"
    "  --fpr F           share of new items that may be taken for seen, over 3 periods (0.001)\n"
    "  --file FILE       lines of user<TAB>item, in the order seen\n"
    "  --id-bytes B      length of a made-up item id (16)\n"
    "  --probes P        new items tested for each row (400000)\n"
    "  --plot FILE       .svg or .png: bytes and errors against items; needs gnuplot (package gnuplot-nox)\n"
    "  --kind KIND       population: bloom, counting, cuckoo or compact only\n"
    "  --dir DIR         population: where the stores are made and removed (TMPDIR, /tmp)\n"
    "  --seed S          of everything random (1)\n"
    "  --json            JSON instead of a table\n"
    "\n"
    "exit codes: 0 done, 1 something failed, 2 wrong usage\n"
    "\n"
    "examples:\n"
    "  dedupctl filters --items 50,500,5000 --fpr 0.01\n"
    "  dedupctl filters --file seen.tsv --json\n"
    "  dedupctl filters --preset articles\n"
    "  dedupctl filters --preset memory --plot memory.svg\n"
    "  dedupctl filters --preset scale\n"
    "  dedupctl filters --population --users 20000 --kind compact\n";

void dd_filters_print_help(void)
{
    fputs(help, stdout);
}

int dd_filters_exit(enum dd_err err, const char *what)
{
    if (err == DD_OK) return DD_CTL_OK;
    if (err != DD_INVALID && err != DD_NOT_FOUND)
        fprintf(stderr, "dedupctl: filters: %s: %s\n", what, dd_err_text(err));
    return DD_CTL_FAILED;
}

int dd_ctl_filters(const struct dd_ctl *ctl)
{
    struct dd_filters_args a;
    if (dd_filters_args_read(ctl, &a) != DD_OK) return DD_CTL_USAGE;
    switch (a.mode) {
    case DD_FILTERS_COMPARE:
        return dd_filters_compare(&a);
    case DD_FILTERS_ARTICLES:
        return dd_filters_articles(&a);
    case DD_FILTERS_MEMORY:
        return dd_filters_memory(&a);
    case DD_FILTERS_SCALE:
        return dd_filters_scale(&a);
    case DD_FILTERS_POPULATION:
        return dd_filters_population(&a);
    case DD_FILTERS_TARGETS:
        return dd_filters_targets(&a);
    case DD_FILTERS_HELP:
        dd_filters_print_help();
    }
    return DD_CTL_OK;
}
