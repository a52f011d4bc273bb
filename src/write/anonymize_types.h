/*
 * Anonymous data of the AllocFree experiment (§5.5): batches of the types of heap objects, whose
 * names come from the program, and of numbers about the heap.
 */
#pragma once

#include "write/anonymize.h"

/* Takes a batch of at most V2_MAX_BATCH_DATA bytes. Returns false to stop. */
typedef bool (*anonymous_put)(void *context, const void *data, size_t size);

/*
 * Passes on the batch with replaced names; as several batches if these are longer. Only bytes that
 * were understood are passed on. Returns false at the first one that was not.
 */
bool anonymize_alloc_free(const struct anonymizer *a, const uint8_t *data, size_t size,
                          anonymous_put put, void *context);
