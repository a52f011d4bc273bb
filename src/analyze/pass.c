#include "analyze/pass.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"

bool trail_is_system_goroutine(trail_string name)
{
    static const char prefix[] = "runtime.", main_name[] = "runtime.main";
    if (name.size == 0)
        return true;
    if (name.size < sizeof prefix - 1 || memcmp(name.data, prefix, sizeof prefix - 1) != 0)
        return false;
    return name.size != sizeof main_name - 1 || memcmp(name.data, main_name, name.size) != 0;
}

/* False when memory is out. */
static bool open_activity(struct trail_analysis *analysis)
{
    if (!wants(analysis, TRAIL_ANALYZE_ACTIVITY))
        return true;
    if (wants(analysis, TRAIL_ANALYZE_FINDINGS)) {
        analysis->findings = calloc(1, sizeof *analysis->findings);
        if (!analysis->findings)
            return false;
    }
    analysis->activity = calloc(1, sizeof *analysis->activity);
    analysis->waits = calloc(1, sizeof *analysis->waits);
    if (!analysis->activity || !analysis->waits)
        return false;
    analysis->activity->task_slab.object_size = ACTIVITY_TASK_SIZE;
    analysis->waits->parked_slab.object_size = sizeof(struct parked);
    analysis->waits->sync = names_put(&analysis->names, "sync", strlen("sync"));
    analysis->waits->condition =
        names_put(&analysis->names, "sync.(*Cond).Wait", strlen("sync.(*Cond).Wait"));
    return !analysis->names.failed;
}

/* False when memory is out. */
static bool open_locks(struct trail_analysis *analysis)
{
    if (!wants(analysis, TRAIL_ANALYZE_LOCKS))
        return true;
    analysis->locks = calloc(1, sizeof *analysis->locks);
    if (analysis->locks)
        locks_init(analysis->locks);
    return analysis->locks != NULL;
}

/* False when memory is out. */
static bool open_find(struct trail_analysis *analysis)
{
    if (!wants(analysis, TRAIL_ANALYZE_FIND))
        return true;
    analysis->find = calloc(1, sizeof *analysis->find);
    return analysis->find && find_init(analysis->find, &analysis->options.find);
}

trail_analysis *trail_analysis_open(const trail_reader *reader,
                                    const trail_analysis_options *options, trail_error *err)
{
    struct trail_analysis *analysis = calloc(1, sizeof *analysis);
    if (!analysis) {
        (void)error_set(err, TRAIL_NO_MEMORY, "no memory for the analysis");
        return NULL;
    }
    analysis->options = *options;
    analysis->reader = analysis->names.reader = reader;
    analysis->stacks.names = &analysis->names;
    analysis->goroutines.proc_slab.object_size = sizeof(struct proc);
    analysis->goroutines.counted_from_ns = INT64_MIN;
    analysis->gc.slab.object_size = GC_OPEN_SIZE;
    analysis->profiles.options = &analysis->options.profile;
    for (int i = 0; wants(analysis, TRAIL_ANALYZE_MMU) && i < 2; i++)
        analysis->utilisation[i].flags = options->mmu_flags[i];
    analysis->from_ns = INT64_MIN;
    analysis->to_ns = INT64_MAX;
    analysis->follows =
        (options->what & ~(unsigned)(TRAIL_ANALYZE_MMU | TRAIL_ANALYZE_GC | TRAIL_ANALYZE_PATH |
                                     TRAIL_ANALYZE_THREADS)) != 0;
    analysis->groups.distributions = analysis->regions.groups.distributions =
        wants(analysis, TRAIL_ANALYZE_DISTRIBUTIONS);
    analysis->forever = names_put(&analysis->names, "forever", strlen("forever"));
    if (wants(analysis, TRAIL_ANALYZE_PATH))
        (void)path_begin(&analysis->path, &analysis->names, &analysis->stacks, &options->path);
    if (analysis->names.failed || !open_activity(analysis) || !open_locks(analysis) ||
        !open_find(analysis)) {
        trail_analysis_close(analysis);
        (void)error_set(err, TRAIL_NO_MEMORY, "no memory for the analysis");
        return NULL;
    }
    analysis->tells = analysis->activity || analysis->locks || analysis->find;
    return analysis;
}

