/* gnuplot writes to a file that was opened here: no name of a file enters the script, and a directory that
 * cannot be written is found before anything is measured. */
#include "filters_plot.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PANEL_WIDTH = 560, PANEL_HEIGHT = 480 };

enum dd_err dd_plot_begin(struct dd_plot *p, const char *path)
{
    *p = (struct dd_plot){.path = path};
    if (!path) return DD_OK;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        fprintf(stderr, "dedupctl: --plot %s: %m\n", path);
        p->path = NULL;
        return DD_IO;
    }
    char *argv[] = {(char[]){"gnuplot"}, NULL};
    enum dd_err err = dd_child_start(&p->gnuplot, argv, file);
    close(file);
    if (err == DD_OK) return DD_OK;
    if (err == DD_NOT_FOUND)
        fprintf(stderr, "dedupctl: --plot needs gnuplot: apt-get install gnuplot-nox\n");
    else
        fprintf(stderr, "dedupctl: --plot: gnuplot could not be started\n");
    dd_plot_cancel(p);
    return err;
}

void dd_plot_cancel(struct dd_plot *p)
{
    if (!p->path) return;
    if (dd_child_end(&p->gnuplot, SIGTERM) != DD_OK) fprintf(stderr, "dedupctl: --plot: gnuplot failed\n");
    unlink(p->path);
    p->path = NULL;
}

/* The first row that has the name of this one. */
static size_t first_of(const struct dd_table *t, size_t name, size_t row)
{
    size_t i = 0;
    while (strcmp(dd_table_text(t, i, name), dd_table_text(t, row, name)) != 0)
        i++;
    return i;
}

static void add_points(struct dd_buf *out, const struct dd_table *t, size_t name, size_t line, size_t x,
                       size_t y)
{
    for (size_t row = line; row < t->rows; row++) {
        double v = dd_table_number(t, row, y);
        if (first_of(t, name, row) != line || !(v > 0)) continue;
        dd_buf_addf(out, "%.9g %.9g\n", dd_table_number(t, row, x), v);
    }
}

static bool has_points(const struct dd_table *t, size_t name, size_t line, size_t y)
{
    for (size_t row = line; row < t->rows; row++)
        if (first_of(t, name, row) == line && dd_table_number(t, row, y) > 0) return true;
    return false;
}

static bool panel_has_points(const struct dd_table *t, size_t y)
{
    for (size_t row = 0; row < t->rows; row++)
        if (dd_table_number(t, row, y) > 0) return true;
    return false;
}

static void add_panel(struct dd_buf *out, const struct dd_table *t, size_t name, size_t x,
                      const struct dd_plot_panel *panel)
{
    for (size_t line = 0; line < t->rows; line++) {
        if (first_of(t, name, line) != line) continue;
        dd_buf_addf(out, "$d%zu << EOD\n", line);
        add_points(out, t, name, line, x, panel->column);
        dd_buf_add_str(out, "EOD\n");
    }
    dd_buf_addf(out, "set title \"%s\"\nplot ", panel->title);
    const char *comma = "";
    size_t colour = 0; /* the same for a name in every panel */
    for (size_t line = 0; line < t->rows; line++) {
        if (first_of(t, name, line) != line) continue;
        colour++;
        if (!has_points(t, name, line, panel->column)) continue;
        dd_buf_addf(out, "%s$d%zu with linespoints lc %zu pt %zu title \"%s\"", comma, line, colour, colour,
                    dd_table_text(t, line, name));
        comma = ", ";
    }
    dd_buf_add_str(out, "\n");
}

static void add_script(struct dd_buf *out, const struct dd_plot *p, const struct dd_table *t, size_t name,
                       size_t x, const struct dd_plot_panel *panel, size_t panels)
{
    bool svg = strcmp(p->path + strlen(p->path) - 4, ".svg") == 0;
    size_t drawn = 0;
    for (size_t i = 0; i < panels; i++)
        drawn += panel_has_points(t, panel[i].column);
    dd_buf_addf(out, "set terminal %s size %zu,%d\n", svg ? "svg background \"white\"" : "pngcairo",
                drawn * PANEL_WIDTH, PANEL_HEIGHT);
    dd_buf_add_str(out, "set logscale xy\nset grid\nset key left top font \",10\"\nset xlabel \"items\"\n"
                        "set format x \"%.0f\"\nset format y \"%g\"\n");
    dd_buf_addf(out, "set multiplot layout 1,%zu\n", drawn);
    for (size_t i = 0; i < panels; i++)
        if (panel_has_points(t, panel[i].column)) add_panel(out, t, name, x, &panel[i]);
    dd_buf_add_str(out, "unset multiplot\n");
}

enum dd_err dd_plot_draw(struct dd_plot *p, const struct dd_table *t, size_t name, size_t x,
                         const struct dd_plot_panel *panel, size_t panels)
{
    struct dd_buf script = {0};
    if (!p->path) return DD_OK;
    add_script(&script, p, t, name, x, panel, panels);
    enum dd_err err = dd_buf_ok(&script) ? dd_child_write(&p->gnuplot, dd_buf_slice(&script)) : DD_NO_MEMORY;
    dd_buf_free(&script);
    enum dd_err ended = dd_child_end(&p->gnuplot, 0);
    if (err == DD_OK) err = ended;
    if (err != DD_OK) {
        fprintf(stderr, "dedupctl: --plot %s: gnuplot did not draw it\n", p->path);
        unlink(p->path);
    }
    p->path = NULL;
    return err;
}
