/* Plan: applies changes to the parts of the chains. */
#include "replay/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "words/process_name.h"

/* MARK: Names */

/* Returns the size of a function's name without parameters: "parse(char const*)" is "parse". */
static size_t bare_size(trail_string function)
{
    const char *paren = function.size ? memchr(function.data, '(', function.size) : NULL;
    /* "sync.(*Mutex).Lock" */
    if (!paren || paren == function.data || paren[-1] == '.')
        return function.size;
    return (size_t)(paren - function.data);
}

/* Whether `name`, as a user writes it, means this function: "parse", "main.parse",
 * "json::parse". */
static bool is_function(trail_string function, const char *name)
{
    size_t size = strlen(name);
    trail_string bare = {function.data, bare_size(function)};
    if (text_is(function, name) || text_is(bare, name))
        return true;
    if (size == 0 || bare.size <= size || memcmp(bare.data + bare.size - size, name, size) != 0)
        return false;
    char before = bare.data[bare.size - size - 1];
    return before == '.' || before == ':' || before == '/' || before == ' ';
}

/* Whether that is the start function of a thread, "writer (4711): flush". */
static bool is_start(trail_string thread, const char *name)
{
    struct process_name process;
    return is_function(thread, name) ||
           (process_name_of(thread, &process) && is_function(process.thread, name));
}

/* Whether that is the name of a thread, or of its kind, "worker-*". */
static bool is_thread(const struct chains *chains, trail_name thread, const char *name)
{
    return is_start(names_text(chains->names, thread), name) ||
           is_start(names_text(chains->names, names_kind(chains->names, thread)), name);
}

trail_name plan_thread_name(const struct chains *chains, const char *name)
{
    trail_name found = 0;
    for (size_t i = 0; i < chains->thread_count; i++) {
        trail_name kind = names_kind(chains->names, chains->threads[i].name);
        if (text_is(names_text(chains->names, kind), name))
            return kind;
        if (found == 0 && is_thread(chains, chains->threads[i].name, name))
            found = kind;
    }
    return found;
}

/* Whether it is a program's first thread or goroutine, of which there is only one. */
static bool is_main(trail_string name)
{
    struct process_name process;
    if (process_name_of(name, &process))
        name = process.thread;
    return text_is(name, "main") || text_is(name, "main.main");
}

unsigned plan_twice_threads(const struct chains *chains, trail_name name)
{
    enum { MOST = 512 };
    unsigned count = 0;
    if (is_main(names_text(chains->names, name)))
        return 0;
    for (size_t i = 0; i < chains->thread_count && count <= MOST; i++)
        count +=
            names_kind(chains->names, chains->threads[i].name) == names_kind(chains->names, name);
    return count <= MOST ? 2 * count : 0;
}

trail_name plan_wait_name(const struct chains *chains, const struct chain_wait *wait)
{
    const struct wait_facts *facts = wait_facts_of(chains->names, wait->name);
    if (facts)
        return facts->object ? facts->object : wait->name;
    trail_name function = stacks_function(chains->stacks, wait->stack);
    return function ? function : wait->name;
}

trail_name plan_wait_function(const struct chains *chains, const struct chain_wait *wait)
{
    return stacks_sleeper(chains->stacks, wait->stack).function;
}

/* Whether the stack contains the function. */
static bool stack_has(const struct chains *chains, trail_stack stack, const char *name)
{
    struct stack_row row = stacks_get(chains->stacks, stack);
    for (size_t i = 0; i < row.count; i++)
        if (is_function(names_text(chains->names, row.places[i].function), name))
            return true;
    return false;
}

/* Whether the lock's name is `name`, or `name` followed by where it was first seen. */
static bool is_lock(const struct chains *chains, const struct chain_lock *lock, const char *name)
{
    trail_string text = names_text(chains->names, lock->name);
    return text_is(text, name) || is_function(text, name) ||
           (text_begins(text, name) && text.data[strlen(name)] == ' ');
}

/* MARK: Functions */

/*
 * Returns the share of a class's running time that is in the function: 1 if the function is in the
 * stacks at both ends of it, else its share of CPU samples. Negative: not known.
 */
