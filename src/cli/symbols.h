/*
 * Symbols of a program, from its DWARF: function, file and line of a PC. For traces of Go 1.5
 * and 1.6, whose stacks are addresses only.
 */
#ifndef TRAIL_CLI_SYMBOLS_H
#define TRAIL_CLI_SYMBOLS_H

#include <trail/read.h>

struct symbols;

/* NULL if the file cannot be read or is no program: *err says why. symbols_close accepts NULL. */
struct symbols *symbols_open(const char *path, trail_error *err);
void symbols_close(struct symbols *symbols);

/* A trail_symbolize_fn; `context` is the struct symbols. */
bool symbols_find(void *context, uint64_t pc, const char **function, const char **file,
                  uint64_t *line);

#endif
