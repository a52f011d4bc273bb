/*
 * Any text, of a version that its first byte selects (or that the text gives): the output begins with
 * a trace header, and its records can be read back.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int versions[] = {0, 5, 7, 8, 9, 10, 11, 19, 21, 22, 23, 25, 26};
    if (size == 0)
        return 0;
    int version = versions[data[0] % (sizeof versions / sizeof *versions)];
    trail_error err;
    struct fuzz_bytes trace = {0};
    const trail_sink sink = {fuzz_keep, &trace};
    trail_source *text = trail_source_open_memory(data + 1, size - 1, &err);
    if (!text)
        return 0;
    int result = trail_assemble(text, version, &sink, &err);
    trail_source_close(text);
    FUZZ_HOLDS(result < 0 || trace.size >= 16);
    if (trace.size > 0) {
        trail_source *source = trail_source_open_memory(trace.data, trace.size, &err);
        trail_records *records = trail_records_open(source, &err);
        const trail_record *record;
        int64_t end = 16;
        FUZZ_HOLDS(records);
        while ((result = trail_records_next(records, &record)) > 0) {
            FUZZ_HOLDS(record->offset == end && record->size > 0);
            end += (int64_t)record->size;
        }
        FUZZ_HOLDS(result == 0 || trail_version_is_v2(trail_records_version(records)) == false);
        FUZZ_HOLDS(result < 0 || (size_t)end == trace.size);
        trail_records_close(records);
        trail_source_close(source);
    }
    free(trace.data);
    return 0;
}
