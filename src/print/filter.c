#include "print/filter.h"

#include <string.h>
#include <strings.h>

#include "wire/wire.h"

/* MARK: Kinds and types */

/* The kind of each type of v2 (§6.6); 0 for types that are not events. */
static const uint8_t kind_of_v2[V2_TYPES] = {
    [V2_CPUSample] = TRAIL_STACK_SAMPLE,
    [V2_ProcsChange] = TRAIL_METRIC,
    [V2_ProcStart] = TRAIL_STATE_TRANSITION,
    [V2_ProcStop] = TRAIL_STATE_TRANSITION,
    [V2_ProcSteal] = TRAIL_STATE_TRANSITION,
    [V2_ProcStatus] = TRAIL_STATE_TRANSITION,
    [V2_GoCreate] = TRAIL_STATE_TRANSITION,
    [V2_GoCreateSyscall] = TRAIL_STATE_TRANSITION,
    [V2_GoStart] = TRAIL_STATE_TRANSITION,
    [V2_GoDestroy] = TRAIL_STATE_TRANSITION,
    [V2_GoDestroySyscall] = TRAIL_STATE_TRANSITION,
    [V2_GoStop] = TRAIL_STATE_TRANSITION,
    [V2_GoBlock] = TRAIL_STATE_TRANSITION,
    [V2_GoUnblock] = TRAIL_STATE_TRANSITION,
    [V2_GoSyscallBegin] = TRAIL_STATE_TRANSITION,
    [V2_GoSyscallEnd] = TRAIL_STATE_TRANSITION,
    [V2_GoSyscallEndBlocked] = TRAIL_STATE_TRANSITION,
    [V2_GoStatus] = TRAIL_STATE_TRANSITION,
    [V2_STWBegin] = TRAIL_RANGE_BEGIN,
    [V2_STWEnd] = TRAIL_RANGE_END,
    [V2_GCActive] = TRAIL_RANGE_ACTIVE,
    [V2_GCBegin] = TRAIL_RANGE_BEGIN,
    [V2_GCEnd] = TRAIL_RANGE_END,
    [V2_GCSweepActive] = TRAIL_RANGE_ACTIVE,
    [V2_GCSweepBegin] = TRAIL_RANGE_BEGIN,
    [V2_GCSweepEnd] = TRAIL_RANGE_END,
    [V2_GCMarkAssistActive] = TRAIL_RANGE_ACTIVE,
    [V2_GCMarkAssistBegin] = TRAIL_RANGE_BEGIN,
    [V2_GCMarkAssistEnd] = TRAIL_RANGE_END,
    [V2_HeapAlloc] = TRAIL_METRIC,
    [V2_HeapGoal] = TRAIL_METRIC,
    [V2_GoLabel] = TRAIL_LABEL,
    [V2_UserTaskBegin] = TRAIL_TASK_BEGIN,
    [V2_UserTaskEnd] = TRAIL_TASK_END,
    [V2_UserRegionBegin] = TRAIL_REGION_BEGIN,
    [V2_UserRegionEnd] = TRAIL_REGION_END,
    [V2_UserLog] = TRAIL_LOG,
    [V2_GoSwitch] = TRAIL_STATE_TRANSITION,
    [V2_GoSwitchDestroy] = TRAIL_STATE_TRANSITION,
    [V2_GoCreateBlocked] = TRAIL_STATE_TRANSITION,
    [V2_GoStatusStack] = TRAIL_STATE_TRANSITION,
    [V2_Sync] = TRAIL_SYNC,
    [V2_Span] = TRAIL_EXPERIMENTAL,
    [V2_SpanAlloc] = TRAIL_EXPERIMENTAL,
    [V2_SpanFree] = TRAIL_EXPERIMENTAL,
    [V2_HeapObject] = TRAIL_EXPERIMENTAL,
    [V2_HeapObjectAlloc] = TRAIL_EXPERIMENTAL,
    [V2_HeapObjectFree] = TRAIL_EXPERIMENTAL,
    [V2_GoroutineStack] = TRAIL_EXPERIMENTAL,
    [V2_GoroutineStackAlloc] = TRAIL_EXPERIMENTAL,
    [V2_GoroutineStackFree] = TRAIL_EXPERIMENTAL,
};

