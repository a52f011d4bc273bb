/*
 * Any trace, converted: the output is read without an error, whatever the input and the version, as a
 * whole or in part; and no event that was written is lost.
 */
#include "reading.h"

static trail_convert_stats convert(const struct fuzz_bytes *trace, bool repair,
                                   const trail_convert_options *options, struct fuzz_bytes *to,
                                   struct fuzz_read *read)
{
    const trail_reader_options reading = {
        .partial = true, .repair = repair, .from_ns = options->from_ns};
    const trail_sink sink = {fuzz_keep, to};
    trail_convert_stats stats = {0};
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    trail_reader *reader = source ? trail_reader_open(source, &reading, &err) : NULL;
    read->failed = !reader || trail_convert(reader, options, &sink, &stats, &err) < 0;
    read->code = read->failed ? err.code : TRAIL_OK;
    trail_reader_close(reader);
    trail_source_close(source);
    return stats;
}

static void check(const struct fuzz_bytes *trace, const trail_convert_options *options, bool repair)
{
    const trail_reader_options reading = {0};
    struct fuzz_bytes made = {0};
    struct fuzz_read converting = {0};
    trail_convert_stats stats = convert(trace, repair, options, &made, &converting);
    if (stats.generations > 0) {
        struct fuzz_read after = fuzz_read_memory(&made, &reading);
        FUZZ_HOLDS(!after.failed);
        FUZZ_HOLDS(after.events >= stats.events);
    }
    free(made.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int from[] = {5, 7, 8, 9, 10, 11, 19, 21, 22, 23, 25, 26};
    static const int to[] = {22, 23, 25, 26};
    struct fuzz_bytes trace = fuzz_trace(data, size, from, sizeof from / sizeof *from);
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + data[i];
    trail_convert_options options = {.version = to[sum % 4]};
    check(&trace, &options, false);
    check(&trace, &options, true);
    options.has_from = options.has_to = true;
    options.from_ns = sum % 5000;
    options.to_ns = options.from_ns + sum % 777777;
    check(&trace, &options, false);
    free(trace.data);
    return 0;
}
