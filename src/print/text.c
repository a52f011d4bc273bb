/*
 * --format=text, for reading. One event per line: when, where (G, P, M), what happened, why, by
 * which goroutine, after how long, and the place in the code:
 *
 *     0.004213312  G 18   P 0  M 4512  blocks: chan receive     at main.worker (main.go:42)
 *     0.004230912  G 7    P 1  M 4510  G 18 made ready by G 7, after 17.6us
 *
 * The line is written from the view of the event's context; the event's resource is named if it is
 * a different one. Text from the trace is escaped, so that it cannot control a terminal.
 */
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "base/plain.h"
#include "base/text.h"
#include "base/utf8.h"
#include "print/print.h"
#include "wire/wire.h"

#define PLACE_COLUMN   78   /* column where places in the code begin */
#define COLOUR_BYTES   16   /* of preceding colour codes */
#define TEXT_LINE_ROOM 4096 /* sufficient for nearly every line */
#define CONTEXT_ROOM   128  /* sufficient for a word and a number */

enum style { STYLE_PLAIN, STYLE_DIM, STYLE_RUN, STYLE_WAIT, STYLE_SYSCALL, STYLE_GC, STYLE_USER };

/* Writes at most a few dozen spaces. */
static void put_spaces(struct out *out, size_t count)
{
    out_room(out, count);
    memset(out->at, ' ', count);
    out->at += count;
}

/* MARK: Text of the trace */

/* Escapes as in base/plain.h, and quotes with a backslash. */
static void plain_text(struct out *out, trail_string string)
{
    const uint8_t *at = (const uint8_t *)string.data, *end = at + string.size;
    while (at < end) {
        unsigned size;
        if (*at == '"')
            out_char(out, '\\');
        out_room(out, PLAIN_MOST);
        at += plain_step(at, end, out->at, &size);
        out->at += size;
    }
}

static void text_string(const trail_reader *reader, uint32_t handle, struct out *out)
{
    plain_text(out, trail_reader_string(reader, handle));
}

static void frame_name(const trail_reader *reader, const trail_frame *frame, struct out *out)
{
    trail_string name = trail_reader_string(reader, frame->function);
    if (name.size > 0) {
        plain_text(out, name);
        return;
    }
    out_str(out, "0x");
    out_hex(out, frame->pc, 1);
}

static bool is_runtime_internal(trail_string name)
{
    static const char *const prefixes[] = {
        "runtime.", "runtime/", "internal/", "sync.", "golang.org/x/sys/unix.", "syscall."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (text_begins(name, prefixes[i]))
            return true;
    return name.size == 0;
}

/*
 * Returns the most informative frame: the first outside Go's runtime and its like, else the leaf.
 */
static const trail_frame *informative_frame(const trail_reader *reader, const trail_frame *frames,
                                            size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_runtime_internal(trail_reader_string(reader, frames[i].function)))
            return &frames[i];
    return &frames[0];
}

/* Returns the name of the system call that a stack is in, from Go's wrapper; empty if unknown. */
static trail_string system_call(const trail_reader *reader, trail_stack_handle stack)
{
    static const char *const packages[] = {"syscall.", "golang.org/x/sys/unix.",
                                           "internal/syscall/unix."};
    size_t count;
    const trail_frame *frames = trail_reader_stack(reader, stack, &count);
    for (size_t i = 0; i < count; i++) {
        trail_string name = trail_reader_string(reader, frames[i].function);
        for (size_t j = 0; j < sizeof packages / sizeof *packages; j++) {
            size_t n = strlen(packages[j]);
            trail_string rest = {name.data + n, name.size - n};
            if (text_begins(name, packages[j]) && !text_begins(rest, "Syscall") &&
                !text_begins(rest, "RawSyscall") && !text_begins(rest, "rawSyscall"))
                return rest;
        }
    }
    return (trail_string){"", 0};
}

