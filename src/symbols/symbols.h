/*
 * Symbols of a program or library, by file address. Used by `trail symbolize`, for recordings, and
 * for traces of Go 1.5 and 1.6, whose stacks contain only addresses.
 *
 * A file may be hostile, so a process of its own reads it, except for the recorder
 * (symbol_process.h). If that process crashes or exceeds its time, the file's names are missing
 * from then on, and named_files_refused reports it.
 */
#pragma once

#include "symbols/elf_symbols.h"

struct guard;
struct symbol_process;
struct symbols;

/*
 * Returns NULL with *err set if the file cannot be read, is not an ELF file, has neither symbols
 * nor lines, or does not have the build ID `wanted` (TRAIL_INCONSISTENT; hexadecimal, NULL: any).
 * `process` reads the file, and outlives the struct; NULL: a process for this file alone.
 * symbols_close accepts NULL.
 */
struct symbols *symbols_open(struct symbol_process *process, const char *path, const char *wanted,
                             enum symbols_detail detail, trail_error *err);
/* The same, read by this process, for the recorder (modules.h). */
struct symbols *symbols_open_here(const char *path, const char *wanted, enum symbols_detail detail,
                                  trail_error *err);
void symbols_close(struct symbols *symbols);

/* Whether there are files and lines, not only the names of functions. */
bool symbols_have_lines(const struct symbols *symbols);

/*
 * Gets the frames of an address, innermost first. Returns their number; 0: nothing is known.
 * *frames is valid until the next call, its texts as long as the struct.
 */
size_t symbols_frames(struct symbols *symbols, uint64_t address, const trail_symbol **frames);

/*
 * Returns the name of the variable at an address and its offset in *offset; NULL if there is none.
 * The name lives as long as the struct.
 */
const char *symbols_object(struct symbols *symbols, uint64_t address, uint64_t *offset);

/* Writes the guards (guards.h) in scope at an address, at most `max`; returns their number. */
size_t symbols_guards(struct symbols *symbols, uint64_t address, struct guard *guards, size_t max);

/* A trail_symbolize_fn; `context` is the struct symbols. */
bool symbols_find(void *context, uint64_t pc, const char **function, const char **file,
                  uint64_t *line);
