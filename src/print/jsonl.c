/*
 * --format=jsonl: one JSON object per event. The keys are a contract, described in docs/jsonl.md.
 * In text that is not UTF-8, U+FFFD replaces each invalid byte (base/json.h), and a second key with
 * the suffix `_hex` has all its bytes.
 */
#include "base/json.h"
#include "base/text.h"
#include "print/print.h"
#include "wire/wire.h"

/* MARK: Values */

static void json_hex(struct out *out, trail_string string)
{
    out_char(out, '"');
    for (size_t i = 0; i < string.size; i++)
        out_hex(out, (uint8_t)string.data[i], 2);
    out_char(out, '"');
}

/* MARK: Members */

static void json_key_member(struct out *out, const char *key)
{
    out_char(out, ',');
    json_put_key(out, key);
}

static void json_string_member(struct out *out, const char *key, trail_string string)
{
    json_key_member(out, key);
    if (json_put_text(out, string))
        return;
    out_str(out, ",\"");
    out_str(out, key);
    out_str(out, "_hex\":");
    json_hex(out, string);
}

static void json_name_member(struct out *out, const char *key, const char *name)
{
    json_string_member(out, key, text_from(name));
}

static void json_u64_member(struct out *out, const char *key, uint64_t value)
{
    json_key_member(out, key);
    json_put_u64(out, value);
}

static void json_i64_member(struct out *out, const char *key, int64_t value)
{
    json_key_member(out, key);
    json_put_i64(out, value);
}

static void json_member(struct print *print, const char *key, trail_string_handle handle)
{
    json_string_member(&print->out, key, trail_reader_string(print->reader, handle));
}

static const char *resource_name(trail_resource resource)
{
    static const char *const names[] = {"none", "goroutine", "proc", "thread"};
    return names[resource];
}

/* MARK: Stacks */

static void put_string(const trail_reader *reader, uint32_t handle, struct out *out)
{
    (void)json_put_text(out, trail_reader_string(reader, handle));
}

static void json_stack(const trail_reader *reader, uint32_t handle, struct out *out)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(reader, handle, &count);
    out_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        out_str(out, i > 0 ? ",{\"pc\":\"0x" : "{\"pc\":\"0x");
        out_hex(out, frames[i].pc, 1);
        out_char(out, '"');
        json_string_member(out, "func", trail_reader_string(reader, frames[i].function));
        json_string_member(out, "file", trail_reader_string(reader, frames[i].file));
        json_u64_member(out, "line", frames[i].line);
        out_char(out, '}');
    }
    out_char(out, ']');
}

static void json_stack_member(struct print *print, const char *key, trail_stack_handle handle)
{
    if (handle == 0 || !print->options->stacks)
        return;
    json_key_member(&print->out, key);
    cache_put(&print->stacks, handle, &print->out);
}

/* MARK: Kinds */

static void json_sync(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    json_u64_member(out, "n", event->sync.n);
    json_key_member(out, "final");
    json_put_bool(out, event->sync.final);
    const trail_clock_snapshot *snapshot = event->sync.snapshot;
    if (!snapshot)
        return;
    json_i64_member(out, "clock_trace_ns", snapshot->trace_ns);
    json_u64_member(out, "clock_mono_ns", snapshot->mono_ns);
    json_i64_member(out, "clock_wall_s", snapshot->wall_s);
    json_u64_member(out, "clock_wall_ns", snapshot->wall_ns);
}

static void json_range(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    json_member(print, "name", event->range.name);
    json_name_member(out, "resource", resource_name(event->range.scope));
    if (event->range.scope != TRAIL_RESOURCE_NONE)
        json_i64_member(out, "id", event->range.scope_id);
    if (event->range.has_swept) {
        json_u64_member(out, "swept_bytes", event->range.swept_bytes);
        json_u64_member(out, "reclaimed_bytes", event->range.reclaimed_bytes);
    }
}

static void json_task(struct print *print, const trail_event *event)
{
    json_u64_member(&print->out, "task", event->task.id);
    if (event->task.parent != TRAIL_NO_TASK)
        json_u64_member(&print->out, "parent", event->task.parent);
    json_member(print, "name", event->task.type);
}

