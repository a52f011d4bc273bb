/*
 * Any bytes in the memory shared with a recorded program: the collector ends, and writes a valid trace.
 *
 * The input fills an area of zeros (tests/recording/areas.py makes such inputs from real programs):
 *
 *     opened   8 bytes, the time at which the area was made
 *     how      1 byte: bits of enum how
 *     then pieces, each
 *       at     4 bytes: an offset in the area, or one of enum mark
 *       size   2 bytes
 *       bytes  `size` bytes
 */
#include <limits.h>
#include <sys/mman.h>

#include "collect/collect.h"
#include "reading.h"

enum how { HOW_SWITCHES = 1, HOW_ALL_HOLDS = 2, HOW_HEAP = 4, HOW_NO_STACKS = 8, HOW_VERSION = 48 };

/* Special values in place of an offset. */
enum mark {
    MARK_STEP = UINT32_MAX, /* the collector processes the area */
    MARK_SWITCH =
        UINT32_MAX - 1,         /* a context switch: kind, 3 unused bytes, tid, ns since `opened` */
    MARK_EXEC = UINT32_MAX - 2, /* the program executes another, which continues with a new area */
};

/* The length of the recording, in ticks of 1 ns. */
#define LENGTH (INT64_C(1) << 36)

static uint64_t now;

static uint64_t read_clock(void)
{
    return now;
}

static size_t resolve(void *context, const trail_module *module, uint64_t address,
                      const trail_symbol **symbols)
{
    static const trail_symbol names[] = {
        {.function = {"inlined", 7}, .file = {"file.c", 6}, .line = 7},
        {.function = {"std::function", 13}, .file = {"file.c", 6}, .line = 8}};
    (void)context;
    (void)module;
    *symbols = names;
    return address % 3;
}

static bool find_object(void *context, const trail_module *module, uint64_t address, char *text,
                        size_t size)
{
    (void)context;
    (void)module;
    (void)snprintf(text, size, "object%u", (unsigned)(address % 7));
    return address % 2;
}

/* MARK: The input */

struct input {
    const uint8_t *at;
    size_t left;
};

static bool take(struct input *in, void *value, size_t size)
{
    if (in->left < size)
        return false;
    memcpy(value, in->at, size);
    in->at += size;
    in->left -= size;
    return true;
}

static void take_switch(struct collect *collect, const uint8_t *bytes, size_t size, uint64_t opened)
{
    struct switch_record record = {.kind = SWITCH_IN};
    uint32_t tid, ns;
    if (size < 12)
        return;
    memcpy(&tid, bytes + 4, sizeof tid);
    memcpy(&ns, bytes + 8, sizeof ns);
    record.kind = (enum switch_kind)(bytes[0] % (SWITCH_FOUND + 1));
    record.tid = tid;
    record.ns = (int64_t)(opened + ns);
    collect_switch(collect, &record);
}

/* More programs than a process executes while the trace does not have the first of them. */
#define PROGRAMS 16

struct fuzz_trace {
    struct shm_area *memory;
    uint8_t how;
    uint64_t opened;
    struct collect_options options; /* of all programs, but for area and former */
    struct collect *programs[PROGRAMS];
    size_t count;
};

static struct area *make_area(struct shm_area *memory, uint8_t how, const struct ticks *ticks,
                              uint64_t opened)
{
    const struct area_options options = {.groups = UINT32_MAX,
                                         .stacks = how & HOW_NO_STACKS ? SHM_STACKS_NONE
                                                                       : SHM_STACKS_UNWIND,
                                         .heap = how & HOW_HEAP,
                                         .all_holds = how & HOW_ALL_HOLDS,
                                         .min_wait_ns = 10000,
                                         .hold_ns = how & HOW_ALL_HOLDS ? 0 : 1000000};
    struct area *area = area_over(memory, &options, ticks, opened);
    FUZZ_HOLDS(area);
    return area;
}

