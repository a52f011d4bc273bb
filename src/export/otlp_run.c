/* Runs an export to OTLP: see otlp_run.h. */
#include "export/otlp_run.h"

#include "base/error.h"

int otlp_run(const struct otlp_run *run, const trail_sink *sink, trail_export_stats *stats,
             trail_error *err)
{
    struct timeline *timeline = run->timeline;
    if (stats)
        *stats = (trail_export_stats){0};
    if (!out_init(run->out, sink->write, sink->context))
        return error_no_memory(err);
    if (!otlp_message_init(run->message, timeline->options->otlp_protobuf)) {
        out_drop(run->out);
        return error_no_memory(err);
    }
    int result = timeline_run(timeline, run->out, err);
    run->finish(timeline->writer);
    if (result == 0 && timeline->failed)
        result = error_no_memory(err);
    if (out_finish(run->out, err) < 0)
        result = -1;
    if (stats)
        *stats = timeline->stats;
    timeline_free(timeline);
    otlp_message_free(run->message);
    return result;
}
