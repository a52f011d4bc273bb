#include "analyze/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void stacks_begin_batch(struct stacks *stacks)
{
    const trail_reader *reader = stacks->names->reader;
    uint64_t epoch = trail_reader_epoch(reader);
    if (stacks->epoch == epoch && stacks->handles > 0)
        return;
    size_t handles = trail_reader_stack_count(reader);
    if (!GROW(stacks->by_handle, stacks->handle_capacity, handles)) {
        stacks->failed = true;
        handles = 0;
    }
    if (handles > 0)
        memset(stacks->by_handle, 0, handles * sizeof *stacks->by_handle);
    stacks->handles = handles;
    stacks->epoch = epoch;
}

static bool has_one_of(trail_string name, const char *const *prefixes)
{
    for (; *prefixes; prefixes++) {
        size_t size = strlen(*prefixes);
        if (name.size >= size && memcmp(name.data, *prefixes, size) == 0)
            return true;
    }
    return false;
}

static bool is_of_runtime(trail_string name)
{
    static const char *const prefixes[] = {"runtime.",  "runtime/", "sync.",
                                           "internal/", "syscall.", NULL};
    return has_one_of(name, prefixes);
}

/* See stacks_function. */
static trail_name function_of(const struct names *names, const trail_place *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_of_runtime(names_text(names, places[i].function)))
            return places[i].function;
    return count > 0 ? places[0].function : 0;
}

/* The number of `count` places in `scratch`. 0 when memory is out. */
static trail_stack put(struct stacks *stacks, size_t count)
{
    bool fresh;
    size_t size = count * sizeof *stacks->scratch;
    uint64_t number = intern_put(&stacks->intern, stacks->scratch, size, &fresh);
    if (number == 0 || number >= UINT32_MAX)
        return 0;
    if (!fresh)
        return (trail_stack)number;
    trail_place *copy = arena_alloc(&stacks->arena, size);
    if (!copy || !GROW(stacks->rows, stacks->capacity, (size_t)number + 1))
        return 0;
    memcpy(copy, stacks->scratch, size);
    stacks->rows[0] = (struct stack_row){0};
    stacks->rows[number] = (struct stack_row){
        .places = copy,
        .count = count,
        .function = function_of(stacks->names, copy, count),
    };
    stacks->count = (size_t)number + 1;
    return (trail_stack)number;
}

trail_stack stacks_look_up(struct stacks *stacks, trail_stack_handle handle)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(stacks->names->reader, handle, &count);
    if (count == 0)
        return 0;
    if (!GROW(stacks->scratch, stacks->scratch_capacity, count)) {
        stacks->failed = true;
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        stacks->scratch[i] = (trail_place){
            .pc = frames[i].pc,
            .line = frames[i].line,
            .function = names_of(stacks->names, frames[i].function),
            .file = names_of(stacks->names, frames[i].file),
        };
    trail_stack stack = put(stacks, count);
    stacks->failed |= stack == 0;
    if (handle < stacks->handles)
        stacks->by_handle[handle] = stack;
    return stack;
}

bool stacks_is_inner(trail_string function)
{
    /* What C and C++ programs wait in. */
    static const char *const prefixes[] = {"pthread_",    "__pthread_",  "std::", "__gthread",
                                           "__gnu_cxx::", "___pthread_", "sem_",  "mtx_",
                                           "cnd_",        "__GI_",       NULL};
    return function.size == 0 || is_of_runtime(function) || has_one_of(function, prefixes);
}

size_t stacks_own(const struct stacks *stacks, trail_stack stack)
{
    struct stack_row row = stacks_get(stacks, stack);
    for (size_t i = 0; i < row.count; i++) {
        if (!stacks_is_inner(names_text(stacks->names, row.places[i].function)))
            return i;
    }
    return 0;
}

void stacks_free(struct stacks *stacks)
{
    intern_free(&stacks->intern);
    arena_free(&stacks->arena);
    free(stacks->rows);
    free(stacks->by_handle);
    free(stacks->scratch);
}