static void frame_place(const trail_reader *reader, const trail_frame *frame, trail_string file,
                        struct out *out)
{
    frame_name(reader, frame, out);
    if (file.size == 0)
        return;
    out_str(out, " (");
    plain_text(out, file);
    out_char(out, ':');
    out_u64(out, frame->line);
    out_char(out, ')');
}

/* Without --stacks: the place as one phrase. */
static void stack_place(const trail_reader *reader, uint32_t handle, struct out *out)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(reader, handle, &count);
    if (count == 0)
        return;
    const trail_frame *frame = informative_frame(reader, frames, count);
    frame_place(reader, frame, text_path_name(trail_reader_string(reader, frame->file)), out);
}

/* With --stacks: one line per frame. */
static void stack_lines(const trail_reader *reader, uint32_t handle, struct out *out)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(reader, handle, &count);
    for (size_t i = 0; i < count; i++) {
        put_spaces(out, 20);
        frame_place(reader, &frames[i], trail_reader_string(reader, frames[i].file), out);
        out_char(out, '\n');
    }
}

/* MARK: Numbers for people */

/* Seconds with nine decimals, in at least 13 columns. */
static void put_time(struct out *out, int64_t ns)
{
    uint64_t value = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    uint64_t seconds = value / 1000000000;
    unsigned width = ns < 0 ? 2 : 1;
    for (uint64_t s = seconds; s >= 10; s /= 10)
        width++;
    if (width < 3)
        put_spaces(out, 3 - width);
    if (ns < 0)
        out_char(out, '-');
    out_u64(out, seconds);
    out_char(out, '.');
    out_u64_padded(out, value % 1000000000, 9);
}

static void put_bytes(struct out *out, uint64_t bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned i = 0;
    while (i < 6 && bytes >> (10 * (i + 1)))
        i++;
    out_room(out, U64_DIGITS + 3);
    out->at = scaled_put(out->at, bytes, UINT64_C(1) << (10 * i));
    out_char(out, ' ');
    out_str(out, names[i]);
}

/* MARK: Parts of a line */

static void put_style(struct print *print, enum style style)
{
    static const char *const codes[] = {"\033[0m",  "\033[2m",  "\033[32m", "\033[33m",
                                        "\033[36m", "\033[35m", "\033[34m"};
    if (print->options->colour)
        out_str(&print->out, codes[style]);
}

/* "G 12". */
static void put_id(struct print *print, enum term name, int64_t id)
{
    out_str(&print->out, term(&print->words, name));
    out_i64(&print->out, id);
}

/* "G 12" or "-", padded to `width` columns. */
static void put_context(struct print *print, enum term name, int64_t id, size_t width)
{
    struct out *out = &print->out;
    out_room(out, CONTEXT_ROOM);
    const char *begin = out->at;
    if (id == TRAIL_NONE)
        out_char(out, '-');
    else
        put_id(print, name, id);
    size_t n = (size_t)(out->at - begin);
    put_spaces(out, n < width ? width - n : 1);
}

/* v1 files have lanes that are not Ps. */
static const char *lane_name(int64_t proc)
{
    switch (proc) {
    case TRAIL_FAKE_PROC:
        return "none";
    case TRAIL_TIMER_PROC:
        return "timers";
    case TRAIL_NETPOLL_PROC:
        return "netpoll";
    case TRAIL_SYSCALL_PROC:
        return "syscall";
    case TRAIL_GC_PROC:
        return "gc";
    case TRAIL_PROFILE_PROC:
        return "profile";
    default:
        return NULL;
    }
}

static void put_where(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    put_context(print, TERM_task_event, event->goroutine, 9);
    const char *lane = lane_name(event->proc);
    if (lane) {
        size_t n = strlen(lane);
        out_bytes(out, lane, n);
        put_spaces(out, n < 7 ? 7 - n : 1);
    } else {
        put_context(print, TERM_slot_event, event->proc, 7);
    }
    put_context(print, TERM_machine_event, event->thread, 11);
}

