/* The reference page: what the table says, for people. */
#include "config/config.h"
#include "config/option.h"

static const char head[] =
    "# Configuration\n"
    "\n"
    "This page is generated from the option table in `lib/config/table.c` by `make docs`; so is "
    "`dedupd.json` beside "
    "it,\n"
    "which holds every option with its default. A file needs only what differs.\n"
    "\n"
    "Sources, each one winning over those before it:\n"
    "\n"
    "1. the defaults below,\n"
    "2. `--config FILE`: JSON, objects nested as the dots of the names (`{\"http\": {\"workers\": 4}}`),\n"
    "3. the environment: `DEDUPD_HTTP_WORKERS=4`,\n"
    "4. `--set http.workers=4`, as often as needed; of two for one option the last wins.\n"
    "\n"
    "An unknown option, a value of the wrong type or out of range, or a key that stands twice in one object "
    "is an "
    "error that\n"
    "names the key and what is allowed; dedupd then does not start. `dedupd --check-config` only looks,\n"
    "`dedupd --print-config` prints what is in effect, with passwords as `***`.\n"
    "\n"
    "On SIGHUP the sources are read again. Options marked *yes* under *reload* change at once; for others a "
    "log line\n"
    "names those that changed and wait for a restart. An error in the sources changes nothing.\n"
    "\n"
    "Environment variables that begin with `DEDUPD_` and name no option are errors too, except those that "
    "Kubernetes "
    "sets\n"
    "for a service called dedupd (`DEDUPD_SERVICE_HOST`, `DEDUPD_PORT_8080_TCP_ADDR` and their like).\n";

static const char scenes_head[] =
    "\n## scenes\n"
    "\n"
    "An object of scene names (1 to 64 bytes of `A-Z a-z 0-9 _ . -`), each with the policy of its scene; "
    "what a policy "
    "leaves\n"
    "out has the default. The scene `default` is always there. On the command line: `--set "
    "scenes.push.window=2`, which "
    "makes\n"
    "the scene `push` if there is none. In the environment: `DEDUPD_SCENES_PUSH_WINDOW=2`, for the scene "
    "whose name in "
    "upper\n"
    "case, with `_` for `.` and `-`, is `PUSH`, else for a new scene `push`.\n"
    "\n"
    "`fpr` is the promise over the whole window: each period gets `fpr / window`, and a part of that is "
    "spent on equal\n"
    "fingerprints (`cap / 2^32`); a `cap` that would take more than half of it, that is more than `fpr / "
    "window * 2^31`,\n"
    "is refused, and the default of `cap` is lowered to that.\n";

static const char columns[] =
    "\n| option | environment | type | default | allowed | unit | reload | meaning |\n"
    "|---|---|---|---|---|---|---|---|\n";

static size_t section_length(const char *name)
{
    const char *dot = strchr(name, '.');
    return dot ? (size_t)(dot - name) : 0;
}

static void add_heading(struct dd_buf *out, const char *name)
{
    size_t n = section_length(name);
    if (n)
        dd_buf_addf(out, "\n## %.*s\n", (int)n, name);
    else
        dd_buf_addf(out, "\n## %s\n", name);
    dd_buf_add_str(out, columns);
}

static void add_row(struct dd_buf *out, const char *prefix, const char *env_prefix,
                    const struct dd_option *opt)
{
    static const char *const types[] = {[DD_OPTION_INT] = "integer",
                                        [DD_OPTION_REAL] = "number",
                                        [DD_OPTION_BOOL] = "boolean",
                                        [DD_OPTION_CHOICE] = "choice",
                                        [DD_OPTION_TEXT] = "string"};
    char env[DD_OPTION_TEXT_MAX], range[DD_OPTION_TEXT_MAX];
    bool empty = !*opt->initial;
    dd_buf_addf(out, "| `%s%s` | `%s` | %s | %s%s%s | %s | %s | %s | %s |\n", prefix, opt->name,
                dd_option_env(env_prefix, dd_slice_str(opt->name), env), types[opt->type], empty ? "" : "`",
                empty ? "(empty)" : opt->initial, empty ? "" : "`", dd_option_range(opt, range),
                opt->type == DD_OPTION_TEXT ? "" : opt->unit, opt->flags & DD_OPTION_RELOAD ? "yes" : "",
                opt->text);
}

enum dd_err dd_config_reference(struct dd_buf *out)
{
    dd_buf_add_str(out, head);
    const char *section = "";
    for (size_t i = 0; i < dd_config_table.count; i++) {
        const struct dd_option *opt = &dd_config_table.rows[i];
        size_t n = section_length(opt->name);
        if (!n || section_length(section) != n || strncmp(section, opt->name, n)) add_heading(out, opt->name);
        section = opt->name;
        add_row(out, "", "DEDUPD_", opt);
    }
    dd_buf_add_str(out, scenes_head);
    dd_buf_add_str(out, columns);
    for (size_t i = 0; i < dd_scene_table.count; i++)
        add_row(out, "scenes.*.", "DEDUPD_SCENES_*_", &dd_scene_table.rows[i]);
    return dd_buf_ok(out) ? DD_OK : DD_NO_MEMORY;
}
