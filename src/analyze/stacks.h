/*
 * Stacks: those of a trace under numbers that outlive their generation, equal for equal frames, 0
 * for none. Handles of the reader are looked up once an epoch.
 */
#ifndef TRAIL_ANALYZE_STACKS_H
#define TRAIL_ANALYZE_STACKS_H

#include "analyze/names.h"

struct stack_row {
    const trail_place *places;
    size_t count;
    trail_name function; /* see stacks_function */
};

/* Set `names` and leave the rest zero. Not thread-safe. */
struct stacks {
    struct names *names;
    struct intern intern;
    struct arena arena;
    struct stack_row *rows; /* by number; row 0 is empty */
    size_t count, capacity;
    uint32_t *by_handle; /* 0: not looked up in this epoch */
    size_t handles, handle_capacity;
    uint64_t epoch;
    trail_place *scratch;
    size_t scratch_capacity;
    bool failed; /* memory was out: some stacks are 0 that are not empty */
};

/* To be called when a batch of events arrives, after names_begin_batch. */
void stacks_begin_batch(struct stacks *stacks);
void stacks_free(struct stacks *stacks);

/* The slow path of stacks_of. */
trail_stack stacks_look_up(struct stacks *stacks, trail_stack_handle handle);

static inline trail_stack stacks_of(struct stacks *stacks, trail_stack_handle handle)
{
    if (__builtin_expect(handle < stacks->handles && stacks->by_handle[handle] != 0, 1))
        return stacks->by_handle[handle];
    return handle == 0 ? 0 : stacks_look_up(stacks, handle);
}

/* The frames, leaf first. */
static inline struct stack_row stacks_get(const struct stacks *stacks, trail_stack stack)
{
    return stack < stacks->count ? stacks->rows[stack] : (struct stack_row){0};
}

/*
 * The function that says best what the stack is about: the innermost that belongs to the program,
 * not to the runtime, its locks or its system calls; if all do, the innermost.
 */
static inline trail_name stacks_function(const struct stacks *stacks, trail_stack stack)
{
    return stacks_get(stacks, stack).function;
}

/* A function below which the program is: of the runtime, of what is waited for itself; or one without a name. */
bool stacks_is_inner(trail_string function);

/* The index of the innermost frame that is the program's, in C and C++ too; 0 if none is. */
size_t stacks_own(const struct stacks *stacks, trail_stack stack);

#endif
