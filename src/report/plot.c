#include "report/plot.h"

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
        out_format(out,
                   "<li><svg class=\"key\" aria-hidden=\"true\"><rect class=\"%s\" "
                   "width=\"100%%\" height=\"100%%\"/></svg>",
                   keys[i].drawn_as);
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

static void add_x_label(struct plot *plot, const char *label)
{
    if (plot->labels < PLOT_LABELS)
        (void)snprintf(plot->x[plot->labels++], sizeof plot->x[0], "%s", label);
}

void plot_x_length(struct plot *plot, double ns)
{
    char label[DURATION_SIZE];
    (void)duration_on_axis(label, ns);
    add_x_label(plot, label);
}

/* In the unit of the greatest, with as many digits as needed for different labels. */
void plot_x_time(struct plot *plot, int64_t from_ns, int64_t to_ns)
{
    double unit = to_ns >= 1000000000 ? 1e9 : to_ns >= 1000000 ? 1e6 : 1e3;
    double step = ((double)to_ns - (double)from_ns) / (PLOT_LABELS - 1);
    int digits = 1;
    for (double least = unit / 10; step < 2 * least && digits < 6; least /= 10)
        digits++;
    for (int i = 0; i < PLOT_LABELS; i++) {
        char label[32];
        (void)snprintf(label, sizeof label, "%.*f %s", digits, ((double)from_ns + step * i) / unit,
                       unit > 1e8   ? "s"
                       : unit > 1e5 ? "ms"
                                    : "us");
        add_x_label(plot, label);
    }
}

void plot_open(struct plot *plot, const char *seen)
{
    struct out *out = plot->out;
    out_str(out, "<svg class=\"area\" viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" "
                 "role=\"img\" aria-label=\"");
    html_figures(out, seen);
    out_str(out, "\"><path class=\"grid\" d=\"M0 0H1000M0 50H1000");
    for (unsigned i = 0; i < plot->labels; i++)
        out_format(out, "M%u 0V100", plot->labels > 1 ? i * 1000 / (plot->labels - 1) : 0);
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

void plot_end(struct plot *plot)
{
    struct out *out = plot->out;
    out_str(out, "</svg><div class=\"x\" aria-hidden=\"true\">");
    for (unsigned i = 0; i < plot->labels; i++) {
        out_str(out, "<span>");
        html_figures(out, plot->x[i]);
        out_str(out, "</span>");
    }
    out_str(out, "</div></div></figure>\n");
}

double plot_round_up(double value)
{
    static const double steps[] = {1, 2, 3, 4, 5, 6, 8, 10};
    double unit = 1;
    while (unit * 10 < value)
        unit *= 10;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (unit * steps[i] >= value)
            return unit * steps[i];
    return value;
}
