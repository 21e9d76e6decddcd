/* SIGHUP: what may change now, and what waits for a restart. */
#include "config/config.h"
#include "config/option.h"

struct diff {
    struct dd_buf *applied, *restart;
    enum dd_err err;
};

static void add_word(struct dd_buf *out, const char *a, const char *b, const char *c)
{
    dd_buf_addf(out, "%s%s%s%s", out->len ? " " : "", a, b, c);
}

static void diff_option(struct diff *d, const char *prefix, const struct dd_option *opt, void *running,
                        const void *now)
{
    if (dd_option_equal(opt, running, now)) return;
    if (!(opt->flags & DD_OPTION_RELOAD)) {
        add_word(d->restart, prefix, opt->name, "");
        return;
    }
    if (!dd_option_copy(opt, running, now)) {
        d->err = DD_NO_MEMORY;
        return;
    }
    add_word(d->applied, prefix, opt->name, "=");
    dd_option_format(opt, now, d->applied);
}

static void diff_scene(struct diff *d, struct dd_scene_config *running, const struct dd_scene_config *now)
{
    struct dd_buf prefix = {0};
    dd_buf_addf(&prefix, "scenes.%s.", running->name);
    if (!dd_buf_ok(&prefix)) d->err = DD_NO_MEMORY;
    for (size_t i = 0; dd_buf_ok(&prefix) && i < dd_scene_table.count; i++)
        diff_option(d, (const char *)prefix.data, &dd_scene_table.rows[i], running, now);
    dd_buf_free(&prefix);
}

static void diff_scenes(struct diff *d, struct dd_config *running, const struct dd_config *now)
{
    for (size_t i = 0; i < running->scene_count; i++) {
        struct dd_scene_config *mine = &running->scenes[i];
        const struct dd_scene_config *theirs = dd_config_scene(now, dd_slice_str(mine->name));
        if (theirs)
            diff_scene(d, mine, theirs);
        else
            add_word(d->restart, "scenes.", mine->name, "");
    }
    for (size_t i = 0; i < now->scene_count; i++)
        if (!dd_config_scene(running, dd_slice_str(now->scenes[i].name)))
            add_word(d->restart, "scenes.", now->scenes[i].name, "");
}

enum dd_err dd_config_reload_diff(struct dd_config *running, const struct dd_config *now,
                                  struct dd_buf *applied, struct dd_buf *restart)
{
    struct diff d = {applied, restart, DD_OK};
    for (size_t i = 0; i < dd_config_table.count; i++)
        diff_option(&d, "", &dd_config_table.rows[i], running, now);
    diff_scenes(&d, running, now);
    return dd_buf_ok(applied) && dd_buf_ok(restart) ? d.err : DD_NO_MEMORY;
}