static void put_quoted(struct print *print, trail_string_handle handle)
{
    out_char(&print->out, '"');
    print_string(print, handle);
    out_char(&print->out, '"');
}

/* MARK: What happened */

static void what_sync(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    if (event->sync.final) {
        PRINT(print, "--- end of the trace");
        return;
    }
    PRINT(print, "--- generation ");
    out_u64(out, event->sync.n);
    const trail_clock_snapshot *snapshot = event->sync.snapshot;
    if (snapshot) {
        time_t seconds = (time_t)snapshot->wall_s;
        struct tm tm;
        char text[64];
        if (gmtime_r(&seconds, &tm) &&
            strftime(text, sizeof text, ", %Y-%m-%d %H:%M:%S.", &tm) > 0) {
            out_str(out, text);
            out_u64_padded(out, snapshot->wall_ns, 9);
            PRINT(print, " UTC");
        }
    }
}

static void what_metric(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    switch (event->metric.metric) {
    case TRAIL_METRIC_GOMAXPROCS:
        out_str(out, term(&print->words, TERM_slot_count));
        out_u64(out, event->metric.value);
        break;
    case TRAIL_METRIC_HEAP_LIVE:
        PRINT(print, "heap: ");
        put_bytes(out, event->metric.value);
        break;
    default:
        PRINT(print, "heap goal: ");
        put_bytes(out, event->metric.value);
        break;
    }
}

static void put_duration(struct print *print, const char *before)
{
    if (print->span_ns < 0)
        return;
    char text[DURATION_SIZE];
    const char *us = duration_us_in(duration_text(text, print->span_ns, DURATION_EVENT));
    out_str(&print->out, before);
    out_bytes(&print->out, text, (size_t)(us - text));
    out_str(&print->out, *us && print->options->micro_sign ? MICRO_SIGN "s" : us);
}

static void what_range(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    if (event->range.scope == TRAIL_RESOURCE_GOROUTINE &&
        event->range.scope_id != event->goroutine) {
        put_id(print, TERM_task_event, event->range.scope_id);
        PRINT(print, ": ");
    }
    if (event->range.scope == TRAIL_RESOURCE_PROC && event->range.scope_id != event->proc) {
        put_id(print, TERM_slot_event, event->range.scope_id);
        PRINT(print, ": ");
    }
    print_string(print, event->range.name);
    if (event->kind == TRAIL_RANGE_BEGIN)
        PRINT(print, " begins");
    else if (event->kind == TRAIL_RANGE_ACTIVE)
        PRINT(print, " is under way");
    else
        PRINT(print, " ends");
    put_duration(print, " after ");
    if (event->range.has_swept) {
        PRINT(print, ", ");
        put_bytes(out, event->range.swept_bytes);
        PRINT(print, " swept, ");
        put_bytes(out, event->range.reclaimed_bytes);
        PRINT(print, " reclaimed");
    }
}

static void what_task(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    PRINT(print, "task ");
    out_u64(out, event->task.id);
    out_char(out, ' ');
    put_quoted(print, event->task.type);
    if (event->kind == TRAIL_TASK_END) {
        PRINT(print, " ends");
        put_duration(print, " after ");
        return;
    }
    PRINT(print, " begins");
    if (event->task.parent != TRAIL_NO_TASK && event->task.parent != TRAIL_BACKGROUND_TASK) {
        PRINT(print, ", part of task ");
        out_u64(out, event->task.parent);
    }
}

static void put_task(struct print *print, uint64_t task)
{
    if (task == TRAIL_BACKGROUND_TASK || task == TRAIL_NO_TASK)
        return;
    PRINT(print, " (task ");
    out_u64(&print->out, task);
    PRINT(print, ")");
}

static void what_region(struct print *print, const trail_event *event)
{
    PRINT(print, "region ");
    put_quoted(print, event->region.type);
    if (event->kind == TRAIL_REGION_BEGIN)
        PRINT(print, " begins");
    else
        PRINT(print, " ends");
    put_task(print, event->region.task);
}

