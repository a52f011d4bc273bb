/*
 * Stacks: stacks of a trace as numbers that outlive a generation, equal for equal frames, 0 for
 * none. Each handle of the reader is looked up once per epoch.
 */
#pragma once

#include "analyze/names.h"
#include "words/wrappers.h"

struct stack_row {
    const trail_place *places;
    size_t count;
    size_t own;          /* index of the frame that names the place: words/wrappers.h */
    trail_name function; /* of that frame */
    /* For chains; not kept in the index of lanes: */
    bool in_go_lock; /* its innermost frames are those of a lock of Go */
    bool accepts;    /* a frame is a method Accept, which waits for connections */
};

/* Set `names`, and optionally `skip`; zero-initialise the rest. Not thread-safe. */
struct stacks {
    struct names *names;
    const char *const *skip; /* see frame_rank */
    struct intern intern;
    struct arena arena;
    struct stack_row *rows; /* by number; row 0 is empty */
    size_t count, capacity;
    uint32_t *by_handle; /* 0: not looked up in this epoch */
    size_t handles, handle_capacity;
    uint64_t epoch;
    struct idmap ranks; /* function and file -> frame_rank, + 1, as a pointer */
    trail_place *scratch;
    size_t scratch_capacity;
    bool failed; /* out of memory: some non-empty stacks are 0 */
};

/* Called when a batch of events arrives, after names_begin_batch. */
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

/* Returns the frames, leaf first. */
static inline struct stack_row stacks_get(const struct stacks *stacks, trail_stack stack)
{
    return stack < stacks->count ? stacks->rows[stack] : (struct stack_row){0};
}

/* Returns the frame that names the place or, if that is Go's time.Sleep, the one that called it; no
 * frame: the stack is empty. */
trail_place stacks_sleeper(const struct stacks *stacks, trail_stack stack);

/* Returns frame_rank of a frame; each function is looked up once. */
enum frame_rank stacks_rank(struct stacks *stacks, const trail_place *place);

/* Whether the function that names the stack's place, or one that it called, takes or releases a
 * lock, judged by its name. */
bool stacks_is_in_lock(const struct stacks *stacks, trail_stack stack);

/* Returns the function that names the place of a stack; 0 if it has no name. */
static inline trail_name stacks_function(const struct stacks *stacks, trail_stack stack)
{
    return stacks_get(stacks, stack).function;
}
