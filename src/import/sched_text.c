/*
 * Scheduling events as lines: `perf script`, /sys/kernel/tracing/trace, `trace-cmd report`.
 *
 *     perf      comm 123/124 [001] 12345.678901:  sched:sched_switch: prev_comm=...
 *     ftrace    comm-124 (123) [001] d..2. 12345.678901: sched_switch: prev_comm=...
 *
 * Both have one layout: a name with a TID, a CPU in brackets, flags in ftrace, a time, an event,
 * its fields. Names may have any characters, so a line is parsed outwards from the first "[CPU]
 * time:". A call stack follows its event: in perf, lines of an address, a symbol and a file; in
 * ftrace, an event "<stack trace>" of the same thread, and lines "=> symbol".
 */
#include <string.h>

#include "base/error.h"
#include "base/idmap.h"
#include "base/text.h"
#include "import/forms.h"
#include "import/lines.h"
#include "import/scan.h"
#include "import/sched_fields.h"
#include "import/stack_builder.h"

struct reader {
    struct lines lines;
    struct import_model *model;
    struct import_stats *stats;
    struct import_event event; /* the last one read: its stack may follow */
    bool has_event;
    bool skip_stack; /* it belongs to an event that is not used */
    /*
     * In a container perf puts the container's IDs before an event whose fields have the host's.
     * Once that is detected: maps the container's ID to the host's, as switches show them. The
     * model provides the thread of a CPU for which none is known yet.
     */
    bool is_in_container;
    struct idmap host_ids; /* IDs as pointers */
    struct stack_builder stack;
    bool failed; /* out of memory */
};

struct header {
    int32_t tid, cpu;
    int64_t time_ns;
    bool in_interrupt;
    trail_string comm, name, fields;
};

/* MARK: Headers */

/* Takes "[001]". */
static bool take_cpu(trail_string *text, int32_t *cpu)
{
    uint64_t number;
    trail_string rest = *text;
    if (!scan_word(&rest, "[") || !scan_number(&rest, IMPORT_CPU_MAX, &number) ||
        !scan_word(&rest, "]"))
        return false;
    *cpu = (int32_t)number;
    *text = rest;
    return true;
}

/* Whether a character in ftrace's columns of flags marks an interrupt: h, H, s, Z or z, which no
 * other column uses. */
static bool is_flag_of_interrupt(char c)
{
    return c == 'h' || c == 'H' || c == 's' || c == 'z' || c == 'Z';
}

/* Takes "d..2. " of ftrace. */
static bool take_flags(trail_string *text, struct header *header)
{
    size_t size = 0;
    while (size < text->size && !scan_is_space(text->data[size]))
        size++;
    if (size == 0 || size > 8 || size == text->size)
        return false;
    for (size_t i = 0; i < size; i++)
        header->in_interrupt |= is_flag_of_interrupt(text->data[i]);
    scan_advance(text, size);
    scan_spaces(text);
    return true;
}

/* Takes "[001] d..2. 12345.678901: ". */
static bool take_place(trail_string *text, struct header *header)
{
    trail_string rest = *text;
    header->in_interrupt = false;
    if (!take_cpu(&rest, &header->cpu))
        return false;
    scan_spaces(&rest);
    if (!scan_seconds(&rest, &header->time_ns) &&
        (!take_flags(&rest, header) || !scan_seconds(&rest, &header->time_ns)))
        return false;
    if (!scan_word(&rest, ":"))
        return false;
    scan_spaces(&rest);
    *text = rest;
    return true;
}

/* perf's ":-1    -1": a thread that has ended and no longer has an ID. */
static bool is_ended_thread(trail_string text)
{
    trail_string rest = text;
    return scan_word(&rest, ":-1 ") && scan_find_last(text, " -1") == text.size - 3;
}

/* "comm 123", "comm 123/124", "comm-124", "comm-124 (123)": the thread is the last number. */
static bool parse_thread(trail_string text, struct header *header)
{
    uint64_t tid;
    scan_trim_end(&text);
    if (is_ended_thread(text)) {
        header->tid = IMPORT_TID_OF_CPU;
        header->comm = (trail_string){"", 0};
        return true;
    }
    if (text.size > 0 && text.data[text.size - 1] == ')') {
        size_t group = scan_find_last(text, "(");
        text.size = group == SIZE_MAX ? 0 : group;
        scan_trim_end(&text);
    }
    size_t at = text.size;
    while (at > 0 && is_digit(text.data[at - 1]))
        at--;
    trail_string number = scan_part(text, at, text.size);
    if (at == 0 || !scan_number(&number, IMPORT_TID_MAX, &tid))
        return false;
    if (text.data[at - 1] == '/') {
        at--;
        while (at > 0 && is_digit(text.data[at - 1]))
            at--;
    }
    if (at < 2 || (text.data[at - 1] != '-' && !scan_is_space(text.data[at - 1])))
        return false;
    header->tid = (int32_t)tid;
    header->comm = scan_part(text, 0, at - 1);
    scan_trim_end(&header->comm);
    return true;
}

