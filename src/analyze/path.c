#include "analyze/path.h"

#include <stdlib.h>

#include "analyze/part.h"
#include "base/grow.h"
#include "base/text.h"
#include "wire/wire.h"

/* MARK: The log */

static uint64_t log_add(struct path *path, struct path_goroutine *g, struct path_entry *entry)
{
    entry->time_ns = path->now_ns;
    uint64_t number = path_log_add(&path->log, entry);
    if (g->log != path->log_number)
        g->waited = 0;
    g->entry = number;
    g->log = path->log_number;
    return number;
}

/*
 * Returns the goroutine's latest entry; adds one with its state if there is none. 0 if out of
 * memory.
 */
static uint64_t entry_of(struct path *path, struct path_goroutine *g)
{
    if (__builtin_expect(g->entry != 0 && g->log == path->log_number, 1))
        return g->entry;
    struct path_entry entry = {
        .state = g->state,
        .flags = PATH_BEFORE,
        .reason = g->reason,
        .stack = g->stack,
    };
    return log_add(path, g, &entry);
}

/* Drops what was logged so far. */
static void log_from_here(struct path *path)
{
    if (path->span.found)
        return;
    path->log_number++;
    path_log_clear(&path->log);
    path->held_count = 0;
    idmap_clear(&path->expired);
    path->logging = true;
}

/* Sets the waker, if it is another goroutine. Returns false if out of memory. */
static bool set_waker(struct path *path, struct path_entry *entry, const struct path_goroutine *g,
                      int64_t id)
{
    struct path_goroutine *waker = id >= 0 ? objects_find(&path->alive, (uint64_t)id) : NULL;
    if (!waker || waker == g)
        return true;
    entry->waker_entry = entry_of(path, waker);
    entry->waker = waker->number;
    entry->flags |= PATH_WOKEN;
    return entry->waker_entry != 0;
}

/* MARK: Spans */

static int64_t clip(const struct path *path, int64_t ns)
{
    return ns < path->begin_ns ? path->begin_ns : ns;
}

static bool make_span(struct path *path, trail_path_of of, const struct path_region *region,
                      struct path_goroutine *g, int64_t end_ns, bool complete,
                      struct path_span *span)
{
    int64_t begin = clip(path, region->begin_ns);
    *span = (struct path_span){
        .found = true,
        .path =
            {
                .of = of,
                .task = region->task,
                .name = region->name,
                .nth = region->nth,
                .goroutine = g->id,
                .complete = complete && region->has_begin && begin == region->begin_ns,
                .begin_ns = begin,
                .end_ns = end_ns,
            },
        .entry = entry_of(path, g),
        .number = g->number,
        .length_ns = ns_between(begin, end_ns),
    };
    return span->entry != 0;
}

/* A span ends here, or with the trace. Returns false if out of memory. */
static bool take_span(struct path *path, trail_path_of of, const struct path_region *region,
                      struct path_goroutine *g, int64_t end_ns, bool complete)
{
    int64_t begin = clip(path, region->begin_ns), length = ns_between(begin, end_ns);
    if (path->request.of == TRAIL_PATH_LONGEST && !region->has_begin)
        return true;
    if (!path->logging || end_ns < begin || (path->span.found && length <= path->span.length_ns))
        return true;
    return make_span(path, of, region, g, end_ns, complete, &path->span);
}

static bool wants_task(const struct path *path, uint64_t id)
{
    return path->request.of == TRAIL_PATH_LONGEST ||
           (path->request.of == TRAIL_PATH_TASK && path->request.task == id);
}

static bool task_begin(struct path *path, const struct path_goroutine *g, const trail_event *event)
{
    struct path_region *task = slab_get(&path->regions);
    if (!task || !idmap_put(&path->tasks, event->task.id, task))
        return false;
    *task = (struct path_region){
        .begin_ns = path->now_ns,
        .task = event->task.id,
        .name = names_of(path->names, event->task.type),
        .has_begin = true,
        .goroutine = g->number,
    };
    if (path->request.of == TRAIL_PATH_TASK && path->logging)
        log_from_here(path);
    return true;
}

