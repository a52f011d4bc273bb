/*
 * Import: makes a trace of threads out of what another recorder wrote.
 *
 * The form of the input is recognised by its first bytes; import_forms (docs/importing.md) lists
 * them.
 */
#ifndef TRAIL_IMPORT_IMPORT_H
#define TRAIL_IMPORT_IMPORT_H

#include "import/stats.h"

#include <trail/export.h>

/* The format of the traces that are made. */
#define IMPORT_VERSION 26

/* Events that a recording without an order of its own may have in memory at once. */
#define IMPORT_WINDOW ((size_t)1 << 16)

/*
 * Reads all of `source` and writes a trace to `sink`. Returns 0, or -1 with *err; what was written
 * before is then a trace of the events before. *stats is filled in both cases. Memory holds the
 * window and everything that is alive, and a Perfetto trace as a whole. `progress`, if not NULL, is
 * called often.
 */
int import_trace(trail_source *source, const trail_sink *sink, void (*progress)(void *context),
                 void *context, struct import_stats *stats, trail_error *err);

/* Whether the source, at its start, is a perf.data file, which only perf itself can read. */
bool import_is_perf_data(trail_source *source);

#endif
