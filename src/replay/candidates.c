/* Which changes are worth a replay: those of the locks, functions and peers that took most time. */
#include "replay/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/goroutines.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/text.h"
#include "replay/plan.h"
#include "words/wrappers.h"

/* Per kind; fewer in long traces, where each replay takes seconds. */
enum { MOST = 5, MOST_LONG = 1, LONG_STEPS = 3000000, MOST_POOLS = 2 };

/* Sums of time by name. */
struct sum {
    trail_name name;
    int64_t ns;
};

struct sums {
    struct idmap map; /* name -> index + 1 */
    struct sum *items;
    size_t count, capacity;
};

static bool add(struct sums *sums, trail_name name, int64_t ns)
{
    uintptr_t known = (uintptr_t)idmap_find(&sums->map, name);
    if (name == 0)
        return true;
    if (!known) {
        if (!GROW(sums->items, sums->capacity, sums->count + 1) ||
            !idmap_put(&sums->map, name, (void *)(uintptr_t)(sums->count + 1)))
            return false;
        sums->items[sums->count++] = (struct sum){.name = name};
        known = sums->count;
    }
    if (__builtin_add_overflow(sums->items[known - 1].ns, ns, &sums->items[known - 1].ns))
        sums->items[known - 1].ns = INT64_MAX;
    return true;
}

static int longest_first(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    return ORDER(y->ns, x->ns) ?: ORDER(x->name, y->name);
}

/* `number`: of CPUs, or of threads of a pool. */
static bool put(struct candidates *c, enum change_kind kind, trail_string name, double factor,
                unsigned number)
{
    char *own = arena_alloc(&c->arena, name.size + 1);
    if (!own)
        return false;
    if (name.size > 0)
        memcpy(own, name.data, name.size);
    own[name.size] = '\0';
    if (c->count < CANDIDATES)
        c->items[c->count++] = (struct change){.kind = kind,
                                               .name = own,
                                               .factor = factor,
                                               .cpus = kind == CHANGE_CPUS ? number : 0,
                                               .threads = kind == CHANGE_POOL ? number : 0};
    return true;
}

/* Makes a change for each of the largest sums, and frees the sums. */
static bool put_largest(struct candidates *c, const struct chains *chains, struct sums *sums,
                        bool good, enum change_kind kind, double factor)
{
    size_t most = chains->step_count > LONG_STEPS ? MOST_LONG : MOST;
    if (sums->count > 1)
        qsort(sums->items, sums->count, sizeof *sums->items, longest_first);
    for (size_t i = 0; good && i < sums->count && i < most && sums->items[i].ns > 0; i++)
        good = put(c, kind, names_text(chains->names, sums->items[i].name), factor, 0);
    idmap_free(&sums->map);
    free(sums->items);
    return good;
}

static bool put_locks(struct candidates *c, const struct chains *chains, enum change_kind kind,
                      double factor)
{
    struct sums sums = {0};
    bool good = true;
    for (size_t i = 0; good && i < chains->lock_count; i++)
        good = add(&sums, chains->locks[i].name, chains->locks[i].wait_ns);
    return put_largest(c, chains, &sums, good, kind, factor);
}

/* Returns the function that a class counts for: the program's outermost one, else the start
 * function. */
static trail_name function_of(const struct chains *chains, const struct chain_class *class)
{
    struct stack_row row = stacks_get(chains->stacks, class->to ? class->to : class->from);
    for (size_t i = row.count; i > 0; i--) {
        const trail_place *place = &row.places[i - 1];
        trail_string function = names_text(chains->names, place->function);
        if (frame_rank(chains->stacks->skip, function, names_text(chains->names, place->file)) ==
            FRAME_OWN)
            return place->function;
    }
    return class->thread;
}

/* Whether the thread belongs to Go's runtime, whose work cannot be made faster. */
static bool is_runtime(const struct chains *chains, trail_name thread)
{
    trail_string name = names_text(chains->names, thread);
    return text_begins(name, "runtime.") && !text_is(name, "runtime.main");
}