static void what_log(struct print *print, const trail_event *event)
{
    PRINT(print, "log ");
    if (trail_reader_string(print->reader, event->log.category).size > 0) {
        print_string(print, event->log.category);
        PRINT(print, ": ");
    }
    put_quoted(print, event->log.message);
    put_task(print, event->log.task);
}

static void what_experimental(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    out_str(out, trail_experimental_name(event));
    for (unsigned i = 0; i < event->experimental.args; i++) {
        out_char(out, ' ');
        out_str(out, trail_experimental_arg(event, i));
        out_char(out, '=');
        out_u64(out, event->experimental.arg[i]);
    }
}

/* MARK: Transitions */

enum voice {
    ACTIVE, /* the context acts; the subject is named only if it differs */
    PASSIVE /* the context acts on the subject, which is named */
};

struct phrase {
    const char *text; /* NULL: unknown transition */
    enum voice voice;
    enum style style;
};

static const struct phrase go_phrases[TRAIL_GO_STATES][TRAIL_GO_STATES] = {
    [TRAIL_GO_UNDETERMINED][TRAIL_GO_RUNNABLE] = {"is ready", PASSIVE, STYLE_DIM},
    [TRAIL_GO_UNDETERMINED][TRAIL_GO_RUNNING] = {"is running", PASSIVE, STYLE_DIM},
    [TRAIL_GO_UNDETERMINED][TRAIL_GO_WAITING] = {"is waiting", PASSIVE, STYLE_DIM},
    [TRAIL_GO_UNDETERMINED][TRAIL_GO_SYSCALL] = {"is in a system call", PASSIVE, STYLE_DIM},
    [TRAIL_GO_NOT_EXIST][TRAIL_GO_RUNNABLE] = {"created", PASSIVE, STYLE_RUN},
    [TRAIL_GO_NOT_EXIST][TRAIL_GO_WAITING] = {"created, not yet ready,", PASSIVE, STYLE_RUN},
    [TRAIL_GO_NOT_EXIST][TRAIL_GO_SYSCALL] = {"created by a call from C", PASSIVE, STYLE_RUN},
    [TRAIL_GO_RUNNABLE][TRAIL_GO_RUNNABLE] = {"is still ready", PASSIVE, STYLE_DIM},
    [TRAIL_GO_RUNNABLE][TRAIL_GO_RUNNING] = {"runs", ACTIVE, STYLE_RUN},
    [TRAIL_GO_RUNNING][TRAIL_GO_NOT_EXIST] = {"ends", ACTIVE, STYLE_WAIT},
    [TRAIL_GO_RUNNING][TRAIL_GO_RUNNABLE] = {"stops", ACTIVE, STYLE_WAIT},
    [TRAIL_GO_RUNNING][TRAIL_GO_RUNNING] = {"is still running", PASSIVE, STYLE_DIM},
    [TRAIL_GO_RUNNING][TRAIL_GO_WAITING] = {"blocks", ACTIVE, STYLE_WAIT},
    [TRAIL_GO_RUNNING][TRAIL_GO_SYSCALL] = {"enters a system call", ACTIVE, STYLE_SYSCALL},
    [TRAIL_GO_WAITING][TRAIL_GO_RUNNABLE] = {"made ready", PASSIVE, STYLE_RUN},
    [TRAIL_GO_WAITING][TRAIL_GO_WAITING] = {"is still waiting", PASSIVE, STYLE_DIM},
    [TRAIL_GO_SYSCALL][TRAIL_GO_NOT_EXIST] = {"returns to C and ends", ACTIVE, STYLE_WAIT},
    [TRAIL_GO_SYSCALL][TRAIL_GO_RUNNABLE] = {"leaves the system call, ready", ACTIVE,
                                             STYLE_SYSCALL},
    [TRAIL_GO_SYSCALL][TRAIL_GO_RUNNING] = {"leaves the system call", ACTIVE, STYLE_SYSCALL},
    [TRAIL_GO_SYSCALL][TRAIL_GO_SYSCALL] = {"is still in a system call", PASSIVE, STYLE_DIM},
};

