/*
 * The sorted table of functions that .eh_frame_hdr would have, made from .eh_frame alone: gcc
 * -static links no such header. .eh_frame is hostile input.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/unwind_cfi.h"

/*
 * Returns the size in bytes of the table for the entries from `frames` on; 0: there are no entries.
 */
size_t cfi_table_size(const struct cfi_module *module, uintptr_t frames);

/*
 * Writes the table to the `size` bytes at `to`, which are aligned and within 2 GiB of the entries,
 * and makes it the module's header.
 */
void cfi_table_make(struct cfi_module *module, uintptr_t frames, uintptr_t to, size_t size);
