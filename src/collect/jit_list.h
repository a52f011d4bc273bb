/*
 * The list of a program's generated code: a line "START SIZE NAME" for each piece, in hexadecimal
 * (perf's interface for generated code, in perf's documentation). If several lines cover an
 * address, the last one applies. All of it is hostile input.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/export.h>

struct arena;

/* Zero-initialised: empty. */
struct jit_list {
    struct jit_code {
        uint64_t start, end;
        size_t line; /* line number */
        trail_string name;
    } * code; /* once sorted: by start, then by line */
    size_t count, room;
};

/*
 * Adds the complete lines of a text; *done: their bytes. Malformed lines are skipped, and so are
 * all after the first million. Names are copied to the arena. False: out of memory.
 */
bool jit_list_add(struct jit_list *list, struct arena *arena, const char *text, size_t size,
                  size_t *done);

/* Called after lines were added. */
void jit_list_sort(struct jit_list *list);

/* Finds the name of an address, with file and line if Node.js or Python put them there. False: not
 * found. */
bool jit_list_find(const struct jit_list *list, uint64_t address, trail_symbol *symbol);

void jit_list_free(struct jit_list *list);
