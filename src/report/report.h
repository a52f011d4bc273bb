/*
 * Report: a self-contained HTML file about a trace; it needs no network or other file, and runs no
 * script but its own. Its style sheet and script are files in this folder, embedded at build time;
 * a content security policy with their hashes blocks all others.
 */
#pragma once

#include <trail/export.h>

#include "analyze/goroutines.h"
#include "base/out.h"
#include "report/html.h"
#include "report/moments.h"
#include "report/series.h"
#include "words/vocabulary.h"

struct report {
    const char *title; /* of the document */
    const char *file;  /* the trace's name in commands */
    const char *version;
    const char *maker;           /* what made the trace: "Go 1.23"; empty: unknown */
    const char *const *warnings; /* shown at the top: why the trace is incomplete */
    size_t warning_count;
    const trail_analysis *answers; /* with REPORT_ANALYSES and REPORT_PROFILES */
    const struct series *series;
    const struct moments *moments;
    const struct vocabulary *words;
    size_t limit; /* rows per table */
    trail_analysis_span span;
    trail_activity activity;
    struct out *out;
};

enum {
    REPORT_ANALYSES = TRAIL_ANALYZE_ALL_FINDINGS | TRAIL_ANALYZE_PROFILES | TRAIL_ANALYZE_THREADS |
                      TRAIL_ANALYZE_LOCKS,
    REPORT_PROFILES =
        1 << TRAIL_PROFILE_CPU | 1 << TRAIL_PROFILE_RUNNING | 1 << TRAIL_PROFILE_OFFCPU
};

/*
 * Writes a report. Set all but the last three members of `given`. Returns 0, or -1 with *err set.
 */
int report_write(const struct report *given, const trail_sink *sink, trail_error *err);

/* MARK: Parts */

void report_key_figures(const struct report *report); /* a line of the header */
void report_findings(const struct report *report);    /* what is wrong */
void report_evidence(const struct report *report);    /* the moments of findings */
void report_moments(const struct report *report);     /* the other moments */
void report_figures(const struct report *report);
void report_activity(const struct report *report); /* plots over time, and how it was spent */
void report_memory(const struct report *report);   /* heap, garbage collection */
void report_latency(const struct report *report);  /* histograms, waits */
void report_tables(const struct report *report);

/* Writes text with terms in braces (words_text), as html_word. */
void report_words(const struct report *report, const char *text);

/* The same for the caption and titles of a table: html_table_begin. */
void report_table(const struct report *report, struct html_table *table, const char *caption,
                  const char *titles);

/* Returns the reason of a wait as shown, also for a wait without one. */
trail_string report_reason(const struct report *report, trail_string reason);

/* Returns the style-sheet class of a wait of the analysis. */
const char *report_wait_class(const struct report *report, trail_name wait);

/* Returns the text of a name; "(unknown)" for 0. */
trail_string report_text(const struct report *report, trail_name name);

/* Begins a section with an <h2>, to which the list of contents links. */
void report_section(const struct report *report, const char *id, const char *title);
void report_section_end(const struct report *report);

/* Returns "trail print --goroutine=.. --from=.. --to=.. FILE" for [begin, begin + ns), in `buf`. */
const char *report_command(const struct report *report, int64_t goroutine, int64_t begin_ns,
                           int64_t ns, char *buf, size_t size);

static inline int64_t report_length(const struct report *report)
{
    return ns_between(report->span.begin_ns, report->span.end_ns);
}