/* The same for v1 (§4.3). UserRegion is both a begin and an end. */
static const uint8_t kind_of_v1[V1_TYPES] = {
    [V1_Gomaxprocs] = TRAIL_METRIC,
    [V1_ProcStart] = TRAIL_STATE_TRANSITION,
    [V1_ProcStop] = TRAIL_STATE_TRANSITION,
    [V1_GCStart] = TRAIL_RANGE_BEGIN,
    [V1_GCDone] = TRAIL_RANGE_END,
    [V1_STWStart] = TRAIL_RANGE_BEGIN,
    [V1_STWDone] = TRAIL_RANGE_END,
    [V1_GCSweepStart] = TRAIL_RANGE_BEGIN,
    [V1_GCSweepDone] = TRAIL_RANGE_END,
    [V1_GoCreate] = TRAIL_STATE_TRANSITION,
    [V1_GoStart] = TRAIL_STATE_TRANSITION,
    [V1_GoEnd] = TRAIL_STATE_TRANSITION,
    [V1_GoStop] = TRAIL_STATE_TRANSITION,
    [V1_GoSched] = TRAIL_STATE_TRANSITION,
    [V1_GoPreempt] = TRAIL_STATE_TRANSITION,
    [V1_GoSleep] = TRAIL_STATE_TRANSITION,
    [V1_GoBlock] = TRAIL_STATE_TRANSITION,
    [V1_GoUnblock] = TRAIL_STATE_TRANSITION,
    [V1_GoBlockSend] = TRAIL_STATE_TRANSITION,
    [V1_GoBlockRecv] = TRAIL_STATE_TRANSITION,
    [V1_GoBlockSelect] = TRAIL_STATE_TRANSITION,
    [V1_GoBlockSync] = TRAIL_STATE_TRANSITION,
    [V1_GoBlockCond] = TRAIL_STATE_TRANSITION,
    [V1_GoBlockNet] = TRAIL_STATE_TRANSITION,
    [V1_GoSysCall] = TRAIL_STATE_TRANSITION,
    [V1_GoSysExit] = TRAIL_STATE_TRANSITION,
    [V1_GoSysBlock] = TRAIL_STATE_TRANSITION,
    [V1_GoWaiting] = TRAIL_STATE_TRANSITION,
    [V1_GoInSyscall] = TRAIL_STATE_TRANSITION,
    [V1_HeapAlloc] = TRAIL_METRIC,
    [V1_HeapGoal] = TRAIL_METRIC,
    [V1_GoStartLocal] = TRAIL_STATE_TRANSITION,
    [V1_GoUnblockLocal] = TRAIL_STATE_TRANSITION,
    [V1_GoSysExitLocal] = TRAIL_STATE_TRANSITION,
    [V1_GoStartLabel] = TRAIL_STATE_TRANSITION,
    [V1_GoBlockGC] = TRAIL_STATE_TRANSITION,
    [V1_GCMarkAssistStart] = TRAIL_RANGE_BEGIN,
    [V1_GCMarkAssistDone] = TRAIL_RANGE_END,
    [V1_UserTaskCreate] = TRAIL_TASK_BEGIN,
    [V1_UserTaskEnd] = TRAIL_TASK_END,
    [V1_UserRegion] = TRAIL_REGION_BEGIN,
    [V1_UserLog] = TRAIL_LOG,
    [V1_CPUSample] = TRAIL_STACK_SAMPLE,
};

static unsigned type_count(trail_view view)
{
    return view == TRAIL_VIEW_V1 ? V1_TYPES : V2_TYPES;
}

static unsigned type_kind(trail_view view, unsigned type)
{
    return view == TRAIL_VIEW_V1 ? kind_of_v1[type] : kind_of_v2[type];
}

static const char *type_name(trail_view view, unsigned type)
{
    return view == TRAIL_VIEW_V1 ? v1_types[type].name : v2_types[type].name;
}

static bool kind_has_types(trail_view view, unsigned kind)
{
    for (unsigned type = 0; type < type_count(view); type++)
        if (type_kind(view, type) == kind)
            return true;
    return false;
}

const char *trail_filter_kind_name(trail_view view, size_t i)
{
    for (unsigned kind = TRAIL_SYNC; kind < TRAIL_KINDS; kind++)
        if (kind_has_types(view, kind) && i-- == 0)
            return trail_kind_name((trail_kind)kind);
    for (unsigned type = 0; type < type_count(view); type++) {
        /* The type Sync has the same name as its kind. */
        bool is_named = view == TRAIL_VIEW_EVENTS && type == V2_Sync;
        if (type_kind(view, type) != TRAIL_BAD && !is_named && i-- == 0)
            return type_name(view, type);
    }
    return NULL;
}

static void allow_type(trail_filter *filter, unsigned type)
{
    filter->kinds[type / 64] |= UINT64_C(1) << type % 64;
    filter->has_kinds = true;
}

static bool type_allowed(const trail_filter *filter, unsigned type)
{
    return type < 256 && filter->kinds[type / 64] >> type % 64 & 1;
}

