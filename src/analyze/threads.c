/*
 * Threads and Ps: how long goroutines ran and were in system calls on each. A goroutine is placed
 * on the thread and P of the event that sets it running; one that is found running is placed by the
 * first event of its own. Running time is kept in slices.
 *
 * Memory grows with the goroutines running or in system calls, and with the rows.
 */
#include <stdlib.h>
#include <trail/analyze.h>

#include "analyze/follow.h"
#include "analyze/part.h"
#include "analyze/slices.h"
#include "base/grow.h"
#include "base/objects.h"
#include "base/order.h"

struct thread_rows {
    trail_thread *items;
    size_t count, capacity;
};

struct proc_rows {
    trail_proc *items;
    size_t count, capacity;
};

/* State of a P besides its row, at the same index. */
struct proc_state {
    int64_t since_ns;
    struct placed *syscalling; /* the goroutine in a system call on it */
    uint8_t state;             /* trail_proc_state */
};

struct threads {
    struct trail_analysis *analysis;
    struct thread_rows thread_rows;
    struct proc_rows proc_rows;
    struct proc_state *procs;
    size_t proc_capacity;
    struct idmap thread_places, proc_places; /* ID -> index of the row, + 1 */
    struct objects going;                    /* of goroutines: struct placed */
    size_t unplaced; /* those in `going` that were found and are not placed yet */
    struct slices thread_slices, proc_slices; /* running time, by index of the row */
    size_t slice_count;
    int64_t sync_ns;
    int64_t counted_from_ns;
};

/* A goroutine that runs or is in a system call. */
struct placed {
    int64_t id;
    int64_t since_ns;
    size_t thread, proc; /* their rows; SIZE_MAX: unknown, or none */
    int64_t taken_ns;    /* when its P was stolen, if `taken` */
    uint8_t state;       /* trail_go_state */
    bool found;          /* it was running or in a system call when the trace began */
    bool is_placed;      /* thread and proc are known */
    bool taken;
};

/* Returns the index of `id` in `*count` rows, adding one if it is new (*fresh). */
static bool place_of(struct idmap *places, int64_t id, size_t *count, size_t *place, bool *fresh)
{
    uintptr_t found = (uintptr_t)idmap_find(places, (uint64_t)id);
    *fresh = found == 0;
    *place = found ? found - 1 : *count;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the map holds numbers. */
    return found || idmap_put(places, (uint64_t)id, (void *)(uintptr_t)(++*count));
}

/* Sets the row of the event's thread, SIZE_MAX: none. Returns false if out of memory. */
static bool thread_get(struct threads *threads, const trail_event *event, size_t *place)
{
    struct thread_rows *rows = &threads->thread_rows;
    bool fresh;
    *place = SIZE_MAX;
    if (event->thread < 0)
        return true;
    if (!GROW(rows->items, rows->capacity, rows->count + 1) ||
        !place_of(&threads->thread_places, event->thread, &rows->count, place, &fresh))
        return false;
    if (fresh)
        rows->items[*place] = (trail_thread){.id = event->thread,
                                             .first_ns = event->time_ns,
                                             .last_ns = event->time_ns,
                                             .goroutine = TRAIL_NONE};
    return true;
}

/* Sets the row of a P. Returns false if out of memory. */
static bool proc_get(struct threads *threads, int64_t id, size_t *place)
{
    struct proc_rows *rows = &threads->proc_rows;
    bool fresh;
    if (!GROW(rows->items, rows->capacity, rows->count + 1) ||
        !GROW(threads->procs, threads->proc_capacity, rows->count + 1) ||
        !place_of(&threads->proc_places, id, &rows->count, place, &fresh))
        return false;
    if (fresh) {
        rows->items[*place] = (trail_proc){.id = id};
        threads->procs[*place] = (struct proc_state){.state = TRAIL_PROC_UNDETERMINED};
    }
    return true;
}

/* Returns the time from `since`, or from where counting began. */
static int64_t counted(const struct threads *threads, int64_t since, int64_t now)
{
    since = since > threads->counted_from_ns ? since : threads->counted_from_ns;
    return since < now ? ns_between(since, now) : 0;
}

/* MARK: Goroutines */

/* Counts the time since `g->since_ns` for the goroutine's thread and P. */
static bool credit(struct threads *threads, const struct placed *g, int64_t now)
{
    bool runs = g->state == TRAIL_GO_RUNNING;
    if (g->thread != SIZE_MAX) {
        trail_thread *thread = &threads->thread_rows.items[g->thread];
        ns_add(runs ? &thread->running_ns : &thread->syscall_ns,
               counted(threads, g->since_ns, now));
        thread->goroutine = g->id;
        if (runs && !slices_add(&threads->thread_slices, g->thread, g->since_ns, now))
            return false;
        if (g->found && g->since_ns < thread->first_ns)
            thread->first_ns =
                g->since_ns > threads->counted_from_ns ? g->since_ns : threads->counted_from_ns;
    }
    if (g->proc == SIZE_MAX)
        return true;
    trail_proc *proc = &threads->proc_rows.items[g->proc];
    ns_add(runs ? &proc->running_ns : &proc->syscall_ns,
           counted(threads, g->since_ns, g->taken ? g->taken_ns : now));
    if (runs && !slices_add(&threads->proc_slices, g->proc, g->since_ns, now))
        return false;
    if (threads->procs[g->proc].syscalling == g)
        threads->procs[g->proc].syscalling = NULL;
    return true;
}

