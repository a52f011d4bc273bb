/*
 * A progress bar on stderr, only if that is a terminal, only for files of known size, and only from
 * one second of work on.
 */
#ifndef TRAIL_UI_PROGRESS_H
#define TRAIL_UI_PROGRESS_H

#include <stdbool.h>
#include <trail/read.h>

struct progress {
    const trail_source *source;
    bool wanted, shown;
    int64_t begin_ms, next_ms;
    unsigned calls;
};

/* When stdout is written: if that is a terminal too, a bar would be in the middle of it. */
enum progress_output { PROGRESS_OUTPUT_AFTER, PROGRESS_OUTPUT_MEANWHILE };

void progress_begin(struct progress *progress, const trail_source *source,
                    enum progress_output output);

/* Cheap; to be called often. `progress` is a struct progress *, so that it fits a callback. */
void progress_step(void *progress);

/* Wipes the bar away. */
void progress_end(struct progress *progress);

#endif
