/*
 * Any bytes: the batches of a walk are adjacent, from the header of the trace to its end, to the
 * next trace, or to the error; and a walk in memory finds the same batches as one through a window.
 */
#include "fuzz.h"

struct walked {
    uint64_t batches, records, sum;
    int64_t end;  /* -1: no trace */
    int64_t next; /* where another trace follows; -1: none */
    trail_code code;
    char message[TRAIL_MESSAGE_MAX];
};

static void fail(struct walked *walked, const trail_error *err)
{
    walked->code = err->code;
    memcpy(walked->message, err->message, sizeof walked->message);
}

static struct walked walk_source(trail_source *source)
{
    struct walked walked = {.end = -1, .next = -1};
    trail_error err;
    trail_walk *walk = trail_walk_open(source, &err);
    if (!walk) {
        fail(&walked, &err);
        return walked;
    }
    trail_batch batch;
    int result;
    walked.end = 16;
    while ((result = trail_walk_next(walk, &batch)) > 0) {
        FUZZ_HOLDS(batch.offset == walked.end);
        FUZZ_HOLDS(batch.header_size + batch.size > 0);
        const uint8_t *data = trail_walk_data(walk);
        FUZZ_HOLDS(data);
        for (uint64_t i = 0; i < batch.size; i++)
            walked.sum = walked.sum * 31 + data[i];
        walked.end += (int64_t)(batch.header_size + batch.size);
        walked.batches++;
        walked.records += batch.records;
    }
    if (result < 0)
        fail(&walked, trail_walk_error(walk));
    else
        walked.next = trail_walk_next_trace(walk);
    trail_walk_close(walk);
    return walked;
}

static void expect_same(const struct walked *in_place, const struct walked *window, size_t size)
{
    int64_t end = in_place->next >= 0 ? in_place->next : (int64_t)size;
    FUZZ_HOLDS(in_place->code != TRAIL_OK || in_place->end == end);
    FUZZ_HOLDS(in_place->batches == window->batches && in_place->records == window->records);
    FUZZ_HOLDS(in_place->sum == window->sum && in_place->end == window->end);
    FUZZ_HOLDS(in_place->next == window->next);
    FUZZ_HOLDS(in_place->code == window->code);
    FUZZ_HOLDS(strcmp(in_place->message, window->message) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trail_error err;
    struct fuzz_trickle trickle = {data, size, 0};
    trail_source *memory = trail_source_open_memory(data, size, &err);
    trail_source *stream = trail_source_open_callback(fuzz_trickle, &trickle, &err);
    FUZZ_HOLDS(memory && stream);
    struct walked in_place = walk_source(memory), window = walk_source(stream);
    /* How far damaged compressed data can be read depends on how it arrives. */
    if (strcmp(trail_source_compression(memory), "none") == 0)
        expect_same(&in_place, &window, size);
    trail_source_close(memory);
    trail_source_close(stream);
    return 0;
}
