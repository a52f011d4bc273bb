/*
 * Any bytes as a trace of Go 1.5 to 1.21, read strictly, partially, with repair, and in Go 1.21's view:
 * reading ends and events are sound. A valid trace needs no repair, and reads the same partially and
 * with repair.
 */
#include "reading.h"

static void read_view(const struct fuzz_bytes *trace, bool partial, bool repair)
{
    const trail_reader_options options = {
        .view = TRAIL_VIEW_V1, .partial = partial, .repair = repair};
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    FUZZ_HOLDS(source);
    trail_reader *reader = trail_reader_open(source, &options, &err);
    if (reader) {
        const trail_v1_event *events;
        long count;
        while ((count = trail_reader_next_v1_batch(reader, &events)) > 0)
            for (long i = 0; i < count; i++) {
                FUZZ_HOLDS(trail_v1_type_get(events[i].type));
                FUZZ_HOLDS(events[i].offset >= 16 && (size_t)events[i].offset < trace->size);
                FUZZ_HOLDS(events[i].text[0] < trail_reader_string_count(reader));
                FUZZ_HOLDS(events[i].text[1] < trail_reader_string_count(reader));
            }
        trail_reader_close(reader);
    }
    trail_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes trace = fuzz_trace(data, size, fuzz_v1_versions,
                                         sizeof fuzz_v1_versions / sizeof *fuzz_v1_versions);
    struct fuzz_read strict = fuzz_read_memory(&trace, NULL);
    struct fuzz_read part = fuzz_read_memory(&trace, &(trail_reader_options){.partial = true});
    struct fuzz_read repaired = fuzz_read_memory(&trace, &(trail_reader_options){.repair = true});
    (void)fuzz_read_memory(&trace, &(trail_reader_options){.partial = true, .repair = true});
    if (!strict.failed) {
        FUZZ_HOLDS(!part.failed && part.events == strict.events);
        FUZZ_HOLDS(!repaired.failed && repaired.events == strict.events && repaired.repairs == 0);
    }
    for (int way = 0; way < 4; way++)
        read_view(&trace, way & 1, way & 2);
    free(trace.data);
    return 0;
}
