/*
 * Any bytes: their text is the same whether they are in memory or arrive in pieces. A text without an
 * error assembles into a trace with the same text, except for wrong sizes of batches; a second round
 * trip changes nothing.
 */
#include "fuzz.h"

static int print(trail_source *source, struct fuzz_bytes *text, trail_error *err)
{
    const trail_sink sink = {fuzz_keep, text};
    int result = trail_print_wire(source, &sink, err);
    trail_source_close(source);
    return result;
}

static int print_memory(const struct fuzz_bytes *trace, struct fuzz_bytes *text)
{
    trail_error err;
    return print(trail_source_open_memory(trace->data, trace->size, &err), text, &err);
}

static int assemble(const struct fuzz_bytes *text, int version, struct fuzz_bytes *trace)
{
    trail_error err;
    const trail_sink sink = {fuzz_keep, trace};
    /* A callback source, because a memory source might take the text for compressed data. */
    struct fuzz_trickle trickle = {text->data, text->size, 0};
    trail_source *source = trail_source_open_callback(fuzz_trickle, &trickle, &err);
    FUZZ_HOLDS(source);
    int result = trail_assemble(source, version, &sink, &err);
    trail_source_close(source);
    return result;
}

static int version_of(const uint8_t *data, size_t size)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(data, size, &err);
    trail_records *records = trail_records_open(source, &err);
    int version = records ? trail_records_version(records) : 0;
    trail_records_close(records);
    trail_source_close(source);
    return version;
}

static bool is_compressed(const uint8_t *data, size_t size)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(data, size, &err);
    bool compressed = strcmp(trail_source_compression(source), "none") != 0;
    trail_source_close(source);
    return compressed;
}

static void round_trip(const struct fuzz_bytes *text, int version)
{
    struct fuzz_bytes trace = {0}, text2 = {0}, trace2 = {0};
    FUZZ_HOLDS(assemble(text, version, &trace) == 0);
    FUZZ_HOLDS(print_memory(&trace, &text2) == 0);
    FUZZ_HOLDS(assemble(&text2, version, &trace2) == 0);
    FUZZ_HOLDS(trace.size == trace2.size && memcmp(trace.data, trace2.data, trace.size) == 0);
    free(trace.data);
    free(text2.data);
    free(trace2.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trail_error err, err2;
    struct fuzz_trickle trickle = {data, size, 0};
    struct fuzz_bytes text = {0}, text2 = {0};
    int result = print(trail_source_open_memory(data, size, &err), &text, &err);
    int result2 = print(trail_source_open_callback(fuzz_trickle, &trickle, &err2), &text2, &err2);
    /* How far damaged compressed data can be read depends on how it arrives. */
    if (!is_compressed(data, size)) {
        FUZZ_HOLDS(result == result2);
        FUZZ_HOLDS(result == 0 || strcmp(err.message, err2.message) == 0);
        FUZZ_HOLDS(text.size == text2.size);
        FUZZ_HOLDS(text.size == 0 || memcmp(text.data, text2.data, text.size) == 0);
    }
    int version = version_of(data, size);
    if (version > 0) /* also with the text before an error */
        round_trip(&text, version);
    free(text.data);
    free(text2.data);
    return 0;
}