static double share_of(const struct chains *chains, size_t class, const uint64_t *hits,
                       const char *name)
{
    const struct chain_class *c = &chains->classes[class];
    if (is_thread(chains, c->thread, name))
        return 1;
    if (c->samples > 0)
        return (double)hits[class] / (double)c->samples;
    if (stack_has(chains, c->from, name) && stack_has(chains, c->to, name))
        return 1;
    return -1;
}

/* Returns for each class the number of its samples with the function; NULL if out of memory. */
static uint64_t *count_hits(const struct chains *chains, const char *name)
{
    uint64_t *hits = calloc(chains->class_count + 1, sizeof *hits);
    for (size_t i = 0; hits && i < chains->sample_count; i++)
        if (stack_has(chains, chains->samples[i].stack, name))
            hits[chains->samples[i].of] += chains->samples[i].count;
    return hits;
}

/* Samples of the threads with one name: all, and those in the function. */
struct thread_hits {
    uint64_t all, in;
};

/* Indexed by name of threads. Returns NULL if out of memory. */
static struct thread_hits *thread_hits(const struct chains *chains, const uint64_t *hits)
{
    struct thread_hits *threads = calloc(chains->names->count + 1, sizeof *threads);
    for (size_t i = 0; threads && i < chains->class_count; i++) {
        struct thread_hits *thread = &threads[chains->classes[i].thread];
        thread->all += chains->classes[i].samples;
        thread->in += hits[i];
    }
    return threads;
}

/* A class without samples gets the share of its threads. */
static bool plan_faster(struct plan *plan, const struct chains *chains, const struct change *change)
{
    uint64_t *hits = count_hits(chains, change->name);
    struct thread_hits *threads = hits ? thread_hits(chains, hits) : NULL;
    for (size_t i = 0; threads && i < chains->class_count; i++) {
        const struct thread_hits *thread = &threads[chains->classes[i].thread];
        double share = share_of(chains, i, hits, change->name);
        if (share < 0)
            share = thread->all > 0 ? (double)thread->in / (double)thread->all : 0;
        plan->classes[i] *= (float)(1 - share + share * change->factor);
    }
    bool good = threads != NULL;
    free(hits);
    free(threads);
    return good;
}

/* Returns the name of the regions with this name; 0: none. */
static trail_name region_of(const struct chains *chains, const char *name)
{
    for (size_t i = 0; i < chains->step_count; i++)
        if (chains->steps[i].op == CHAIN_REGION_BEGIN &&
            text_is(names_text(chains->names, chains->steps[i].of), name))
            return chains->steps[i].of;
    return 0;
}

/* MARK: Changes */

/* How a name means waits: the best way in which it means any. */
enum io_way { IO_KIND, IO_FUNCTION, IO_PART, IO_NONE };

static enum io_way io_way_of(const struct chains *chains, const struct chain_wait *wait,
                             const char *name)
{
    const struct wait_facts *facts = wait_facts_of(chains->names, wait->name);
    trail_string text = names_text(chains->names, wait->name);
    if (wait->end != CHAIN_TIMED)
        return IO_NONE;
    if (facts && (text_is(text_from(wire_wait_kinds[facts->kind].word), name) ||
                  text_is(names_text(chains->names, facts->object), name)))
        return IO_KIND;
    if (is_function(names_text(chains->names, plan_wait_function(chains, wait)), name))
        return IO_FUNCTION;
    bool within = (text.size > 0 && memmem(text.data, text.size, name, strlen(name))) ||
                  is_function(names_text(chains->names, plan_wait_name(chains, wait)), name);
    return within ? IO_PART : IO_NONE;
}

static enum io_way io_way(const struct chains *chains, const char *name)
{
    enum io_way best = IO_NONE;
    for (size_t i = 0; i < chains->wait_count && best != IO_KIND; i++) {
        enum io_way way = io_way_of(chains, &chains->waits[i], name);
        best = way < best ? way : best;
    }
    return best;
}

bool plan_is_waiting_function(const struct chains *chains, const char *name)
{
    return io_way(chains, name) == IO_FUNCTION;
}

