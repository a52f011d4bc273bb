/*
 * Tasks: user tasks from first mention on, with who took part, their regions and logs (§9.1).
 */
#ifndef TRAIL_ANALYZE_TASKS_H
#define TRAIL_ANALYZE_TASKS_H

#include <trail/analyze.h>

#include "analyze/goroutines.h"

struct task;

/* Zero-initialised is empty and ready. Owned by its analysis. */
struct tasks {
    struct idmap by_id; /* -> struct task */
    struct task **items;
    size_t count, capacity;
    uint64_t families; /* parents set so far */
    trail_task *rows;  /* made by tasks_finish */
    uint32_t *children;
};

/* TaskBegin, TaskEnd or Log. False when memory is out. */
bool tasks_event(struct trail_analysis *analysis, const trail_event *event);

/* A region of the task begins, or ends without having begun in the trace. */
bool tasks_region(struct trail_analysis *analysis, uint64_t id, int64_t goroutine);

/* Forgets tasks that are over, and what the others had. */
void tasks_count_from(struct tasks *tasks);
bool tasks_finish(struct tasks *tasks);
void tasks_free(struct tasks *tasks);

#endif
