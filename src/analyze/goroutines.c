#include "analyze/goroutines.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/pass.h"

/* MARK: Ps */

static struct proc *proc_make(struct goroutines *goroutines, int64_t id)
{
    struct proc *proc = slab_get(&goroutines->proc_slab);
    if (!proc)
        return NULL;
    proc->id = id;
    if (id >= 0 && id < 256)
        goroutines->near[id] = proc;
    else if (!idmap_put(&goroutines->procs, (uint64_t)id, proc))
        return NULL;
    return proc;
}

/* The P, which is known from now on. NULL when memory is out. */
static struct proc *proc_get(struct goroutines *goroutines, int64_t id)
{
    struct proc *proc =
        id >= 0 && id < 256 ? goroutines->near[id] : idmap_find(&goroutines->procs, (uint64_t)id);
    return proc ? proc : proc_make(goroutines, id);
}

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

/* With the lists of one that is over, if there is one. */
static struct goroutine *goroutine_new(struct goroutines *goroutines)
{
    struct range_time *range = NULL;
    uint32_t range_capacity = 0;
    struct goroutine *g = goroutines->free_list;
    if (g) {
        goroutines->free_list = g->next_free;
        range = g->range;
        range_capacity = g->range_capacity;
        if (g->block != g->few)
            free(g->block);
    } else {
        g = goroutine_make(goroutines);
    }
    if (!g)
        return NULL;
    *g = (struct goroutine){
        .range = range, .range_capacity = range_capacity, .block = g->few, .block_capacity = 2};
    return g;
}

/* The goroutine is seen first in this event. NULL when memory is out. */
static struct goroutine *goroutine_begin(struct trail_analysis *analysis, const trail_event *event)
{
    struct goroutines *all = &analysis->goroutines;
    struct goroutine *g = goroutine_new(all);
    if (!g)
        return NULL;
    bool created = event->transition.from == TRAIL_GO_NOT_EXIST;
    g->id = event->transition.id;
    g->creation_ns = created ? event->time_ns : all->sync_ns;
    g->since_ns = g->creation_ns > all->counted_from_ns ? g->creation_ns : all->counted_from_ns;
    g->credit = &all->nothing;
    g->in_syscall = &all->nobody;
    g->waker = TRAIL_NONE;
    if (!idmap_put(&all->alive, (uint64_t)g->id, g))
        return NULL;
    all->seen++;
    if (created && !regions_inherit(analysis, g, event))
        return NULL;
    return g;
}

static bool goroutine_end(struct trail_analysis *analysis, struct goroutine *g, int64_t now,
                          int64_t end_ns)
{
    struct goroutines *all = &analysis->goroutines;
    bool good = analysis_goroutine_ends(analysis, g, now, end_ns);
    if (*g->in_syscall == g)
        *g->in_syscall = NULL;
    (void)idmap_remove(&all->alive, (uint64_t)g->id);
    g->id = TRAIL_NONE;
    g->next_free = all->free_list;
    all->free_list = g;
    return good;
}

/* The start function is the outermost frame of the first stack that is known. */
static void goroutine_name(struct trail_analysis *analysis, struct goroutine *g,
                           trail_stack_handle stack)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(analysis->reader, stack, &count);
    if (count == 0)
        return;
    g->pc = frames[count - 1].pc;
    g->name = names_of(&analysis->names, frames[count - 1].function);
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

/* Makes the counter for a reason. NULL when memory is out. */
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

/* The counter for a reason: mostly the same as last time. */
static inline int64_t *block_counter(struct goroutine *g, trail_name reason)
{
    if (__builtin_expect(g->counter < g->block_count, 1) &&
        __builtin_expect(g->block[g->counter].name == reason, 1))
        return &g->block[g->counter].ns;
    return block_counter_make(g, reason);
}

/* Into a system call, on the P of the event if it has one. False when memory is out. */
static inline bool enter_syscall(struct goroutines *all, struct goroutine *g, int64_t id)
{
    g->credit = &g->syscall_ns;
    if (__builtin_expect(id < 0, 0))
        return true;
    struct proc *proc = id < 256 ? all->near[id] : NULL;
    if (__builtin_expect(!proc, 0))
        proc = proc_get(all, id);
    if (__builtin_expect(!proc, 0))
        return false;
    g->in_syscall = &proc->syscalling;
    proc->syscalling = g;
    return true;
}

