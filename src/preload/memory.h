/* The identity of locks in memory that processes share; it is the same in all of them. */
#pragma once

#include <stdint.h>

/* Returns the object (SHM_MEMORY) of an address; 0: the memory is private or unknown. */
uint64_t memory_object(const volatile void *address);