static const struct phrase proc_phrases[TRAIL_PROC_STATES][TRAIL_PROC_STATES] = {
    [TRAIL_PROC_UNDETERMINED][TRAIL_PROC_RUNNING] = {"is running", PASSIVE, STYLE_DIM},
    [TRAIL_PROC_UNDETERMINED][TRAIL_PROC_IDLE] = {"is idle", PASSIVE, STYLE_DIM},
    [TRAIL_PROC_NOT_EXIST][TRAIL_PROC_RUNNING] = {"appears, running", PASSIVE, STYLE_DIM},
    [TRAIL_PROC_NOT_EXIST][TRAIL_PROC_IDLE] = {"appears, idle", PASSIVE, STYLE_DIM},
    [TRAIL_PROC_RUNNING][TRAIL_PROC_RUNNING] = {"is still running", PASSIVE, STYLE_DIM},
    [TRAIL_PROC_RUNNING][TRAIL_PROC_IDLE] = {"stops", PASSIVE, STYLE_PLAIN},
    [TRAIL_PROC_IDLE][TRAIL_PROC_RUNNING] = {"starts", PASSIVE, STYLE_PLAIN},
    [TRAIL_PROC_IDLE][TRAIL_PROC_IDLE] = {"is still idle", PASSIVE, STYLE_DIM},
};

/* Returns the phrase for a state that begins or ends where events are lost. */
static const struct phrase *inferred_phrase(const trail_event *event)
{
    static const struct phrase gone = {"is in an unknown state from here", PASSIVE, STYLE_DIM};
    unsigned to = event->transition.to;
    bool is_proc = event->transition.resource == TRAIL_RESOURCE_PROC;
    if (is_proc && to > TRAIL_PROC_NOT_EXIST && to < TRAIL_PROC_STATES)
        return &proc_phrases[TRAIL_PROC_UNDETERMINED][to];
    if (!is_proc && to > TRAIL_GO_NOT_EXIST && to < TRAIL_GO_STATES)
        return &go_phrases[TRAIL_GO_UNDETERMINED][to];
    return &gone;
}

static const struct phrase *phrase_of(const trail_event *event)
{
    static const struct phrase unknown = {"changes", PASSIVE, STYLE_PLAIN};
    static const struct phrase steal = {"taken from a thread in a system call", PASSIVE,
                                        STYLE_SYSCALL};
    unsigned from = event->transition.from, to = event->transition.to;
    const struct phrase *phrase = &unknown;
    if (event->flags & TRAIL_EVENT_INFERRED)
        return inferred_phrase(event);
    if (event->wire == V2_ProcSteal)
        return &steal;
    if (event->transition.resource == TRAIL_RESOURCE_PROC) {
        if (from < TRAIL_PROC_STATES && to < TRAIL_PROC_STATES)
            phrase = &proc_phrases[from][to];
    } else if (from < TRAIL_GO_STATES && to < TRAIL_GO_STATES) {
        phrase = &go_phrases[from][to];
    }
    return phrase->text ? phrase : &unknown;
}

/* Writes which goroutine, poller or timer did it, if known and not the subject itself. */
static void put_by(struct print *print, const trail_event *event)
{
    if (event->goroutine != TRAIL_NONE && event->goroutine != event->transition.id) {
        PRINT(print, " by ");
        put_id(print, TERM_task_event, event->goroutine);
    } else if (event->proc == TRAIL_NETPOLL_PROC) {
        PRINT(print, " by the network poller");
    } else if (event->proc == TRAIL_TIMER_PROC) {
        PRINT(print, " by a timer");
    }
}

/* Writes the program's name for the goroutine. Returns false if there is none. */
static bool put_label_name(struct print *print, trail_string name)
{
    if (name.size == 0)
        return false;
    PRINT(print, ": ");
    plain_text(&print->out, name);
    return true;
}