enum entered { ENTERED, ENTERED_END, ENTERED_NO_MEMORY };

/* Sets `credit` for the new state, and what else belongs to it; or finds that it is the end. */
static inline enum entered enter(struct trail_analysis *analysis, struct goroutine *g,
                                 const trail_event *event)
{
    unsigned to = event->transition.to;
    if (to == TRAIL_GO_RUNNABLE || to == TRAIL_GO_RUNNING) {
        bool runs = to == TRAIL_GO_RUNNING;
        int64_t *const counters[2] = {&g->sched_wait_ns, &g->exec_ns};
        g->credit = counters[runs];
        if (__builtin_expect(runs > g->ran, 0)) {
            g->ran = true;
            g->start_ns = event->time_ns;
        }
    } else if (to == TRAIL_GO_WAITING) {
        g->reason = names_of(&analysis->names, event->transition.reason);
        if (__builtin_expect(g->reason == analysis->forever, 0))
            return ENTERED_END;
        g->credit = block_counter(g, g->reason);
        if (__builtin_expect(!g->credit, 0))
            return ENTERED_NO_MEMORY;
    } else if (to == TRAIL_GO_SYSCALL) {
        if (__builtin_expect(!enter_syscall(&analysis->goroutines, g, event->proc), 0))
            return ENTERED_NO_MEMORY;
    } else {
        return ENTERED_END;
    }
    return ENTERED;
}

/*
 * Counts the time in the state that is left. What was spent in a system call without a P is blocked
 * time.
 */
static inline void leave(struct goroutines *all, struct goroutine *g, int64_t now)
{
    int64_t until = now;
    if (__builtin_expect(g->bare, 0)) {
        ns_add(&g->syscall_block_ns, ns_between(g->bare_ns, now));
        until = g->bare_ns;
        g->bare = false;
    }
    ns_add(g->credit, ns_between(g->since_ns, until));
    *g->in_syscall = NULL;
    g->in_syscall = &all->nobody;
}

/* The state was not known: it was the same since the last Sync. */
static void credit_undetermined(struct goroutine *g, const trail_event *event)
{
    bool bare = event->transition.to == TRAIL_GO_SYSCALL && event->proc < 0;
    ns_add(bare ? &g->syscall_block_ns : g->credit, ns_between(g->since_ns, event->time_ns));
}

__attribute__((noinline)) static bool take_entered(struct trail_analysis *analysis,
                                                   struct goroutine *g, enum entered entered,
                                                   int64_t now)
{
    if (entered == ENTERED)
        return true;
    if (entered == ENTERED_NO_MEMORY)
        return false;
    g->credit = &analysis->goroutines.nothing;
    return goroutine_end(analysis, g, now, now);
}

/* Tells those who look at each transition, before it is taken. False when memory is out. */
__attribute__((noinline)) static bool tell(struct trail_analysis *analysis, struct goroutine *g,
                                           const trail_event *event)
{
    if (analysis->locks && !locks_transition(analysis, g, event))
        return false;
    if (analysis->find && !find_transition(analysis, g, event))
        return false;
    if (!analysis->activity)
        return true;
    activity_transition(analysis, g, event);
    return waits_transition(analysis, g, event);
}

/* The first transition of a goroutine. */
__attribute__((noinline)) static bool first_transition(struct trail_analysis *analysis,
                                                       const trail_event *event)
{
    struct goroutine *old = goroutines_find(&analysis->goroutines, event->transition.id);
    if (old && !goroutine_end(analysis, old, event->time_ns, event->time_ns))
        return false; /* somebody else with the same number */
    struct goroutine *g = goroutine_begin(analysis, event);
    if (!g)
        return false;
    if (event->transition.stack != 0)
        goroutine_name(analysis, g, event->transition.stack);
    if (analysis->tells && !tell(analysis, g, event))
        return false;
    enum entered entered = enter(analysis, g, event);
    if (event->transition.from == TRAIL_GO_UNDETERMINED && entered == ENTERED)
        credit_undetermined(g, event);
    g->state = event->transition.to;
    bool profiled = wants(analysis, TRAIL_ANALYZE_PROFILES) && entered == ENTERED;
    int64_t since = event->transition.from == TRAIL_GO_UNDETERMINED ? g->since_ns : event->time_ns;
    g->since_ns = event->time_ns;
    if (profiled && !profile_begins(analysis, g, event, since))
        return false;
    return take_entered(analysis, g, entered, event->time_ns);
}