void trail_analysis_close(trail_analysis *analysis)
{
    if (!analysis)
        return;
    goroutines_free(&analysis->goroutines);
    regions_free(&analysis->regions);
    tasks_free(&analysis->tasks);
    groups_clear(&analysis->groups);
    utilisation_free(&analysis->utilisation[0]);
    utilisation_free(&analysis->utilisation[1]);
    gc_free(&analysis->gc);
    profiles_free(&analysis->profiles);
    threads_free(&analysis->threads);
    if (analysis->activity)
        activity_free(analysis->activity);
    if (analysis->waits)
        waits_free(analysis->waits);
    free(analysis->activity);
    free(analysis->waits);
    if (analysis->findings)
        findings_free(analysis->findings);
    free(analysis->findings);
    path_free(&analysis->path);
    if (analysis->locks)
        locks_free(analysis->locks);
    free(analysis->locks);
    if (analysis->find)
        find_free(analysis->find);
    free(analysis->find);
    stacks_free(&analysis->stacks);
    names_free(&analysis->names);
    free(analysis->rows.items);
    arena_free(&analysis->rows_arena);
    arena_free(&analysis->scratch);
    free(analysis);
}

bool analysis_asks_for(const struct trail_analysis *analysis, const trail_who *who, int64_t id,
                       trail_name name)
{
    trail_string text = names_text(&analysis->names, name);
    if (who->name &&
        (text.size != strlen(who->name) || memcmp(text.data, who->name, text.size) != 0))
        return false;
    for (size_t i = 0; i < who->goroutine_count; i++)
        if (who->goroutines[i] == id)
            return true;
    return who->goroutine_count == 0;
}

/* MARK: Rows of goroutines */

static bool keep_row(struct trail_analysis *analysis, const struct goroutine *g,
                     const trail_times *times, int64_t end_ns)
{
    struct goroutine_rows *rows = &analysis->rows;
    if (!GROW(rows->items, rows->capacity, rows->count + 1))
        return false;
    rows->items[rows->count++] = (trail_goroutine){
        .id = g->id,
        .name = g->name,
        .pc = g->pc,
        .creation_ns = g->creation_ns,
        .start_ns = g->start_ns,
        .end_ns = end_ns,
        .times = *times,
    };
    return true;
}

bool analysis_goroutine_ends(struct trail_analysis *analysis, struct goroutine *g, int64_t now,
                             int64_t end_ns)
{
    bool rows = wants(analysis, TRAIL_ANALYZE_GOROUTINES);
    trail_times times;
    if (!regions_end_with(analysis, g, now, end_ns))
        return false;
    if (wants(analysis, TRAIL_ANALYZE_PROFILES) &&
        !profile_goroutine_ends(analysis, g, now, end_ns))
        return false;
    if (!analysis->counting || !wants(analysis, TRAIL_ANALYZE_GOROUTINES | TRAIL_ANALYZE_GROUPS))
        return true;
    arena_reset(&analysis->scratch);
    if (!goroutine_times(&analysis->goroutines, g, now, NULL,
                         rows ? &analysis->rows_arena : &analysis->scratch, &times))
        return false;
    if (rows && !keep_row(analysis, g, &times, end_ns))
        return false;
    return !wants(analysis, TRAIL_ANALYZE_GROUPS) ||
           groups_add(&analysis->groups, g->name, &times, end_ns == 0);
}

/* MARK: Events */

static bool feed_activity(struct trail_analysis *analysis, const trail_event *event)
{
    return !analysis->activity || activity_event(analysis, event);
}

static bool feed_utilisation(struct trail_analysis *analysis, const trail_event *event)
{
    for (int i = 0; i < 2 && analysis->utilisation[i].flags; i++)
        if (!utilisation_event(&analysis->utilisation[i], analysis->reader, event))
            return false;
    return true;
}

static bool feed_other(struct trail_analysis *analysis, const trail_event *event)
{
    if (!feed_utilisation(analysis, event) || (analysis->find && !find_event(analysis, event)))
        return false;
    switch (event->kind) {
    case TRAIL_SYNC:
        analysis->goroutines.sync_ns = event->time_ns;
        return true;
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        return (!wants(analysis, TRAIL_ANALYZE_GC) || gc_event(analysis, event)) &&
               feed_activity(analysis, event) &&
               (!analysis->follows || goroutines_range(analysis, event));
    case TRAIL_STACK_SAMPLE:
        return !wants(analysis, TRAIL_ANALYZE_PROFILES) || profile_cpu(analysis, event);
    case TRAIL_METRIC:
        return (!wants(analysis, TRAIL_ANALYZE_GC) || gc_event(analysis, event)) &&
               feed_activity(analysis, event);
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        return regions_event(analysis, event);
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        if (!feed_activity(analysis, event))
            return false;
        __attribute__((fallthrough));
    case TRAIL_LOG:
        if (analysis->locks && event->kind == TRAIL_LOG && !locks_log(analysis, event))
            return false;
        return !wants(analysis, TRAIL_ANALYZE_TASKS) || tasks_event(analysis, event);
    default:
        return true;
    }
}

/*
 * Takes transitions from the front of [event, end), for all who want them: NULL when memory is out.
 * The utilisation sees an event before the goroutines do; it does not look at them.
 */