/* `task` is NULL if its start is not in the trace. */
static bool task_end(struct path *path, struct path_goroutine *g, struct path_region *task,
                     const trail_event *event)
{
    struct path_region unbegun = {.task = event->task.id, .begin_ns = path->begin_ns};
    struct path_region *ends = task ? task : &unbegun;
    ends->name = names_of(path->names, event->task.type);
    if (!take_span(path, TRAIL_PATH_TASK, ends, g, path->now_ns, true))
        return false;
    if (path->span.path.end_ns == path->now_ns)
        path->span.stack = stacks_of(path->stacks, event->stack);
    (void)idmap_remove(&path->tasks, event->task.id);
    if (task)
        slab_put(&path->regions, task);
    path->answered = path->request.of == TRAIL_PATH_TASK && path->logging;
    return true;
}

/* Takes an event that belongs to the task `id`. */
static bool task_event(struct path *path, const trail_event *event, uint64_t id)
{
    struct path_goroutine *g = objects_find(&path->alive, (uint64_t)event->goroutine);
    struct path_region *task = idmap_find(&path->tasks, id);
    if (!wants_task(path, id) || !g || path->answered)
        return true;
    if (task)
        task->goroutine = g->number;
    if (event->kind == TRAIL_TASK_END)
        return task_end(path, g, task, event);
    return task || event->kind != TRAIL_TASK_BEGIN || task_begin(path, g, event);
}

static bool wants_region(const struct path *path, const struct path_region *region)
{
    if (path->request.of == TRAIL_PATH_LONGEST)
        return region->name != 0;
    return path->request.of == TRAIL_PATH_REGION &&
           (!path->request.region || region->name == path->region) &&
           (path->request.nth == 0 || region->nth == path->request.nth);
}

/* Returns the number of regions of that name so far, including this one. 0 if out of memory. */
static uint64_t count_region(struct path *path, trail_name name)
{
    if (!GROW_ZEROED(path->counts, path->count_capacity, (size_t)name + 1))
        return 0;
    return ++path->counts[name];
}

static bool region_begin(struct path *path, struct path_goroutine *g, const trail_event *event)
{
    struct path_region *region = slab_get(&path->regions);
    if (!region)
        return false;
    *region = (struct path_region){
        .outer = g->region,
        .begin_ns = path->now_ns,
        .task = event->region.task,
        .name = names_of(path->names, event->region.type),
        .has_begin = true,
    };
    g->region = region;
    region->nth = count_region(path, region->name);
    if (path->logging && path->request.nth > 0 && wants_region(path, region))
        log_from_here(path);
    return region->nth != 0;
}

/*
 * Removes the region that ends: the innermost, or the one that a misused end names. NULL if there
 * is none.
 */
static struct path_region *take_ended(struct path_goroutine *g, const trail_event *event,
                                      const struct path_region *ended)
{
    struct path_region **at = &g->region, *none = NULL;
    if (event->flags & TRAIL_EVENT_MISUSED)
        for (unsigned i = 0; *at && ((*at)->name != ended->name || (*at)->task != ended->task); i++)
            at = i < WIRE_REGION_DEPTH ? &(*at)->outer : &none;
    struct path_region *region = *at;
    if (region)
        *at = region->outer;
    return region;
}

static bool region_end(struct path *path, struct path_goroutine *g, const trail_event *event)
{
    struct path_region unbegun = {
        .begin_ns = path->begin_ns,
        .task = event->region.task,
        .name = names_of(path->names, event->region.type),
    };
    struct path_region *region = take_ended(g, event, &unbegun);
    if (!region && (event->flags & TRAIL_EVENT_MISUSED))
        return true; /* it never began */
    struct path_region *ends = region ? region : &unbegun;
    bool good = true;
    if (wants_region(path, ends) && !path->answered) {
        good = take_span(path, TRAIL_PATH_REGION, ends, g, path->now_ns, true);
        if (path->span.path.end_ns == path->now_ns)
            path->span.stack = stacks_of(path->stacks, event->stack);
        path->answered = path->request.nth > 0 && path->span.found;
    }
    if (region)
        slab_put(&path->regions, region);
    return good;
}

