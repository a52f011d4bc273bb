/*
 * Any trace, symbolized by a fake resolver instead of files. The output is the same however the
 * bytes arrive; doing it again changes nothing; a trace that can be read can be read afterwards,
 * with as many events; and so many of a damaged one, unless its reader guesses where to go on.
 */
#include "fuzz.h"
#include "reading.h"

/* Returns up to four frames, depending on the address. */
static size_t resolve(void *context, const trail_module *module, uint64_t address,
                      const trail_symbol **symbols)
{
    static const trail_symbol made[] = {
        {{"leaf", 4}, {"/src/leaf.c", 11}, 1},
        {{"caller", 6}, {"/src/caller.c", 13}, 22},
        {{"", 0}, {"", 0}, 0},
        {{"caller", 6}, {"/src/caller.c", 13}, 23},
    };
    FUZZ_HOLDS(module->path.size > 0 && module->start < module->end);
    FUZZ_HOLDS(address + module->bias >= module->start && address + module->bias < module->end);
    *symbols = made;
    *(uint64_t *)context += 1;
    return address % 5;
}

static int symbolize(trail_source *source, struct fuzz_bytes *to, trail_error *err)
{
    uint64_t calls = 0;
    const trail_sink sink = {fuzz_keep, to};
    const trail_symbolize_options options = {.resolve = resolve, .resolve_context = &calls};
    trail_symbolize_stats stats;
    int result = trail_symbolize(source, &options, &sink, &stats, err);
    trail_source_close(source);
    FUZZ_HOLDS(stats.resolved + stats.homeless <= stats.pcs);
    FUZZ_HOLDS(stats.resolved <= calls);
    return result;
}

static int symbolize_memory(const struct fuzz_bytes *trace, struct fuzz_bytes *to, trail_error *err)
{
    return symbolize(trail_source_open_memory(trace->data, trace->size, err), to, err);
}

static void check_again(const struct fuzz_bytes *made)
{
    trail_error err;
    struct fuzz_bytes again = {0};
    (void)symbolize_memory(made, &again, &err);
    FUZZ_HOLDS(again.size == made->size && memcmp(again.data, made->data, made->size) == 0);
    free(again.data);
}

static void check_events(const struct fuzz_bytes *trace, const struct fuzz_bytes *made)
{
    const trail_reader_options options = {0};
    struct fuzz_read before = fuzz_read_memory(trace, &options);
    struct fuzz_read after = fuzz_read_memory(made, &options);
    FUZZ_HOLDS(before.holes > 0 || before.events <= after.events);
    FUZZ_HOLDS(before.failed || !after.failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int versions[] = {7, 10, 11, 19, 21, 22, 23, 25, 26};
    struct fuzz_bytes trace = fuzz_trace(data, size, versions, sizeof versions / sizeof *versions);
    struct fuzz_bytes made = {0}, made2 = {0};
    struct fuzz_trickle trickle = {trace.data, trace.size, 0};
    trail_error err, err2;
    int result = symbolize_memory(&trace, &made, &err);
    int result2 =
        symbolize(trail_source_open_callback(fuzz_trickle, &trickle, &err2), &made2, &err2);
    FUZZ_HOLDS(result == result2);
    FUZZ_HOLDS(made.size == made2.size);
    FUZZ_HOLDS(made.size == 0 || memcmp(made.data, made2.data, made.size) == 0);
    if (made.size > 0) {
        check_again(&made);
        check_events(&trace, &made);
    }
    free(trace.data);
    free(made.data);
    free(made2.data);
    return 0;
}
