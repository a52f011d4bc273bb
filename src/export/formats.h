/*
 * The functions that write the stream formats: STREAM(function) in the rows of formats.def. Those
 * that programs may call are also in include/trail/export.h.
 */
#pragma once

#include <trail/export.h>

#define STREAM(function)                                                                           \
    int function(trail_reader *reader, const trail_export_options *options,                        \
                 const trail_sink *sink, trail_export_stats *stats, trail_error *err);
#define ROWS(format)
#define RUN(function)
#define FORMAT(name, nature, output, how, suffixes, summary) how
#include "export/formats.def"
#undef FORMAT
#undef RUN
#undef ROWS
#undef STREAM
