#include "analyze/goroutines.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/part.h"

/* MARK: Beginning and end */

static struct goroutine *goroutine_make(struct goroutines *goroutines)
{
    size_t room = sizeof goroutines->chunks->items / sizeof(struct goroutine);
    if (!goroutines->chunks || goroutines->chunk_used == room) {
        struct goroutine_chunk *chunk = aligned_alloc(64, sizeof *chunk);
        if (!chunk)
            return NULL;
        chunk->next = goroutines->chunks;
        goroutines->chunks = chunk;
        goroutines->chunk_used = 0;
    }
    return &goroutines->chunks->items[goroutines->chunk_used++];
}

/* Reuses the lists of an ended goroutine, if there is one. */
static struct followed *make(void *context)
{
    struct trail_analysis *analysis = context;
    struct goroutines *all = &analysis->goroutines;
    struct range_time *range = NULL;
    unsigned range_log = 0;
    struct goroutine *g = all->free_list;
    if (g) {
        all->free_list = g->next_free;
        range = g->range;
        range_log = g->range_log;
        if (g->block != g->few)
            free(g->block);
    } else {
        g = goroutine_make(all);
    }
    if (!g)
        return NULL;
    *g = (struct goroutine){
        .credit = &all->nothing,
        .waker = TRAIL_NONE,
        .range = range,
        .range_log = range_log & 31,
        .block = g->few,
        .block_capacity = 2,
    };
    return &g->followed;
}

static bool named(void *context, struct followed *followed, const trail_frame *start)
{
    struct trail_analysis *analysis = context;
    if (start)
        goroutine_of(followed)->pc = start->pc;
    if (start)
        names_learn(&analysis->names, followed->name, start->pc,
                    trail_reader_string(analysis->reader, start->file).size);
    return !analysis->names.failed;
}

static bool ends(void *context, struct followed *followed, const trail_event *event)
{
    struct trail_analysis *analysis = context;
    struct goroutines *all = &analysis->goroutines;
    struct goroutine *g = goroutine_of(followed);
    if (g->state == TRAIL_GO_NOT_EXIST)
        g->credit = &all->nothing;
    bool good = analysis_goroutine_ends(analysis, g, event->time_ns, event->time_ns);
    if (g->lost)
        objects_drop(&all->lost, (uint64_t)g->id);
    g->id = TRAIL_NONE;
    g->next_free = all->free_list;
    all->free_list = g;
    return good;
}

/* The time until an event shows it again belongs to no state. */
static bool lost(void *context, struct followed *followed, const trail_event *event)
{
    struct trail_analysis *analysis = context;
    struct goroutines *all = &analysis->goroutines;
    struct goroutine *g = goroutine_of(followed);
    int64_t *counter = objects_get(&all->lost, (uint64_t)g->id);
    if (!counter)
        return false;
    g->credit = counter;
    g->lost = true;
    return analysis_goroutine_lost(analysis, g, event->time_ns);
}

/* Returns for how long its state was unknown up to `now`. */
static int64_t lost_until(const struct goroutines *all, const struct goroutine *g, int64_t now)
{
    const int64_t *counter = objects_find(&all->lost, (uint64_t)g->id);
    int64_t ns = counter ? *counter : 0;
    if (counter && g->credit == counter)
        ns_add(&ns, ns_between(g->since_ns, now));
    return ns;
}

/* MARK: Transitions */

static bool grow_block(struct goroutine *g)
{
    uint32_t capacity = g->block_capacity * 2;
    trail_named_time *grown =
        reallocarray(g->block == g->few ? NULL : g->block, capacity, sizeof *grown);
    if (!grown)
        return false;
    if (g->block == g->few)
        memcpy(grown, g->few, sizeof g->few);
    g->block = grown;
    g->block_capacity = capacity;
    return true;
}

/* Adds the counter for a reason. Returns NULL if out of memory. */
static int64_t *block_counter_make(struct goroutine *g, trail_name reason)
{
    for (uint32_t i = 0; i < g->block_count; i++) {
        if (g->block[i].name == reason) {
            g->counter = (uint8_t)i;
            return &g->block[i].ns;
        }
    }
    if (g->block_count == g->block_capacity && !grow_block(g))
        return NULL;
    g->counter = (uint8_t)g->block_count;
    g->block[g->block_count] = (trail_named_time){.name = reason};
    return &g->block[g->block_count++].ns;
}

