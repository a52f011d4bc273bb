/*
 * Memory for buffers and tables, directly from the system: the host may trace malloc, or be inside
 * it.
 */
#ifndef TRAIL_TRACER_MEMORY_H
#define TRAIL_TRACER_MEMORY_H

#include <stddef.h>

/* Returns zeroed pages, or NULL. */
void *memory_map(size_t size);
void memory_unmap(void *at, size_t size);

/*
 * Returns zeroed pages that cost memory only from their first use on, or NULL. They do not count as
 * mapped before memory_use.
 */
void *memory_reserve(size_t size);
void memory_unreserve(void *at, size_t size);
void memory_use(size_t size);

/* For tests: bytes that are mapped now. */
size_t memory_mapped(void);

/* For tests: the next `allowed` calls of memory_map and memory_reserve succeed, later ones fail; < 0: none fails. */
void memory_fail_after(long allowed);

#endif
