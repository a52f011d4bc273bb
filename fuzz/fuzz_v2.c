/*
 * Any bytes as a trace of Go 1.22 and later: reading ends, events are sound, and do not depend on how
 * the bytes arrive.
 */
#include "reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes trace = fuzz_trace(data, size, fuzz_v2_versions,
                                         sizeof fuzz_v2_versions / sizeof *fuzz_v2_versions);
    trail_error err;
    struct fuzz_read whole = fuzz_read_memory(&trace, NULL);
    struct fuzz_trickle trickle = {trace.data, trace.size, 0};
    trail_source *stream = trail_source_open_callback(fuzz_trickle, &trickle, &err);
    FUZZ_HOLDS(stream);
    struct fuzz_read pieces = fuzz_read_events(stream, NULL);
    FUZZ_HOLDS(whole.events == pieces.events && whole.failed == pieces.failed);
    FUZZ_HOLDS(whole.code == pieces.code);
    trail_source_close(stream);
    free(trace.data);
    return 0;
}
