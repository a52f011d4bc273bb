#include "report/plot.h"

#include <math.h>
#include <stdio.h>

#include "report/html.h"

/* Units of a drawing, which is stretched to the width of the page. */
#define WIDE 1000.0
#define HIGH 100.0

void plot_begin(struct plot *plot, struct out *out, const char *title, const char *note)
{
    *plot = (struct plot){.out = out};
    out_str(out, "<figure class=\"plot\"><figcaption><h3>");
    html_word(out, title);
    out_str(out, "</h3> ");
    html_figures(out, note);
    out_str(out, "</figcaption>\n");
}

void plot_legend(struct plot *plot, const struct plot_key *keys, size_t count)
{
    struct out *out = plot->out;
    out_str(out, "<ul class=\"legend\">");
    for (size_t i = 0; i < count; i++) {
        const char *below = keys[i].below;
        out_str(out, "<li><svg class=\"key\" aria-hidden=\"true\">");
        if (below && *below)
            out_format(out, "<rect class=\"%s\" width=\"100%%\" height=\"100%%\"/>", below);
        out_format(out, "<rect class=\"%s\" y=\"%d%%\" width=\"100%%\" height=\"%d%%\"/></svg>",
                   keys[i].drawn_as, below && !*below ? 40 : 0, below ? 20 : 100);
        html_word(out, keys[i].title);
        out_str(out, "</li>");
    }
    out_str(out, "</ul>\n");
}

void plot_y(struct plot *plot, const char *top, const char *middle, const char *bottom)
{
    out_format(plot->out,
               "<div class=\"frame\"><div class=\"y\" aria-hidden=\"true\"><span>%s</span>"
               "<span>%s</span><span>%s</span></div>\n",
               top, middle, bottom);
}

/* All labels use the unit of the largest, with as many digits as the step needs. */
static const struct {
    double ns;
    const char *name;
} units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};

/* Returns the smallest of 1, 2, 5, 10, 20 ... that divides the length into few enough steps. */
static double round_step(double length)
{
    double unit = 1;
    while (unit * 10 * (PLOT_TICKS - 2) < length)
        unit *= 10;
    return unit * (PLOT_TICKS - 2) >= length       ? unit
           : unit * 2 * (PLOT_TICKS - 2) >= length ? unit * 2
           : unit * 5 * (PLOT_TICKS - 2) >= length ? unit * 5
                                                   : unit * 10;
}

static struct plot_tick *add_tick(struct plot *plot, double x)
{
    if (plot->tick_count == PLOT_TICKS)
        return NULL;
    struct plot_tick *tick = &plot->ticks[plot->tick_count++];
    tick->x = x < 0 ? 0 : x > 1 ? 1 : x;
    return tick;
}

void plot_x_time(struct plot *plot, int64_t from_ns, int64_t to_ns)
{
    double from = (double)from_ns, to = (double)to_ns, length = to - from;
    if (!(length > 0))
        return;
    double step = round_step(length), first = ceil(from / step);
    size_t unit = 0;
    int digits = 0;
    while (unit + 1 < sizeof units / sizeof *units && floor(to / step) * step < units[unit].ns)
        unit++;
    for (double least = units[unit].ns; step < least && digits < 9; least /= 10)
        digits++;
    for (size_t i = 0; (first + (double)i) * step <= to; i++) {
        double at = (first + (double)i) * step;
        struct plot_tick *tick = add_tick(plot, (at - from) / length);
        if (!tick)
            return;
        (void)snprintf(tick->label, sizeof tick->label, "%.*f %s", digits, at / units[unit].ns,
                       units[unit].name);
    }
}

/* Adds ticks at 1, 2, 5 (or only 1) times powers of ten within the range. Returns their number. */
static unsigned add_lengths(struct plot *plot, double from, double to, size_t steps)
{
    static const double step[] = {1, 2, 5};
    unsigned count = 0;
    for (double power = 1; power <= to && power < 1e18; power *= 10) {
        for (size_t i = 0; i < steps; i++) {
            double at = power * step[i];
            if (at < from || at > to)
                continue;
            count++;
            struct plot_tick *tick = plot ? add_tick(plot, log(at / from) / log(to / from)) : NULL;
            if (tick)
                (void)duration_on_axis(tick->label, at);
        }
    }
    return count;
}

void plot_x_lengths(struct plot *plot, double from_ns, double to_ns)
{
    bool dense = add_lengths(NULL, from_ns, to_ns, 3) <= PLOT_TICKS;
    (void)add_lengths(plot, from_ns, to_ns, dense ? 3 : 1);
}

void plot_open(struct plot *plot, const char *seen)
{
    struct out *out = plot->out;
    out_str(out, "<svg class=\"area\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" "
                 "role=\"img\" aria-label=\"");
    html_figures(out, seen);
    out_str(out, "\"><path class=\"grid\" d=\"M0 0H1000M0 50H1000");
    for (unsigned i = 0; i < plot->tick_count; i++) {
        out_char(out, 'M');
        html_coordinate(out, WIDE * plot->ticks[i].x);
        out_str(out, " 0V100");
    }
    out_str(out, "\"/>\n");
}

void plot_path_begin(struct plot *plot, const char *drawn_as)
{
    plot->moved = false;
    out_format(plot->out, "<path class=\"%s\" d=\"", drawn_as);
}

void plot_point(struct plot *plot, double x, double y)
{
    out_char(plot->out, plot->moved ? 'L' : 'M');
    html_coordinate(plot->out, WIDE * x);
    out_char(plot->out, ' ');
    html_coordinate(plot->out, HIGH * (1 - (y > 1 ? 1 : y)));
    plot->moved = true;
}

void plot_path_end(struct plot *plot)
{
    out_str(plot->out, "\"/>\n");
}

void plot_bar(struct plot *plot, const char *drawn_as, double x, double width, double y,
              const char *title)
{
    struct out *out = plot->out;
    out_format(out, "<rect class=\"%s\" x=\"", drawn_as);
    html_coordinate(out, WIDE * x);
    out_str(out, "\" width=\"");
    html_coordinate(out, WIDE * width);
    out_str(out, "\" y=\"");
    html_coordinate(out, HIGH * (1 - y));
    out_str(out, "\" height=\"");
    html_coordinate(out, HIGH * y);
    out_str(out, "\"");
    if (!title) {
        out_str(out, "/>\n");
        return;
    }
    out_str(out, "><title>");
    html_figures(out, title);
    out_str(out, "</title></rect>\n");
}

void plot_x(const struct plot *plot)
{
    struct out *out = plot->out;
    out_str(out, "<svg class=\"x\" aria-hidden=\"true\">");
    for (unsigned i = 0; i < plot->tick_count; i++) {
        out_str(out, "<text y=\"1.1em\" x=\"");
        html_coordinate(out, 100 * plot->ticks[i].x);
        out_str(out, "%\">");
        html_figures(out, plot->ticks[i].label);
        out_str(out, "</text>");
    }
    out_str(out, "</svg>");
}

void plot_end(struct plot *plot)
{
    out_str(plot->out, "</svg>");
    plot_x(plot);
    out_str(plot->out, "</div></figure>\n");
}

double plot_round_up(double value)
{
    static const double steps[] = {2, 3, 4, 5, 6, 8, 10};
    double unit = 1;
    while (unit * 10 < value)
        unit *= 10;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (unit * steps[i] >= value && fmod(unit * steps[i], 2) == 0)
            return unit * steps[i];
    return value;
}
