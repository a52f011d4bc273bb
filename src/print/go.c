/*
 * --format=go: byte for byte the output of `go tool trace -d=parsed` of Go 1.26 and 1.27 (§6.6, the
 * debug string of each event and a newline).
 *
 * Most of that text is stacks, which are copied from the cache.
 */
#include <time.h>

#include "base/quote.h"
#include "print/print.h"
#include "wire/wire.h"

static void go_string(const trail_reader *reader, uint32_t handle, struct out *out)
{
    trail_string string = trail_reader_string(reader, handle);
    out_quote(out, string.data, string.size);
}

static void go_text(const trail_reader *reader, trail_string_handle handle, struct out *out)
{
    trail_string string = trail_reader_string(reader, handle);
    out_bytes(out, string.data, string.size);
}

static void go_stack(const trail_reader *reader, uint32_t handle, struct out *out)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(reader, handle, &count);
    for (size_t i = 0; i < count; i++) {
        out_char(out, '\t');
        go_text(reader, frames[i].function, out);
        out_str(out, " @ 0x");
        out_hex(out, frames[i].pc, 1);
        out_str(out, "\n\t\t");
        go_text(reader, frames[i].file, out);
        out_char(out, ':');
        out_u64(out, frames[i].line);
        out_char(out, '\n');
    }
}

static void go_value(struct out *out, uint64_t value)
{
    out_str(out, "Value{Uint64(");
    out_u64(out, value);
    out_str(out, ")}");
}

/* MARK: Parts by kind */

static void go_clock_snapshot(struct out *out, const trail_clock_snapshot *snapshot)
{
    out_str(out, " Trace=");
    out_i64(out, snapshot->trace_ns);
    out_str(out, " Mono=");
    out_u64(out, snapshot->mono_ns);
    out_str(out, " Wall=");
    time_t seconds = (time_t)snapshot->wall_s;
    struct tm tm;
    if (!localtime_r(&seconds, &tm)) {
        out_i64(out, snapshot->wall_s);
        return;
    }
    char text[64];
    out_bytes(out, text, strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm));
    if (snapshot->wall_ns > 0) {
        /* RFC3339Nano omits trailing zeros of the fraction. */
        uint32_t fraction = snapshot->wall_ns;
        unsigned digits = 9;
        for (; fraction % 10 == 0; fraction /= 10)
            digits--;
        out_char(out, '.');
        out_u64_padded(out, fraction, digits);
    }
    if (tm.tm_gmtoff == 0) {
        out_char(out, 'Z');
        return;
    }
    unsigned minutes = (unsigned)(tm.tm_gmtoff < 0 ? -tm.tm_gmtoff : tm.tm_gmtoff) / 60;
    out_char(out, tm.tm_gmtoff < 0 ? '-' : '+');
    out_u64_padded(out, minutes / 60, 2);
    out_char(out, ':');
    out_u64_padded(out, minutes % 60, 2);
}

static void go_sync(struct print *print, const trail_event *event)
{
    PRINT(print, " N=");
    out_u64(&print->out, event->sync.n);
    if (event->sync.snapshot)
        go_clock_snapshot(&print->out, event->sync.snapshot);
}

static void go_metric(struct print *print, const trail_event *event)
{
    PRINT(print, " Name=\"");
    out_str(&print->out, trail_metric_name(event->metric.metric));
    PRINT(print, "\" Value=");
    go_value(&print->out, event->metric.value);
}

static void go_resource(struct print *print, trail_resource resource, int64_t id)
{
    static const char *const names[] = {"None", "Goroutine(", "Proc(", "Thread("};
    out_str(&print->out, names[resource]);
    if (resource == TRAIL_RESOURCE_NONE)
        return;
    out_i64(&print->out, id);
    out_char(&print->out, ')');
}

static void go_label(struct print *print, const trail_event *event)
{
    PRINT(print, " Label=");
    print_string(print, event->label.text);
    PRINT(print, " Resource=");
    go_resource(print, TRAIL_RESOURCE_GOROUTINE, event->label.goroutine);
}

static void go_range(struct print *print, const trail_event *event)
{
    PRINT(print, " Name=");
    print_string(print, event->range.name);
    PRINT(print, " Scope=");
    go_resource(print, event->range.scope, event->range.scope_id);
    if (event->kind != TRAIL_RANGE_END)
        return;
    PRINT(print, " Attributes=[");
    if (event->range.has_swept) {
        PRINT(print, "\"bytes swept\"=");
        go_value(&print->out, event->range.swept_bytes);
        PRINT(print, " \"bytes reclaimed\"=");
        go_value(&print->out, event->range.reclaimed_bytes);
    }
    PRINT(print, "]");
}

