/*
 * Walks a stack of which there is only a copy, by the .eh_frame tables of the program's files; where a file has
 * none, or on other machines than x86-64, by frame pointers.
 */
#ifndef TRAIL_COLLECT_STACK_COPY_H
#define TRAIL_COLLECT_STACK_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <trail/export.h>

#include "collect/samples.h"

/* The tables of files that were needed so far. Zero-initialised is empty. */
struct unwind_files {
    struct unwind_file *first;
};

void unwind_files_free(struct unwind_files *files);

/* The module that a PC lies in; NULL: none. */
typedef const trail_module *(*find_module_fn)(void *context, uint64_t pc);

/*
 * Writes up to max PCs, innermost first, each as a return address is (trail_resolve_fn): the interrupted one is 1
 * more. Returns how many.
 */
size_t stack_copy_walk(struct unwind_files *files, const struct cpu_sample *sample,
                       find_module_fn find, void *context, uint64_t *pcs, size_t max);

#endif
