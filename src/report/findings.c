/*
 * Findings as cards: each has its severity, a heading that says what is wrong, what it means, the
 * possible gain, and the moment that shows it.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/html.h"
#include "report/overview.h"
#include "report/report.h"

/* MARK: Sentences */

/* A sentence begins with a capital, but a name keeps its first letter. */
static bool begins_with_word(const struct report *report, trail_string text)
{
    static const char *const words[] = {"the",   "a",    "an",   "one",  "no",
                                        "all",   "each", "both", "in",   "of",
                                        "while", "only", "some", "this", "there"};
    const char *space = memchr(text.data, ' ', text.size);
    if (!space)
        return false;
    trail_string first = {text.data, (size_t)(space - text.data)};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text_is(first, words[i]))
            return true;
    return text_is(first, term(report->words, TERM_tasks));
}

static void put_sentence(const struct report *report, trail_string text)
{
    char copy[4096];
    if (text.size == 0)
        return;
    int size = (int)(text.size < sizeof copy ? text.size : sizeof copy - 1);
    (void)snprintf(copy, sizeof copy, "%.*s", size, text.data);
    if (begins_with_word(report, text) && *copy >= 'a' && *copy <= 'z')
        *copy = (char)(*copy - 'a' + 'A');
    html_figures(report->out, copy);
}

/*
 * Splits a finding's text at its first colon, semicolon or full stop, as the viewer does
 * (web/src/findings.tsx), into heading and explanation. LEAST skips those inside a name at the
 * front.
 */
static void split(const char *text, trail_string *what, trail_string *why)
{
    enum { LEAST = 12 };
    *what = text_from(text);
    *why = text_from("");
    for (size_t at = LEAST; at + 1 < strlen(text); at++) {
        if (!strchr(":;.", text[at]) || text[at + 1] != ' ')
            continue;
        *what = (trail_string){text, at};
        *why = text_from(text + at + 2);
        return;
    }
}

void report_finding_head(const struct report *report, const trail_finding *finding)
{
    trail_string what, why;
    split(finding->text, &what, &why);
    out_str(report->out, "<bdi>");
    put_sentence(report, what);
    out_str(report->out, "</bdi>");
}

/* MARK: Cards */

/* The shape distinguishes severities without colours. */
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

static void put_moment_link(const struct report *report, size_t finding)
{
    for (size_t i = 0; i < report->moments->count; i++)
        if (report->moments->list[i].finding == finding + 1)
            out_format(report->out, " <a href=\"#moment-%zu\">See it.</a>", i + 1);
}

static void put_card(const struct report *report, const trail_finding *finding, size_t number)
{
    struct out *out = report->out;
    trail_string what, why;
    char command[512];
    split(finding->text, &what, &why);
    out_format(out, "<li data-kind=\"%s\">", finding->kind);
    put_severity(out, finding->weight);
    out_str(out, "<h3>");
    report_finding_head(report, finding);
    out_str(out, "</h3>");
    if (finding->gain_ns > 0) {
        out_str(out, "<p class=\"gain\">saves at most <b>");
        html_duration(out, finding->gain_ns);
        out_str(out, "</b></p>");
    }
    out_str(out, "<p class=\"why\"><bdi>");
    put_sentence(report, why);
    out_str(out, "</bdi>");
    put_moment_link(report, number);
    out_str(out, "</p>");
    if (finding->has_moment) {
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
        out_str(out, "<p class=\"none\">No known problem found. The largest figures: <bdi>");
        html_figures(out, overview_largest(report->answers, report->words, largest));
        out_str(out, "</bdi>.</p>\n");
    } else {
        out_str(out, "<ol class=\"findings\">\n");
        for (size_t i = 0; i < count; i++)
            put_card(report, &findings[i], i);
        out_str(out, "</ol>\n");
    }
    report_section_end(report);
}