static void take_hold(struct path *path, const trail_event *event)
{
    trail_string category = trail_reader_string(path->names->reader, event->log.category);
    if (!text_is(category, WIRE_HELD_CATEGORY))
        return;
    struct wait_text text =
        wait_text_of_hold(trail_reader_string(path->names->reader, event->log.message));
    path->hold = (struct path_hold){
        .goroutine = wait_text_holder(text.by, event->goroutine),
        .object = names_put(path->names, text.object.data, text.object.size),
        .kind = text.kind,
        .ns = text.held_ns,
        .time_ns = event->time_ns,
    };
}

/* The thread's last wait timed out. */
static bool take_time_out(struct path *path, const trail_event *event)
{
    const struct path_goroutine *g = objects_find(&path->alive, (uint64_t)event->goroutine);
    if (!g || g->waited == 0 || g->log != path->log_number)
        return true;
    return idmap_put(&path->expired, g->waited, path);
}

static bool other_event(struct path *path, const trail_event *event)
{
    struct path_goroutine *g;
    switch (event->kind) {
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        return task_event(path, event, event->task.id);
    case TRAIL_LOG:
        take_hold(path, event);
        if (wait_log_timed_out(path->names, event) && !take_time_out(path, event))
            return false;
        return announced_log(&path->announced, path->names, event) &&
               task_event(path, event, event->log.task);
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        g = objects_find(&path->alive, (uint64_t)event->goroutine);
        if (!task_event(path, event, event->region.task))
            return false;
        if (!g || path->request.of == TRAIL_PATH_TASK)
            return true;
        return event->kind == TRAIL_REGION_BEGIN ? region_begin(path, g, event)
                                                 : region_end(path, g, event);
    default:
        return true;
    }
}

/* MARK: Goroutines */

/*
 * The start function is the outermost frame of a goroutine's first stack. The status in a later
 * generation repeats that stack, with the name that it has by then.
 */
static void learn_name(struct path *path, struct path_goroutine *g, trail_stack stack)
{
    struct path_who *who = &path->who[g->number];
    struct stack_row row = stacks_get(path->stacks, stack);
    if (row.count > 0)
        who->name = names_goroutine(path->names, g->id, row.places[row.count - 1].function);
    g->named = who->name != 0;
}

static void learn_label(struct path *path, const trail_event *event)
{
    trail_goroutine_label label;
    if (!trail_reader_goroutine(path->names->reader, event->transition.id, &label))
        return;
    struct path_goroutine *g = objects_find(&path->alive, (uint64_t)event->transition.id);
    if (g && event->transition.stack != 0)
        learn_name(path, g, stacks_of(path->stacks, event->transition.stack));
}

static bool is_asked_for(const struct path *path, const struct path_goroutine *g)
{
    return path->request.of == TRAIL_PATH_GOROUTINE && path->request.goroutine == g->id;
}

static bool take_goroutine(struct path *path, struct path_goroutine *g, bool complete)
{
    struct path_region life = {
        .begin_ns = g->begin_ns,
        .name = path->who[g->number].name,
        .has_begin = g->begin_ns != INT64_MIN,
    };
    if (!take_span(path, TRAIL_PATH_GOROUTINE, &life, g, path->now_ns, complete))
        return false;
    path->answered = complete && path->span.found;
    return true;
}

/* The window, back from where this goroutine ended: the answer if no goroutine runs after it. */
static bool take_last(struct path *path, struct path_goroutine *g)
{
    const struct path_region window = {.begin_ns = path->begin_ns, .has_begin = true};
    bool whole = path->request.of == TRAIL_PATH_WINDOW || path->request.of == TRAIL_PATH_LONGEST;
    return !whole || !path->logging || path->now_ns < path->begin_ns ||
           make_span(path, TRAIL_PATH_WINDOW, &window, g, path->now_ns, true, &path->last);
}

/* The task up to where this goroutine ended: the answer if no other one works on the task after it,
 * and none ends it. */