/* Writes the start function of a goroutine, the outermost frame of its stack. */
static void put_start_function(struct print *print, const trail_event *event)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(print->reader, event->transition.stack, &count);
    if (count == 0)
        return;
    PRINT(print, ": ");
    frame_name(print->reader, &frames[count - 1], &print->out);
}

/*
 * Writes what a new goroutine is: its name or else its start function, and its kind. For one that
 * existed before, the column of places has the start function.
 */
static void put_entry(struct print *print, const trail_event *event, bool found)
{
    trail_goroutine_label label;
    bool labelled = trail_reader_goroutine(print->reader, event->transition.id, &label);
    if (found && !labelled)
        return;
    if (!labelled || !put_label_name(print, label.name))
        put_start_function(print, event);
    if (labelled && label.kind.size > 0) {
        PRINT(print, " (");
        plain_text(&print->out, label.kind);
        out_char(&print->out, ')');
    }
}

static void put_system_call(struct print *print, const trail_event *event)
{
    trail_string name = system_call(print->reader, event->stack);
    if (name.size == 0)
        return;
    PRINT(print, ": ");
    plain_text(&print->out, name);
}

static bool is_status(const trail_event *event)
{
    return event->wire == V2_GoStatus || event->wire == V2_GoStatusStack;
}

/* Writes the reason of a wait, in the vocabulary of the trace's maker. */
static void put_reason(struct print *print, const trail_event *event)
{
    trail_string reason = trail_reader_string(print->reader, event->transition.reason);
    trail_string shown = words_reason(&print->words, reason);
    if (reason.size == 0)
        return;
    PRINT(print, ": ");
    if (shown.data == reason.data)
        print_string(print, event->transition.reason);
    else
        out_bytes(&print->out, shown.data, shown.size);
}

static void what_go(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    unsigned from = event->transition.from, to = event->transition.to;
    const struct phrase *phrase = phrase_of(event);
    if (phrase->voice == PASSIVE || event->transition.id != event->goroutine) {
        put_id(print, TERM_task_event, event->transition.id);
        out_char(out, ' ');
    }
    out_str(out, phrase->text);
    if (phrase->voice == PASSIVE && !is_status(event))
        put_by(print, event);
    if (from == TRAIL_GO_NOT_EXIST || is_status(event))
        put_entry(print, event, is_status(event));
    if (from == TRAIL_GO_RUNNING && to == TRAIL_GO_SYSCALL)
        put_system_call(print, event);
    put_reason(print, event);
    if (from == TRAIL_GO_WAITING && to == TRAIL_GO_RUNNABLE)
        put_duration(print, ", after ");
    /* In v1, 1 ns stands for the unknown length of a system call that did not block. */
    else if (from != to && (from == TRAIL_GO_RUNNABLE || from == TRAIL_GO_SYSCALL) &&
             print->span_ns > 1)
        put_duration(print, " after ");
}

static void what_proc(struct print *print, const trail_event *event)
{
    put_id(print, TERM_slot_event, event->transition.id);
    out_char(&print->out, ' ');
    out_str(&print->out, phrase_of(event)->text);
}

static void what_transition(struct print *print, const trail_event *event)
{
    if (event->transition.resource == TRAIL_RESOURCE_PROC)
        what_proc(print, event);
    else
        what_go(print, event);
}

static void what_label(struct print *print, const trail_event *event)
{
    PRINT(print, "label ");
    put_quoted(print, event->label.text);
}

static void what_sample(struct print *print, const trail_event *event)
{
    (void)event;
    PRINT(print, "CPU sample");
}

static void print_unknown_event(struct print *print, const trail_event *event)
{
    (void)event;
    PRINT(print, "?");
}

struct kind {
    void (*what)(struct print *print, const trail_event *event);
    enum style style;
};

