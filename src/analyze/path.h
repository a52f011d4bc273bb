/*
 * The critical path: which goroutine the work of a span was waiting for at each time.
 *
 * Forwards, each change of state is written to a log (path_log.h), with its cause. Which span was
 * requested is known when it ends, often only at the end of the trace; where it is known when it
 * begins, the log begins there. Backwards (path_walk.c), the path goes from the last entry of the
 * goroutine in which the span ends, entry by entry.
 */
#pragma once

#include "analyze/path_log.h"
#include "analyze/stacks.h"
#include "analyze/wait_names.h"
#include "base/objects.h"

struct path_region;
struct trail_analysis;

/* A goroutine alive. */
struct path_goroutine {
    uint64_t entry;  /* its latest in the log */
    uint64_t waited; /* of its last wait, in the log numbered `log` */
    uint32_t number; /* its row in the list of names */
    uint32_t log;    /* number of the log that `entry` is in */
    trail_name reason;
    trail_stack stack;
    int64_t id;
    uint8_t state;
    bool named;                 /* its name is in that row */
    struct path_region *region; /* innermost first */
    int64_t begin_ns;
};

/* What is kept of a goroutine after its end. */
struct path_who {
    int64_t id;
    trail_name name;
};

/* An open task or region. */
struct path_region {
    struct path_region *outer;
    int64_t begin_ns;
    uint64_t task, nth;
    trail_name name;
    bool has_begin;
    uint32_t goroutine; /* number; of a task: the last one that worked on it */
};

/* The requested span, or the best candidate so far. */
struct path_span {
    bool found;
    trail_path path;
    uint64_t entry;    /* of the goroutine in which it ends; 0: none */
    uint32_t number;   /* of that goroutine */
    trail_stack stack; /* its stack at the end */
    int64_t length_ns;
};

/* A log of a hold that ends. */
struct path_hold {
    int64_t goroutine;
    trail_name object;
    enum wire_wait kind; /* WIRE_WAIT_NONE: none */
    int64_t ns, time_ns;
};

/* An entry in which a wait ends because its object is released. In the order of entries. */
struct path_held {
    uint64_t entry;
    int64_t ns;
};

struct path {
    struct trail_analysis *analysis;
    struct names *names;
    struct stacks *stacks;
    trail_path_request request;
    trail_name region; /* the requested name */
    struct path_log log;
    uint32_t log_number;
    bool logging, answered;
    int64_t now_ns, begin_ns;
    struct objects alive; /* struct path_goroutine */
    struct slab regions;
    struct path_who *who;
    size_t who_count, who_capacity;
    uint64_t *counts; /* of regions begun, by name */
    size_t count_capacity;
    struct announced announced;
    struct path_hold hold; /* the last one logged; its wake-ups follow at once */
    struct path_held *held;
    size_t held_count, held_capacity;
    struct idmap expired; /* entries of waits that timed out */
    struct idmap tasks;   /* ID -> struct path_region */
    int64_t last_runner;
    struct path_span span;
    struct path_span last; /* the window or task up to where its last goroutine ended */
    struct intern totals;
    trail_path_total *rows;
    size_t row_count, row_capacity;
};

/* Returns -1 if out of memory or if the file cannot be read. */
int path_walk(struct path *path, trail_path_visit visit, void *context);
