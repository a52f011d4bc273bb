/*
 * Import: makes a trace of threads from what another recorder wrote.
 *
 * The form of the input is recognised by its first bytes; import_forms (docs/importing.md) lists
 * the forms.
 */
#pragma once

#include "import/stats.h"

#include <trail/export.h>

/* The format of the traces that are made. */
#define IMPORT_VERSION 26

/* How many events of a recording that is only nearly ordered are held in memory at once. */
#define IMPORT_WINDOW ((size_t)1 << 16)

/*
 * Reads all of `source` and writes a trace to `sink`. Returns 0, or -1 with *err; what was written
 * until then is a trace of the events up to there. *stats is filled in both cases. Memory holds the
 * window and everything alive, and a Perfetto trace as a whole. `progress`, if not NULL, is called
 * often.
 */
int import_trace(trail_source *source, const trail_sink *sink, void (*progress)(void *context),
                 void *context, struct import_stats *stats, trail_error *err);

/* Whether the source, at its start, is a perf.data file, which only perf itself can read. */
bool import_is_perf_data(trail_source *source);