/*
 * Returns the counter for a wait, usually the same as last time. Waits of a known kind share one,
 * under the kind's name.
 */
static inline int64_t *block_counter(const struct names *names, struct goroutine *g,
                                     trail_name reason)
{
    if (__builtin_expect(g->counter < g->block_count, 1) &&
        __builtin_expect(g->block[g->counter].name == reason, 1))
        return &g->block[g->counter].ns;
    return block_counter_make(g, wait_kind_name(names, reason));
}

static bool begins(void *context, struct followed *followed, const trail_event *event,
                   int64_t since_ns)
{
    struct trail_analysis *analysis = context;
    struct goroutine *g = goroutine_of(followed);
    g->creation_ns = since_ns;
    g->since_ns = counted_since(&analysis->goroutines, since_ns);
    analysis->goroutines.seen++;
    return part_calls_transition(&analysis->begins, g, event) &&
           part_calls_transition(&analysis->leaves, g, event);
}

/*
 * Counts the time in the state that ends. Time in a system call without a P is blocked time.
 */
FOLLOW_INLINE void count_state(struct goroutine *g, int64_t now)
{
    int64_t until = now;
    if (__builtin_expect(g->p_released, 0)) {
        ns_add(&g->syscall_block_ns, ns_between(g->released_ns, now));
        until = g->released_ns;
    }
    ns_add(g->credit, ns_between(g->since_ns, until));
}

FOLLOW_INLINE bool leaves(void *context, struct followed *followed, const trail_event *event)
{
    struct trail_analysis *analysis = context;
    struct goroutine *g = goroutine_of(followed);
    if (!part_calls_transition(&analysis->leaves, g, event))
        return false;
    count_state(g, event->time_ns);
    g->waker = event->transition.from == TRAIL_GO_WAITING ? event->goroutine : g->waker;
    return true;
}

/* Sets `credit` for the new state, and related members. Returns false if out of memory. */
FOLLOW_INLINE bool set_credit(struct trail_analysis *analysis, struct goroutine *g,
                              const trail_event *event, trail_name reason)
{
    if (g->state == TRAIL_GO_WAITING) {
        g->reason = reason;
        g->waited = true;
        g->credit = block_counter(&analysis->names, g, reason);
        return g->credit != NULL;
    }
    if (g->state == TRAIL_GO_SYSCALL) {
        g->credit = &g->syscall_ns;
        g->waited = false;
        return true;
    }
    bool runs = g->state == TRAIL_GO_RUNNING;
    int64_t *const counters[2] = {&g->sched_wait_ns, &g->exec_ns};
    g->credit = counters[runs];
    if (__builtin_expect(runs > g->ran, 0)) {
        g->ran = true;
        g->start_ns = event->time_ns;
    }
    return true;
}

FOLLOW_INLINE bool enters(void *context, struct followed *followed, const trail_event *event,
                          trail_name reason)
{
    struct trail_analysis *analysis = context;
    struct goroutine *g = goroutine_of(followed);
    if (__builtin_expect(!set_credit(analysis, g, event, reason), 0))
        return false;
    return part_calls_transition(&analysis->enters, g, event);
}

/* The time before its first transition counts as its present state. */
static bool found(void *context, struct followed *followed, const trail_event *event,
                  trail_name reason, int64_t since_ns)
{
    struct trail_analysis *analysis = context;
    struct goroutine *g = goroutine_of(followed);
    int64_t since = counted_since(&analysis->goroutines, since_ns);
    bool p_released = g->state == TRAIL_GO_SYSCALL && event->proc < 0;
    int64_t *unknown = g->lost ? objects_find(&analysis->goroutines.lost, (uint64_t)g->id) : NULL;
    if (unknown)
        ns_add(unknown, ns_between(event->time_ns, since));
    if (!set_credit(analysis, g, event, reason))
        return false;
    ns_add(p_released ? &g->syscall_block_ns : g->credit, ns_between(since, event->time_ns));
    return part_calls_transition(&analysis->enters, g, event);
}