static inline bool transition(struct trail_analysis *analysis, const trail_event *event)
{
    unsigned from = event->transition.from;
    if (from == event->transition.to)
        return true;
    if (__builtin_expect(from <= TRAIL_GO_NOT_EXIST, 0))
        return first_transition(analysis, event);
    struct goroutine *g = goroutines_find(&analysis->goroutines, event->transition.id);
    if (__builtin_expect(!g, 0))
        return true; /* is over already */
    if (__builtin_expect(g->name == 0 && event->transition.stack != 0, 0))
        goroutine_name(analysis, g, event->transition.stack);
    int64_t now = event->time_ns;
    bool woken = from == TRAIL_GO_WAITING, profiled = wants(analysis, TRAIL_ANALYZE_PROFILES);
    if (__builtin_expect(profiled, 0) && !profile_leaves(analysis, g, event))
        return false;
    if (__builtin_expect(analysis->tells, 0) && !tell(analysis, g, event))
        return false;
    leave(&analysis->goroutines, g, now);
    g->waker = woken ? event->goroutine : g->waker;
    enum entered entered = enter(analysis, g, event);
    g->since_ns = now;
    g->state = event->transition.to;
    if (__builtin_expect(profiled, 0) && entered == ENTERED && !profile_enters(analysis, g, event))
        return false;
    return __builtin_expect(entered == ENTERED, 1) || take_entered(analysis, g, entered, now);
}

static inline void proc_transition(struct goroutines *goroutines, const trail_event *event)
{
    if (event->transition.from == event->transition.to || event->transition.to != TRAIL_PROC_IDLE)
        return;
    int64_t id = event->transition.id;
    struct proc *proc =
        id >= 0 && id < 256 ? goroutines->near[id] : idmap_find(&goroutines->procs, (uint64_t)id);
    if (!proc || !proc->syscalling)
        return;
    proc->syscalling->bare = true;
    proc->syscalling->bare_ns = event->time_ns;
    proc->syscalling = NULL;
}

static inline void other_transition(struct trail_analysis *analysis, const trail_event *event)
{
    proc_transition(&analysis->goroutines, event);
    if (analysis->activity && event->transition.resource == TRAIL_RESOURCE_PROC)
        activity_proc(analysis, event);
}

const trail_event *goroutines_transitions(struct trail_analysis *analysis, const trail_event *event,
                                          const trail_event *end)
{
    for (; event < end && event->kind == TRAIL_STATE_TRANSITION; event++) {
        if (__builtin_expect(event->transition.resource != TRAIL_RESOURCE_GOROUTINE, 0))
            other_transition(analysis, event);
        else if (!transition(analysis, event))
            return NULL;
    }
    return event;
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
    uint32_t capacity = g->range_capacity ? g->range_capacity * 2 : 4;
    struct range_time *grown = reallocarray(g->range, capacity, sizeof *grown);
    if (!grown)
        return false;
    g->range = grown;
    g->range_capacity = capacity;
    return true;
}

static bool range_begin(const struct goroutines *all, struct goroutine *g, const trail_event *event,
                        trail_name name)
{
    struct range_time *range = range_find(g, name);
    if (!range) {
        if (g->range_count == g->range_capacity && !grow_range(g))
            return false;
        range = &g->range[g->range_count++];
        *range = (struct range_time){.name = name};
    }
    int64_t since = event->time_ns;
    if (event->kind == TRAIL_RANGE_ACTIVE) {
        since = all->sync_ns > all->counted_from_ns ? all->sync_ns : all->counted_from_ns;
        if (range->on)
            ns_add(&range->ns, ns_between(range->since_ns, since));
    }
    range->on = true;
    range->since_ns = since;
    return true;
}

