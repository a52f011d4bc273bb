"""What extend.py adds: for each section of docs/extending.md the places of its list, in its order, and a command that
shows that the addition works.

A place is a new file, or text that is inserted before or after the first line that contains a given text. Several in one file are one place.
"""

import os
import re
import subprocess


class New:
    def __init__(self, path, text):
        self.path, self.text = path, text

    def apply(self, old):
        assert old is None, f"{self.path} exists"
        return self.text.lstrip("\n")


class Into:
    def __init__(self, path, text, after=None, before=None):
        self.path, self.text, self.line, self.above = path, text.lstrip("\n"), after or before, before is not None

    def apply(self, old):
        lines = old.splitlines(True)
        found = [i for i, line in enumerate(lines) if self.line in line]
        assert found, f"{self.path} has no line with {self.line!r}"
        lines.insert(found[0] + (not self.above), self.text)
        return "".join(lines)


SUB_COMMAND = [
    Into("src/commands.def", """
COMMAND(tally,      ANALYSIS,  TERMINAL, "how many events there are", PARAMETERS())
""", before="COMMAND(threads,"),
    New("src/commands/tally.c", r"""
/* trail tally: how many events a trace has. */
#include <inttypes.h>
#include <stdio.h>

#include "ui/analysis.h"

static const struct option rows[] = {
    ANALYSIS_ROWS,
    {0},
};

static int show(void *context)
{
    const struct analysis *analysis = context;
    printf(analysis->json ? "{\"events\": %" PRIu64 "}\n" : "%" PRIu64 " events\n",
           analysis->span.events);
    return 0;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct analysis analysis = {.command = command, .options.what = TRAIL_ANALYZE_THREADS};
    return analysis_answer(&analysis, analysis_parse(&analysis, argc, argv), show, &analysis);
}

const struct command command_tally = {
    COMMAND_ROW(tally),
    .synopsis = "[options] FILE",
    .details = "The number of events.",
    .examples = "  trail tally app.trace",
};
"""),
    New("man/trail-tally.1", r"""
.Dd January 1, 2026
.Dt TRAIL-TALLY 1
.Os
.Sh NAME
.Nm trail-tally
.Nd how many events there are
.Sh SYNOPSIS
.Nm trail tally
.Op Fl -from Ns = Ns Ar time
.Op Fl -to Ns = Ns Ar time
.Op Fl -repair
.Op Fl -binary Ns = Ns Ar file
.Op Fl -words Ns = Ns Cm go | threads
.Op Fl j | Fl -json
.Ar file
.Sh DESCRIPTION
Prints the number of events.
The options are:
.Bl -tag -width Ds
.It Fl -from Ns = Ns Ar time , Fl -to Ns = Ns Ar time
Analyse only this window of time.
.It Fl -repair
Go 1.5 to 1.21 only: read the trace even if its events have no consistent order.
.It Fl -binary Ns = Ns Ar file
Go 1.5 and 1.6 only: take names of functions from
.Ar file .
.It Fl -words Ns = Ns Cm go | threads
Use the terms of Go or of threads.
.It Fl j , Fl -json
Print one JSON object.
.El
.Sh JSON
.Bl -tag -width Ds
.It Li events
the number of events
.El
.Sh EXIT STATUS
0 success; 1 the trace is damaged; 2 usage error; 3 read or write error.
.Sh EXAMPLES
.Dl trail tally app.trace
.Sh SEE ALSO
.Xr trail 1
"""),
]

EXPORT_FORMAT = [
    Into("src/export/formats.def", """
FORMAT(types,      EVENTS,  TEXT,   STREAM(trail_export_types), ".types",
       "the numbers of the events' types, a line each")
""", before="FORMAT(otlp,"),
    New("src/export/types.c", r"""
/* The types of the events as numbers, a line each. */
#include "base/error.h"
#include "base/out.h"
#include "export/formats.h"

int trail_export_types(trail_reader *reader, const trail_export_options *options,
                       const trail_sink *sink, trail_export_stats *stats, trail_error *err)
{
    const trail_event *event;
    struct out out;
    uint64_t count = 0;
    int status;
    (void)options;
    if (!out_init(&out, sink->write, sink->context))
        return error_set(err, TRAIL_NO_MEMORY, "no memory for the export");
    while ((status = trail_reader_next(reader, &event)) == 1) {
        out_u64(&out, event->wire);
        out_char(&out, '\n');
        count++;
    }
    if (stats)
        *stats = (trail_export_stats){.events = count};
    if (out_finish(&out, err) == 0 && status < 0 && err)
        *err = *trail_reader_error(reader);
    return out.failed ? -1 : status;
}
"""),
    Into("man/trail-export.1", """
.It Cm types
the numbers of the events' types, a line each
""", before=".It Cm otlp"),
    Into("man/trail-export.1", "\\&.types,\n", after="The default depends on the suffix"),
]

