/*
 * Chrome's trace events: what is read of the JSON (chrome.c) is held (chrome_events.c), and what it means
 * (chrome_spans.c). Perfetto's track events are the same in another form (perfetto_tracks.h).
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
    CHROME_FLOW,       /* begins a flow, or is a step of the one that has begun */
    CHROME_FLOW_LAST,  /* the same, and nothing of that ID follows */
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
    bool has_states;     /* the recording says when threads run: spans do not decide it */
    bool failed;         /* memory is out */
};

/* What `ph` says; events that belong together have one ID, and, by name, one name. */
struct chrome_letter {
    char letter;
    uint8_t phase; /* enum chrome_phase */
    bool by_name;
};

/* Returns NULL for letters that have no meaning here. */
const struct chrome_letter *chrome_letter(uint64_t letter);

bool chrome_init(struct chrome *chrome, struct import_model *model);
void chrome_free(struct chrome *chrome);

/* The place of a thread in threads[]; 0 if memory is out, which chrome->failed says. */
uint32_t chrome_thread(struct chrome *chrome, uint64_t pid, uint64_t tid);
void chrome_name(struct chrome *chrome, uint32_t thread, trail_string name);

/* Returns a copy of the text that lives as long as the events. */
const char *chrome_keep(struct chrome *chrome, const char *text, size_t size);

/* Takes an event; its place in the order is set here. */
void chrome_add(struct chrome *chrome, const struct chrome_event *event);

/* Passes what the events mean to the model. */
void chrome_mean(struct chrome *chrome);

#endif