static void change_io(struct plan *plan, const struct chains *chains, const struct change *change)
{
    enum io_way way = io_way(chains, change->name);
    for (size_t i = 0; i < chains->wait_count && way != IO_NONE; i++)
        if (io_way_of(chains, &chains->waits[i], change->name) == way)
            plan->waits[i] *= (float)change->factor;
}

/* No thread waits for the lock, nor up to its time limit. */
static void free_lock(struct plan *plan, const struct chains *chains, size_t lock)
{
    plan->free[lock] = true;
    for (size_t i = 0; i < chains->wait_count; i++)
        if (chains->waits[i].lock == lock && chains->waits[i].timed_out)
            plan->waits[i] = 0;
}

static bool take(struct plan *plan, const struct chains *chains, const struct change *change)
{
    trail_name region;
    switch (change->kind) {
    case CHANGE_FREE:
    case CHANGE_HOLD:
        for (size_t i = 0; i < chains->lock_count; i++)
            if (is_lock(chains, &chains->locks[i], change->name)) {
                if (change->kind == CHANGE_FREE)
                    free_lock(plan, chains, i);
                else
                    plan->locks[i] *= (float)change->factor;
            }
        return true;
    case CHANGE_FASTER:
        region = region_of(chains, change->name);
        if (region == 0)
            return plan_faster(plan, chains, change);
        plan->regions[plan->region_count] = region;
        plan->region_factors[plan->region_count++] = (float)change->factor;
        return true;
    case CHANGE_IO:
        change_io(plan, chains, change);
        return true;
    case CHANGE_CPUS:
        plan->cpus = change->cpus;
        return true;
    case CHANGE_POOL:
        plan->pool = plan_thread_name(chains, change->name);
        plan->pool_size = change->threads;
        return true;
    case CHANGE_NO_GC:
    default:
        plan->no_gc = true;
        return true;
    }
}

static float *ones(size_t count)
{
    float *list = malloc((count + 1) * sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        list[i] = 1;
    return list;
}

bool plan_make(struct plan *plan, const struct chains *chains, const struct change *changes,
               size_t count)
{
    *plan = (struct plan){
        .classes = ones(chains->class_count),
        .locks = ones(chains->lock_count),
        .free = calloc(chains->lock_count + 1, sizeof *plan->free),
        .waits = ones(chains->wait_count),
        .cpus = chains->cpus > 0 ? chains->cpus : 1,
    };
    if (!plan->classes || !plan->locks || !plan->free || !plan->waits)
        return false;
    for (size_t i = 0; i < count && i < REPLAY_CHANGES; i++)
        if (!take(plan, chains, &changes[i]))
            return false;
    for (size_t i = 0; plan->no_gc && i < chains->wait_count; i++)
        if (chains->waits[i].gc)
            plan->waits[i] = 0;
    return true;
}

void plan_free(struct plan *plan)
{
    free(plan->classes);
    free(plan->locks);
    free(plan->free);
    free(plan->waits);
}

/* MARK: Does it apply? */

static bool faster_applies(const struct chains *chains, const struct change *change, bool *certain)
{
    bool found = region_of(chains, change->name) != 0;
    uint64_t *hits = count_hits(chains, change->name);
    for (size_t i = 0; hits && !found && i < chains->class_count; i++) {
        double share = share_of(chains, i, hits, change->name);
        found = share > 0;
        *certain = *certain && share != 0 && chains->classes[i].samples == 0;
    }
    free(hits);
    return found;
}

bool plan_applies(const struct chains *chains, const struct change *change, bool *certain)
{
    *certain = true;
    switch (change->kind) {
    case CHANGE_FREE:
    case CHANGE_HOLD:
        for (size_t i = 0; i < chains->lock_count; i++)
            if (is_lock(chains, &chains->locks[i], change->name)) {
                *certain = chains->locks[i].modelled;
                return true;
            }
        return false;
    case CHANGE_FASTER:
        return faster_applies(chains, change, certain);
    case CHANGE_IO:
        return io_way(chains, change->name) != IO_NONE;
    case CHANGE_NO_GC:
        return chains->gc_ns > 0;
    case CHANGE_POOL:
        return plan_thread_name(chains, change->name) != 0;
    default:
        return true;
    }
}
