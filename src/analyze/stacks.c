#include "analyze/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "words/function_name.h"

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

enum frame_rank stacks_rank(struct stacks *stacks, const trail_place *place)
{
    uint64_t key = (uint64_t)place->function << 32 | place->file;
    uintptr_t known = (uintptr_t)idmap_find(&stacks->ranks, key);
    if (known)
        return (enum frame_rank)(known - 1);
    enum frame_rank rank = frame_rank(stacks->skip, names_text(stacks->names, place->function),
                                      names_text(stacks->names, place->file));
    (void)idmap_put(&stacks->ranks, key, (void *)((uintptr_t)rank + 1));
    return rank;
}

/* Returns the index of the frame that names the place. */
static size_t own_of(struct stacks *stacks, const trail_place *places, size_t count)
{
    enum frame_rank best = FRAME_NAMELESS;
    size_t own = 0;
    for (size_t i = 0; i < count && best < FRAME_OWN; i++) {
        enum frame_rank rank = stacks_rank(stacks, &places[i]);
        if (rank > best) {
            best = rank;
            own = i;
        }
    }
    return own;
}

static bool is_in_go_lock(const struct names *names, const trail_place *places, size_t count)
{
    enum { FRAMES = 6 };
    for (size_t i = 0; i < count && i < FRAMES; i++) {
        trail_string function = names_text(names, places[i].function);
        if (text_begins(function, "sync.(*Mutex)") || text_begins(function, "sync.(*RWMutex)") ||
            text_begins(function, "internal/sync.(*Mutex)"))
            return true;
    }
    return false;
}

static bool accepts(const struct names *names, const trail_place *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_ends(names_text(names, places[i].function), ").Accept"))
            return true;
    return false;
}

/* Returns the number of a stack of `count` places in `scratch`; 0 if out of memory. */
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
    size_t own = own_of(stacks, copy, count);
    stacks->rows[0] = (struct stack_row){0};
    stacks->rows[number] = (struct stack_row){
        .places = copy,
        .count = count,
        .own = own,
        .function = copy[own].function,
        .in_go_lock = is_in_go_lock(stacks->names, copy, count),
        .accepts = accepts(stacks->names, copy, count),
    };
    stacks->count = (size_t)number + 1;
    return (trail_stack)number;
}

trail_stack stacks_look_up(struct stacks *stacks, trail_stack_handle handle)
{
    size_t count;
    const trail_frame *frames = trail_reader_stack(stacks->names->reader, handle, &count);
    /* A stack that was interned but not stored would leave a gap. */
    if (count == 0 || stacks->failed)
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

void stacks_free(struct stacks *stacks)
{
    intern_free(&stacks->intern);
    idmap_free(&stacks->ranks);
    arena_free(&stacks->arena);
    free(stacks->rows);
    free(stacks->by_handle);
    free(stacks->scratch);
}

bool stacks_is_in_lock(const struct stacks *stacks, trail_stack stack)
{
    struct stack_row row = stacks_get(stacks, stack);
    for (size_t i = 0; i < row.count && i <= row.own; i++)
        if (function_name_is_of_lock(names_text(stacks->names, row.places[i].function)))
            return true;
    return false;
}

trail_place stacks_sleeper(const struct stacks *stacks, trail_stack stack)
{
    struct stack_row row = stacks_get(stacks, stack);
    size_t own = row.own;
    while (own + 1 < row.count &&
           text_is(names_text(stacks->names, row.places[own].function), "time.Sleep"))
        own++;
    return row.count > 0 ? row.places[own] : (trail_place){0};
}
