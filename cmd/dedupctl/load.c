/* load: a history written into a data directory that no server uses. */
#include "load.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "base/log.h"

static const char help[] =
    "usage: dedupctl load --data-dir DIR --file FILE [--scene S] [options]     (FILE may be -)\n"
    "       dedupctl load --data-dir DIR --users N [--months 3] [--items 1000] [--seed 1] [--catalogue "
    "100000]\n"
    "\n"
    "Writes exposures into DIR, which no server may be using; a new one is made if there is none. A line of "
    "FILE is\n"
    "user TAB item TAB milliseconds since 1970; lines older than the window or in the future are left out "
    "and "
    "counted.\n"
    "Loading the same lines again changes nothing. With --users a history is made up: user-00000000 and up, "
    "each with so many\n"
    "items of the catalogue item-0000000000000000000 and up in each of the last months.\n"
    "\n"
    "These must be as the server is configured (scenes.<scene>.<option>); what is left out has the server's "
    "default\n"
    "(config/README.md):\n"
    "  --scene S (default)    --period day|week|month|quarter|forever    --window N    --fpr F\n"
    "  --filter bloom|compact|cuckoo    --capacity N    --compression none|lz4|zstd (store.compression)\n"
    "growth, tightening, max_layers, on_full and fingerprint_bits are at their defaults; a server that has "
    "others\n"
    "adds new layers by its own. Sets of filter counting cannot be made: loaded twice, they would count "
    "twice.\n"
    "Others:\n"
    "  --compact       merge and rewrite all files at the end\n"
    "  --json          the report as JSON\n"
    "\n"
    "Exit code 1 when a line was wrong or something could not be written; what was read before is loaded.\n"
    "\n"
    "  zcat views.tsv.gz | dedupctl load --data-dir /var/lib/dedupd --file - --scene home\n";

struct options {
    const char *dir, *file, *users, *months, *items, *seed, *catalogue;
    const char *compression;
    struct dd_load_scene scene;
    bool compact;
};

static bool number(const char *name, const char *text, long low, long high, long *out)
{
    char *end;
    *out = strtol(text, &end, 10);
    if (end != text && !*end && *out >= low && *out <= high) return true;
    fprintf(stderr, "dedupctl: %s: %s is not a number from %ld to %ld\n", name, text, low, high);
    return false;
}

static bool read_synthetic(const struct options *o, struct dd_load_synthetic *s)
{
    long users, months, items, catalogue;
    if (!number("--users", o->users, 1, 100000000, &users) ||
        !number("--months", o->months, 1, DD_WINDOW_MAX, &months) ||
        !number("--items", o->items, 1, 1000000, &items) ||
        !number("--catalogue", o->catalogue, 1, INT32_MAX, &catalogue))
        return false;
    *s = (struct dd_load_synthetic){(uint32_t)users, (uint32_t)months, (uint32_t)items, (uint32_t)catalogue,
                                    strtoull(o->seed, NULL, 10)};
    return true;
}

static bool compression(const char *name, enum dd_store_compression *out)
{
    static const char *const names[] = {
        [DD_STORE_RAW] = "none", [DD_STORE_LZ4] = "lz4", [DD_STORE_ZSTD] = "zstd"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum dd_store_compression)i;
            return true;
        }
    fprintf(stderr, "dedupctl: --compression: %s is none of none, lz4, zstd\n", name);
    return false;
}

/* ---- loading ---- */

struct run {
    const struct options *o;
    struct dd_loader loader;
    struct dd_load_synthetic synthetic;
    struct dd_load_lines lines;
    struct dd_store_status status;
};

static enum dd_err load_file(struct run *r, int64_t now_ms)
{
    struct dd_bar bar;
    struct stat st;
    FILE *from = strcmp(r->o->file, "-") == 0 ? stdin : fopen(r->o->file, "r");
    if (!from) {
        fprintf(stderr, "dedupctl: %s: %m\n", r->o->file);
        return DD_NOT_FOUND;
    }
    bool regular = fstat(fileno(from), &st) == 0 && S_ISREG(st.st_mode);
    dd_bar_begin(&bar, "bytes");
    enum dd_err err = dd_load_lines(&r->loader, from, regular ? (uint64_t)st.st_size : 0, now_ms, &bar,
                                    &r->lines);
    dd_bar_end(&bar);
    if (from != stdin) fclose(from);
    return err;
}

static enum dd_err load_made_up(struct run *r, int64_t now_ms)
{
    struct dd_bar bar;
    dd_bar_begin(&bar, "sets");
    enum dd_err err = dd_load_synthetic(&r->loader, &r->synthetic, now_ms, &bar);
    dd_bar_end(&bar);
    return err;
}

static enum dd_err load(struct run *r, struct dd_store *store)
{
    struct dd_loader *l = &r->loader;
    struct dd_clock clock;
    enum dd_period_kind existing = l->period;
    dd_clock_init(&clock, 0);
    int64_t now_ms = dd_clock_wall(&clock).ms;
    enum dd_err err = dd_store_register_scene(store, l->scene, l->period, l->window, &existing);
    if (err == DD_INVALID)
        fprintf(stderr, "dedupctl: scene %s of this store has periods of kind %s\n", r->o->scene.name,
                dd_period_kind_name(existing));
    if (err == DD_OK) err = r->o->file ? load_file(r, now_ms) : load_made_up(r, now_ms);
    if (err == DD_OK && r->o->compact) dd_store_compact(store);
    dd_store_get_status(store, &r->status);
    return err;
}