/* "sched:sched_switch: prev_comm=...", which perf may precede with a period. */
static bool parse_name(trail_string text, struct header *header)
{
    trail_string rest = text;
    uint64_t period;
    if (scan_number(&rest, UINT64_MAX, &period) && rest.size > 0 && scan_is_space(*rest.data)) {
        scan_spaces(&rest);
        text = rest;
    }
    size_t size = 0;
    while (size < text.size && !scan_is_space(text.data[size]))
        size++;
    header->fields = scan_part(text, size, text.size);
    scan_spaces(&header->fields);
    scan_trim_end(&header->fields);
    if (size > 0 && text.data[size - 1] == ':')
        size--;
    const char *colon = size > 0 ? memrchr(text.data, ':', size) : NULL;
    size_t from = colon ? (size_t)(colon + 1 - text.data) : 0;
    header->name = scan_part(text, from, size);
    return header->name.size > 0;
}

static bool parse_header(trail_string line, struct header *header)
{
    scan_spaces(&line);
    for (size_t i = 1; i < line.size; i++) {
        trail_string rest = scan_part(line, i, line.size);
        if (line.data[i] == '[' && take_place(&rest, header))
            return parse_thread(scan_part(line, 0, i), header) && parse_name(rest, header);
    }
    return false;
}

/* MARK: Events */

static void put_event(struct reader *reader)
{
    if (!reader->has_event)
        return;
    reader->has_event = false;
    reader->event.stack = stack_builder_take(&reader->stack, &reader->failed);
    reader->stats->events++;
    reader->failed |= !import_model_put(reader->model, &reader->event);
}

static void put_lost(struct reader *reader, int32_t cpu, int64_t time_ns, uint64_t count)
{
    reader->stats->lost += count;
    reader->event = (struct import_event){
        .kind = IMPORT_LOST, .time_ns = time_ns, .cpu = cpu, .tid = IMPORT_TID_OF_CPU};
    reader->has_event = true;
}

/* perf's "PERF_RECORD_LOST lost 12". Returns whether it is one. */
static bool take_perf_lost(struct reader *reader, const struct header *header)
{
    trail_string fields = header->fields;
    uint64_t count = 1;
    if (!text_is(header->name, "PERF_RECORD_LOST"))
        return false;
    if (scan_word(&fields, "lost"))
        scan_spaces(&fields);
    (void)scan_number(&fields, UINT32_MAX, &count);
    put_lost(reader, header->cpu, header->time_ns, count);
    return true;
}

/* Returns the host's ID of the thread before an event. */
static int32_t tid_of(const struct reader *reader, const struct header *header)
{
    if (!reader->is_in_container || header->tid <= 0)
        return header->tid;
    uintptr_t id = (uintptr_t)idmap_find(&reader->host_ids, (uint64_t)header->tid);
    return id ? (int32_t)id : IMPORT_TID_OF_CPU;
}

/* The thread that leaves its CPU is the one in whose context the event is: its two IDs are equal,
 * or from two namespaces. */
static void compare_ids(struct reader *reader, const struct header *header,
                        const struct import_event *event)
{
    if (event->kind == IMPORT_SWITCH && header->tid > 0 && event->tid != header->tid) {
        reader->is_in_container = true;
        reader->stats->container_ids++;
        reader->failed |=
            !idmap_put(&reader->host_ids, (uint64_t)header->tid, (void *)(uintptr_t)event->tid);
    }
}

static void take_event(struct reader *reader, const struct header *header)
{
    struct import_event event = {.time_ns = header->time_ns,
                                 .cpu = header->cpu,
                                 .tid = tid_of(reader, header),
                                 .in_interrupt = header->in_interrupt};
    if (event.tid > 0 && event.tid == header->tid && !text_is(header->comm, "<...>"))
        import_thread_name(&reader->model->threads, header->tid, header->comm);
    reader->skip_stack = true;
    switch (sched_parse(reader->model, header->name, header->fields, &event)) {
    case SCHED_EVENT:
        compare_ids(reader, header, &event);
        reader->event = event;
        reader->has_event = true;
        reader->skip_stack = false;
        break;
    case SCHED_NOTHING:
        reader->stats->events++;
        break;
    case SCHED_UNKNOWN:
        import_count_unknown(reader->stats, header->name);
        break;
    case SCHED_BAD:
        import_count_bad(reader->stats);
        break;
    }
}

