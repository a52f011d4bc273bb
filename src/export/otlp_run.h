/* Runs an export to OTLP: what those of spans and of metrics have in common. */
#pragma once

#include "export/otlp_message.h"
#include "timeline/timeline.h"

/* What a writer gives to otlp_run, which initialises and frees all but the timeline's first
 * members. */
struct otlp_run {
    struct timeline *timeline; /* reader, options, ops and writer are set */
    struct out *out;
    struct otlp_message *message;
    void (*finish)(void *writer); /* writes what is left */
};

/* Calls the writer for all events. Returns 0, or -1 with *err set; `stats` may be NULL. */
int otlp_run(const struct otlp_run *run, const trail_sink *sink, trail_export_stats *stats,
             trail_error *err);