static struct kind kind_of(const trail_event *event)
{
    static const struct kind kinds[TRAIL_KINDS] = {
        [TRAIL_SYNC] = {what_sync, STYLE_DIM},
        [TRAIL_METRIC] = {what_metric, STYLE_GC},
        [TRAIL_LABEL] = {what_label, STYLE_USER},
        [TRAIL_STACK_SAMPLE] = {what_sample, STYLE_RUN},
        [TRAIL_RANGE_BEGIN] = {what_range, STYLE_GC},
        [TRAIL_RANGE_ACTIVE] = {what_range, STYLE_GC},
        [TRAIL_RANGE_END] = {what_range, STYLE_GC},
        [TRAIL_TASK_BEGIN] = {what_task, STYLE_USER},
        [TRAIL_TASK_END] = {what_task, STYLE_USER},
        [TRAIL_REGION_BEGIN] = {what_region, STYLE_USER},
        [TRAIL_REGION_END] = {what_region, STYLE_USER},
        [TRAIL_LOG] = {what_log, STYLE_USER},
        [TRAIL_EXPERIMENTAL] = {what_experimental, STYLE_PLAIN},
    };
    if (event->kind == TRAIL_STATE_TRANSITION)
        return (struct kind){what_transition, phrase_of(event)->style};
    if (event->kind < TRAIL_KINDS && kinds[event->kind].what)
        return kinds[event->kind];
    return (struct kind){print_unknown_event, STYLE_USER};
}

/* MARK: Lines */

/* Writes the line up to the place in the code. */
static void text_line(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    put_style(print, STYLE_DIM);
    put_time(out, (int64_t)((uint64_t)event->time_ns - (uint64_t)print->first_ns));
    put_style(print, STYLE_PLAIN);
    put_spaces(out, 2);
    put_where(print, event);
    struct kind kind = kind_of(event);
    put_style(print, kind.style);
    kind.what(print, event);
    if (event->flags & TRAIL_EVENT_MISUSED)
        PRINT(print, " (misused)");
    if (event->flags & TRAIL_EVENT_INFERRED)
        PRINT(print, " (inferred: events are lost)");
    put_style(print, STYLE_PLAIN);
}

/* Returns the columns on a terminal, assuming no wide or combining characters. */
static size_t columns_of(const char *begin, const char *end)
{
    size_t columns = 0;
    for (const char *at = begin; at < end; at++)
        columns += !utf8_continues(*at);
    return columns;
}

static void text_event(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    out_room(out, TEXT_LINE_ROOM);
    const char *begin = out->at;
    text_line(print, event);
    struct cache_block place = cache_get(&print->stacks, event->stack);
    if (event->stack != 0 && place.size > 0) {
        /* A line so long that the buffer was flushed is not padded. */
        size_t width = out->at > begin ? columns_of(begin, out->at) : PLACE_COLUMN;
        size_t column = PLACE_COLUMN + (print->options->colour ? COLOUR_BYTES : 0);
        put_spaces(out, width < column ? column - width : 0);
        put_style(print, STYLE_DIM);
        PRINT(print, "  at ");
        out_bytes(out, place.data, place.size);
        put_style(print, STYLE_PLAIN);
    }
    out_char(out, '\n');
}

static void text_event_stacks(struct print *print, const trail_event *event)
{
    text_line(print, event);
    out_char(&print->out, '\n');
    if (event->stack == 0 && event->kind != TRAIL_STATE_TRANSITION)
        return;
    put_style(print, STYLE_DIM);
    if (event->stack != 0)
        cache_put(&print->stacks, event->stack, &print->out);
    else if (event->transition.stack != 0)
        cache_put(&print->stacks, event->transition.stack, &print->out);
    put_style(print, STYLE_PLAIN);
}

const struct printer print_text = {
    .string = text_string,
    .stack = stack_place,
    .observe = spans_observe,
    .event = text_event,
};
const struct printer print_text_stacks = {
    .string = text_string,
    .stack = stack_lines,
    .observe = spans_observe,
    .event = text_event_stacks,
};
