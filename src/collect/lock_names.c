/* Names locks and other objects, and the places of their holds: see lock_names.h. */
#include "collect/lock_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collect/parts.h"
#include "words/place.h"
#include "words/runtimes.h"

/* A variable's name, with the process's name. */
#define OBJECT_SIZE 340

/* MARK: Objects */

/* Writes a variable's name and returns true; without one, the address. */
static bool variable_text(struct collect *c, uint64_t address, char *text, size_t size)
{
    if (code_object(c, address, text, size))
        return true;
    snprintf(text, size, "0x%" PRIx64, address);
    return false;
}

/*
 * The same for any object. Forked processes have different objects at one address: if a trace has
 * several processes, "stats_mu of server (4711)".
 */
static bool object_text(struct collect *c, uint64_t address, char *text, size_t size)
{
    const char *label = collect_label(c);
    if (shm_is_shared(address)) {
        snprintf(text, size, "shared 0x%" PRIx64, address & UINT64_MAX >> 8);
        return false;
    }
    bool is_variable = variable_text(c, address, text, size);
    if (label)
        snprintf(text + strlen(text), size - strlen(text), " of %s", label);
    return is_variable;
}

/* Objects that processes share have one name in all of them. */
static struct idmap *objects_with(struct collect *c, uint64_t address)
{
    return shm_is_shared(address) ? &c->trace->objects : &c->object_names;
}

/* Stands for the time of the hold that named a lock if no hold did: the name has no place. */
static uint64_t without_place = UINT64_MAX;

bool lock_names_has(struct collect *c, uint64_t address)
{
    return idmap_find(objects_with(c, address), address) != NULL;
}

bool lock_names_has_place(struct collect *c, uint64_t address)
{
    return lock_names_has(c, address) && idmap_find(&c->trace->holds, address) != &without_place;
}

static const char *keep_object(struct collect *c, uint64_t address, const char *text)
{
    struct arena *arena = shm_is_shared(address) ? &c->trace->arena : &c->arena;
    char *name = arena_copy(arena, text, strlen(text));
    if (!name || !idmap_put(objects_with(c, address), address, name)) {
        collect_no_memory(c);
        return "";
    }
    return name;
}

const char *lock_names_object(struct collect *c, uint64_t address)
{
    const char *known = idmap_find(objects_with(c, address), address);
    char text[OBJECT_SIZE];
    if (known)
        return known;
    (void)object_text(c, address, text, sizeof text);
    return keep_object(c, address, text);
}

const char *lock_names_file(const struct collect *c, uint64_t file)
{
    return idmap_find(&c->trace->objects, file);
}

void lock_names_file_is(struct collect *c, uint64_t file, const char *name)
{
    const char *known = lock_names_file(c, file);
    if (shm_is_file(file) && (!known || strcmp(known, name) != 0))
        (void)keep_object(c, file, name);
}

void lock_names_forget(struct collect *c, uint64_t address)
{
    (void)idmap_remove(objects_with(c, address), address);
    if (shm_is_shared(address))
        (void)idmap_remove(&c->trace->holds, address);
}

/* MARK: Locks */

/* Names a shared lock without a place, until a hold of it is known. */
static const char *keep_without_place(struct collect *c, uint64_t address, const char *name)
{
    if (!idmap_put(&c->trace->holds, address, &without_place))
        collect_no_memory(c);
    return keep_object(c, address, name);
}

const char *lock_names_lock(struct collect *c, uint64_t address, uint64_t pc, uint64_t key)
{
    const char *known = idmap_find(objects_with(c, address), address);
    struct v2_frame frames[V2_MAX_FRAMES];
    char name[OBJECT_SIZE], place[200], text[OBJECT_SIZE + 256];
    if (known && (!pc || lock_names_has_place(c, address)))
        return known;
    if (object_text(c, address, name, sizeof name))
        return keep_object(c, address, name);
    if (shm_is_shared(address) && !pc)
        return keep_without_place(c, address, name);
    if (known)
        (void)idmap_remove(&c->trace->holds, address);
    const struct v2_frame *first =
        code_own(c, frames, pc ? code_add_frames(c, pc, frames, 0) : 0, CODE_INNERMOST);
    struct named_stack *stack = !first && key ? code_named_stack(c, key) : NULL;
    if (stack)
        first = code_own_frame(c, stack);
    if (!first)
        return keep_object(c, address, name);
    (void)place_of_frame(first->function, first->file, first->line, PLACE_PLAIN, place,
                         sizeof place);
    snprintf(text, sizeof text, "%s (first seen locked in %s)", name, place);
    return keep_object(c, address, text);
}

void lock_names_shared(struct collect *c, uint64_t address, uint64_t pc, uint64_t key,
                       uint64_t time)
{
    uint64_t *named_by = idmap_find(&c->trace->holds, address);
    if (lock_names_has_place(c, address) && (!named_by || *named_by <= time))
        return;
    (void)idmap_remove(&c->trace->objects, address);
    (void)lock_names_lock(c, address, pc, key);
    if (!named_by || named_by == &without_place)
        named_by = arena_alloc(&c->trace->arena, sizeof *named_by);
    if (!named_by || !idmap_put(&c->trace->holds, address, named_by)) {
        collect_no_memory(c);
        return;
    }
    *named_by = time;
}

/* MARK: Waits of languages' libraries */

_Static_assert((int)SHM_MUTEX == (int)WIRE_LOG_MUTEX && (int)SHM_WAITS == (int)WIRE_LOGS,
               "both are generated from waits.def");

static trail_string stack_frame(const void *context, size_t frame, trail_string *file)
{
    const struct named_stack *stack = context;
    *file = stack->frames[frame].file;
    return stack->frames[frame].function;
}