static bool loses_proc(void *context, struct followed *followed, const trail_event *event)
{
    (void)context;
    goroutine_of(followed)->released_ns = event->time_ns;
    return true;
}

static const struct follow_ops ops = {
    .make = make,
    .named = named,
    .begins = begins,
    .leaves = leaves,
    .enters = enters,
    .found = found,
    .loses_proc = loses_proc,
    .lost = lost,
    .ends = ends,
};

static inline bool other_transition(struct trail_analysis *analysis, const trail_event *event)
{
    if (event->transition.resource != TRAIL_RESOURCE_PROC)
        return true;
    return follow_proc(&analysis->goroutines.follow, &ops, analysis, event) &&
           part_calls_event(&analysis->procs, event);
}

/* `heard` is constant: one loop for traces without logs of waits, one for the others. */
FOLLOW_INLINE const trail_event *transitions(struct trail_analysis *analysis,
                                             const trail_event *event, const trail_event *end,
                                             bool heard)
{
    struct follow *follow = &analysis->goroutines.follow;
    for (; event < end && event->kind == TRAIL_STATE_TRANSITION; event++) {
        bool is_other = event->transition.resource != TRAIL_RESOURCE_GOROUTINE;
        if (__builtin_expect(is_other, 0)
                ? !other_transition(analysis, event)
                : !follow_goroutine_heard(follow, &ops, analysis, event, heard))
            return NULL;
    }
    return event;
}

static __attribute__((noinline)) const trail_event *
transitions_heard(struct trail_analysis *analysis, const trail_event *event, const trail_event *end)
{
    return transitions(analysis, event, end, true);
}

const trail_event *goroutines_transitions(struct trail_analysis *analysis, const trail_event *event,
                                          const trail_event *end)
{
    if (__builtin_expect(analysis->goroutines.follow.announced.heard, 0))
        return transitions_heard(analysis, event, end);
    return transitions(analysis, event, end, false);
}

/* MARK: Ranges */

static struct range_time *range_find(struct goroutine *g, trail_name name)
{
    for (size_t i = 0; i < g->range_count; i++)
        if (g->range[i].name == name)
            return &g->range[i];
    return NULL;
}

static bool grow_range(struct goroutine *g)
{
    enum { LEAST = 2, MOST = 26 };
    unsigned log = g->range_log ? g->range_log + 1U : LEAST;
    struct range_time *grown =
        log <= MOST ? reallocarray(g->range, (size_t)1 << log, sizeof *grown) : NULL;
    if (!grown)
        return false;
    g->range = grown;
    g->range_log = log & 31;
    return true;
}

static bool range_begin(const struct goroutines *all, struct goroutine *g, const trail_event *event,
                        trail_name name)
{
    struct range_time *range = range_find(g, name);
    if (!range) {
        uint32_t room = g->range_log ? 1U << g->range_log : 0;
        if (g->range_count == room && !grow_range(g))
            return false;
        range = &g->range[g->range_count++];
        *range = (struct range_time){.name = name};
    }
    int64_t since = event->time_ns;
    if (event->kind == TRAIL_RANGE_ACTIVE) {
        since = counted_since(all, all->follow.sync_ns);
        if (range->on)
            ns_add(&range->ns, ns_between(range->since_ns, since));
    }
    range->on = true;
    range->since_ns = since;
    return true;
}

/* Returns the goroutine to which the range that begins belongs, or NULL. */
static struct goroutine *range_beginner(struct goroutines *all, const trail_event *event,
                                        bool *no_memory)
{
    if (event->range.scope == TRAIL_RESOURCE_GOROUTINE)
        return goroutines_find(all, event->range.scope_id);
    if (event->range.scope != TRAIL_RESOURCE_PROC)
        return NULL;
    struct goroutine *g = goroutines_find(all, event->goroutine);
    struct proc *proc = g ? objects_get(&all->procs, (uint64_t)event->range.scope_id) : NULL;
    if (!proc) {
        *no_memory = g != NULL;
        return NULL;
    }
    proc->sweeping = true;
    proc->sweeper = g->id;
    return g;
}

