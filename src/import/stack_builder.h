/* A call stack read line by line: frames are appended, then copied into one piece for an event. */
#pragma once

#include "import/event.h"
#include "wire/wire.h"

/* Zero-initialised: empty. Texts are offsets until the end, because `text` moves when it grows. */
struct stack_builder {
    struct {
        size_t at, function, file; /* offset of the texts, and their sizes */
    } frames[V2_MAX_FRAMES];
    size_t count;
    char *text;
    size_t used, room;
};

/* Appends an outer frame; frames beyond the trace's limit are left out. Returns false if out of
 * memory. */
bool stack_builder_add(struct stack_builder *builder, trail_string function, trail_string file);

/* Returns the stack and starts an empty one; NULL if there are no frames, or with *failed set. */
struct import_stack *stack_builder_take(struct stack_builder *builder, bool *failed);

void stack_builder_free(struct stack_builder *builder);
