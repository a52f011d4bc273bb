/* The identity of locks in memory that processes share: of the same lock, it is the same in all of them. */
#ifndef TRAIL_PRELOAD_MEMORY_H
#define TRAIL_PRELOAD_MEMORY_H

#include <stdint.h>

/* Returns the object (SHM_MEMORY) of an address; 0: its memory is this process's own, or it is not known. */
uint64_t memory_object(const volatile void *address);

#endif
