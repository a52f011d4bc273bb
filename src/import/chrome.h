/*
 * Chrome's trace events: what is read of the JSON (chrome.c), and what it means (chrome_spans.c).
 *
 * Events have no order, and begins and ends of spans may be anywhere: all are held, then sorted.
 */
#ifndef TRAIL_IMPORT_CHROME_H
#define TRAIL_IMPORT_CHROME_H

#include "base/arena.h"
#include "import/model.h"

#define CHROME_NAME_MAX 256 /* bytes of names and IDs that are kept */

struct chrome_span {
    int64_t begin_ns, end_ns; /* INT64_MAX: it has not ended */
    const char *name;
    uint64_t order; /* in the file, decides between equal times */
};

struct chrome_thread {
    uint64_t pid, tid;
    int32_t number; /* the TID in the trace */
    struct chrome_span *spans;
    size_t span_count, span_room;
    size_t *open; /* spans[] that have begun by B, innermost last */
    size_t open_count, open_room;
};

enum chrome_phase {
    CHROME_BEGIN,
    CHROME_END,
    CHROME_COMPLETE,
    CHROME_INSTANT,
    CHROME_ASYNC_BEGIN,
    CHROME_ASYNC_END,
    CHROME_FLOW_BEGIN, /* s */
    CHROME_FLOW_STEP,  /* t */
    CHROME_FLOW_END,   /* f */
};

struct chrome_event {
    int64_t time_ns, duration_ns;
    uint64_t order;
    uint32_t thread; /* in threads[] */
    uint8_t phase;
    const char *name;
    uint64_t id; /* of category, scope and ID: equal for what belongs together */
};

struct chrome {
    struct import_model *model;
    struct import_stats *stats;
    struct arena arena; /* names */
    struct chrome_thread *threads;
    size_t thread_count, thread_room;
    struct idmap thread_map; /* hash of PID and TID -> number in threads[] + 1 */
    struct chrome_event *events;
    size_t event_count, event_room;
    int32_t next_number; /* for threads whose TIDs cannot be used */
    uint8_t *numbers;    /* a bit for each that is used */
    bool failed;         /* memory is out */
};

/* Passes what the events mean to the model. */
void chrome_mean(struct chrome *chrome);

#endif