/* Returns the goroutine to which the range that ends belongs. A P's range belongs to the goroutine
 * that began it. */
static struct goroutine *range_ender(struct goroutines *all, const trail_event *event)
{
    if (event->range.scope == TRAIL_RESOURCE_GOROUTINE)
        return goroutines_find(all, event->range.scope_id);
    if (event->range.scope != TRAIL_RESOURCE_PROC)
        return NULL;
    struct proc *proc = objects_get(&all->procs, (uint64_t)event->range.scope_id);
    if (!proc || !proc->sweeping)
        return NULL;
    proc->sweeping = false;
    return proc->sweeper == event->goroutine ? goroutines_find(all, event->goroutine) : NULL;
}

bool goroutines_range(struct trail_analysis *analysis, const trail_event *event)
{
    struct goroutines *all = &analysis->goroutines;
    bool end = event->kind == TRAIL_RANGE_END, no_memory = false;
    struct goroutine *g = end ? range_ender(all, event) : range_beginner(all, event, &no_memory);
    if (!g)
        return !no_memory;
    trail_name name = names_of(&analysis->names, event->range.name);
    if (!end)
        return range_begin(all, g, event, name);
    struct range_time *range = range_find(g, name);
    if (range && range->on) {
        ns_add(&range->ns, ns_between(range->since_ns, event->time_ns));
        range->on = false;
    }
    return true;
}

/* MARK: Where time went */

static int64_t less_of(const trail_named_time *items, uint32_t count, trail_name name)
{
    for (uint32_t i = 0; i < count; i++)
        if (items[i].name == name)
            return items[i].ns;
    return 0;
}

static void copy_lists(const struct goroutine *g, int64_t now, const trail_times *less,
                       trail_named_time *block, trail_named_time *range)
{
    for (uint32_t i = 0; i < g->block_count; i++) {
        trail_named_time item = g->block[i];
        if (g->credit == &g->block[i].ns)
            ns_add(&item.ns, ns_between(g->since_ns, now));
        ns_add(&item.ns, ns_between(less_of(less->block, less->block_count, item.name), 0));
        block[i] = item;
    }
    for (size_t i = 0; i < g->range_count; i++) {
        const struct range_time *from = &g->range[i];
        trail_named_time item = {.name = from->name, .ns = from->ns};
        if (from->on)
            ns_add(&item.ns, ns_between(from->since_ns, now));
        ns_add(&item.ns, ns_between(less_of(less->range, less->range_count, item.name), 0));
        range[i] = item;
    }
}

bool goroutine_times(const struct goroutines *goroutines, const struct goroutine *g, int64_t now,
                     const trail_times *less, struct arena *arena, trail_times *times)
{
    static const trail_times none;
    size_t count = g->block_count + g->range_count;
    trail_named_time *lists = count ? arena_alloc(arena, count * sizeof *lists) : NULL;
    if (count && !lists)
        return false;
    if (!less)
        less = &none;
    int64_t open = ns_between(g->since_ns, now);
    int64_t born = counted_since(goroutines, g->creation_ns);
    int64_t lost_ns = g->lost ? lost_until(goroutines, g, now) : 0;
    *times = (trail_times){
        .exec_ns = g->exec_ns,
        .sched_wait_ns = g->sched_wait_ns,
        .syscall_ns = g->syscall_ns,
        .syscall_block_ns = g->syscall_block_ns,
        .total_ns = ns_between(lost_ns, ns_between(born, now)),
        .lost_ns = lost_ns,
        .block = lists,
        .range = lists ? lists + g->block_count : NULL,
        .block_count = g->block_count,
        .range_count = g->range_count,
    };
    if (g->credit == &g->exec_ns)
        ns_add(&times->exec_ns, open);
    else if (g->credit == &g->sched_wait_ns)
        ns_add(&times->sched_wait_ns, open);
    else if (g->credit == &g->syscall_ns)
        ns_add(&times->syscall_ns, open);
    if (g->p_released) {
        times->open_block_ns = ns_between(g->released_ns, now);
        ns_add(&times->sched_wait_ns, times->open_block_ns);
    }
    ns_add(&times->exec_ns, ns_between(less->exec_ns, 0));
    ns_add(&times->sched_wait_ns, ns_between(less->sched_wait_ns, 0));
    ns_add(&times->syscall_ns, ns_between(less->syscall_ns, 0));
    ns_add(&times->syscall_block_ns, ns_between(less->syscall_block_ns, 0));
    ns_add(&times->total_ns, ns_between(less->total_ns, 0));
    ns_add(&times->lost_ns, ns_between(less->lost_ns, 0));
    ns_add(&times->open_block_ns, ns_between(less->open_block_ns, 0));
    if (lists)
        copy_lists(g, now, less, lists, lists + g->block_count);
    return true;
}

