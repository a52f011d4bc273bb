/*
 * Plots: a frame with labels around a drawing as wide as the page. Coordinates are from 0 to 1: of
 * the width, and of the height from the bottom.
 *
 *     struct plot plot;
 *     plot_begin(&plot, out, "Heap", "how it is read");
 *     plot_y(&plot, "12 MiB", "6 MiB", "0"); plot_x_time(&plot, from, to);
 *     plot_open(&plot, "What is seen, in words");
 *     plot_path_begin(&plot, "heap"); plot_point(&plot, x, y); ... plot_path_end(&plot);
 *     plot_end(&plot);
 */
#pragma once

#include <stdint.h>

#include "base/duration.h"
#include "base/out.h"

enum { PLOT_TICKS = 8 };

/* A round value on the x axis, and its position. */
struct plot_tick {
    double x;
    char label[DURATION_SIZE];
};

struct plot {
    struct out *out;
    struct plot_tick ticks[PLOT_TICKS];
    unsigned tick_count;
    bool moved; /* the path already has a point */
};

/* An entry of a legend: the class of its colour, and its text. */
struct plot_key {
    const char *drawn_as, *title;
    const char *below; /* NULL: a box; "": a line; else an edge above a box of this class */
};

void plot_begin(struct plot *plot, struct out *out, const char *title, const char *note);
void plot_legend(struct plot *plot, const struct plot_key *keys, size_t count);
void plot_y(struct plot *plot, const char *top, const char *middle, const char *bottom);

/* Add ticks at round times within [from_ns, to_ns]; at round lengths on a logarithmic axis. */
void plot_x_time(struct plot *plot, int64_t from_ns, int64_t to_ns);
void plot_x_lengths(struct plot *plot, double from_ns, double to_ns);

/* Writes the labels below a drawing; plot_end calls it. */
void plot_x(const struct plot *plot);

/* Begins the drawing; `seen` describes it in words. */
void plot_open(struct plot *plot, const char *seen);
void plot_path_begin(struct plot *plot, const char *drawn_as);
void plot_point(struct plot *plot, double x, double y);
void plot_path_end(struct plot *plot);

/* Draws a vertical bar; `title` (or NULL) is shown on hover. */
void plot_bar(struct plot *plot, const char *drawn_as, double x, double width, double y,
              const char *title);
void plot_end(struct plot *plot);

/* Returns the smallest of 2, 4, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100 ... that is at least `value`:
 * the top of an axis of counts, of which half is a whole number, too. */
double plot_round_up(double value);
