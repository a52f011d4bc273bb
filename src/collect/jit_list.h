/*
 * The list of a program's generated code: a line "START SIZE NAME" for each piece, in hexadecimal
 * digits (perf's interface for generated code, in the documentation of perf). Of several lines for
 * an address the last is right. All of it is hostile input.
 */
#ifndef TRAIL_COLLECT_JIT_LIST_H
#define TRAIL_COLLECT_JIT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/export.h>

struct arena;

/* Zero-initialised is empty. */
struct jit_list {
    struct jit_code {
        uint64_t start, end;
        size_t line; /* its number */
        trail_string name;
    } * code; /* once sorted, in the order of their starts, and of the lines */
    size_t count, room;
};

/*
 * Adds the whole lines of a text; *done: their bytes. Lines that are none are left out, and so are
 * those behind a million. Names are copied to the arena. False: no memory.
 */
bool jit_list_add(struct jit_list *list, struct arena *arena, const char *text, size_t size,
                  size_t *done);

/* Called after lines were added. */
void jit_list_sort(struct jit_list *list);

/* Finds the name of an address, with file and line where Node.js and Python have them in it. False:
 * there is none. */
bool jit_list_find(const struct jit_list *list, uint64_t address, trail_symbol *symbol);

void jit_list_free(struct jit_list *list);

#endif
