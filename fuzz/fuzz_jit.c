/*
 * A list of generated code, added in two pieces: the name that an address has is a part of a line that covers the address.
 */
#include "base/arena.h"
#include "collect/jit_list.h"
#include "fuzz.h"

static bool is_in(trail_string part, const uint8_t *data, size_t size)
{
    return part.size == 0 || memmem(data, size, part.data, part.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jit_list list = {0};
    struct arena arena = {0};
    const char *text = (const char *)data;
    size_t half = size / 2, done, rest;
    FUZZ_HOLDS(jit_list_add(&list, &arena, text, half, &done) && done <= half);
    FUZZ_HOLDS(jit_list_add(&list, &arena, text + done, size - done, &rest) && done + rest <= size);
    jit_list_sort(&list);
    for (size_t i = 0; i < list.count; i++) {
        trail_symbol symbol;
        FUZZ_HOLDS(list.code[i].start < list.code[i].end);
        FUZZ_HOLDS(jit_list_find(&list, list.code[i].start, &symbol));
        FUZZ_HOLDS(symbol.function.size > 0);
        FUZZ_HOLDS(is_in(symbol.file, data, size));
        /* No line covers it: found or not, nothing is read beyond the list. */
        (void)jit_list_find(&list, list.code[i].end, &symbol);
    }
    jit_list_free(&list);
    arena_free(&arena);
    return 0;
}