static bool take_last_of_task(struct path *path, struct path_goroutine *g)
{
    const struct path_region *task =
        path->request.of == TRAIL_PATH_TASK ? idmap_find(&path->tasks, path->request.task) : NULL;
    return !task || task->goroutine != g->number || !path->logging ||
           path->now_ns < path->begin_ns ||
           make_span(path, TRAIL_PATH_TASK, task, g, path->now_ns, false, &path->last);
}

static bool goroutine_end(struct path *path, struct path_goroutine *g)
{
    bool good = !is_asked_for(path, g) || path->answered || take_goroutine(path, g, true);
    good = good && (g->id != path->last_runner || take_last(path, g));
    good = good && take_last_of_task(path, g);
    while (g->region) {
        struct path_region *region = g->region;
        g->region = region->outer;
        if (good && wants_region(path, region) && !path->answered)
            good = take_span(path, TRAIL_PATH_REGION, region, g, path->now_ns, true);
        slab_put(&path->regions, region);
    }
    objects_drop(&path->alive, (uint64_t)g->id);
    return good;
}

static struct path_goroutine *goroutine_begin(struct path *path, int64_t id)
{
    struct path_goroutine *g = objects_get(&path->alive, (uint64_t)id);
    if (!g || path->who_count >= UINT32_MAX ||
        !GROW(path->who, path->who_capacity, path->who_count + 1))
        return NULL;
    *g = (struct path_goroutine){
        .id = id, .number = (uint32_t)path->who_count, .begin_ns = INT64_MIN};
    path->who[path->who_count++] = (struct path_who){.id = id};
    return g;
}

/* Returns what the transition to waiting waits for. */
static trail_name wait_of(struct path *path, const trail_event *event)
{
    return announced_name(&path->announced, path->names,
                          names_of(path->names, event->transition.reason));
}

static void enter(struct path *path, struct path_goroutine *g, const trail_event *event)
{
    g->state = event->transition.to;
    if (g->state == TRAIL_GO_WAITING)
        g->reason = wait_of(path, event);
    else if (g->state == TRAIL_GO_SYSCALL)
        g->reason = announced_name(&path->announced, path->names, 0);
}

/* Takes the first transition of a goroutine. */
static bool first_transition(struct path *path, const trail_event *event)
{
    struct path_goroutine *g = objects_find(&path->alive, (uint64_t)event->transition.id);
    bool created = event->transition.from == TRAIL_GO_NOT_EXIST;
    if (g && !goroutine_end(path, g))
        return false; /* another goroutine with the same ID */
    if (event->transition.to == TRAIL_GO_NOT_EXIST)
        return true;
    g = goroutine_begin(path, event->transition.id);
    if (!g)
        return false;
    trail_stack stack = stacks_of(path->stacks, event->transition.stack);
    learn_name(path, g, stack);
    enter(path, g, event);
    g->stack = stack;
    if (created)
        g->begin_ns = path->now_ns;
    if (created && is_asked_for(path, g) && path->logging && !path->answered)
        log_from_here(path);
    if (!created || !path->logging)
        return true;
    struct path_entry entry = {
        .state = g->state,
        .flags = PATH_CREATED,
        .reason = g->reason,
        .stack = stacks_of(path->stacks, event->stack),
        .where = stack,
    };
    return set_waker(path, &entry, g, event->goroutine) && log_add(path, g, &entry) != 0;
}

/* If the last hold logged is of the object of the wait that the entry ends, the waker has just
 * released that object: records how long it held it. */
static bool note_held(struct path *path, uint64_t entry, trail_name wait, const trail_event *event)
{
    const struct path_hold *hold = &path->hold;
    const struct wait_facts *facts = wait_facts_of(path->names, wait);
    if (!facts || hold->goroutine != event->goroutine || hold->time_ns > event->time_ns ||
        facts->kind != hold->kind || facts->object != hold->object)
        return true;
    return APPEND(path->held, path->held_capacity, path->held_count,
                  (struct path_held){entry, hold->ns});
}

