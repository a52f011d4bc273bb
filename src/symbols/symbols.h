/*
 * Symbols of a program or library, from its ELF file and DWARF: what is at an address of the file.
 * For the command `symbolize`, and for traces of Go 1.5 and 1.6, whose stacks are addresses only.
 */
#ifndef TRAIL_SYMBOLS_SYMBOLS_H
#define TRAIL_SYMBOLS_SYMBOLS_H

#include <trail/export.h>

struct symbols;

enum symbols_detail {
    SYMBOLS_LINES, /* names, inlined frames, files and lines */
    SYMBOLS_NAMES /* names from the symbol table: DWARF, which is large and often compressed, is not read */
};

/*
 * NULL if the file cannot be read, is no ELF file, knows no names, or has not the build ID `wanted`
 * (in hexadecimal, NULL: any): *err says why, the last as TRAIL_INCONSISTENT. Separate debug information is found as libdwfl finds it: by build ID
 * and by name, in .debug and /usr/lib/debug; from a debuginfod server only if the environment names
 * one (DEBUGINFOD_URLS). symbols_close accepts NULL.
 */
struct symbols *symbols_open(const char *path, const char *wanted, enum symbols_detail detail,
                             trail_error *err);
void symbols_close(struct symbols *symbols);

/* Whether there is more than the names of functions. */
bool symbols_have_lines(const struct symbols *symbols);

/* The frames of an address, innermost first. Returns how many; 0: nothing is known. They stay until
 * the next call; their texts as long as the struct. */
size_t symbols_frames(struct symbols *symbols, uint64_t address, const trail_symbol **frames);

/*
 * The variable at an address of the file, its offset in *offset; NULL if there is none. Stays as long as the struct.
 */
const char *symbols_object(struct symbols *symbols, uint64_t address, uint64_t *offset);

/* A trail_symbolize_fn; `context` is the struct symbols. */
bool symbols_find(void *context, uint64_t pc, const char **function, const char **file,
                  uint64_t *line);

#endif
