/*
 * The small timelines of a report: the lanes of the goroutines in a moment. A bin with several
 * states shows them stacked, in proportion, so that short states stay visible. Waiting is a thin
 * line.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "base/utf8.h"
#include "base/whole.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/report.h"

/* Of a lane, in units of the drawing. */
enum { LANE_HIGH = 20, FULL = 16, THIN = 4, TOP = 2, EDGE = 2, LEVELS = 8 };

/* Of a lane, in the page. */
#define LANE_EM 1.7

/* How much of a bin each state has, in LEVELS. */
struct levels {
    uint8_t of[LANE_STATES];
};

static struct levels levels_of(const struct lane *lane, size_t bin, double length)
{
    struct levels levels = {0};
    for (int state = 0; state < LANE_STATES; state++) {
        if (lane->ns[bin][state] <= 0)
            continue;
        int64_t level =
            whole_within(LEVELS * (double)lane->ns[bin][state] / length + 0.5, 0, LEVELS);
        levels.of[state] = (uint8_t)(level > 0 ? level : 1);
    }
    return levels;
}

static bool is_same(const struct levels *a, const struct levels *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* A part of a lane: top and height. */
struct strip {
    int y, high;
};

/* States that use or want a CPU are stacked. */
static struct strip strip_of(const struct levels *levels, size_t state)
{
    int below = 0;
    for (size_t i = 0; i < state; i++)
        below += levels->of[i];
    int y = TOP + FULL - (below + levels->of[state]) * FULL / LEVELS;
    return (struct strip){y < TOP ? TOP : y, levels->of[state] * FULL / LEVELS};
}

/* Whether the bin has only this wait, other than one for work. */
static bool is_box(const struct levels *levels, size_t state)
{
    if (state == DRAWN_WAITING + WAIT_CLASS_IDLE)
        return false;
    for (size_t i = 0; i < LANE_STATES; i++)
        if (i != state && levels->of[i] > 0)
            return false;
    return levels->of[state] > 0;
}

static struct strip wash_of(const struct levels *levels, size_t state)
{
    return (struct strip){TOP, is_box(levels, state) ? FULL : 0};
}

/* The upper edge of a box, or a line behind the rest of the lane. */
static struct strip line_of(const struct levels *levels, size_t state)
{
    if (levels->of[state] == 0)
        return (struct strip){0, 0};
    return is_box(levels, state) ? (struct strip){TOP, EDGE}
                                 : (struct strip){TOP + (FULL - THIN) / 2, THIN};
}

typedef struct strip strip_in(const struct levels *levels, size_t state);

/* The bins of a lane, and the states that occur in it. */
struct bins {
    struct levels list[LANE_BINS];
    struct levels any;
};

static void bins_of(struct bins *bins, const struct lane *lane, double length)
{
    bins->any = (struct levels){0};
    for (size_t bin = 0; bin < LANE_BINS; bin++) {
        bins->list[bin] = levels_of(lane, bin, length);
        for (size_t state = 0; state < LANE_STATES; state++)
            bins->any.of[state] |= bins->list[bin].of[state];
    }
}

static void draw_strips(struct out *out, const struct bins *bins, size_t state, unsigned top,
                        const char *drawn_as, strip_in *in)
{
    bool begun = false;
    for (size_t bin = 0; bins->any.of[state] > 0 && bin < LANE_BINS;) {
        const struct levels *levels = &bins->list[bin];
        size_t end = bin + 1;
        while (end < LANE_BINS && is_same(levels, &bins->list[end]))
            end++;
        struct strip strip = in(levels, state);
        if (strip.high > 0) {
            if (!begun)
                out_format(out, "<path class=\"%s\" d=\"", drawn_as);
            begun = true;
            out_format(out, "M%zu %uh%zuv%dH%zuz", bin, top + (unsigned)strip.y, end - bin,
                       strip.high, bin);
        }
        bin = end;
    }
    if (begun)
        out_str(out, "\"/>");
}

/* Waits are drawn first, behind everything else. */
static void draw_lane(struct out *out, const struct lane *lane, double length, unsigned top)
{
    struct bins bins;
    bins_of(&bins, lane, length);
    for (size_t i = 0; i < WAIT_CLASSES; i++) {
        enum wait_class of = (enum wait_class)i;
        draw_strips(out, &bins, DRAWN_WAITING + i, top, drawn_wash_class(of), wash_of);
        draw_strips(out, &bins, DRAWN_WAITING + i, top, drawn_wait_class(of), line_of);
    }
    for (size_t state = DRAWN_WAITING; state-- > 0;)
        draw_strips(out, &bins, state, top, drawn_class((enum drawn_state)state), strip_of);
}

static double bin_at(const struct moment *moment, int64_t ns)
{
    return LANE_BINS * (double)(ns - moment->from_ns) /
           (double)(ns_between(moment->from_ns, moment->to_ns));
}

static size_t shown_lanes(const struct moment *moment)
{
    size_t count = moment->lane_count < MOMENT_SHOWN ? moment->lane_count : MOMENT_SHOWN;
    while (count > 0 && moment->lanes[count - 1]->is_aside)
        count--;
    return count;
}

/* Returns the lane of a goroutine among those shown; -1: none. */
static int shown_lane(const struct moment *moment, size_t shown, int64_t id)
{
    for (size_t i = 0; i < shown; i++)
        if (moment->lanes[i]->id == id)
            return (int)i;
    return -1;
}

/* Whether both ends are shown. */
static bool is_wake_drawn(const struct moment *moment, size_t shown, const struct moment_wake *wake)
{
    int from = shown_lane(moment, shown, wake->waker);
    int to = shown_lane(moment, shown, moment->goroutine);
    return from >= 0 && to >= 0 && from != to;
}

/* Draws lines from wakers to the moment's goroutine; of several close ones, only the last. */
static void draw_wakes(struct out *out, const struct moment *moment, size_t shown)
{
    double free_from = LANE_BINS + 1;
    for (size_t i = moment->wake_count; i-- > 0;) {
        double x = bin_at(moment, moment->wakes[i].ns);
        if (x > free_from || !is_wake_drawn(moment, shown, &moment->wakes[i]))
            continue;
        int from = shown_lane(moment, shown, moment->wakes[i].waker);
        int to = shown_lane(moment, shown, moment->goroutine);
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
        html_lane_name(out, name.size ? name : text_from("(unknown)"));
        out_str(out, "</li>");
    }
    out_str(out, "</ol>");
}

/* Characters that fit into a lane at the width of a page; on a narrower page, labels are cut. */
enum { LANE_LETTERS = 100, LABEL_SIZE = 300 };

/* The longest that fits of "mutex db_mu, 379 ms", "mutex db_mu" and "mutex"; "" if none does. */
static const char *label_text(const struct report *report, const struct lane_label *label,
                              double share, char buf[LABEL_SIZE])
{
    const struct names *names = &report->moments->drawn.names;
    const struct wait_facts *facts = wait_facts_of(names, label->wait);
    trail_string object = facts ? names_text(names, facts->object) : text_from("");
    trail_string kind = utf8_first(
        report_reason(report, names_text(names, wait_kind_name(names, label->wait))), 60);
    char length[DURATION_SIZE];
    int room = (int)(share * LANE_LETTERS);
    /* Strips the remark from "a_mu (first seen locked in take_a x.c:7)". */
    const char *remark = object.size > 0 ? memmem(object.data, object.size, " (", 2) : NULL;
    if (remark > object.data)
        object.size = (size_t)(remark - object.data);
    object = utf8_first(object, 160);
    (void)duration_text(length, ns_between(label->from_ns, label->to_ns), DURATION_WORDS);
    for (int parts = 3; parts > 0; parts--) {
        (void)snprintf(buf, LABEL_SIZE, "%.*s%s%.*s%s%s", (int)kind.size, kind.data,
                       parts > 1 && object.size > 0 ? " " : "", parts > 1 ? (int)object.size : 0,
                       object.data, parts > 2 ? ", " : "", parts > 2 ? length : "");
        if (utf8_columns(buf) <= room)
            return buf;
    }
    return "";
}

/* Writes what is waited for, with its object, onto the wait. */
static void put_label(const struct report *report, const struct moment *moment,
                      const struct lane_label *label, size_t lane)
{
    struct out *out = report->out;
    char text[LABEL_SIZE];
    double x = bin_at(moment, label->from_ns) / LANE_BINS;
    double share = bin_at(moment, label->to_ns) / LANE_BINS - x;
    out_str(out, "<svg aria-hidden=\"true\" x=\"");
    html_coordinate(out, 100 * x);
    out_str(out, "%\" width=\"");
    html_coordinate(out, 100 * share);
    out_format(out, "%%\" y=\"%.1fem\" height=\"%.1fem\">", LANE_EM * (double)lane, LANE_EM);
    html_drawn_begin(out);
    html_figures(out, label_text(report, label, share, text));
    html_drawn_end(out);
    out_str(out, "</svg>");
}

static void put_labels(const struct report *report, const struct moment *moment, size_t shown)
{
    for (size_t i = 0; i < shown; i++) {
        const struct lane *lane = moment->lanes[i];
        for (size_t n = 0; n < lane->label_count; n++)
            put_label(report, moment, &lane->labels[n], i);
    }
}

/* The drawing is stretched to the width of the page; the text over it is not. */
static void put_lanes(const struct report *report, const struct moment *moment, size_t shown)
{
    struct out *out = report->out;
    double length = (double)(ns_between(moment->from_ns, moment->to_ns)) / LANE_BINS;
    double begin = bin_at(moment, moment->begin_ns), end = bin_at(moment, moment->end_ns);
    out_format(out,
               "<svg class=\"timeline\" height=\"%.1fem\" role=\"img\" aria-label=\"Lanes of %zu ",
               LANE_EM * (double)shown, shown);
    report_words(report, shown == 1 ? "{task}" : "{tasks}");
    out_format(out,
               "; the states of each in time\"><svg aria-hidden=\"true\" viewBox=\"0 0 %d %zu\" "
               "preserveAspectRatio=\"none\" width=\"100%%\" height=\"100%%\">\n",
               LANE_BINS, shown * LANE_HIGH);
    for (size_t i = 0; i < shown; i++) {
        draw_lane(out, moment->lanes[i], length, (unsigned)i * LANE_HIGH);
        out_char(out, '\n');
    }
    out_format(out, "<path class=\"case\" d=\"M%.2f 0H%.2fV%zuH%.2fz\"/>", begin, end,
               shown * LANE_HIGH, begin);
    draw_wakes(out, moment, shown);
    out_str(out, "</svg>");
    put_labels(report, moment, shown);
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
    out_str(report->out, "<bdi>");
    html_figures(report->out, moment->title);
    out_str(report->out, "</bdi>");
}

static void put_moment(const struct report *report, const struct moment *moment, size_t n)
{
    struct out *out = report->out;
    char command[512];
    size_t shown = shown_lanes(moment);
    out_format(out, "<figure class=\"moment\" id=\"moment-%zu\"><figcaption><h3>", n + 1);
    put_title(report, moment);
    out_str(out, "</h3><p>");
    if (moment->goroutine != TRAIL_NONE) {
        report_words(report, "{task_id}");
        out_format(out, "%" PRId64 ", ", moment->goroutine);
    }
    html_duration(out, ns_between(moment->begin_ns, moment->end_ns));
    if (moment->begin_ns > report->span.origin_ns) {
        out_str(out, " from ");
        html_duration(out, ns_between(report->span.origin_ns, moment->begin_ns));
        out_str(out, " on (outlined). <code>");
    } else {
        out_str(out, " from the start (outlined). <code>");
    }
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

/* Returns the number of moments that belong to findings, or of the others. */
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

/* A wait as in a lane: an edge above a pale box; idle, a line. */
static struct plot_key key_of(enum wait_class class, const char *title)
{
    return (struct plot_key){drawn_wait_class(class), title,
                             class == WAIT_CLASS_IDLE ? "" : drawn_wash_class(class)};
}

/* What the drawings of the moments have: which states, and whether a wake-up. */
struct drawn_signs {
    bool states[LANE_STATES], wake;
};

static void note_lane(struct drawn_signs *signs, const struct lane *lane)
{
    for (size_t bin = 0; bin < LANE_BINS; bin++)
        for (size_t state = 0; state < LANE_STATES; state++)
            signs->states[state] |= lane->ns[bin][state] > 0;
}

static void note_moment(struct drawn_signs *signs, const struct moment *moment)
{
    size_t shown = shown_lanes(moment);
    for (size_t i = 0; i < shown; i++)
        note_lane(signs, moment->lanes[i]);
    for (size_t i = 0; i < moment->wake_count; i++)
        signs->wake |= is_wake_drawn(moment, shown, &moment->wakes[i]);
}

/* The page's words, for what is drawn. */
static void put_key(const struct report *report, bool of_findings)
{
    char lost[128];
    const char *syscall = words_text(report->words, "syscall, {slot_lost}", lost, sizeof lost);
    const char *task = term(report->words, TERM_task);
    const char *cond = strcmp(task, "thread") == 0 ? "condition" : "channel";
    /* Of a wait for a WaitGroup Go records the reason of a lock. */
    const char *lock = strcmp(task, "goroutine") == 0 ? "lock, WaitGroup" : "lock";
    const struct {
        size_t state;
        struct plot_key key;
    } all[] = {
        {DRAWN_RUNNING, {"running", "running", NULL}},
        {DRAWN_RUNNABLE, {"runnable", "ready", NULL}},
        {DRAWN_SYSCALL, {"syscall", "syscall", NULL}},
        {DRAWN_P_RELEASED, {"p-released", syscall, NULL}},
        {DRAWN_WAITING + WAIT_CLASS_LOCK, key_of(WAIT_CLASS_LOCK, lock)},
        {DRAWN_WAITING + WAIT_CLASS_COND, key_of(WAIT_CLASS_COND, cond)},
        {DRAWN_WAITING + WAIT_CLASS_IO, key_of(WAIT_CLASS_IO, "I/O")},
        {DRAWN_WAITING + WAIT_CLASS_SLEEP, key_of(WAIT_CLASS_SLEEP, "sleep")},
        {DRAWN_WAITING + WAIT_CLASS_RUNTIME, key_of(WAIT_CLASS_RUNTIME, "runtime, GC")},
        {DRAWN_WAITING + WAIT_CLASS_IDLE, key_of(WAIT_CLASS_IDLE, "idle")},
        {DRAWN_WAITING + WAIT_CLASS_UNKNOWN, key_of(WAIT_CLASS_UNKNOWN, "not recorded")},
    };
    struct plot_key keys[sizeof all / sizeof *all + 1];
    size_t count = 0;
    struct drawn_signs signs = {0};
    struct plot legend = {.out = report->out};
    for (size_t i = 0; i < report->moments->count; i++)
        if ((report->moments->list[i].finding > 0) == of_findings)
            note_moment(&signs, &report->moments->list[i]);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (signs.states[all[i].state])
            keys[count++] = all[i].key;
    if (signs.wake)
        keys[count++] = (struct plot_key){"wake", "wake-up, from its waker", NULL};
    out_str(report->out, "<p>");
    report_words(report,
                 "The {task} in question is on top, then the one that ended its wait, those that "
                 "waited for the same lock, its other wakers, those that it woke, and those that "
                 "ran longest. Where a {task} changed "
                 "its state too often to be drawn, the height of a colour is its share.");
    out_str(report->out, "</p>");
    plot_legend(&legend, keys, count);
}

void report_evidence(const struct report *report)
{
    if (count_moments(report, true) == 0)
        return;
    report_section(report, "evidence", "Evidence");
    put_key(report, true);
    put_moments(report, true);
    report_section_end(report);
}

void report_moments(const struct report *report)
{
    report_section(report, "moments", "Longest waits");
    if (count_moments(report, false) > 0) {
        put_key(report, false);
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
