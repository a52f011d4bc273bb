/*
 * The pass: applies the window, and passes events to the requested parts.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/aside.h"
#include "analyze/part.h"
#include "base/error.h"
#include "base/text.h"

static const struct analysis_part *const all_parts[] = {
#define PART(folder, name) &name##_part,
#include "analyze/parts.def"
};

bool trail_is_system_goroutine(trail_string name)
{
    static const char prefix[] = "runtime.", main_name[] = "runtime.main";
    if (name.size == 0)
        return true;
    if (name.size < sizeof prefix - 1 || memcmp(name.data, prefix, sizeof prefix - 1) != 0)
        return false;
    return name.size != sizeof main_name - 1 || memcmp(name.data, main_name, name.size) != 0;
}

bool analysis_asks_for(const struct trail_analysis *analysis, const trail_goroutine_filter *who,
                       int64_t id, trail_name name)
{
    trail_string text = names_text(&analysis->names, name);
    if (who->name && !text_is(text, who->name))
        return false;
    for (size_t i = 0; i < who->goroutine_count; i++)
        if (who->goroutines[i] == id)
            return true;
    return who->goroutine_count == 0;
}

/* MARK: Calling parts */

bool analysis_goroutine_ends(const struct trail_analysis *analysis, struct goroutine *g,
                             int64_t now, int64_t end_ns)
{
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (made->part->ends && !made->part->ends(made->object, g, now, end_ns))
            return false;
    return true;
}

bool analysis_goroutine_lost(const struct trail_analysis *analysis, struct goroutine *g,
                             int64_t now)
{
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (made->part->lost && !made->part->lost(made->object, g, now))
            return false;
    return true;
}

bool analysis_region_ends(const struct trail_analysis *analysis, struct goroutine *g,
                          const trail_region *region, int64_t now)
{
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (made->part->region_ends && !made->part->region_ends(made->object, g, region, now))
            return false;
    return true;
}

void *analysis_object(const struct trail_analysis *analysis, const struct analysis_part *part)
{
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (made->part == part)
            return made->object;
    return NULL;
}

void analysis_summary(const struct trail_analysis *analysis, struct json *json)
{
    for (size_t i = 0; i < analysis->part_count; i++)
        if (analysis->parts[i].part->summary)
            analysis->parts[i].part->summary(analysis->parts[i].object, json);
}

/* MARK: Opening */

static struct part_call *call_add(struct part_calls *calls, void *object)
{
    struct part_call *call = &calls->of[calls->count++];
    call->part = object;
    return call;
}

static void add_event(struct part_calls *calls, void *object, part_event event)
{
    if (event)
        call_add(calls, object)->event = event;
}

static void add_transition(struct part_calls *calls, void *object, part_transition transition)
{
    if (transition)
        call_add(calls, object)->transition = transition;
}

/* Returns false if out of memory. */
static bool make_part(struct trail_analysis *analysis, const struct analysis_part *part)
{
    void *object = calloc(1, part->size);
    if (!object)
        return false;
    analysis->parts[analysis->part_count].part = part;
    analysis->parts[analysis->part_count++].object = object;
    analysis->follows |= part->uses_goroutines;
    analysis->uses_stacks |= part->uses_stacks;
    analysis->has_events |= part->uses_goroutines || part->kinds != 0;
    for (unsigned kind = 0; kind < TRAIL_KINDS; kind++)
        if (part->kinds >> kind & 1)
            add_event(&analysis->kinds[kind], object, part->event);
    add_event(&analysis->procs, object, part->proc);
    add_transition(&analysis->begins, object, part->begins);
    add_transition(&analysis->leaves, object, part->leaves);
    add_transition(&analysis->enters, object, part->enters);
    return true;
}

static bool make_parts(struct trail_analysis *analysis)
{
    for (size_t i = 0; i < PARTS; i++)
        if (wants(analysis, all_parts[i]->what) && !make_part(analysis, all_parts[i]))
            return false;
    while (analysis->ready < analysis->part_count) {
        const struct made_part *made = &analysis->parts[analysis->ready++];
        if (made->part->init && !made->part->init(made->object, analysis))
            return false;
    }
    return !analysis->names.failed;
}

