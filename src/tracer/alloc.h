/* The AllocFree experiment's batches (§5.5); its events are written by calls of record.h. */
#pragma once

#include <stdint.h>

/* Writes the units of addresses and calls the host's snapshot, in the first generation. */
void alloc_begin(uint64_t generation);
/* Writes all types that the host has defined, in every generation. */
void alloc_write_tables(uint64_t generation);
