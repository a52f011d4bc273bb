/*
 * Writing the tables out: strings, stacks with the names of their frames, the module map (§1.4, §2.6, §5.1).
 * By the thread that ends the trace (v1) or the generation (v2), when nobody else uses them.
 */
#ifndef TRAIL_TRACER_TABLES_H
#define TRAIL_TRACER_TABLES_H

#include "tracer/event.h"

/* Single records. */
const struct table_entry *string_put(uint64_t generation, const char *text, size_t size,
                                     bool *fresh);
bool v1_write_string(struct trail_writer_ *writer, uint64_t proc, uint64_t generation, uint64_t id,
                     const char *text, size_t size);
bool v2_write_string(struct trail_writer_ *writer, uint64_t generation, uint64_t id,
                     const char *text, size_t size);

/* Room for a record in a batch whose data begin with `section`. */
bool v2_section_room(struct trail_writer_ *writer, uint64_t generation, unsigned section,
                     size_t room);

/*
 * All stacks of the generation, and then all its strings, among them the module map and the clocks. False:
 * no memory, the generation is not complete.
 */
bool v2_write_tables(uint64_t generation);
/* v1: strings were written already, but for those that the stacks need. */
bool v1_write_tables(struct trail_writer_ *writer, uint64_t generation);

/* The name of a PC as the process itself knows it (symbols.c); empty strings if it does not. */
struct frame_name {
    const char *function, *file;
    unsigned line;
};
struct frame_name symbol_of(uintptr_t pc);
/* Forgets what was looked up. */
void symbols_reset(void);

#endif
