/* Names of event kinds, states, metrics and formats, as Go's tools print them (§6.6). */
#include <trail/read.h>

#include "wire/wire.h"

#define NAME(table, i) ((size_t)(i) < sizeof(table) / sizeof *(table) ? (table)[i] : "?")

const char *trail_version_writers(int version)
{
    for (const struct wire_version *v = wire_versions; v->minor; v++)
        if (v->minor == version)
            return v->writers;
    return NULL;
}

const char *trail_batch_kind_name(trail_batch_kind kind)
{
    static const char *const names[] = {"events", "strings",    "stacks",           "CPU samples",
                                        "sync",   "experiment", "end of generation"};
    return NAME(names, kind);
}

const char *trail_kind_name(trail_kind kind)
{
    static const char *const names[TRAIL_KINDS] = {
        "Bad",         "Sync",        "Metric",   "Label",           "StackSample",
        "RangeBegin",  "RangeActive", "RangeEnd", "TaskBegin",       "TaskEnd",
        "RegionBegin", "RegionEnd",   "Log",      "StateTransition", "Experimental",
    };
    return NAME(names, kind);
}

const char *trail_go_state_name(trail_go_state state)
{
    static const char *const names[TRAIL_GO_STATES] = {"Undetermined", "NotExist", "Runnable",
                                                       "Running",      "Waiting",  "Syscall"};
    return NAME(names, state);
}

const char *trail_proc_state_name(trail_proc_state state)
{
    static const char *const names[TRAIL_PROC_STATES] = {"Undetermined", "NotExist", "Running",
                                                         "Idle"};
    return NAME(names, state);
}

const char *trail_metric_name(trail_metric metric)
{
    static const char *const names[TRAIL_METRICS] = {
        "/sched/gomaxprocs:threads",
        "/memory/classes/heap/objects:bytes",
        "/gc/heap/goal:bytes",
    };
    return NAME(names, metric);
}

const char *trail_experimental_name(const trail_event *event)
{
    return event->wire < V2_TYPES && v2_types[event->wire].name ? v2_types[event->wire].name : "?";
}

const char *trail_experimental_arg(const trail_event *event, unsigned i)
{
    /* The first argument on the wire is the time, which is event->time_ns. */
    if (event->wire >= V2_TYPES || i + 1 >= v2_types[event->wire].args)
        return "?";
    return v2_types[event->wire].arg[i + 1];
}

const char *trail_repair_kind_name(trail_repair_kind kind)
{
    static const char *const names[TRAIL_REPAIRS] = {"sequence", "time", "syscall exit", "state"};
    return NAME(names, kind);
}

const trail_v1_type *trail_v1_type_get(unsigned type)
{
    static const trail_v1_type types[V1_TYPES] = {
#define V1_EVENT(number, name_, since, args, stack, arg_names, text_names)                         \
    [number] = {.name = #name_, .arg = arg_names, .text = text_names},
#include "wire/v1.def"
    };
    return type < V1_TYPES && types[type].name ? &types[type] : NULL;
}

const char *trail_made_by_name(trail_made_by made_by)
{
    static const char *const names[] = {
        [TRAIL_MADE_BY_GO] = "Go",
        [TRAIL_MADE_BY_RECORD] = "trail record",
        [TRAIL_MADE_BY_HOST] = "libtrail-record",
        [TRAIL_MADE_BY_IMPORT] = "trail import",
    };
    return NAME(names, made_by);
}