static bool transition(struct path *path, const trail_event *event)
{
    unsigned from = event->transition.from, to = event->transition.to;
    if (from == to) {
        learn_label(path, event);
        return true;
    }
    announced_transition(&path->announced, event->transition.id);
    if (__builtin_expect(from <= TRAIL_GO_NOT_EXIST, 0))
        return first_transition(path, event);
    struct path_goroutine *g = objects_find(&path->alive, (uint64_t)event->transition.id);
    if (__builtin_expect(!g, 0))
        return true;
    if (from == TRAIL_GO_RUNNING || to == TRAIL_GO_RUNNING)
        path->last_runner = g->id;
    if (to <= TRAIL_GO_NOT_EXIST)
        return goroutine_end(path, g);
    trail_stack stack = stacks_of(path->stacks, event->transition.stack);
    if (__builtin_expect(!g->named, 0))
        learn_name(path, g, stack);
    if (path->logging) {
        struct path_entry entry = {.state = (uint8_t)to, .stack = stack};
        entry.before = entry_of(path, g);
        if (entry.before == 0)
            return false;
        if (from == TRAIL_GO_WAITING) {
            entry.flags = PATH_WAITED;
            entry.where = g->stack;
            entry.stack = stacks_of(path->stacks, event->stack);
            if (!set_waker(path, &entry, g, event->goroutine))
                return false;
        }
        if (to == TRAIL_GO_WAITING)
            entry.reason = wait_of(path, event);
        else if (to == TRAIL_GO_SYSCALL)
            entry.reason = announced_name(&path->announced, path->names, 0);
        trail_name waited = g->reason;
        if (log_add(path, g, &entry) == 0)
            return false;
        if (to == TRAIL_GO_WAITING || (to == TRAIL_GO_SYSCALL && entry.reason != 0))
            g->waited = g->entry;
        if (path->hold.kind && entry.flags & PATH_WOKEN &&
            !note_held(path, g->entry, waited, event))
            return false;
    }
    enter(path, g, event);
    if (stack != 0)
        g->stack = stack;
    return true;
}

static inline bool take_event(struct path *path, const trail_event *event)
{
    if (event->time_ns > path->now_ns)
        path->now_ns = event->time_ns;
    if (event->kind != TRAIL_STATE_TRANSITION)
        return other_event(path, event);
    if (event->transition.resource != TRAIL_RESOURCE_GOROUTINE)
        return true;
    return transition(path, event);
}

/* Prefetches the slot in the map for an event far ahead, and the goroutine of a nearer one: the map
 * and the goroutines do not fit into the first cache. A tenth of the time of `trail why`. */
static inline void prefetch(const struct idmap *alive, const trail_event *event,
                            const trail_event *end)
{
    enum { NEAR = 4, FAR = 8 };
    if (__builtin_expect(end - event <= FAR || alive->count == 0, 0))
        return;
    uint64_t far = (uint64_t)event[FAR].transition.id;
    uint64_t near = (uint64_t)event[NEAR].transition.id;
    __builtin_prefetch(&alive->slots[idmap_home(alive, far)]);
    /* May be invalid: it is then a number that is not dereferenced. */
    uintptr_t g = (uintptr_t)alive->slots[idmap_home(alive, near)].value;
    __builtin_prefetch((const void *)g);
    __builtin_prefetch((const void *)(g + sizeof(struct path_goroutine) - 1));
}

static bool take_events(void *part, const trail_event *event, const trail_event *end)
{
    struct path *path = part;
    for (; event < end && !path->answered; event++) {
        prefetch(&path->alive.map, event, end);
        if (!take_event(path, event))
            return false;
    }
    return true;
}

/* MARK: Begin and end */

static bool window_begins(void *part, int64_t ns)
{
    struct path *path = part;
    path->begin_ns = ns;
    path->now_ns = ns;
    path->logging = true;
    return true;
}

static void trace_begins(void *part, int64_t origin_ns)
{
    const struct path *path = part;
    if (path->analysis->counting)
        (void)window_begins(part, origin_ns);
}

static struct path_goroutine *by_number(const struct path *path, uint32_t number)
{
    struct path_goroutine *g = objects_find(&path->alive, (uint64_t)path->who[number].id);
    return g && g->number == number ? g : NULL;
}