static const struct runtime_wait *wait_of(struct named_stack *stack)
{
    if (!stack->runtime_known)
        stack->runtime = runtime_wait_find(stack_frame, stack, stack->count);
    stack->runtime_known = true;
    return stack->runtime;
}

static const char *keep_text(struct collect *c, const char *text)
{
    char *kept = arena_copy(&c->arena, text, strlen(text));
    if (!kept)
        collect_no_memory(c);
    return kept;
}

/* Returns the text shared by all waits with this stack, whose objects' addresses are not known. */
static const char *placed_object(struct collect *c, struct named_stack *stack, uint64_t key,
                                 const struct runtime_wait *wait)
{
    char place[300], text[400];
    if (stack->runtime_object)
        return stack->runtime_object;
    code_place(c, key, place, sizeof place);
    runtime_object_text(wait, NULL, place, text, sizeof text);
    stack->runtime_object = keep_text(c, text);
    return stack->runtime_object;
}

/* libstdc++ waits for any atomic except int through a table of words that atomics share. */
static bool is_shared_word(struct collect *c, const struct op *op)
{
    return strstr(lock_names_object(c, op->object), "__waiter_pool_base::_S_for") != NULL;
}

/* "log_mu (QMutex)" */
static void add_type(struct collect *c, const struct op *op, const char *type)
{
    const char *name = shm_is_lock(op->wait) ? lock_names_lock(c, op->object, 0, op->stack)
                                             : lock_names_object(c, op->object);
    char text[OBJECT_SIZE + 300];
    if (!*type || strstr(name, type))
        return;
    (void)snprintf(text, sizeof text, "%s (%s)", name, type);
    (void)idmap_remove(objects_with(c, op->object), op->object);
    (void)keep_object(c, op->object, text);
}

bool lock_names_gives_up(struct collect *c, uint64_t key)
{
    struct named_stack *stack = code_named_stack(c, key);
    const struct runtime_wait *wait = stack ? wait_of(stack) : NULL;
    return wait && wait->wait == WIRE_LOG_COND;
}

bool lock_names_hides_holder(struct collect *c, uint64_t key)
{
    struct named_stack *stack = code_named_stack(c, key);
    const struct runtime_wait *wait = stack ? wait_of(stack) : NULL;
    return wait && wait->object >= 0 && shm_is_lock((unsigned)wait->wait);
}

void lock_names_wait(struct collect *c, struct op *op)
{
    struct named_stack *stack;
    if ((op->wait != SHM_FUTEX && op->wait != SHM_COND) || !op->stack || op->detail)
        return;
    stack = code_named_stack(c, op->stack);
    const struct runtime_wait *wait = stack ? wait_of(stack) : NULL;
    if (!wait && stack && op->wait == SHM_COND)
        wait = runtime_wait_of_object(lock_names_object(c, op->object));
    if (!wait)
        return;
    op->wait = (uint8_t)wait->wait;
    if (wait->object < 0 || is_shared_word(c, op)) {
        op->name = placed_object(c, stack, op->stack, wait);
    } else {
        op->object -= (uint64_t)wait->object;
        add_type(c, op, wait->type);
    }
}

void lock_names_within(struct collect *c, uint64_t object, const char *where)
{
    char name[OBJECT_SIZE], text[OBJECT_SIZE + 600];
    if (lock_names_has(c, object))
        return;
    (void)object_text(c, object, name, sizeof name);
    snprintf(text, sizeof text, "%s (%s)", name, where);
    (void)keep_object(c, object, text);
}

void lock_names_unwrapped(struct collect *c, const struct op *op)
{
    struct named_stack *stack = op->stack ? code_named_stack(c, op->stack) : NULL;
    const struct v2_frame *own = stack ? code_own_frame(c, stack) : NULL;
    char text[256];
    if (!own || own == stack->frames)
        return;
    trail_string called = own[-1].function;
    /* A dynamic symbol may have a version: "dlopen@@GLIBC_2.34". */
    snprintf(text, sizeof text, "in %.*s", (int)called.size, called.data);
    text[strcspn(text, "@")] = '\0';
    lock_names_within(c, op->object, text);
}

/* MARK: Holds */

/* Appends the outer frames of the release, if its stack is known: the thread was in the same
 * functions when it took the lock. */
static uint64_t hold_stack(struct collect *c, uint64_t pc, const struct named_stack *stack)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    size_t count = code_add_frames(c, pc, frames, 0), outer = 0;
    bool found = false;
    while (stack && outer < stack->count && code_is_wrapper(c, &stack->frames[outer]))
        outer++;
    for (size_t i = 0; i < count; i++)
        found |= !code_is_wrapper(c, &frames[i]);
    /* The program's innermost function took the lock, or called a function that did and has
     * returned. */
    if (stack && outer < stack->count && found)
        outer++;
    for (; stack && outer < stack->count && count < V2_MAX_FRAMES; outer++)
        frames[count++] = stack->frames[outer];
    return count ? v2_writer_stack(c->trace->out.out, frames, count) : 0;
}

uint64_t lock_names_hold(struct collect *c, uint64_t pc, uint64_t release)
{
    struct named_stack *stack = release ? code_named_stack(c, release) : NULL;
    uint64_t generation = v2_writer_generation(c->trace->out.out);
    struct named_hold *hold;
    if (!stack)
        return hold_stack(c, pc, NULL);
    for (size_t i = 0; i < KNOWN_HOLDS; i++) {
        hold = &stack->holds[i];
        if (hold->pc == pc && hold->generation == generation)
            return hold->id;
    }
    hold = &stack->holds[stack->next_hold++ % KNOWN_HOLDS];
    *hold = (struct named_hold){generation, hold_stack(c, pc, stack), pc};
    return hold->id;
}
