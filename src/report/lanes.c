/*
 * The small timelines of a report: the lanes of the goroutines in each moment. A bin with several
 * states shows them stacked, in proportion, so that short states stay visible. Waiting is a thin
 * line.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/show.h"
#include "base/text.h"
#include "base/whole.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/report.h"

/* Of a lane, in units of the drawing. */
enum { LANE_HIGH = 20, FULL = 16, THIN = 4, TOP = 2, LEVELS = 8 };

/* How much of a bin each state has, in LEVELS. */
struct levels {
    uint8_t of[DRAWN_STATES];
};

static struct levels levels_of(const struct lane *lane, size_t bin, double length)
{
    struct levels levels = {0};
    for (int state = 0; state < DRAWN_STATES; state++) {
        int64_t level =
            whole_within(LEVELS * (double)lane->ns[bin][state] / length + 0.5, 0, LEVELS);
        if (level == 0 && lane->ns[bin][state] > 0)
            level = 1;
        levels.of[state] = (uint8_t)level;
    }
    return levels;
}

static bool is_same(struct levels a, struct levels b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Where the state is drawn in its lane: its upper edge and its height. */
static void place_of(struct levels levels, enum drawn_state state, int *y, int *high)
{
    int below = 0;
    if (state == DRAWN_WAITING) {
        *y = TOP + (FULL - THIN) / 2;
        *high = THIN;
        return;
    }
    for (int i = 0; i < (int)state; i++)
        below += levels.of[i];
    *high = levels.of[state] * FULL / LEVELS;
    *y = TOP + FULL - (below + levels.of[state]) * FULL / LEVELS;
    if (*y < TOP)
        *y = TOP;
}

static void draw_state(struct out *out, const struct lane *lane, enum drawn_state state,
                       double length, unsigned top)
{
    bool begun = false;
    for (size_t bin = 0; bin < LANE_BINS;) {
        struct levels levels = levels_of(lane, bin, length);
        size_t end = bin + 1;
        int y, high;
        while (end < LANE_BINS && is_same(levels, levels_of(lane, end, length)))
            end++;
        if (levels.of[state] > 0) {
            place_of(levels, state, &y, &high);
            if (!begun)
                out_format(out, "<path class=\"%s\" d=\"", drawn_class(state));
            begun = true;
            out_format(out, "M%zu %uh%zuv%dH%zuz", bin, top + (unsigned)y, end - bin, high, bin);
        }
        bin = end;
    }
    if (begun)
        out_str(out, "\"/>");
}

static double bin_at(const struct moment *moment, int64_t ns)
{
    return LANE_BINS * (double)(ns - moment->from_ns) /
           (double)(ns_between(moment->from_ns, moment->to_ns));
}

/* The lane of a goroutine among those that are shown; -1: none. */
static int shown_lane(const struct moment *moment, size_t shown, int64_t id)
{
    for (size_t i = 0; i < shown; i++)
        if (moment->lanes[i]->id == id)
            return (int)i;
    return -1;
}

/* Draws lines from wakers to the moment's goroutine; of several that are close, the last. */
static void draw_wakes(struct out *out, const struct moment *moment, size_t shown)
{
    double free_from = LANE_BINS + 1;
    for (size_t i = moment->wake_count; i-- > 0;) {
        double x = bin_at(moment, moment->wakes[i].ns);
        int from = shown_lane(moment, shown, moment->wakes[i].waker);
        int to = shown_lane(moment, shown, moment->goroutine);
        if (from < 0 || to < 0 || from == to || x > free_from)
            continue;
        free_from = x - LANE_BINS / 60.0;
        int y = from * LANE_HIGH + LANE_HIGH / 2, end = to * LANE_HIGH + LANE_HIGH / 2;
        out_format(
            out,
            "<path class=\"wake\" d=\"M%.2f %dV%d\"/><path class=\"wake end\" d=\"M%.2f %dh0\"/>",
            x, y, end, x, end);
    }
}

static void put_names(const struct report *report, const struct moment *moment, size_t shown)
{
    struct out *out = report->out;
    out_str(out, "<ol class=\"lanes\">");
    for (size_t i = 0; i < shown; i++) {
        const struct lane *lane = moment->lanes[i];
        trail_string name = names_text(&report->moments->drawn.names, lane->name);
        out_str(out, lane->id == moment->goroutine ? "<li class=\"subject\"><b>" : "<li><b>");
        report_words(report, "{task_id}");
        out_i64(out, lane->id);
        out_str(out, "</b> ");
        html_name(out, name.size ? name : text_from("(unknown)"));
        out_str(out, "</li>");
    }
    out_str(out, "</ol>");
}

static void put_lanes(const struct report *report, const struct moment *moment, size_t shown)
{
    struct out *out = report->out;
    double length = (double)(ns_between(moment->from_ns, moment->to_ns)) / LANE_BINS;
    double begin = bin_at(moment, moment->begin_ns), end = bin_at(moment, moment->end_ns);
    out_format(out,
               "<svg class=\"timeline\" viewBox=\"0 0 %d %zu\" preserveAspectRatio=\"none\" "
               "height=\"%.1fem\" role=\"img\" aria-label=\"Lanes of %zu ",
               LANE_BINS, shown * LANE_HIGH, 1.7 * (double)shown, shown);
    report_words(report, shown == 1 ? "{task}" : "{tasks}");
    out_format(
        out, "; the states of each in time\"><path class=\"case\" d=\"M%.2f 0H%.2fV%zuH%.2fz\"/>\n",
        begin, end, shown * LANE_HIGH, begin);
    for (size_t i = 0; i < shown; i++) {
        for (int state = DRAWN_STATES - 1; state >= 0; state--)
            draw_state(out, moment->lanes[i], (enum drawn_state)state, length,
                       (unsigned)i * LANE_HIGH);
        out_char(out, '\n');
    }
    draw_wakes(out, moment, shown);
    out_str(out, "</svg>");
}

static void put_axis(const struct report *report, const struct moment *moment)
{
    struct plot axis = {.out = report->out};
    int64_t origin = report->span.origin_ns;
    plot_x_time(&axis, ns_between(origin, moment->from_ns), ns_between(origin, moment->to_ns));
    plot_x(&axis);
}

static void put_title(const struct report *report, const struct moment *moment)
{
    const trail_finding *findings;
    (void)trail_analysis_findings(report->answers, &findings);
    if (moment->finding > 0) {
        report_finding_head(report, &findings[moment->finding - 1]);
        return;
    }
    out_str(report->out, "<bdi>");
    html_figures(report->out, moment->title);
    out_str(report->out, "</bdi>");
}

static void put_moment(const struct report *report, const struct moment *moment, size_t n)
{
    struct out *out = report->out;
    char command[512];
    size_t shown = moment->lane_count < MOMENT_SHOWN ? moment->lane_count : MOMENT_SHOWN;
    out_format(out, "<figure class=\"moment\" id=\"moment-%zu\"><figcaption><h3>", n + 1);
    put_title(report, moment);
    out_str(out, "</h3><p>");
    if (moment->goroutine != TRAIL_NONE) {
        report_words(report, "{task_id}");
        out_format(out, "%" PRId64 ", ", moment->goroutine);
    }
    html_duration(out, ns_between(moment->begin_ns, moment->end_ns));
    out_str(out, " from ");
    html_duration(out, ns_between(report->span.origin_ns, moment->begin_ns));
    out_str(out, " on (shaded). <code>");
    html_word(out, report_command(report, moment->goroutine, moment->begin_ns,
                                  ns_between(moment->begin_ns, moment->end_ns), command,
                                  sizeof command));
    out_str(out, "</code></p></figcaption>");
    if (shown > 0) {
        out_str(out, "<div class=\"frame wide\">");
        put_names(report, moment, shown);
        put_lanes(report, moment, shown);
        put_axis(report, moment);
        out_str(out, "</div>");
    }
    if (moment->lane_count > shown) {
        out_str(out, moment->left_out ? "<p class=\"more\">At least " : "<p class=\"more\">");
        html_number(out, moment->lane_count - shown);
        out_str(out, " more did something in this time.</p>");
    }
    out_str(out, "</figure>\n");
}

/* How many moments are of findings (true), or of none. */
static size_t count_moments(const struct report *report, bool of_findings)
{
    size_t count = 0;
    for (size_t i = 0; i < report->moments->count; i++)
        count += (report->moments->list[i].finding > 0) == of_findings;
    return count;
}

static void put_moments(const struct report *report, bool of_findings)
{
    for (size_t i = 0; i < report->moments->count; i++)
        if ((report->moments->list[i].finding > 0) == of_findings)
            put_moment(report, &report->moments->list[i], i);
}

static void put_key(const struct report *report)
{
    char lost[128];
    const struct plot_key keys[] = {
        {"running", "running"},
        {"runnable", "ready, not running"},
        {"syscall", "system call"},
        {"p-released", words_text(report->words, "system call, {slot_lost}", lost, sizeof lost)},
        {"waiting", "waiting"},
        {"wake", "wake-up, from its waker"},
    };
    struct plot legend = {.out = report->out};
    out_str(report->out, "<p>");
    report_words(report,
                 "The {task} in question is on top, then its wakers, those that it woke, and those "
                 "that ran longest. Where a {task} changed its state too often to be drawn, the "
                 "height of a colour is its share.");
    out_str(report->out, "</p>");
    plot_legend(&legend, keys, sizeof keys / sizeof *keys);
}

void report_evidence(const struct report *report)
{
    if (count_moments(report, true) == 0)
        return;
    report_section(report, "evidence", "Evidence");
    put_key(report);
    put_moments(report, true);
    report_section_end(report);
}

void report_moments(const struct report *report)
{
    report_section(report, "moments", "Longest waits");
    if (count_moments(report, false) > 0) {
        put_key(report);
        put_moments(report, false);
    } else if (report->moments->count > 0) {
        out_str(report->out, "<p class=\"none\">None but those of the <a href=\"#evidence\">"
                             "evidence</a>.</p>");
    } else {
        out_str(report->out, "<p class=\"none\">The trace has no wait and no stop-the-world "
                             "pause.</p>");
    }
    report_section_end(report);
}