/* ftrace's stack is an event of its own, after the one that it belongs to. */
static bool is_stack_event(const struct reader *reader, const struct header *header)
{
    return text_is(header->name, "<stack") && text_is(header->fields, "trace>") &&
           (!reader->has_event || reader->event.cpu == header->cpu);
}

/* MARK: Stacks */

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Takes the address before a frame. */
static bool take_address(trail_string *text)
{
    size_t size = 0;
    while (size < text->size && is_hex(text->data[size]))
        size++;
    if (size == 0 || size > 16 || (size < text->size && !scan_is_space(text->data[size])))
        return false;
    scan_advance(text, size);
    scan_spaces(text);
    return true;
}

/* Splits "symbol+0x1f (file)". */
static void split_frame(trail_string text, trail_string *function, trail_string *file)
{
    size_t open = scan_find_last(text, " ("), plus;
    *file = (trail_string){"", 0};
    if (open != SIZE_MAX && text.size > 0 && text.data[text.size - 1] == ')') {
        *file = scan_part(text, open + 2, text.size - 1);
        text.size = open;
    }
    plus = scan_find_last(text, "+0x");
    if (plus != SIZE_MAX && plus > 0)
        text.size = plus;
    *function = text;
}

static void add_frame(struct reader *reader, trail_string text)
{
    trail_string function, file;
    scan_trim_end(&text);
    split_frame(text, &function, &file);
    /* perf's walk ends in these when it has lost track. */
    if (text_is(function, "[unknown]") && text_is(file, "[unknown]"))
        return;
    if (text_is(function, "[unknown]"))
        function = file;
    if (reader->has_event && !reader->skip_stack &&
        !stack_builder_add(&reader->stack, function, file))
        reader->failed = true;
}

/* Takes a line of a stack. Returns false if it is not one. */
static bool take_frame(struct reader *reader, trail_string line)
{
    bool indented = line.size > 0 && scan_is_space(*line.data);
    scan_spaces(&line);
    if (scan_word(&line, "=> ")) {
        size_t address = scan_find_last(line, " <");
        if (address != SIZE_MAX)
            line.size = address;
    } else if (!indented || !take_address(&line)) {
        return false;
    }
    add_frame(reader, line);
    return true;
}

/* MARK: Lines */

/* "CPU:1 [LOST 12 EVENTS]" of ftrace. */
static bool take_ftrace_lost(struct reader *reader, trail_string line)
{
    uint64_t cpu, count;
    int64_t time_ns = reader->model->window.newest_ns;
    if (!scan_word(&line, "CPU:") || !scan_number(&line, IMPORT_CPU_MAX, &cpu) ||
        !scan_word(&line, " [LOST ") || !scan_number(&line, UINT32_MAX, &count))
        return false;
    put_event(reader);
    put_lost(reader, (int32_t)cpu, time_ns > 0 ? time_ns : 1, count);
    return true;
}

/* Whether the line is one that the tools write around events. */
static bool is_remark(trail_string line)
{
    return line.size == 0 || *line.data == '#' || scan_word(&line, "cpus=") ||
           scan_word(&line, "version = ") || scan_find(line, " is empty") != SIZE_MAX;
}

static void take_line(struct reader *reader, trail_string line)
{
    struct header header;
    reader->stats->lines++;
    scan_trim_end(&line);
    if (is_remark(line) || take_ftrace_lost(reader, line))
        return;
    /* A thread's name may look like an address: "cafe 100 [000] 1.5: ...". */
    if (!parse_header(line, &header)) {
        if (!take_frame(reader, line))
            import_count_unreadable(reader->stats);
        return;
    }
    if (is_stack_event(reader, &header))
        return;
    put_event(reader);
    if (!take_perf_lost(reader, &header))
        take_event(reader, &header);
}

int import_sched_text(trail_source *source, struct import_model *model, trail_error *err)
{
    struct reader reader = {
        .lines = {.source = source, .err = err}, .model = model, .stats = model->threads.stats};
    trail_string line;
    while (!reader.failed && lines_next(&reader.lines, &line))
        take_line(&reader, line);
    put_event(&reader);
    lines_free(&reader.lines);
    stack_builder_free(&reader.stack);
    idmap_free(&reader.host_ids);
    if (reader.lines.failed)
        return -1;
    return reader.failed ? error_no_memory(err) : 0;
}