static const trail_event *feed_transitions(struct trail_analysis *analysis,
                                           const trail_event *event, const trail_event *end)
{
    bool utilisation = analysis->utilisation[0].flags != 0;
    const trail_event *e = event;
    for (; e < end && e->kind == TRAIL_STATE_TRANSITION && (utilisation || !analysis->follows); e++)
        if (utilisation && !feed_utilisation(analysis, e))
            return NULL;
    return analysis->follows ? goroutines_transitions(analysis, event, end) : e;
}

static bool feed_path(struct trail_analysis *analysis, const trail_event *event,
                      const trail_event *end)
{
    while (event && event < end && !analysis->path.answered)
        event = path_events(&analysis->path, event, end);
    return event != NULL;
}

/* False when memory is out. */
static bool feed_events(struct trail_analysis *analysis, const trail_event *event,
                        const trail_event *end)
{
    for (const trail_event *e = event; wants(analysis, TRAIL_ANALYZE_THREADS) && e < end; e++)
        if (!threads_event(&analysis->threads, e))
            return false;
    if (wants(analysis, TRAIL_ANALYZE_PATH) && !analysis->path.answered &&
        !feed_path(analysis, event, end))
        return false;
    if (analysis->options.what == TRAIL_ANALYZE_PATH)
        return true;
    while (event < end) {
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
    analysis->goroutines.sync_ns = origin;
    threads_init(&analysis->threads, origin);
    analysis->counting = !analysis->options.has_from;
    if (analysis->options.has_from)
        analysis->from_ns = ns_behind(origin, analysis->options.from_ns);
    if (analysis->options.has_to)
        analysis->to_ns = ns_behind(origin, analysis->options.to_ns);
    analysis->span.begin_ns = analysis->span.end_ns = origin;
    if (analysis->activity)
        activity_count_from(analysis->activity, origin);
    if (analysis->counting)
        path_count_from(&analysis->path, origin);
}

static bool count_from(struct trail_analysis *analysis, int64_t ns)
{
    analysis->counting = true;
    analysis->span.begin_ns = analysis->span.end_ns = ns;
    goroutines_count_from(&analysis->goroutines, ns);
    tasks_count_from(&analysis->tasks);
    gc_count_from(&analysis->gc, ns);
    threads_count_from(&analysis->threads, ns);
    if (analysis->activity) {
        activity_count_from(analysis->activity, ns);
        waits_count_from(analysis);
    }
    path_count_from(&analysis->path, ns);
    for (int i = 0; i < 2 && analysis->utilisation[i].flags; i++)
        if (!utilisation_count_from(&analysis->utilisation[i], ns))
            return false;
    return true;
}

/* The first event of [event, end) at `ns` or later; end if there is none. */
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
    names_begin_batch(&analysis->names);
    if (wants(analysis, TRAIL_ANALYZE_PATH | TRAIL_ANALYZE_LOCKS | TRAIL_ANALYZE_FIND))
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
    if (analysis->over)
        analysis->span.end_ns = analysis->to_ns;
    else
        analysis->span.end_ns = end[-1].time_ns;
    if (analysis->options.what == TRAIL_ANALYZE_PATH && analysis->path.answered)
        return 0;
    if (analysis->find && analysis->find->stopped && analysis->options.what == TRAIL_ANALYZE_FIND)
        return 0;
    return !analysis->over;
}

/* MARK: Answers */

static int by_id(const void *a, const void *b)
{
    const trail_goroutine *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->creation_ns < y->creation_ns ? -1 : x->creation_ns > y->creation_ns;
}

int trail_analysis_finish(trail_analysis *analysis)
{
    if (analysis->finished)
        return 0;
    analysis->finished = true;
    analysis->span.goroutines = analysis->counting ? analysis->goroutines.seen : 0;
    analysis->span.goroutines_alive = analysis->counting ? analysis->goroutines.alive.count : 0;
    for (int i = 0; i < 2; i++)
        if (!utilisation_finish(&analysis->utilisation[i], analysis->span.end_ns))
            return -1;
    if (analysis->activity && !analysis->counting)
        activity_count_from(analysis->activity, analysis->span.end_ns); /* an empty window */
    if (analysis->activity && analysis->started) {
        activity_finish(analysis->activity, analysis->span.end_ns);
        if (!waits_finish(analysis, analysis->span.end_ns))
            return -1;
    }
    if (wants(analysis, TRAIL_ANALYZE_PATH) && analysis->counting &&
        !path_finish(&analysis->path, analysis->span.end_ns))
        return -1;
    if (analysis->locks && !locks_finish(analysis, analysis->span.end_ns))
        return -1;
    if (analysis->find && !find_finish(analysis, analysis->span.end_ns))
        return -1;
    if (!goroutines_finish(analysis, analysis->span.end_ns) ||
        !gc_finish(analysis, analysis->span.end_ns))
        return -1;
    if (analysis->rows.count > 0)
        qsort(analysis->rows.items, analysis->rows.count, sizeof *analysis->rows.items, by_id);
    regions_finish(analysis);
    threads_finish(&analysis->threads, analysis->counting, analysis->span.end_ns);
    profiles_finish(&analysis->profiles);
    if (!groups_finish(&analysis->groups) || !groups_finish(&analysis->regions.groups) ||
        !tasks_finish(&analysis->tasks))
        return -1;
    return !analysis->findings || findings_finish(analysis) ? 0 : -1;
}