/* What is loaded has no history: a rebuild must not replace these sets by what history knows. */
static enum dd_err end_coverage(const char *dir)
{
    struct dd_buf path = {0};
    dd_buf_addf(&path, "%s/history.lineage", dir);
    dd_buf_add_u8(&path, 0);
    bool gone = dd_buf_ok(&path) && (unlink((char *)path.data) == 0 || errno == ENOENT);
    dd_buf_free(&path);
    return gone ? DD_OK : DD_IO;
}

/* Closed as after a crash: the next server is a new incarnation, for which no set cached before is good. */
static enum dd_err open_and_load(struct run *r, enum dd_store_compression c)
{
    struct dd_store_options so = {.path = r->o->dir,
                                  .block_cache_bytes = 64 << 20,
                                  .write_buffer_bytes = 32 << 20,
                                  .min_free_bytes = 256 << 20,
                                  .max_open_files = 1000,
                                  .compression = c,
                                  .pool_threads = 1,
                                  .pool_queue = 16,
                                  .change_cells = 1024,
                                  .change_tables = DD_WINDOW_MAX + 1,
                                  .batch_max = 16};
    struct dd_stats *stats;
    struct dd_store *store;
    enum dd_err err = dd_stats_create(&stats);
    if (err != DD_OK) return err;
    err = dd_store_open(&so, stats, &store);
    if (err == DD_OK) {
        enum dd_err ended = end_coverage(r->o->dir);
        struct dd_loader given = r->loader;
        dd_loader_init(&r->loader, store);
        r->loader.scene = given.scene;
        r->loader.period = given.period;
        r->loader.window = given.window;
        r->loader.policy = given.policy;
        err = ended == DD_OK ? load(r, store) : ended;
        dd_loader_free(&r->loader);
        dd_store_close(store, false);
    } else if (err == DD_LOCKED) {
        fprintf(stderr, "dedupctl: %s: a running dedupd holds it; stop it first\n", r->o->dir);
    }
    dd_stats_destroy(stats);
    return err;
}

static void print_report(const struct dd_ctl *ctl, const struct run *r, enum dd_err err)
{
    const struct dd_load_lines *x = &r->lines;
    if (ctl->json) {
        json_t *v = json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I}", "result", dd_err_name(err), "sets",
                              (json_int_t)r->loader.sets, "items", (json_int_t)r->loader.items, "disk_bytes",
                              (json_int_t)r->status.disk_bytes, "lines", (json_int_t)x->lines, "wrong",
                              (json_int_t)x->wrong, "outside", (json_int_t)x->outside);
        json_dumpf(v, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(v);
    } else {
        printf("%llu exposures written to %llu sets\n", (unsigned long long)r->loader.items,
               (unsigned long long)r->loader.sets);
        if (r->o->compact) printf("%.1f MB on disk\n", (double)r->status.disk_bytes / 1e6);
        if (x->outside)
            printf("%llu lines left out: older than the window, or in the future\n",
                   (unsigned long long)x->outside);
    }
    if (x->wrong)
        fprintf(stderr,
                "dedupctl: %llu lines are not user TAB item TAB milliseconds; the first is line %llu\n",
                (unsigned long long)x->wrong, (unsigned long long)x->first_wrong);
    if (err != DD_OK) fprintf(stderr, "dedupctl: not all is loaded: %s\n", dd_err_name(err));
}

static int run(const struct dd_ctl *ctl, const struct options *o)
{
    enum dd_store_compression c;
    struct run *r = calloc(1, sizeof *r);
    if (!r) return DD_CTL_FAILED;
    r->o = o;
    int code = DD_CTL_USAGE;
    if (dd_load_scene(&o->scene, &r->loader) && (!o->users || read_synthetic(o, &r->synthetic)) &&
        compression(o->compression, &c)) {
        dd_log_set_level(DD_LOG_WARN);
        enum dd_err err = open_and_load(r, c);
        print_report(ctl, r, err);
        code = err == DD_OK && !r->lines.wrong ? DD_CTL_OK : DD_CTL_FAILED;
    }
    free(r);
    return code;
}

int dd_ctl_load(const struct dd_ctl *given)
{
    struct dd_ctl ctl = *given;
    struct options o = {.months = "3",
                        .items = "1000",
                        .seed = "1",
                        .catalogue = "100000",
                        .scene.name = "default",
                        .compression = "none"};
    const char *none;
    unsigned n;
    const struct dd_ctl_option options[] = {{"--data-dir", &o.dir, NULL},
                                            {"--file", &o.file, NULL},
                                            {"--users", &o.users, NULL},
                                            {"--months", &o.months, NULL},
                                            {"--items", &o.items, NULL},
                                            {"--seed", &o.seed, NULL},
                                            {"--catalogue", &o.catalogue, NULL},
                                            {"--scene", &o.scene.name, NULL},
                                            {"--period", &o.scene.period, NULL},
                                            {"--window", &o.scene.window, NULL},
                                            {"--fpr", &o.scene.fpr, NULL},
                                            {"--filter", &o.scene.filter, NULL},
                                            {"--capacity", &o.scene.capacity, NULL},
                                            {"--compression", &o.compression, NULL},
                                            {"--compact", NULL, &o.compact},
                                            {NULL, NULL, NULL}};
    enum dd_ctl_parsed parsed = dd_ctl_parse(&ctl, help, options, &none, 0, &n);
    if (parsed == DD_CTL_HELP_SHOWN) return DD_CTL_OK;
    if (parsed == DD_CTL_WRONG) return DD_CTL_USAGE;
    if (!o.dir || !o.file == !o.users) {
        fprintf(stderr, "dedupctl: load needs --data-dir, and --file or --users\n%s", help);
        return DD_CTL_USAGE;
    }
    return run(&ctl, &o);
}