/* MARK: The window, the end */

static void goroutine_count_from(struct goroutine *g, const struct names *names, int64_t ns)
{
    size_t ranges = 0;
    bool waits = g->state == TRAIL_GO_WAITING;
    g->exec_ns = g->sched_wait_ns = g->syscall_ns = g->syscall_block_ns = 0;
    if (waits) {
        g->block[0] = (trail_named_time){.name = wait_kind_name(names, g->reason)};
        g->credit = &g->block[0].ns;
    }
    g->block_count = waits;
    g->counter = 0;
    for (size_t i = 0; i < g->range_count; i++) {
        if (!g->range[i].on)
            continue;
        g->range[ranges] = g->range[i];
        g->range[ranges].ns = 0;
        g->range[ranges++].since_ns = ns;
    }
    g->range_count = ranges & ((1U << 27) - 1);
    g->since_ns = ns;
    g->released_ns = ns;
}

void goroutines_count_from(struct goroutines *goroutines, int64_t ns)
{
    const struct idmap *alive = &goroutines->follow.alive;
    goroutines->counted_from_ns = ns;
    goroutines->seen = alive->count;
    IDMAP_EACH(slot, &goroutines->lost.map)
        *(int64_t *)slot->value = 0;
    IDMAP_EACH(slot, alive)
        goroutine_count_from(slot->value, goroutines->follow.names, ns);
}

bool goroutines_finish(struct trail_analysis *analysis, int64_t now)
{
    struct idmap_slot *alive = idmap_sorted(&analysis->goroutines.follow.alive);
    bool good = alive != NULL;
    for (size_t i = 0; good && i < analysis->goroutines.follow.alive.count; i++)
        good = analysis_goroutine_ends(analysis, alive[i].value, now, 0);
    free(alive);
    return good;
}

void goroutines_init(struct goroutines *goroutines, const trail_reader *reader, struct names *names)
{
    *goroutines = (struct goroutines){
        .procs = OBJECTS_OF(struct proc),
        .lost = OBJECTS_OF(int64_t),
        .counted_from_ns = INT64_MIN,
    };
    follow_init(&goroutines->follow, reader, names);
}

static void goroutine_free(struct goroutine *g)
{
    if (g->block != g->few)
        free(g->block);
    free(g->range);
}

void goroutines_free(struct goroutines *goroutines)
{
    size_t used = goroutines->chunk_used;
    for (struct goroutine_chunk *next, *chunk = goroutines->chunks; chunk; chunk = next) {
        next = chunk->next;
        for (size_t i = 0; i < used; i++)
            goroutine_free(&chunk->items[i]);
        used = sizeof chunk->items / sizeof *chunk->items;
        free(chunk);
    }
    follow_free(&goroutines->follow);
    objects_free(&goroutines->procs);
    objects_free(&goroutines->lost);
}

const struct goroutine *goroutine_timed_out(const struct trail_analysis *analysis,
                                            const trail_event *log)
{
    /* The text first: few logs are of time-outs. */
    if (!wait_log_timed_out(&analysis->names, log))
        return NULL;
    const struct goroutine *g = goroutines_find(&analysis->goroutines, log->goroutine);
    return g && g->waited ? g : NULL;
}