static void json_task_id(struct print *print, uint64_t task)
{
    if (task != TRAIL_NO_TASK)
        json_u64_member(&print->out, "task", task);
}

/* Writes the program's name for the goroutine, if there is one. */
static void json_label(struct print *print, int64_t id)
{
    trail_goroutine_label label;
    if (!trail_reader_goroutine(print->reader, id, &label))
        return;
    if (label.name.size > 0)
        json_string_member(&print->out, "goroutine_name", label.name);
    if (label.kind.size > 0)
        json_string_member(&print->out, "goroutine_kind", label.kind);
}

static void json_transition(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    unsigned from = event->transition.from, to = event->transition.to;
    bool proc = event->transition.resource == TRAIL_RESOURCE_PROC;
    json_name_member(out, "resource", resource_name(event->transition.resource));
    json_i64_member(out, "id", event->transition.id);
    json_name_member(out, "from", proc ? trail_proc_state_name(from) : trail_go_state_name(from));
    json_name_member(out, "to", proc ? trail_proc_state_name(to) : trail_go_state_name(to));
    if (trail_reader_string(print->reader, event->transition.reason).size > 0)
        json_member(print, "reason", event->transition.reason);
    json_stack_member(print, "transition_stack", event->transition.stack);
    if (!proc && (from <= TRAIL_GO_NOT_EXIST || from == to))
        json_label(print, event->transition.id);
}

static void json_experimental(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    json_name_member(out, "name", trail_experimental_name(event));
    json_key_member(out, "args");
    out_char(out, '{');
    for (unsigned i = 0; i < event->experimental.args; i++) {
        out_str(out, i > 0 ? "," : "");
        json_put_key(out, trail_experimental_arg(event, i));
        json_put_u64(out, event->experimental.arg[i]);
    }
    out_char(out, '}');
}

static void json_details(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    switch (event->kind) {
    case TRAIL_SYNC:
        json_sync(print, event);
        break;
    case TRAIL_METRIC:
        json_name_member(out, "name", trail_metric_name(event->metric.metric));
        json_u64_member(out, "value", event->metric.value);
        break;
    case TRAIL_LABEL:
        json_name_member(out, "resource", "goroutine");
        json_i64_member(out, "id", event->label.goroutine);
        json_member(print, "label", event->label.text);
        break;
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        json_range(print, event);
        break;
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        json_task(print, event);
        break;
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        json_task_id(print, event->region.task);
        json_member(print, "name", event->region.type);
        break;
    case TRAIL_LOG:
        json_task_id(print, event->log.task);
        json_member(print, "category", event->log.category);
        json_member(print, "message", event->log.message);
        break;
    case TRAIL_STATE_TRANSITION:
        json_transition(print, event);
        break;
    case TRAIL_EXPERIMENTAL:
        json_experimental(print, event);
        break;
    default:
        break;
    }
}

static void json_event(struct print *print, const trail_event *event)
{
    struct out *out = &print->out;
    PRINT(print, "{\"time_ns\":");
    json_put_i64(out, event->time_ns);
    json_name_member(out, "kind", trail_kind_name(event->kind));
    if (event->kind != TRAIL_SYNC && event->wire < V2_TYPES && v2_types[event->wire].name)
        json_name_member(out, "type", v2_types[event->wire].name);
    if (event->thread != TRAIL_NONE)
        json_i64_member(out, "m", event->thread);
    if (event->proc != TRAIL_NONE)
        json_i64_member(out, "p", event->proc);
    if (event->goroutine != TRAIL_NONE)
        json_i64_member(out, "g", event->goroutine);
    json_details(print, event);
    if (event->flags & TRAIL_EVENT_MISUSED)
        PRINT(print, ",\"misused\":true");
    if (event->flags & TRAIL_EVENT_INFERRED)
        PRINT(print, ",\"inferred\":true");
    json_stack_member(print, "stack", event->stack);
    PRINT(print, "}\n");
}

const struct printer print_jsonl = {
    .string = put_string,
    .stack = json_stack,
    .event = json_event,
};