/* Open spans count up to the end if none has ended. */
static bool take_open(struct path *path, struct path_goroutine *g)
{
    if (is_asked_for(path, g) && !take_goroutine(path, g, false))
        return false;
    for (const struct path_region *region = g->region; region; region = region->outer)
        if (wants_region(path, region) &&
            !take_span(path, TRAIL_PATH_REGION, region, g, path->now_ns, false))
            return false;
    return true;
}

static bool take_open_tasks(struct path *path)
{
    IDMAP_VALUES(const struct path_region, task, &path->tasks) {
        struct path_goroutine *g = by_number(path, task->goroutine);
        if (g && !take_span(path, TRAIL_PATH_TASK, task, g, path->now_ns, false))
            return false;
    }
    return true;
}

static bool take_window(struct path *path)
{
    struct path_goroutine *g =
        path->last_runner >= 0 ? objects_find(&path->alive, (uint64_t)path->last_runner) : NULL;
    if (!g && path->last.found && path->last.path.goroutine == path->last_runner &&
        path->last.path.begin_ns == path->begin_ns) {
        path->span = path->last;
        return true;
    }
    const struct idmap_slot *any = g ? NULL : idmap_next(&path->alive.map, NULL);
    if (any)
        g = any->value;
    struct path_region window = {.begin_ns = path->begin_ns, .has_begin = true};
    return !g || take_span(path, TRAIL_PATH_WINDOW, &window, g, path->now_ns, true);
}

static bool window_ends(void *part, int64_t end_ns)
{
    struct path *path = part;
    if (!path->analysis->counting)
        return true;
    if (path->now_ns < end_ns)
        path->now_ns = end_ns;
    if (path->stacks->failed)
        return false;
    if (!path->span.found)
        IDMAP_EACH(slot, &path->alive.map)
            if (!take_open(path, slot->value))
                return false;
    if (!path->span.found && !take_open_tasks(path))
        return false;
    if (!path->span.found && path->request.of == TRAIL_PATH_TASK)
        path->span = path->last;
    bool whole = path->request.of == TRAIL_PATH_WINDOW || path->request.of == TRAIL_PATH_LONGEST;
    return path->span.found || !whole || take_window(path);
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct path *path = part;
    const trail_path_request *request = &analysis->options.path;
    path->analysis = analysis;
    path->names = &analysis->names;
    path->stacks = &analysis->stacks;
    path->request = *request;
    path->alive = OBJECTS_OF(struct path_goroutine);
    path->regions.object_size = sizeof(struct path_region);
    path->last_runner = TRAIL_NONE;
    path->log_number = 1;
    if (request->of == TRAIL_PATH_REGION && request->region)
        path->region = names_of_text(path->names, request->region);
    return !path->names->failed;
}

static bool is_done(const void *part)
{
    const struct path *path = part;
    return path->answered;
}

static void drop(void *part)
{
    struct path *path = part;
    path_log_free(&path->log);
    objects_free(&path->alive);
    idmap_free(&path->tasks);
    announced_free(&path->announced);
    idmap_free(&path->expired);
    slab_free(&path->regions);
    free(path->who);
    free(path->counts);
    free(path->held);
    intern_free(&path->totals);
    free(path->rows);
}

const struct analysis_part path_part = {
    .what = TRAIL_ANALYZE_PATH,
    .size = sizeof(struct path),
    .uses_stacks = true,
    .init = init,
    .free = drop,
    .trace_begins = trace_begins,
    .window_begins = window_begins,
    .window_ends = window_ends,
    .events = take_events,
    .is_done = is_done,
};

bool trail_analysis_path(const trail_analysis *analysis, trail_path *path)
{
    const struct path *all = analysis_object(analysis, &path_part);
    if (!all || !all->span.found)
        return false;
    *path = all->span.path;
    return true;
}

int trail_analysis_path_walk(trail_analysis *analysis, trail_path_visit visit, void *context)
{
    struct path *path = analysis_object(analysis, &path_part);
    return path ? path_walk(path, visit, context) : 0;
}

size_t trail_analysis_path_totals(const trail_analysis *analysis, const trail_path_total **rows)
{
    const struct path *path = analysis_object(analysis, &path_part);
    *rows = path ? path->rows : NULL;
    return path ? path->row_count : 0;
}
