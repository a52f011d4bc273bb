/*
 * Symbols of a program or library, from its ELF file and DWARF, by libdw and libdwfl. Files may be
 * hostile: this runs in a process of its own (symbol_process.h), and symbols.h is the interface for
 * all others. The functions are those of symbols.h of the same name.
 *
 * Separate debug information is found as libdwfl finds it: by build ID and by name, in .debug and
 * /usr/lib/debug, and from a debuginfod server only if DEBUGINFOD_URLS is set.
 */
#pragma once

#include <trail/export.h>

struct elf_symbols;
struct guard;

enum symbols_detail {
    SYMBOLS_LINES, /* names, inlined frames, files and lines */
    SYMBOLS_NAMES  /* only names from the symbol table; skips DWARF, which is large and often
                      compressed */
};

#define SYMBOLS_FRAMES 128 /* at most, of an address */

struct elf_symbols *elf_symbols_open(const char *path, const char *wanted,
                                     enum symbols_detail detail, trail_error *err);
void elf_symbols_close(struct elf_symbols *symbols);
bool elf_symbols_have_lines(const struct elf_symbols *symbols);
size_t elf_symbols_frames(struct elf_symbols *symbols, uint64_t address,
                          const trail_symbol **frames);
const char *elf_symbols_object(struct elf_symbols *symbols, uint64_t address, uint64_t *offset);
size_t elf_symbols_guards(struct elf_symbols *symbols, uint64_t address, struct guard *guards,
                          size_t max);
bool elf_symbols_find(struct elf_symbols *symbols, uint64_t pc, const char **function,
                      const char **file, uint64_t *line);
