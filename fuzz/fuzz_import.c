/*
 * A recording of another tool, in any form that is known by its first bytes: what is made of it is read
 * without an error, also if the recording could not be read to its end.
 */
#include "fuzz.h"
#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trail_error err;
    struct fuzz_bytes trace = {0};
    struct import_stats stats;
    const trail_sink sink = {fuzz_keep, &trace};
    trail_source *text = trail_source_open_memory(data, size, &err);
    if (!text)
        return 0;
    int result = import_trace(text, &sink, NULL, NULL, &stats, &err);
    trail_source_close(text);
    FUZZ_HOLDS(result == 0 || err.code != TRAIL_OK);
    FUZZ_HOLDS(result < 0 || stats.events > 0);
    if (result == 0) {
        const trail_event *events;
        long count;
        trail_source *source = trail_source_open_memory(trace.data, trace.size, &err);
        trail_reader *reader = trail_reader_open(source, NULL, &err);
        FUZZ_HOLDS(reader);
        while ((count = trail_reader_next_batch(reader, &events)) > 0) {
        }
        FUZZ_HOLDS(count == 0);
        trail_reader_close(reader);
        trail_source_close(source);
    }
    free(trace.data);
    return 0;
}
