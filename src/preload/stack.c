/* Stores call stacks and texts in the area, each once: see stack_table.h. */
#include "shm/stack_table.h"

#include <string.h>

#include "preload/preload.h"

static size_t walk(const struct unwind_start *caller, uintptr_t *pcs)
{
    if (preload.area->header.stacks == SHM_STACKS_NONE)
        return 0;
    return unwind_stack(caller, unwind_end(caller->sp, self.stack_low, self.stack_end), pcs,
                        SHM_STACK_FRAMES);
}

uint32_t stack_of(const struct unwind_start *caller)
{
    uintptr_t pcs[SHM_STACK_FRAMES];
    size_t count = walk(caller, pcs);
    return count ? stack_table_number(preload.area, count, pcs, count) : 0;
}

uint32_t stack_from(const struct unwind_start *caller, uintptr_t pc)
{
    uintptr_t pcs[SHM_STACK_FRAMES];
    size_t count = walk(caller, pcs), from = 0;
    while (from < count && pcs[from] != pc)
        from++;
    if (from == count)
        from = 0;
    return count ? stack_table_number(preload.area, count - from, pcs + from, count - from) : 0;
}

uint32_t stack_of_place(uintptr_t pc)
{
    return preload.area->header.stacks == SHM_STACKS_NONE
               ? 0
               : stack_table_number(preload.area, 1, &pc, 1);
}

uint32_t text_of(const char *text)
{
    uintptr_t words[SHM_TEXT_MAX / sizeof(uintptr_t)] = {0};
    size_t size = text ? strnlen(text, SHM_TEXT_MAX) : 0;
    if (size == 0)
        return 0;
    memcpy(words, text, size);
    return stack_table_number(preload.area, SHM_TEXT_BIT + size, words,
                              (size + sizeof words[0] - 1) / sizeof words[0]);
}