/* The process executes another program, of which the area has the same bytes. */
static void execute(struct fuzz_trace *f)
{
    struct collect_options options = f->options;
    trail_error err;
    if (f->count == PROGRAMS)
        return;
    options.area = make_area(f->memory, f->how, options.ticks, f->opened);
    options.former = f->programs[f->count - 1];
    collect_end(f->programs[f->count - 1], options.area);
    f->programs[f->count] = collect_open(&options, &err);
    FUZZ_HOLDS(f->programs[f->count]);
    f->count++;
}

/* Plays the pieces: copies bytes into the area, or makes the collector take a step or an event. */
static void play(struct input *in, struct fuzz_trace *f)
{
    uint32_t at;
    uint16_t size;
    while (take(in, &at, sizeof at) && take(in, &size, sizeof size)) {
        struct collect *collect = f->programs[f->count - 1];
        size_t part = size < in->left ? size : in->left;
        if (at == MARK_STEP) {
            collect_step(collect);
            trace_step(f->options.trace, UINT64_MAX);
        } else if (at == MARK_SWITCH) {
            take_switch(collect, in->at, part, f->opened);
        } else if (at == MARK_EXEC) {
            execute(f);
        } else if (at <= sizeof *f->memory && part <= sizeof *f->memory - at) {
            memcpy((uint8_t *)f->memory + at, in->at, part);
        }
        in->at += part;
        in->left -= part;
    }
}

/* MARK: The property */

static void check_trace(const struct fuzz_bytes *trace)
{
    trail_error err;
    trail_source *source = trail_source_open_memory(trace->data, trace->size, &err);
    trail_reader *reader = trail_reader_open(source, NULL, &err);
    const trail_event *events;
    long count;
    FUZZ_HOLDS(reader);
    do
        count = trail_reader_next_batch(reader, &events);
    while (count > 0);
    if (count < 0)
        (void)fprintf(stderr, "%s\n", trail_reader_error(reader)->message);
    FUZZ_HOLDS(count == 0);
    trail_reader_close(reader);
    trail_source_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct shm_area *memory;
    static const int versions[] = {23, 22, 25, 26};
    struct input in = {data, size};
    struct ticks ticks = {.clock.injected = read_clock, .count = 1};
    struct fuzz_bytes trace = {0};
    struct fuzz_trace f = {0};
    struct collect_summary summary;
    trail_error err;
    if (!take(&in, &f.opened, sizeof f.opened) || !take(&in, &f.how, sizeof f.how))
        return 0;
    if (!memory)
        memory = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FUZZ_HOLDS(memory != MAP_FAILED && madvise(memory, sizeof *memory, MADV_DONTNEED) == 0);
    f.memory = memory;
    f.opened &= INT64_MAX / 4;
    now = f.opened + LENGTH;
    ticks.anchors[0] = (struct ticks_anchor){f.opened, f.opened, 1.0};
    f.options =
        (struct collect_options){.ticks = &ticks, .resolve = resolve, .object = find_object};
    f.options.trace =
        trace_open(&(struct trace_options){.version = versions[(f.how & HOW_VERSION) / 16],
                                           .sink = {fuzz_keep, &trace},
                                           .generation_ns = 10000000,
                                           .switches = f.how & HOW_SWITCHES},
                   &err);
    FUZZ_HOLDS(f.options.trace);
    f.options.area = make_area(memory, f.how, &ticks, f.opened);
    f.programs[f.count++] = collect_open(&f.options, &err);
    FUZZ_HOLDS(f.programs[0]);
    play(&in, &f);
    collect_end_with_trace(f.programs[f.count - 1]);
    FUZZ_HOLDS(trace_finish(f.options.trace, &err));
    for (size_t i = 0; i < f.count; i++) {
        collect_summarize(f.programs[i], &summary);
        collect_close(f.programs[i]);
    }
    trace_close(f.options.trace);
    check_trace(&trace);
    free(trace.data);
    return 0;
}
