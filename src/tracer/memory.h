/*
 * Memory for buffers and tables, straight from the system: the tracer must not call malloc, which its
 * host may be tracing, or be inside of.
 */
#ifndef TRAIL_TRACER_MEMORY_H
#define TRAIL_TRACER_MEMORY_H

#include <stddef.h>

/* Zeroed pages, or NULL. */
void *memory_map(size_t size);
void memory_unmap(void *at, size_t size);

/* Tests: of the next calls of memory_map, the first `allowed` succeed and the rest fail; < 0: none fails. */
void memory_fail_after(long allowed);

#endif
