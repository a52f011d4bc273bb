/* Memory straight from the system, because the host may trace malloc or be inside it. */
#pragma once

#include <stddef.h>

/* Returns zeroed pages, or NULL. */
void *memory_map(size_t size);
void memory_unmap(void *at, size_t size);

/* Returns zeroed pages that take memory on first use, or NULL. memory_use counts them as mapped. */
void *memory_reserve(size_t size);
void memory_unreserve(void *at, size_t size);
void memory_use(size_t size);

/* For tests: returns the number of bytes that are mapped. */
size_t memory_mapped(void);

/*
 * For tests: lets the next `allowed` calls of memory_map and memory_reserve succeed and later ones
 * fail; if negative, none fails.
 */
void memory_fail_after(long allowed);
