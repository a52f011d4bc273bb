/*
 * Walks the copy of a stack, by the .eh_frame tables of the program's files; by frame pointers
 * where a file has none, and on machines other than x86-64.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <trail/export.h>

#include "collect/samples.h"

/* The tables of the files needed so far. Zero-initialised: empty. */
struct unwind_files {
    struct unwind_file *first;
};

void unwind_files_free(struct unwind_files *files);

/* Returns the module that contains a PC; NULL: none. */
typedef const trail_module *(*find_module_fn)(void *context, uint64_t pc);

/*
 * Writes up to max PCs, innermost first, and returns their number. Each PC looks like a return
 * address (trail_resolve_fn): the interrupted one is increased by 1. stack_copy_frames also writes
 * the frames' stack pointers.
 */
size_t stack_copy_frames(struct unwind_files *files, const struct cpu_sample *sample,
                         find_module_fn find, void *context, uint64_t *pcs, uint64_t *sps,
                         size_t max);
size_t stack_copy_walk(struct unwind_files *files, const struct cpu_sample *sample,
                       find_module_fn find, void *context, uint64_t *pcs, size_t max);