ANALYSIS = [
    Into("src/analyze/parts.def", "PART(analyze, labels)\n", before="PART(analyze, threads)"),
    New("src/analyze/labels.c", r"""
/* Labels: how many there are. */
#include "analyze/part.h"
#include "base/json.h"

struct labels {
    uint64_t count;
};

static bool event(void *part, const trail_event *event)
{
    struct labels *labels = part;
    (void)event;
    labels->count++;
    return true;
}

static void summary(const void *part, struct json *json)
{
    const struct labels *labels = part;
    json_number(json, "label_events", labels->count);
}

const struct analysis_part labels_part = {
    .what = TRAIL_ANALYZE_ACTIVITY,
    .size = sizeof(struct labels),
    .kinds = PART_KIND(LABEL),
    .event = event,
    .summary = summary,
};
"""),
    Into("man/trail-summary.1", """
.It Li label_events
how many labels there are
""", before=".It Li tiles"),
]

FINDING = [
    Into("src/diagnose/findings_stuck.c", r"""
/* MARK: Many goroutines */

/* So many goroutines at the end. */
#define MANY_GOROUTINES 5000

void finding_many_goroutines(struct findings *findings)
{
    const struct finding_of of = {"many-goroutines", .gain_ns = 0};
    uint64_t alive = findings->analysis->span.goroutines_alive;
    if (alive >= MANY_GOROUTINES)
        finding_say(findings, &of, "%" PRIu64 " goroutines were alive at the end", alive);
}

""", before="/* MARK: Leaks */"),
    Into("src/diagnose/findings.def", 'FINDING(many_goroutines,  "many-goroutines")\n', after="FINDING(leaks,"),
    Into("docs/findings.md", """
| [`many-goroutines`](#many-goroutines) | many goroutines were alive at the end |
""", before="| [`leak`](#leak) |"),
    Into("docs/findings.md", """
### `many-goroutines`

Many goroutines were alive at the end.

**What to do:** Look at where they wait.

**Reported when** at least 5,000 goroutines were alive at the end.

""", before="### `leak`"),
    Into("man/trail-summary.1", """
.It Li many-goroutines
at least 5,000 goroutines were alive at the end
""", before=".It Li leak"),
    Into("tests/commands/findings/stuck.py", '''
def five_thousand_goroutines_are_many():
    for count in 4999, 5000:
        trace = Trace(1)
        trace.here(1, 2, 0)
        for g in range(2, count + 1):
            trace.create(g + 10, 0, g)
        equal("many-goroutines" in trace.findings(count + 20), count == 5000)


@test
''', before="def goroutines_that_are_created_all_along_and_stay_blocked_leak"),
]

EVENT_TYPE = [
    Into("src/wire/v2.def", """
V2_EVENT( 53, ProcsLimit,          26, TIMED,      3, "dt", "procs_value", "stack")
""", after="V2_EVENT( 52,"),
    Into("src/read/v2/order.c", "    case V2_ProcsLimit:\n", after="    case V2_ProcsChange:"),
    Into("src/print/filter.c", "    [V2_ProcsLimit] = TRAIL_METRIC,\n", after="[V2_ProcsChange] ="),
    Into("src/write/event_ranges.c", "    [V2_ProcsLimit] = put_procs_change,\n", after="[V2_ProcsChange] ="),
    Into("tests/data/everything-1.26.txt", "ProcsLimit dt=0 procs_value=2 stack=1\n", after="ProcsChange dt=1"),
]


def printed(trail, data, *args):
    """What `trail` prints for a trace of the tests."""
    trace = os.path.join(data, "everything-1.26.trace")
    subprocess.run([trail, "assemble", os.path.join(data, "everything-1.26.txt"), "-o", trace], check=True)
    return subprocess.run([trail, *args, trace], check=True, capture_output=True, text=True).stdout


# The section of the page, its places, and whether the addition is there and works.
ADDITIONS = {
    "A sub-command": (SUB_COMMAND, lambda *it: re.fullmatch(r"\d\d events\n", printed(*it, "tally"))),
    "An export format": (EXPORT_FORMAT, lambda *it: re.fullmatch(r"(\d+\n){20,}", printed(*it, "export", "--to=types", "-o", "-"))),
    "An analysis": (ANALYSIS, lambda *it: '"label_events":1' in printed(*it, "summary", "--json").replace(" ", "")),
    "A finding": (FINDING, lambda trail, data: b"many-goroutines" in open(trail, "rb").read()),
    "An event type": (EVENT_TYPE, lambda *it: "ProcsLimit" in printed(*it, "print", "--format=wire")),
}
