/* The AllocFree experiment's batches (§5.5); its events are written by calls of record.h. */
#ifndef TRAIL_TRACER_ALLOC_H
#define TRAIL_TRACER_ALLOC_H

#include <stdint.h>

/* Writes the units of addresses and calls the host's snapshot, in the first generation. */
void alloc_begin(uint64_t generation);
/* Writes all types that the host has defined, in every generation. */
void alloc_write_tables(uint64_t generation);

#endif