/* The goroutine begins to run or a system call on its thread and P. */
static void count_begin(struct threads *threads, struct placed *g, unsigned from)
{
    bool runs = g->state == TRAIL_GO_RUNNING;
    bool fresh = !g->found && !(runs && from == TRAIL_GO_SYSCALL);
    if (g->thread != SIZE_MAX && fresh) {
        trail_thread *thread = &threads->thread_rows.items[g->thread];
        thread->goroutine = g->id;
        thread->runs += runs;
        thread->syscalls += !runs;
    }
    if (g->proc == SIZE_MAX)
        return;
    if (fresh) {
        threads->proc_rows.items[g->proc].runs += runs;
        threads->proc_rows.items[g->proc].syscalls += !runs;
    }
    if (!runs)
        threads->procs[g->proc].syscalling = g;
}

static bool go_transition(struct threads *threads, const trail_event *event, size_t thread)
{
    unsigned from = event->transition.from, to = event->transition.to;
    struct placed *g = objects_find(&threads->going, (uint64_t)event->transition.id);
    if (from == to)
        return true;
    if (g) {
        threads->unplaced -= !g->is_placed;
        if (!credit(threads, g, event->time_ns))
            return false;
    }
    if (to != TRAIL_GO_RUNNING && to != TRAIL_GO_SYSCALL) {
        if (g)
            objects_drop(&threads->going, (uint64_t)event->transition.id);
        return true;
    }
    if (!g && !(g = objects_get(&threads->going, (uint64_t)event->transition.id)))
        return false;
    bool found = from == TRAIL_GO_UNDETERMINED;
    *g = (struct placed){
        .id = event->transition.id,
        .since_ns = found ? threads->sync_ns : event->time_ns,
        .thread = found ? SIZE_MAX : thread,
        .proc = SIZE_MAX,
        .state = (uint8_t)to,
        .found = found,
        .is_placed = !found,
    };
    threads->unplaced += found;
    if (!found && event->proc >= 0 && !proc_get(threads, event->proc, &g->proc))
        return false;
    count_begin(threads, g, from);
    return true;
}

/* Places a goroutine that was found running, by an event of its own. Returns false on out of
 * memory. */
static bool place_found(struct threads *threads, const trail_event *event, size_t thread)
{
    struct placed *g = objects_find(&threads->going, (uint64_t)event->goroutine);
    if (!g || g->is_placed || event->proc >= TRAIL_FAKE_PROC)
        return true;
    g->is_placed = true;
    g->thread = thread;
    threads->unplaced--;
    return event->proc < 0 || proc_get(threads, event->proc, &g->proc);
}

/* MARK: Ps */

static void proc_credit(struct threads *threads, size_t place, int64_t now)
{
    trail_proc *row = &threads->proc_rows.items[place];
    const struct proc_state *proc = &threads->procs[place];
    /* Until the end, other_ns is all the time in use. */
    if (proc->state == TRAIL_PROC_RUNNING)
        ns_add(&row->other_ns, counted(threads, proc->since_ns, now));
    else if (proc->state == TRAIL_PROC_IDLE)
        ns_add(&row->idle_ns, counted(threads, proc->since_ns, now));
}

static bool proc_transition(struct threads *threads, const trail_event *event, size_t thread)
{
    unsigned from = event->transition.from, to = event->transition.to;
    size_t place;
    if (from == to)
        return true;
    if (!proc_get(threads, event->transition.id, &place))
        return false;
    struct proc_state *proc = &threads->procs[place];
    trail_proc *row = &threads->proc_rows.items[place];
    proc_credit(threads, place, event->time_ns);
    if (proc->syscalling && to == TRAIL_PROC_IDLE) {
        proc->syscalling->taken = true;
        proc->syscalling->taken_ns = event->time_ns;
        proc->syscalling = NULL;
        row->taken++;
    }
    proc->since_ns = from == TRAIL_PROC_UNDETERMINED ? threads->sync_ns : event->time_ns;
    proc->state = (uint8_t)to;
    if (from != TRAIL_PROC_IDLE || to != TRAIL_PROC_RUNNING)
        return true;
    row->starts++;
    if (thread != SIZE_MAX)
        threads->thread_rows.items[thread].procs++;
    return true;
}

static inline bool take_event(struct threads *threads, const trail_event *event)
{
    size_t thread;
    if (!thread_get(threads, event, &thread))
        return false;
    if (thread != SIZE_MAX) {
        threads->thread_rows.items[thread].events++;
        threads->thread_rows.items[thread].last_ns = event->time_ns;
    }
    if (threads->unplaced > 0 && event->goroutine >= 0 && !place_found(threads, event, thread))
        return false;
    if (event->kind == TRAIL_SYNC)
        threads->sync_ns = event->time_ns;
    if (event->kind != TRAIL_STATE_TRANSITION)
        return true;
    if (event->transition.resource == TRAIL_RESOURCE_GOROUTINE)
        return go_transition(threads, event, thread);
    return event->transition.resource != TRAIL_RESOURCE_PROC ||
           proc_transition(threads, event, thread);
}

