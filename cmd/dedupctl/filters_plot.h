/* A plot of a table's columns against another one, a line for each name, drawn by gnuplot (Debian package
 * gnuplot-nox) as a child process.
 *
 * Ownership: dd_plot_begin opens, dd_plot_draw or dd_plot_cancel closes. */
#ifndef DD_CTL_FILTERS_PLOT_H
#define DD_CTL_FILTERS_PLOT_H

#include "filters_child.h"
#include "filters_table.h"

struct dd_plot {
    const char *path; /* NULL: none was asked for */
    struct dd_child gnuplot;
};

/* One panel: a column against the items, both on logarithmic axes. */
struct dd_plot_panel {
    size_t column;
    const char *title;
};

/* Starts gnuplot and opens the file, before anything is measured. path NULL: nothing happens. What is wrong
 * is said on standard error: DD_NOT_FOUND (no gnuplot), DD_IO (the file). */
enum dd_err dd_plot_begin(struct dd_plot *p, const char *path) DD_MUST_USE;

/* Draws rows whose column `name` is the same as one line, over column `x`. Numbers of 0 and NaN are gaps. */
enum dd_err dd_plot_draw(struct dd_plot *p, const struct dd_table *t, size_t name, size_t x,
                         const struct dd_plot_panel *panel, size_t panels) DD_MUST_USE;
/* Ends it without a plot, and removes the file; nothing happens after dd_plot_draw. */
void dd_plot_cancel(struct dd_plot *p);

#endif