trail_analysis *trail_analysis_open(const trail_reader *reader,
                                    const trail_analysis_options *options, trail_error *err)
{
    struct trail_analysis *analysis = calloc(1, sizeof *analysis);
    if (!analysis) {
        (void)error_no_memory(err);
        return NULL;
    }
    analysis->options = *options;
    analysis->reader = analysis->names.reader = reader;
    analysis->stacks.names = &analysis->names;
    analysis->stacks.skip = options->skip_frames;
    analysis->from_ns = INT64_MIN;
    analysis->to_ns = INT64_MAX;
    goroutines_init(&analysis->goroutines, reader, &analysis->names);
    if (!make_parts(analysis)) {
        trail_analysis_close(analysis);
        (void)error_no_memory(err);
        return NULL;
    }
    return analysis;
}

void analysis_defer(struct trail_analysis *analysis, trail_reader *reader)
{
    analysis->aside = aside_open(reader);
}

/* Returns false if out of memory. */
static bool end_aside(trail_analysis *analysis)
{
    bool good = aside_close(analysis->aside);
    analysis->aside = NULL;
    return good;
}

void trail_analysis_close(trail_analysis *analysis)
{
    if (!analysis)
        return;
    aside_drop(analysis->aside);
    for (size_t i = 0; i < analysis->part_count; i++) {
        if (i < analysis->ready && analysis->parts[i].part->free)
            analysis->parts[i].part->free(analysis->parts[i].object);
        free(analysis->parts[i].object);
    }
    goroutines_free(&analysis->goroutines);
    stacks_free(&analysis->stacks);
    names_free(&analysis->names);
    arena_free(&analysis->rows_arena);
    arena_free(&analysis->scratch);
    free(analysis);
}

/* MARK: Events */

static bool feed_other(struct trail_analysis *analysis, const trail_event *event)
{
    if (event->kind < TRAIL_KINDS && !part_calls_event(&analysis->kinds[event->kind], event))
        return false;
    switch (event->kind) {
    case TRAIL_SYNC:
        follow_sync(&analysis->goroutines.follow, event->time_ns);
        return true;
    case TRAIL_LOG:
        return !analysis->follows || follow_log(&analysis->goroutines.follow, event);
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        return !analysis->follows || goroutines_range(analysis, event);
    default:
        return true;
    }
}

/* Takes transitions from the front of [event, end). Returns NULL if out of memory. */
static const trail_event *feed_transitions(struct trail_analysis *analysis,
                                           const trail_event *event, const trail_event *end)
{
    if (analysis->follows)
        return goroutines_transitions(analysis, event, end);
    while (event < end && event->kind == TRAIL_STATE_TRANSITION)
        event++;
    return event;
}

/* Returns false if out of memory. */
static bool feed_events(struct trail_analysis *analysis, const trail_event *event,
                        const trail_event *end)
{
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (made->part->events && !made->part->events(made->object, event, end))
            return false;
    while (analysis->has_events && event < end) {
        if (event->kind == TRAIL_STATE_TRANSITION)
            event = feed_transitions(analysis, event, end);
        else
            event = feed_other(analysis, event) ? event + 1 : NULL;
        if (!event)
            return false;
    }
    return true;
}

/* MARK: The window */

static void begin(struct trail_analysis *analysis, int64_t origin)
{
    analysis->started = true;
    analysis->span.origin_ns = origin;
    follow_sync(&analysis->goroutines.follow, origin);
    analysis->counting = !analysis->options.has_from;
    if (analysis->options.has_from)
        analysis->from_ns = ns_behind(origin, analysis->options.from_ns);
    if (analysis->options.has_to)
        analysis->to_ns = ns_behind(origin, analysis->options.to_ns);
    analysis->span.begin_ns = analysis->span.end_ns = origin;
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (made->part->trace_begins)
            made->part->trace_begins(made->object, origin);
}

/* Returns false if out of memory. */
static bool count_from(struct trail_analysis *analysis, int64_t ns)
{
    analysis->counting = true;
    analysis->span.begin_ns = analysis->span.end_ns = ns;
    goroutines_count_from(&analysis->goroutines, ns);
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (made->part->window_begins && !made->part->window_begins(made->object, ns))
            return false;
    return true;
}