bool trail_filter_add_kind(trail_filter *filter, trail_view view, const char *name)
{
    bool found = false;
    for (unsigned type = 0; type < type_count(view); type++) {
        unsigned kind = type_kind(view, type);
        if (kind == TRAIL_BAD || (strcasecmp(name, trail_kind_name((trail_kind)kind)) != 0 &&
                                  strcasecmp(name, type_name(view, type)) != 0))
            continue;
        allow_type(filter, type);
        found = true;
    }
    if (view == TRAIL_VIEW_V1 && strcasecmp(name, "RegionEnd") == 0) {
        allow_type(filter, V1_UserRegion);
        found = true;
    }
    return found;
}

/* MARK: Verdicts */

static bool in_list(const int64_t *list, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return false;
}

/* The resource that an event is about, in addition to its context. */
struct subject {
    trail_resource resource;
    int64_t id;
};

static struct subject event_subject(const trail_event *event)
{
    switch (event->kind) {
    case TRAIL_STATE_TRANSITION:
        return (struct subject){(trail_resource)event->transition.resource, event->transition.id};
    case TRAIL_LABEL:
        return (struct subject){TRAIL_RESOURCE_GOROUTINE, event->label.goroutine};
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        return (struct subject){event->range.scope, event->range.scope_id};
    default:
        return (struct subject){TRAIL_RESOURCE_NONE, TRAIL_NONE};
    }
}

static struct subject v1_subject(const trail_v1_event *event)
{
    const trail_v1_type *type = trail_v1_type_get(event->type);
    for (unsigned i = 0; type && i < 4 && type->arg[i]; i++)
        if (strcmp(type->arg[i], "g") == 0)
            return (struct subject){TRAIL_RESOURCE_GOROUTINE, (int64_t)event->arg[i]};
    return (struct subject){TRAIL_RESOURCE_NONE, TRAIL_NONE};
}

static bool concerns(const int64_t *list, size_t count, int64_t context, struct subject subject,
                     trail_resource resource)
{
    return count == 0 || in_list(list, count, context) ||
           (subject.resource == resource && in_list(list, count, subject.id));
}

/* Returns the part of the verdict that depends on time alone. */
static enum filter_verdict filter_time(struct filter *filter, int64_t time_ns)
{
    const trail_filter *rules = filter->rules;
    if (!filter->started) {
        filter->started = true;
        filter->first_ns = time_ns;
    }
    /* Unsigned, because a hostile file may have times at both ends of the range. */
    int64_t since = (int64_t)((uint64_t)time_ns - (uint64_t)filter->first_ns);
    if (rules->has_to && since > rules->to_ns)
        return FILTER_STOP;
    return rules->has_from && since < rules->from_ns ? FILTER_SKIP : FILTER_TAKE;
}

/* The parts of an event that the rules examine. */
struct candidate {
    int64_t time_ns, goroutine, proc, thread;
    unsigned type;
    struct subject subject;
};

static enum filter_verdict filter_candidate(struct filter *filter, const struct candidate *c)
{
    const trail_filter *rules = filter->rules;
    enum filter_verdict verdict = filter_time(filter, c->time_ns);
    if (verdict != FILTER_TAKE)
        return verdict;
    if ((rules->has_kinds && !type_allowed(rules, c->type)) ||
        !concerns(rules->goroutines, rules->goroutine_count, c->goroutine, c->subject,
                  TRAIL_RESOURCE_GOROUTINE) ||
        !concerns(rules->procs, rules->proc_count, c->proc, c->subject, TRAIL_RESOURCE_PROC) ||
        !concerns(rules->threads, rules->thread_count, c->thread, c->subject,
                  TRAIL_RESOURCE_THREAD))
        return FILTER_SKIP;
    return ++filter->taken == rules->limit ? FILTER_TAKE_LAST : FILTER_TAKE;
}

enum filter_verdict filter_event(struct filter *filter, const trail_event *event)
{
    if (!filter->rules)
        return FILTER_TAKE;
    return filter_candidate(
        filter, &(struct candidate){event->time_ns, event->goroutine, event->proc, event->thread,
                                    event->kind == TRAIL_SYNC ? V2_Sync : event->wire,
                                    event_subject(event)});
}

enum filter_verdict filter_v1_event(struct filter *filter, const trail_v1_event *event)
{
    if (!filter->rules)
        return FILTER_TAKE;
    return filter_candidate(filter,
                            &(struct candidate){event->time_ns, event->goroutine, event->proc,
                                                TRAIL_NONE, event->type, v1_subject(event)});
}