/* Whose range it is that begins; NULL if that is nobody's. */
static struct goroutine *range_beginner(struct goroutines *all, const trail_event *event)
{
    if (event->range.scope == TRAIL_RESOURCE_GOROUTINE)
        return goroutines_find(all, event->range.scope_id);
    if (event->range.scope != TRAIL_RESOURCE_PROC)
        return NULL;
    struct goroutine *g = goroutines_find(all, event->goroutine);
    struct proc *proc = g ? proc_get(all, event->range.scope_id) : NULL;
    if (!proc)
        return NULL;
    proc->sweeping = true;
    proc->sweeper = g->id;
    return g;
}

/* Whose range it is that ends. A P's counts only for who began it. */
static struct goroutine *range_ender(struct goroutines *all, const trail_event *event)
{
    if (event->range.scope == TRAIL_RESOURCE_GOROUTINE)
        return goroutines_find(all, event->range.scope_id);
    if (event->range.scope != TRAIL_RESOURCE_PROC)
        return NULL;
    struct proc *proc = proc_get(all, event->range.scope_id);
    if (!proc || !proc->sweeping)
        return NULL;
    proc->sweeping = false;
    return proc->sweeper == event->goroutine ? goroutines_find(all, event->goroutine) : NULL;
}

bool goroutines_range(struct trail_analysis *analysis, const trail_event *event)
{
    struct goroutines *all = &analysis->goroutines;
    bool end = event->kind == TRAIL_RANGE_END;
    struct goroutine *g = end ? range_ender(all, event) : range_beginner(all, event);
    if (!g)
        return true;
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
    int64_t born =
        g->creation_ns > goroutines->counted_from_ns ? g->creation_ns : goroutines->counted_from_ns;
    *times = (trail_times){
        .exec_ns = g->exec_ns,
        .sched_wait_ns = g->sched_wait_ns,
        .syscall_ns = g->syscall_ns,
        .syscall_block_ns = g->syscall_block_ns,
        .total_ns = ns_between(born, now),
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
    if (g->bare) {
        times->open_block_ns = ns_between(g->bare_ns, now);
        ns_add(&times->sched_wait_ns, times->open_block_ns);
    }
    ns_add(&times->exec_ns, ns_between(less->exec_ns, 0));
    ns_add(&times->sched_wait_ns, ns_between(less->sched_wait_ns, 0));
    ns_add(&times->syscall_ns, ns_between(less->syscall_ns, 0));
    ns_add(&times->syscall_block_ns, ns_between(less->syscall_block_ns, 0));
    ns_add(&times->total_ns, ns_between(less->total_ns, 0));
    ns_add(&times->open_block_ns, ns_between(less->open_block_ns, 0));
    if (lists)
        copy_lists(g, now, less, lists, lists + g->block_count);
    return true;
}

/* MARK: The window, the end */

static void goroutine_count_from(struct goroutine *g, int64_t ns)
{
    size_t ranges = 0;
    bool waits = g->state == TRAIL_GO_WAITING;
    g->exec_ns = g->sched_wait_ns = g->syscall_ns = g->syscall_block_ns = 0;
    if (waits) {
        g->block[0] = (trail_named_time){.name = g->reason};
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
    g->range_count = (uint32_t)ranges;
    g->since_ns = ns;
    g->bare_ns = ns;
    regions_count_from(g);
}

void goroutines_count_from(struct goroutines *goroutines, int64_t ns)
{
    goroutines->counted_from_ns = ns;
    goroutines->seen = goroutines->alive.count;
    for (size_t i = 0; goroutines->alive.slots && i <= goroutines->alive.mask; i++)
        if (goroutines->alive.slots[i].value)
            goroutine_count_from(goroutines->alive.slots[i].value, ns);
}

bool goroutines_finish(struct trail_analysis *analysis, int64_t now)
{
    const struct idmap *alive = &analysis->goroutines.alive;
    for (size_t i = 0; alive->slots && i <= alive->mask; i++)
        if (alive->slots[i].value &&
            !analysis_goroutine_ends(analysis, alive->slots[i].value, now, 0))
            return false;
    return true;
}

static void goroutine_free(struct goroutine *g)
{
    if (g->block != g->few)
        free(g->block);
    free(g->range);
    if (g->id != TRAIL_NONE)
        regions_free_open(g);
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
    idmap_free(&goroutines->alive);
    idmap_free(&goroutines->procs);
    slab_free(&goroutines->proc_slab);
}
