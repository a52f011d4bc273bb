/*
 * Reads traces, each once, in as many threads as there are CPUs.
 */
#pragma once

#include "ui/traces.h"

/*
 * Takes rows of any table. `thread` is less than the number of threads: rows of one trace come from
 * one thread, in order. Returns false if no more are needed.
 */
typedef bool (*take_rows_fn)(void *context, size_t thread, const trail_rows *rows);

/* Returns the number of threads, at least 1. */
size_t read_all_threads(const struct traces *traces);

/*
 * Gives the wanted columns of all traces. Errors in traces are reported in `traces`; a lack of
 * memory, or a file whose rest cannot be read, ends it: a part of the rows must not count as all of
 * them. Returns false then, and if `take` did.
 */
bool read_all(struct traces *traces, const uint32_t wanted[TRAIL_TABLES], take_rows_fn take,
              void *context);
