/* The AllocFree experiment's batches (§5.5); its events are calls of record.h. */
#ifndef TRAIL_TRACER_ALLOC_H
#define TRAIL_TRACER_ALLOC_H

#include <stdint.h>

/* The first generation: the units of addresses, and the host's snapshot. */
void alloc_begin(uint64_t generation);
/* Every generation: all types that the host has told. */
void alloc_write_tables(uint64_t generation);

#endif