/* Adds functions by CPU samples if there are any, else by the running time of their threads. */
static bool put_functions(struct candidates *c, const struct chains *chains)
{
    struct sums sums = {0};
    bool good = true;
    for (size_t i = 0; good && i < chains->sample_count; i++) {
        const struct chain_sample *sample = &chains->samples[i];
        const struct chain_class *class = &chains->classes[sample->of];
        double each = class->samples ? (double)class->ns / (double)class->samples : 0;
        good = add(&sums, stacks_function(chains->stacks, sample->stack),
                   (int64_t)(each * (double)sample->count));
    }
    for (size_t i = 0; good && i < chains->class_count; i++)
        if (chains->classes[i].samples == 0 && !is_runtime(chains, chains->classes[i].thread))
            good = add(&sums, function_of(chains, &chains->classes[i]), chains->classes[i].ns);
    return put_largest(c, chains, &sums, good, CHANGE_FASTER, 0.5);
}

/* Adds waits ended by time or from outside. Waits for the program's own timers count as sleeps. */
static bool put_io(struct candidates *c, const struct chains *chains)
{
    struct sums sums = {0};
    bool good = true;
    for (size_t i = 0; good && i < chains->wait_count; i++) {
        const struct chain_wait *wait = &chains->waits[i];
        const struct wait_facts *facts = wait_facts_of(chains->names, wait->name);
        trail_string reason = names_text(chains->names, wait->name);
        bool io = facts ? !(wire_wait_kinds[facts->kind].traits & WIRE_WAIT_LOCK)
                        : text_is(reason, "network") || text_is(reason, "sleep");
        if (wait->end == CHAIN_TIMED && io)
            good = add(&sums, plan_wait_name(chains, wait), wait->end_ns - wait->begin_ns);
    }
    return put_largest(c, chains, &sums, good, CHANGE_IO, 0.2);
}

/* Time in which the thread ran, or waited for what no other thread ends. */
static int64_t busy_ns(const struct chains *chains, const struct chain_thread *thread)
{
    int64_t sum = 0;
    for (uint64_t i = thread->first; i < thread->first + thread->count; i++)
        if (chains->steps[i].op == CHAIN_RUN || chains->steps[i].op == CHAIN_DELAY)
            ns_add(&sum, chains->steps[i].ns);
    return sum;
}

/* Adds start functions of several threads, twice as many of these. */
static bool put_pools(struct candidates *c, const struct chains *chains)
{
    struct sums sums = {0};
    bool good = true;
    for (size_t i = 0; good && i < chains->thread_count; i++) {
        const struct chain_thread *thread = &chains->threads[i];
        if (!thread->system && !thread->gc)
            good = add(&sums, names_kind(chains->names, thread->name), busy_ns(chains, thread));
    }
    if (sums.count > 1)
        qsort(sums.items, sums.count, sizeof *sums.items, longest_first);
    for (size_t i = 0, pools = 0; good && i < sums.count && pools < MOST_POOLS; i++) {
        trail_name name = sums.items[i].name;
        unsigned twice = plan_twice_threads(chains, name);
        if (twice < 2 * 2)
            continue;
        good = put(c, CHANGE_POOL, names_text(chains->names, name), 0, twice);
        pools++;
    }
    idmap_free(&sums.map);
    free(sums.items);
    return good;
}

bool candidates_make(struct candidates *c, const struct chains *chains)
{
    const trail_string none = {"", 0};
    return put_locks(c, chains, CHANGE_FREE, 0) && put_locks(c, chains, CHANGE_HOLD, 0.5) &&
           put_functions(c, chains) && put_io(c, chains) && put_pools(c, chains) &&
           put(c, CHANGE_CPUS, none, 0, 2 * chains->cpus) &&
           (chains->gc_ns == 0 || put(c, CHANGE_NO_GC, none, 0, 0));
}

void candidates_free(struct candidates *candidates)
{
    arena_free(&candidates->arena);
}
