/*
 * A progress bar on stderr: only if stderr is a terminal, for files of known size, and after one
 * second of work.
 */
#pragma once

#include <stdbool.h>
#include <trail/read.h>

struct progress {
    const trail_source *source;
    bool wanted, shown;
    int64_t begin_ms, next_ms;
    unsigned calls;
};

/* When stdout is written: if both are terminals, a bar would mix with the output. */
enum progress_output { PROGRESS_OUTPUT_AFTER, PROGRESS_OUTPUT_MEANWHILE };

void progress_begin(struct progress *progress, const trail_source *source,
                    enum progress_output output);

/* Called often; cheap. `progress` is a struct progress *, so that it fits a callback. */
void progress_step(void *progress);

/* Erases the bar. */
void progress_end(struct progress *progress);