static int no_memory(trail_error *err)
{
    (void)error_set(err, TRAIL_NO_MEMORY, "no memory for the analysis");
    return -1;
}

int trail_analysis_run(trail_analysis *analysis, trail_reader *reader, trail_error *err)
{
    const trail_event *events;
    long count;
    int more = 1;
    while (more > 0 && (count = trail_reader_next_batch(reader, &events)) > 0) {
        const trail_analysis_options *options = &analysis->options;
        if (options->observe && !options->observe(options->observe_context, events, count))
            return no_memory(err);
        more = trail_analysis_feed(analysis, events, count);
        if (options->progress)
            options->progress(options->progress_context);
    }
    if (more < 0 || trail_analysis_finish(analysis) < 0)
        return no_memory(err);
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

size_t trail_analysis_goroutines(const trail_analysis *analysis, const trail_goroutine **rows)
{
    *rows = analysis->rows.items;
    return analysis->rows.count;
}

size_t trail_analysis_groups(const trail_analysis *analysis, const trail_group **rows)
{
    *rows = analysis->groups.rows;
    return analysis->groups.count;
}

size_t trail_analysis_regions(const trail_analysis *analysis, const trail_region **rows)
{
    *rows = analysis->regions.rows;
    return analysis->regions.count;
}

size_t trail_analysis_region_groups(const trail_analysis *analysis, const trail_group **rows)
{
    *rows = analysis->regions.groups.rows;
    return analysis->regions.groups.count;
}

size_t trail_analysis_tasks(const trail_analysis *analysis, const trail_task **rows)
{
    *rows = analysis->tasks.rows;
    return analysis->counting ? analysis->tasks.count : 0;
}

size_t trail_analysis_threads(const trail_analysis *analysis, const trail_thread **rows)
{
    *rows = analysis->threads.thread_rows.items;
    return analysis->threads.thread_rows.count;
}

size_t trail_analysis_procs(const trail_analysis *analysis, const trail_proc **rows)
{
    *rows = analysis->threads.proc_rows.items;
    return analysis->threads.proc_rows.count;
}

size_t trail_analysis_thread_slices(const trail_analysis *analysis, int64_t *slice_ns)
{
    *slice_ns = (int64_t)analysis->threads.thread_slices.slice_ns;
    return analysis->threads.slice_count;
}

double trail_analysis_mmu(const trail_analysis *analysis, unsigned curve, int64_t window_ns)
{
    return curve < 2 ? utilisation_least(&analysis->utilisation[curve], window_ns) : 0;
}

double trail_analysis_mmu_quantile(const trail_analysis *analysis, unsigned curve,
                                   int64_t window_ns, double quantile)
{
    if (curve >= 2)
        return 0;
    return utilisation_quantile(&analysis->utilisation[curve], window_ns, quantile);
}

size_t trail_analysis_mmu_worst(const trail_analysis *analysis, unsigned curve, int64_t window_ns,
                                trail_mmu_window *worst, size_t most)
{
    if (curve >= 2)
        return 0;
    return utilisation_worst(&analysis->utilisation[curve], window_ns, worst, most);
}

size_t trail_analysis_gc_cycles(const trail_analysis *analysis, const trail_gc_cycle **rows)
{
    *rows = analysis->gc.cycles;
    return analysis->counting ? analysis->gc.cycle_count : 0;
}

size_t trail_analysis_gc_pauses(const trail_analysis *analysis, const trail_gc_pause **rows)
{
    *rows = analysis->gc.pauses;
    return analysis->counting ? analysis->gc.pause_count : 0;
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
    return stacks_own(&analysis->stacks, stack);
}

bool trail_analysis_path(const trail_analysis *analysis, trail_path *path)
{
    if (analysis->path.span.found)
        *path = analysis->path.span.path;
    return analysis->path.span.found;
}

int trail_analysis_path_walk(trail_analysis *analysis, trail_path_visit visit, void *context)
{
    return path_walk(&analysis->path, visit, context);
}

size_t trail_analysis_path_totals(const trail_analysis *analysis, const trail_path_total **rows)
{
    *rows = analysis->path.rows;
    return analysis->path.row_count;
}