/* Whether no part needs more events. */
static bool is_done(const struct trail_analysis *analysis)
{
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (!made->part->is_done || !made->part->is_done(made->object))
            return false;
    return analysis->part_count > 0;
}

/* Returns the first event of [event, end) at `ns` or later; end if there is none. */
static const trail_event *first_at(const trail_event *event, const trail_event *end, int64_t ns)
{
    while (event < end && event->time_ns < ns)
        event++;
    return event;
}

int trail_analysis_feed(trail_analysis *analysis, const trail_event *events, long count)
{
    const trail_event *end = events + count;
    if (count <= 0 || analysis->over)
        return !analysis->over;
    wait_names_begin_batch(&analysis->names);
    if (analysis->uses_stacks)
        stacks_begin_batch(&analysis->stacks);
    analysis->span.last_ns = end[-1].time_ns;
    if (!analysis->started)
        begin(analysis, events->time_ns);
    if (!analysis->counting) {
        const trail_event *inside = first_at(events, end, analysis->from_ns);
        if (!feed_events(analysis, events, inside))
            return -1;
        if (inside == end)
            return 1;
        if (!count_from(analysis, analysis->from_ns))
            return -1;
        events = inside;
    }
    if (end[-1].time_ns > analysis->to_ns) {
        while (end > events && end[-1].time_ns > analysis->to_ns)
            end--;
        analysis->over = true;
    }
    if (!feed_events(analysis, events, end) || analysis->names.failed)
        return -1;
    analysis->span.events += (uint64_t)(end - events);
    analysis->span.end_ns = analysis->over ? analysis->to_ns : end[-1].time_ns;
    return !analysis->over && !is_done(analysis);
}

/* MARK: Answers */

int trail_analysis_finish(trail_analysis *analysis)
{
    int64_t end = analysis->span.end_ns;
    if (analysis->finished)
        return 0;
    analysis->finished = true;
    analysis->span.goroutines = analysis->counting ? analysis->goroutines.seen : 0;
    analysis->span.goroutines_alive =
        analysis->counting ? analysis->goroutines.follow.alive.count : 0;
    if (!end_aside(analysis))
        return -1;
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (made->part->window_ends && !made->part->window_ends(made->object, end))
            return -1;
    if (!goroutines_finish(analysis, end))
        return -1;
    for (const struct made_part *made = analysis->parts; made->part; made++)
        if (made->part->finish && !made->part->finish(made->object, end))
            return -1;
    return 0;
}

int trail_analysis_run(trail_analysis *analysis, trail_reader *reader, trail_error *err)
{
    const trail_event *events;
    long count;
    int more = 1;
    analysis_defer(analysis, reader);
    while (more > 0 && (count = trail_reader_next_batch(reader, &events)) > 0) {
        const trail_analysis_options *options = &analysis->options;
        if (options->observe && !options->observe(options->observe_context, events, count)) {
            more = -1;
            break;
        }
        more = trail_analysis_feed(analysis, events, count);
        if (options->progress)
            options->progress(options->progress_context);
    }
    bool taken = end_aside(analysis);
    if (more < 0 || !taken || trail_analysis_finish(analysis) < 0)
        return error_no_memory(err);
    if (more > 0 && count < 0) {
        *err = *trail_reader_error(reader);
        return -1;
    }
    return 0;
}

void trail_analysis_get_span(const trail_analysis *analysis, trail_analysis_span *span)
{
    *span = analysis->span;
}

trail_string trail_analysis_text(const trail_analysis *analysis, trail_name name)
{
    return names_text(&analysis->names, name);
}

trail_wait_for trail_analysis_wait_for(const trail_analysis *analysis, trail_name wait)
{
    return wait_for_of(&analysis->names, wait);
}

size_t trail_analysis_stack(const trail_analysis *analysis, trail_stack stack,
                            const trail_place **places)
{
    struct stack_row row = stacks_get(&analysis->stacks, stack);
    *places = row.places;
    return row.count;
}

size_t trail_analysis_stack_own(const trail_analysis *analysis, trail_stack stack)
{
    return stacks_get(&analysis->stacks, stack).own;
}