static bool take_events(void *part, const trail_event *event, const trail_event *end)
{
    for (; event < end; event++)
        if (!take_event(part, event))
            return false;
    return true;
}

/* MARK: The window, the end */

static void trace_begins(void *part, int64_t origin_ns)
{
    struct threads *threads = part;
    threads->sync_ns = origin_ns;
    slices_begin(&threads->thread_slices, origin_ns);
    slices_begin(&threads->proc_slices, origin_ns);
}

static bool window_begins(void *part, int64_t ns)
{
    struct threads *threads = part;
    threads->counted_from_ns = ns;
    slices_begin(&threads->thread_slices, ns);
    slices_begin(&threads->proc_slices, ns);
    EACH(trail_thread, row, threads->thread_rows.items, threads->thread_rows.count) {
        *row = (trail_thread){.id = row->id, .first_ns = ns, .last_ns = ns};
    }
    EACH(trail_proc, row, threads->proc_rows.items, threads->proc_rows.count) {
        *row = (trail_proc){.id = row->id};
    }
    return true;
}

static int threads_by_id(const void *a, const void *b)
{
    const trail_thread *x = a, *y = b;
    return ORDER(x->id, y->id);
}

static int procs_by_id(const void *a, const void *b)
{
    const trail_proc *x = a, *y = b;
    return ORDER(x->id, y->id);
}

/* Counts open states, and sorts the rows. Without counted time there are no rows. */
static bool finish(void *part, int64_t now)
{
    struct threads *threads = part;
    bool counted_any = threads->analysis->counting;
    struct thread_rows *rows = &threads->thread_rows;
    struct proc_rows *procs = &threads->proc_rows;
    if (!counted_any)
        rows->count = procs->count = 0;
    if (counted_any)
        IDMAP_EACH(slot, &threads->going.map)
            (void)credit(threads, slot->value, now);
    threads->slice_count = slices_finish(&threads->thread_slices, now);
    (void)slices_finish(&threads->proc_slices, now);
    for (size_t i = 0; i < rows->count; i++) {
        trail_thread *row = &rows->items[i];
        row->idle_ns = ns_between(row->first_ns, now);
        ns_add(&row->idle_ns, -row->running_ns);
        ns_add(&row->idle_ns, -row->syscall_ns);
        row->idle_ns = row->idle_ns > 0 ? row->idle_ns : 0;
        row->running_slices = slices_of(&threads->thread_slices, i);
    }
    for (size_t i = 0; i < procs->count; i++) {
        trail_proc *row = &procs->items[i];
        proc_credit(threads, i, now);
        ns_add(&row->other_ns, -row->running_ns);
        ns_add(&row->other_ns, -row->syscall_ns);
        row->other_ns = row->other_ns > 0 ? row->other_ns : 0;
        row->running_slices = slices_of(&threads->proc_slices, i);
    }
    if (rows->count > 0)
        qsort(rows->items, rows->count, sizeof *rows->items, threads_by_id);
    if (procs->count > 0)
        qsort(procs->items, procs->count, sizeof *procs->items, procs_by_id);
    return true;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct threads *threads = part;
    threads->analysis = analysis;
    threads->going = OBJECTS_OF(struct placed);
    threads->counted_from_ns = INT64_MIN;
    return true;
}

static void drop(void *part)
{
    struct threads *threads = part;
    free(threads->thread_rows.items);
    free(threads->proc_rows.items);
    free(threads->procs);
    idmap_free(&threads->thread_places);
    idmap_free(&threads->proc_places);
    objects_free(&threads->going);
    slices_free(&threads->thread_slices);
    slices_free(&threads->proc_slices);
}

const struct analysis_part threads_part = {
    .what = TRAIL_ANALYZE_THREADS,
    .size = sizeof(struct threads),
    .init = init,
    .free = drop,
    .trace_begins = trace_begins,
    .window_begins = window_begins,
    .finish = finish,
    .events = take_events,
};

size_t trail_analysis_threads(const trail_analysis *analysis, const trail_thread **rows)
{
    const struct threads *threads = analysis_object(analysis, &threads_part);
    *rows = threads ? threads->thread_rows.items : NULL;
    return threads ? threads->thread_rows.count : 0;
}

size_t trail_analysis_procs(const trail_analysis *analysis, const trail_proc **rows)
{
    const struct threads *threads = analysis_object(analysis, &threads_part);
    *rows = threads ? threads->proc_rows.items : NULL;
    return threads ? threads->proc_rows.count : 0;
}

size_t trail_analysis_thread_slices(const trail_analysis *analysis, int64_t *slice_ns)
{
    const struct threads *threads = analysis_object(analysis, &threads_part);
    *slice_ns = threads ? (int64_t)threads->thread_slices.slice_ns : 0;
    return threads ? threads->slice_count : 0;
}
