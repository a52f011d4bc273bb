/*
 * Reads traces, each once, in several threads.
 */
#pragma once

#include "ui/traces.h"

/*
 * Takes rows of any table. `thread` is less than the number of threads: rows of one trace come from
 * one thread, in order. Returns false if no more are needed.
 */
typedef bool (*take_rows_fn)(void *context, size_t thread, const trail_rows *rows);

/* Returns how many threads are worth it: one for each CPU, at most 8, and at least 1. */
size_t read_all_threads(const struct traces *traces);

/*
 * Gives the wanted columns of all traces. Errors in traces are reported in `traces`; a lack of
 * memory, or a file whose rest cannot be read, stops the pass, so that incomplete rows are not
 * taken for complete ones. Returns false then, and if `take` did.
 */
bool read_all(struct traces *traces, size_t threads, const uint32_t wanted[TRAIL_TABLES],
              take_rows_fn take, void *context);