static void go_task(struct print *print, const trail_event *event)
{
    PRINT(print, " ID=");
    out_u64(&print->out, event->task.id);
    PRINT(print, " Parent=");
    out_u64(&print->out, event->task.parent);
    PRINT(print, " Type=");
    print_string(print, event->task.type);
}

static void go_region(struct print *print, const trail_event *event)
{
    PRINT(print, " Task=");
    out_u64(&print->out, event->region.task);
    PRINT(print, " Type=");
    print_string(print, event->region.type);
}

static void go_log(struct print *print, const trail_event *event)
{
    PRINT(print, " Task=");
    out_u64(&print->out, event->log.task);
    PRINT(print, " Category=");
    print_string(print, event->log.category);
    PRINT(print, " Message=");
    print_string(print, event->log.message);
}

/*
 * Whether an event has a stack that Go does not know: up to 1.22, the stack of a goroutine's status
 * is the reader's addition.
 */
static bool go_hides_stacks(const struct print *print, const trail_event *event)
{
    return event->kind == TRAIL_STATE_TRANSITION && event->wire == V2_GoStatusStack &&
           trail_reader_version(print->reader) < 23;
}

/*
 * Whether Go shows a TransitionStack, even one without frames: the start stack of a new goroutine
 * is always present, even with ID 0.
 */
static bool go_has_transition_stack(const struct print *print, const trail_event *event)
{
    return (event->transition.stack != 0 || event->wire == V2_GoCreate ||
            event->wire == V2_GoCreateBlocked) &&
           !go_hides_stacks(print, event);
}

static void go_transition(struct print *print, const trail_event *event)
{
    bool proc = event->transition.resource == TRAIL_RESOURCE_PROC;
    if (proc)
        PRINT(print, " ProcID=");
    else
        PRINT(print, " GoID=");
    out_i64(&print->out, event->transition.id);
    out_char(&print->out, ' ');
    unsigned from = event->transition.from, to = event->transition.to;
    out_str(&print->out, proc ? trail_proc_state_name(from) : trail_go_state_name(from));
    PRINT(print, "->");
    out_str(&print->out, proc ? trail_proc_state_name(to) : trail_go_state_name(to));
    PRINT(print, " Reason=");
    print_string(print, event->transition.reason);
    if (!go_has_transition_stack(print, event))
        return;
    PRINT(print, "\nTransitionStack=\n");
    cache_put(&print->stacks, event->transition.stack, &print->out);
}

static void go_experimental(struct print *print, const trail_event *event)
{
    PRINT(print, " Name=");
    out_str(&print->out, trail_experimental_name(event));
    PRINT(print, " Args=[");
    for (unsigned i = 0; i < event->experimental.args; i++) {
        if (i > 0)
            PRINT(print, ", ");
        out_str(&print->out, trail_experimental_arg(event, i));
        out_char(&print->out, '=');
        go_value(&print->out, event->experimental.arg[i]);
    }
    PRINT(print, "]");
}

static void (*const go_details[TRAIL_KINDS])(struct print *print, const trail_event *event) = {
    [TRAIL_SYNC] = go_sync,
    [TRAIL_METRIC] = go_metric,
    [TRAIL_LABEL] = go_label,
    [TRAIL_RANGE_BEGIN] = go_range,
    [TRAIL_RANGE_ACTIVE] = go_range,
    [TRAIL_RANGE_END] = go_range,
    [TRAIL_TASK_BEGIN] = go_task,
    [TRAIL_TASK_END] = go_task,
    [TRAIL_REGION_BEGIN] = go_region,
    [TRAIL_REGION_END] = go_region,
    [TRAIL_LOG] = go_log,
    [TRAIL_EXPERIMENTAL] = go_experimental,
};

static void go_event(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    PRINT(print, "M=");
    out_i64(out, event->thread);
    PRINT(print, " P=");
    out_i64(out, event->proc);
    PRINT(print, " G=");
    out_i64(out, event->goroutine);
    out_char(out, ' ');
    out_str(out, trail_kind_name(event->kind));
    PRINT(print, " Time=");
    out_i64(out, event->time_ns);
    if (event->kind == TRAIL_STATE_TRANSITION) /* nearly all: inlined */
        go_transition(print, event);
    else if (event->kind < TRAIL_KINDS && go_details[event->kind])
        go_details[event->kind](print, event);
    /* A sample without a stack has an empty one. */
    bool stack = event->stack != 0 || event->kind == TRAIL_STACK_SAMPLE;
    if (stack && !go_hides_stacks(print, event)) {
        PRINT(print, "\nStack=\n");
        cache_put(&print->stacks, event->stack, out);
    }
    out_char(out, '\n');
}

const struct printer print_go = {.string = go_string, .stack = go_stack, .event = go_event};
