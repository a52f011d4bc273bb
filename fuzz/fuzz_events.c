/*
 * Any bytes, read as events: times increase strictly, every string and stack of an event can be
 * looked up, an error has a message, and what is delivered does not depend on how the bytes arrive.
 * The last byte of the input chooses the reader: plain, partial, repair, Go 1.21's verdict, or v1's
 * own view.
 */
#include "fuzz.h"

struct told {
    uint64_t events, sum;
    trail_code code;
    char message[TRAIL_MESSAGE_MAX];
};

static void add(struct told *told, uint64_t value)
{
    told->sum = (told->sum ^ value) * UINT64_C(0x100000001b3);
}

static void add_string(struct told *told, const trail_reader *reader, trail_string_handle handle)
{
    trail_string text = trail_reader_string(reader, handle);
    add(told, text.size);
    for (size_t i = 0; i < text.size; i++)
        add(told, (uint8_t)text.data[i]);
}

static void add_stack(struct told *told, const trail_reader *reader, trail_stack_handle handle)
{
    size_t count;
    const trail_frame *frame = trail_reader_stack(reader, handle, &count);
    add(told, count);
    for (size_t i = 0; i < count; i++) {
        add(told, frame[i].pc);
        add(told, frame[i].line);
        add_string(told, reader, frame[i].function);
        add_string(told, reader, frame[i].file);
    }
}

static void add_detail(struct told *told, const trail_reader *reader, const trail_event *event)
{
    switch (event->kind) {
    case TRAIL_LABEL:
        add_string(told, reader, event->label.text);
        break;
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        add_string(told, reader, event->range.name);
        break;
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        add(told, event->task.id);
        add_string(told, reader, event->task.type);
        break;
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        add(told, event->region.task);
        add_string(told, reader, event->region.type);
        break;
    case TRAIL_LOG:
        add_string(told, reader, event->log.category);
        add_string(told, reader, event->log.message);
        break;
    case TRAIL_STATE_TRANSITION:
        add(told, (uint64_t)event->transition.id << 16 | (uint64_t)event->transition.from << 8 |
                      event->transition.to);
        add_string(told, reader, event->transition.reason);
        add_stack(told, reader, event->transition.stack);
        break;
    default:
        break;
    }
}

static long next_events(struct told *told, trail_reader *reader, int64_t *last)
{
    const trail_event *events;
    long n = trail_reader_next_batch(reader, &events);
    for (long i = 0; i < n; i++) {
        const trail_event *event = &events[i];
        FUZZ_HOLDS(event->time_ns > *last);
        *last = event->time_ns;
        add(told, (uint64_t)event->time_ns);
        add(told, (uint64_t)event->thread);
        add(told, (uint64_t)event->proc);
        add(told, (uint64_t)event->goroutine);
        add(told, event->kind);
        add_stack(told, reader, event->stack);
        add_detail(told, reader, event);
    }
    return n;
}

static long next_v1_events(struct told *told, trail_reader *reader)
{
    const trail_v1_event *events;
    long n = trail_reader_next_v1_batch(reader, &events);
    for (long i = 0; i < n; i++) {
        add(told, (uint64_t)events[i].time_ns);
        add(told, events[i].type);
        add(told, events[i].arg[0]);
        add_string(told, reader, events[i].text[0]);
        add_string(told, reader, events[i].text[1]);
        add_stack(told, reader, events[i].stack);
    }
    return n;
}

static struct told read_source(trail_source *source, const trail_reader_options *options)
{
    struct told told = {0};
    trail_error err = {0};
    trail_reader *reader = trail_reader_open(source, options, &err);
    if (reader) {
        int64_t last = INT64_MIN;
        long n;
        do {
            n = options->view == TRAIL_VIEW_V1 ? next_v1_events(&told, reader)
                                               : next_events(&told, reader, &last);
            told.events += n > 0 ? (uint64_t)n : 0;
        } while (n > 0);
        if (n < 0)
            err = *trail_reader_error(reader);
    }
    told.code = err.code;
    memcpy(told.message, err.message, sizeof told.message);
    trail_reader_close(reader);
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t choice = size > 0 ? data[size - 1] % 5 : 0;
    trail_reader_options options = {
        .view = choice == 4 ? TRAIL_VIEW_V1 : TRAIL_VIEW_EVENTS,
        .verdict = choice == 3 ? TRAIL_VERDICT_GO121 : TRAIL_VERDICT_AUTO,
        .partial = choice == 1,
        .repair = choice == 2,
    };
    trail_error err;
    struct fuzz_trickle trickle = {data, size, 0};
    trail_source *memory = trail_source_open_memory(data, size, &err);
    trail_source *stream = trail_source_open_callback(fuzz_trickle, &trickle, &err);
    FUZZ_HOLDS(memory && stream);
    struct told in_place = read_source(memory, &options), window = read_source(stream, &options);
    FUZZ_HOLDS(in_place.code == TRAIL_OK || in_place.message[0] != '\0');
    /* How far damaged compressed data can be read depends on how they arrive. */
    if (strcmp(trail_source_compression(memory), "none") == 0) {
        FUZZ_HOLDS(in_place.events == window.events && in_place.sum == window.sum);
        FUZZ_HOLDS(in_place.code == window.code);
        FUZZ_HOLDS(strcmp(in_place.message, window.message) == 0);
    }
    trail_source_close(memory);
    trail_source_close(stream);
    return 0;
}
