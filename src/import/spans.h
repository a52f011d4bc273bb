/*
 * Spans, instants and flows that programs record about themselves. A reader (perfetto_tracks.c)
 * adds events in any order; span_events.c holds them, and spans.c sorts them and passes their
 * meaning to the model.
 */
#pragma once

#include "base/arena.h"
#include "import/model.h"

#define SPAN_NAME_MAX 256 /* bytes kept of a name */

struct span {
    int64_t begin_ns, end_ns; /* INT64_MAX: it has not ended */
    const char *name;
    uint64_t order; /* in the file; decides between equal times */
};

struct span_thread {
    uint64_t pid, tid;
    int32_t number; /* the TID in the trace */
    struct span *spans;
    size_t span_count, span_room;
    size_t *open; /* indices in spans[] of those begun and not ended, innermost last */
    size_t open_count, open_room;
};

enum span_phase {
    SPAN_BEGIN,
    SPAN_END,
    SPAN_COMPLETE,
    SPAN_INSTANT,
    SPAN_ASYNC_BEGIN,
    SPAN_ASYNC_END,
    SPAN_FLOW_BEGIN, /* s */
    SPAN_FLOW_STEP,  /* t */
    SPAN_FLOW_END,   /* f */
    SPAN_FLOW,       /* begins a flow, or is a step of one that has begun */
    SPAN_FLOW_LAST,  /* the same, and no event with that ID follows */
};

struct span_event {
    int64_t time_ns, duration_ns;
    uint64_t order;
    uint32_t thread; /* index in threads[] */
    uint8_t phase;
    const char *name;
    uint64_t id; /* of category, scope and ID: equal for events that belong together */
};

struct import_spans {
    struct import_model *model;
    struct import_stats *stats;
    struct arena arena; /* names */
    struct span_thread *threads;
    size_t thread_count, thread_room;
    struct idmap thread_map; /* hash of PID and TID -> index in threads[] + 1 */
    struct span_event *events;
    size_t event_count, event_room;
    int32_t next_number; /* for threads whose TIDs cannot be used */
    uint8_t *numbers;    /* a bit for each number in use */
    bool has_states;     /* the recording shows when threads run, so spans do not decide it */
    bool failed;         /* out of memory */
};

/* The meaning of a letter. Events that belong together have the same ID and, if `by_name`, the same
 * name. */
struct phase_letter {
    char letter;
    uint8_t phase; /* enum span_phase */
    bool by_name;
};

/* Returns NULL for letters that have no meaning here. */
const struct phase_letter *phase_of_letter(uint64_t letter);

bool import_spans_init(struct import_spans *spans, struct import_model *model);
void import_spans_free(struct import_spans *spans);

/* Returns the index of a thread in threads[]; 0, with spans->failed set, if out of memory. */
uint32_t import_spans_thread(struct import_spans *spans, uint64_t pid, uint64_t tid);
void import_spans_name_thread(struct import_spans *spans, uint32_t thread, trail_string name);

/* Returns a copy of the text that lives as long as the events. */
const char *import_spans_keep(struct import_spans *spans, const char *text, size_t size);

/* Adds an event; sets its place in the order. */
void import_spans_add(struct import_spans *spans, const struct span_event *event);

/* Passes the meaning of the events to the model. */
void import_spans_mean(struct import_spans *spans);
