/*
 * The model: what the events of a recording mean for threads and CPUs (docs/importing.md).
 */
#pragma once

#include "import/threads.h"
#include "import/window.h"

/* Owned by import.c. */
struct import_model {
    struct import_threads threads;
    struct import_window window;
    void (*progress)(void *context); /* called at each event; NULL: none */
    void *progress_context;
    bool has_waking; /* wake-ups name their wakers, so sched_wakeup is not needed for that */
};

/* Takes an event and what it owns; earlier events may be written. Returns false if out of
 * memory. */
bool import_model_put(struct import_model *model, const struct import_event *event);

/* Writes all remaining events. Returns false if out of memory. */
bool import_model_end(struct import_model *model);
