/* Collects the frames of a stack, line by line: see stack_builder.h. */
#include "import/stack_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

bool stack_builder_add(struct stack_builder *builder, trail_string function, trail_string file)
{
    size_t wanted = builder->used + function.size + file.size;
    if (builder->count == V2_MAX_FRAMES)
        return true;
    if (!GROW(builder->text, builder->room, wanted + 1))
        return false;
    builder->frames[builder->count].at = builder->used;
    builder->frames[builder->count].function = function.size;
    builder->frames[builder->count].file = file.size;
    builder->count++;
    if (function.size > 0)
        memcpy(builder->text + builder->used, function.data, function.size);
    if (file.size > 0)
        memcpy(builder->text + builder->used + function.size, file.data, file.size);
    builder->used = wanted;
    return true;
}

/* Copies the texts after the frames. */
static void fill(const struct stack_builder *builder, struct import_stack *stack)
{
    char *text = (char *)(stack->frames + builder->count);
    stack->count = builder->count;
    memcpy(text, builder->text, builder->used);
    for (size_t i = 0; i < builder->count; i++) {
        char *at = text + builder->frames[i].at;
        stack->frames[i] = (struct import_frame){
            .function = {at, builder->frames[i].function},
            .file = {at + builder->frames[i].function, builder->frames[i].file},
        };
    }
}

struct import_stack *stack_builder_take(struct stack_builder *builder, bool *failed)
{
    struct import_stack *stack = NULL;
    if (builder->count > 0) {
        stack = malloc(sizeof *stack + builder->count * sizeof stack->frames[0] + builder->used);
        *failed |= !stack;
    }
    if (stack)
        fill(builder, stack);
    builder->count = builder->used = 0;
    return stack;
}

void stack_builder_free(struct stack_builder *builder)
{
    free(builder->text);
    *builder = (struct stack_builder){0};
}
