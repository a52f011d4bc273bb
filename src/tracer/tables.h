/*
 * Writes the tables to the trace: strings, stacks with the names of their frames, the module map
 * (§1.4, §2.6, §5.1). Called by the thread that ends the trace (v1) or the generation (v2), when no
 * other thread uses them.
 */
#pragma once

#include "tracer/event.h"

/* Writing single strings. */
const struct table_entry *string_put(uint64_t generation, const char *text, size_t size,
                                     bool *fresh);
bool v1_write_string(struct trail_writer_ *writer, uint64_t proc, uint64_t generation, uint64_t id,
                     const char *text, size_t size);
bool v2_write_string(struct trail_writer_ *writer, uint64_t generation, uint64_t id,
                     const char *text, size_t size);

/* Ensures `room` bytes in a batch whose data begin with `section`. False: no memory. */
bool v2_section_room(struct trail_writer_ *writer, uint64_t generation, unsigned section,
                     size_t room);

/*
 * Writes all stacks of the generation, then all its strings with the module map. Returns false if
 * there is no memory and the generation is incomplete.
 */
bool v2_write_tables(uint64_t generation);
/* v1: writes the stacks with the strings that they need; other strings are written already. */
bool v1_write_tables(struct trail_writer_ *writer, uint64_t generation);

/* The name of a PC as known to the process (symbols.c); empty strings if unknown. */
struct frame_name {
    const char *function, *file;
    unsigned line;
};
struct frame_name symbol_of(uintptr_t pc);
/* Frees the cache of names. */
void symbols_reset(void);
