#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/show.h"
#include "report/flame.h"
#include "report/html.h"

/* Made by tools/embed-page when trail is built. */
extern const unsigned char embedded_report_css[], embedded_report_js[], embedded_report_csp[];
extern const size_t embedded_report_css_size, embedded_report_js_size, embedded_report_csp_size;

/* MARK: What the parts share */

trail_string report_text(const struct report *report, trail_name name)
{
    static const char unknown[] = "(unknown)";
    trail_string text = trail_analysis_text(report->answers, name);
    return text.size > 0 ? text : (trail_string){unknown, sizeof unknown - 1};
}

void report_section(const struct report *report, const char *id, const char *title)
{
    out_format(report->out, "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2>\n", id, id,
               title);
}

void report_section_end(const struct report *report)
{
    out_str(report->out, "</section>\n");
}

/* MARK: Words */

void report_words(const struct report *report, const char *text)
{
    char room[1024];
    html_word(report->out, words_text(report->words, text, room, sizeof room));
}

void report_table(const struct report *report, struct html_table *table, const char *caption,
                  const char *titles)
{
    char text[256], room[512];
    html_table_begin(table, report->out, words_text(report->words, caption, text, sizeof text),
                     words_titles(report->words, titles, room, sizeof room));
}

trail_string report_reason(const struct report *report, trail_string reason)
{
    const char *none = term(report->words, TERM_no_reason);
    reason = words_reason(report->words, reason);
    return reason.size > 0 ? reason : (trail_string){none, strlen(none)};
}

const char *report_command(const struct report *report, int64_t goroutine, int64_t begin_ns,
                           int64_t ns, char *buf, size_t size)
{
    char whose[128] = "";
    if (goroutine != TRAIL_NONE)
        (void)snprintf(whose, sizeof whose, " %s%" PRId64, term(report->words, TERM_task_option),
                       goroutine);
    (void)snprintf(buf, size, "trail print%s --from=%" PRId64 "ns --to=+%" PRId64 "ns %s", whose,
                   ns_between(report->span.origin_ns, begin_ns), ns, report->file);
    return buf;
}

/* MARK: Flame graphs */

static bool put_flame(const struct report *report, trail_profile_type type,
                      const struct flame_look *look)
{
    trail_profile profile;
    trail_analysis_profile(report->answers, type, &profile);
    if (profile.sample_count == 0)
        return true;
    return flame_write(report->answers, &profile, look, report->out);
}

/* How they come to be in a trace is told of what made this one. */
static void put_no_samples(const struct report *report)
{
    out_str(report->out, "<p class=\"none\">The trace has no CPU samples. ");
    if (report->words->of == TRAIL_MADE_BY_GO)
        out_str(report->out,
                "In Go (1.19 on) they are there "
                "when a CPU profile is taken meanwhile (<code>pprof.StartCPUProfile</code>); of a "
                "C program: <code>trail record --cpu-samples=99</code>. ");
    else if (report->words->of == TRAIL_MADE_BY_RECORD)
        out_str(report->out, "Record with <code>--cpu-samples=99</code>. ");
    out_str(report->out, "In their place, this is the time that ");
    report_words(report, "{tasks} ran, by the stack with which they stopped.");
    out_str(report->out, "</p>\n");
}

/* False when memory is out. */
static bool put_flames(const struct report *report)
{
    static const struct flame_look cpu = {"flame-cpu", "CPU samples", false, true};
    static const struct flame_look running = {
        "flame-running", "Time running, by the stack where it ended", false, false};
    static const struct flame_look waits = {"flame-waits", "Time waiting, by what for and where",
                                            true, false};
    trail_profile profile;
    trail_analysis_profile(report->answers, TRAIL_PROFILE_CPU, &profile);
    report_section(report, "ran", "Where it ran");
    if (profile.sample_count == 0)
        put_no_samples(report);
    bool good = profile.sample_count > 0 ? put_flame(report, TRAIL_PROFILE_CPU, &cpu)
                                         : put_flame(report, TRAIL_PROFILE_RUNNING, &running);
    report_section_end(report);
    report_section(report, "waited", "Where it waited");
    trail_analysis_profile(report->answers, TRAIL_PROFILE_OFFCPU, &profile);
    if (profile.sample_count == 0)
        out_str(report->out, "<p class=\"none\">Nobody waited.</p>\n");
    good = good && put_flame(report, TRAIL_PROFILE_OFFCPU, &waits);
    report_section_end(report);
    return good;
}

