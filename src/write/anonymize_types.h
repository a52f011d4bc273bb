/*
 * Anonymous data of the AllocFree experiment (§5.5): batches of the types of heap objects, whose
 * names are the program's, and of numbers about the heap.
 */
#ifndef TRAIL_WRITE_ANONYMIZE_TYPES_H
#define TRAIL_WRITE_ANONYMIZE_TYPES_H

#include "write/anonymize.h"

/* Takes a batch of at most V2_MAX_BATCH_DATA bytes. Returns false to stop. */
typedef bool (*anonymous_put)(void *context, const void *data, size_t size);

/*
 * Passes on what the batch contains, with replaced names; in several batches if these are longer.
 * Every byte that is passed on was understood. Returns false if the batch was not, at the place
 * where that became clear.
 */
bool anonymize_alloc_free(const struct anonymizer *a, const uint8_t *data, size_t size,
                          anonymous_put put, void *context);

#endif
