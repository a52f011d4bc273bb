/*
 * Findings as cards: each has its severity, a heading that says what is wrong, what it means, the
 * possible gain, and the moment that shows it.
 */

#include "report/html.h"
#include "report/overview.h"
#include "report/report.h"
#include "words/gain.h"

/* An element with sentences; names in them do not change the direction of the text around them. */
static void put_text(struct out *out, const char *begin, const char *text, const char *end)
{
    out_format(out, "<%s><bdi>", begin);
    html_figures(out, text);
    out_format(out, "</bdi>%s", end);
}

/* The shape distinguishes severities where colours do not. */
static void put_severity(struct out *out, double weight)
{
    static const struct {
        const char *name, *shape;
        double least; /* share of the time that the finding affects */
    } severities[] = {
        {"high", "M7 1.5 13 12.5H1Z", 0.05},
        {"mid", "m7 .8 6.2 6.2L7 13.2.8 7Z", 0.01},
        {"low", "M7 1a6 6 0 1 0 0 12A6 6 0 0 0 7 1Z", 0},
    };
    size_t i = 0;
    while (i < 2 && weight < severities[i].least)
        i++;
    out_format(out,
               "<svg class=\"severity %s\" viewBox=\"0 0 14 14\" role=\"img\" aria-label=\"%s\">"
               "<path d=\"%s\"/><path class=\"sign\" d=\"M7 4.5v3.2M7 10v.1\"/></svg>",
               severities[i].name, severities[i].name, severities[i].shape);
}

/* Returns whether the finding's moment is drawn, below which its command stands. */
static bool put_moment_link(const struct report *report, const trail_finding *finding)
{
    const struct moments *all = report->moments;
    const struct moment *moment =
        finding->has_moment
            ? moments_showing(all, finding->goroutine, finding->begin_ns, finding->end_ns)
            : NULL;
    if (moment)
        out_format(report->out, " <a href=\"#moment-%zu\">See it.</a>", moment - all->list + 1);
    return moment != NULL;
}

static void put_card(const struct report *report, const trail_finding *finding)
{
    struct out *out = report->out;
    struct gain_words gain;
    char command[512], bound[GAIN_BOUND_SIZE];
    /* The figure is the bound. */
    const char *remedy = gain_remedy(finding, report_length(report), bound);
    out_format(out, "<li data-kind=\"%s\">", finding->kind);
    put_severity(out, finding->weight);
    put_text(out, "h3", finding->heading, "</h3>");
    if (gain_words(finding, &gain)) {
        out_format(out, "<p class=\"gain\">%s <b>", gain.title);
        html_figures(out, gain.figure);
        out_str(out, "</b></p>");
    }
    put_text(out, "p class=\"why\"", finding->details, "");
    bool is_drawn = put_moment_link(report, finding);
    out_str(out, "</p>");
    if (*remedy)
        put_text(out, "p class=\"remedy\"", remedy, "</p>");
    if (finding->replayed)
        put_text(out, "p class=\"remedy\"", finding->replayed, "</p>");
    if (finding->has_moment && !is_drawn) {
        out_str(out, "<code>");
        html_word(out, report_command(report, finding->goroutine, finding->begin_ns,
                                      ns_between(finding->begin_ns, finding->end_ns), command,
                                      sizeof command));
        out_str(out, "</code>");
    }
    out_str(out, "</li>\n");
}

void report_findings(const struct report *report)
{
    const trail_finding *findings;
    size_t count = trail_analysis_findings(report->answers, &findings);
    char largest[OVERVIEW_SIZE];
    struct out *out = report->out;
    report_section(report, "findings", "What is wrong");
    if (count == 0) {
        out_format(out, "<p class=\"none\">%s. The largest figures: <bdi>",
                   overview_nothing(&report->activity));
        html_figures(out, overview_largest(report->answers, report->words, largest));
        out_str(out, "</bdi>.</p>\n");
    } else {
        out_str(out, "<ol class=\"findings\">\n");
        for (size_t i = 0; i < count; i++)
            put_card(report, &findings[i]);
        out_str(out, "</ol>\n");
    }
    report_section_end(report);
}