/* MARK: The document */

static void put_asset(struct out *out, const char *begin, const unsigned char *data, size_t size,
                      const char *end)
{
    out_str(out, begin);
    out_bytes(out, data, size);
    out_str(out, end);
}

static void put_head(const struct report *report)
{
    struct out *out = report->out;
    out_str(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    put_asset(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"", embedded_report_csp,
              embedded_report_csp_size, "\">\n");
    out_str(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"color-scheme\" content=\"light dark\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    html_word(out, report->title);
    out_str(out, "</title>\n");
    put_asset(out, "<style>", embedded_report_css, embedded_report_css_size, "</style>\n</head>\n");
}

static void put_warnings(const struct report *report)
{
    struct out *out = report->out;
    if (report->warning_count == 0)
        return;
    out_str(out, "<div class=\"banner\" role=\"note\" aria-label=\"Warnings\">");
    for (size_t i = 0; i < report->warning_count; i++) {
        out_str(out, "<p>");
        html_word(out, report->warnings[i]);
        out_str(out, "</p>");
    }
    out_str(out, "</div>\n");
}

/* When the trace began by the clock on the wall, as far as it tells. */
static void put_wall(const struct report *report)
{
    const struct series *series = report->series;
    char text[SHOW_SIZE];
    int64_t since, s;
    if (!series->has_wall)
        return;
    since = ns_between(series->wall.trace_ns, report->span.begin_ns);
    ns_add(&since, (int64_t)series->wall.wall_ns);
    s = since / 1000000000 - (since % 1000000000 < 0);
    if (__builtin_add_overflow(series->wall.wall_s, s, &s))
        return;
    out_str(report->out, "begun ");
    out_str(report->out,
            show_wall(text, s, (uint32_t)((since % 1000000000 + 1000000000) % 1000000000)));
    out_str(report->out, "; ");
}

static void put_header(const struct report *report)
{
    static const struct {
        const char *id, *title;
    } contents[] = {
        {"summary", "Summary"},    {"activity", "Over the time"}, {"moments", "Moments"},
        {"ran", "Where it ran"},   {"waited", "Where it waited"}, {"waits", "Waits and latency"},
        {"memory", "Heap and GC"}, {"tables", "Tables"},
    };
    struct out *out = report->out;
    out_str(out, "<header><h1>");
    html_word(out, report->title);
    out_str(out, "</h1><p>");
    put_wall(report);
    if (report->span.begin_ns != report->span.origin_ns) {
        out_str(out, "of it what is from ");
        html_duration(out, ns_between(report->span.origin_ns, report->span.begin_ns));
        out_str(out, " on; ");
    }
    out_str(out, "made by trail ");
    html_word(out, report->version);
    out_str(out, "</p>\n");
    put_warnings(report);
    out_str(out, "<nav aria-label=\"Contents\"><ul>");
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        out_format(out, "<li><a href=\"#%s\">%s</a></li>", contents[i].id, contents[i].title);
    out_str(out, "</ul></nav></header>\n<main>\n");
}

static bool put_body(const struct report *report)
{
    report_summary(report);
    report_activity(report);
    report_moments(report);
    bool good = put_flames(report);
    report_latency(report);
    report_memory(report);
    report_tables(report);
    return good;
}

int report_write(const struct report *given, const trail_sink *sink, trail_error *err)
{
    struct report whole = *given, *report = &whole;
    struct out out;
    if (!out_init(&out, sink->write, sink->context))
        return error_set(err, TRAIL_NO_MEMORY, "no memory for the report");
    report->out = &out;
    trail_analysis_get_span(report->answers, &report->span);
    trail_analysis_activity(report->answers, &report->activity);
    put_head(report);
    out_str(&out, "<body>\n");
    put_header(report);
    if (!put_body(report)) {
        out_drop(&out);
        return error_set(err, TRAIL_NO_MEMORY, "no memory for the report");
    }
    put_asset(&out, "</main>\n<script>", embedded_report_js, embedded_report_js_size,
              "</script>\n</body>\n</html>\n");
    return out_finish(&out, err);
}
