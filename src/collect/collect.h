/*
 * The half of `trail record` that is outside the program: takes the raw records out of the shared area, finds
 * out who woke whom, and writes a Go execution trace.
 *
 *     area - records -> feed: ops of each thread, in order of its time; releases matched with waits
 *                         -> model: all ops in order of time; goroutines, Ps, Ms, generations
 *                               -> export/v2_writer
 *
 * An op is written when it is DELAY old: by then the wait that a release ended has been told, and every thread
 * that was writing has finished. What still comes later is put into the trace at its end of the wait.
 */
#ifndef TRAIL_COLLECT_COLLECT_H
#define TRAIL_COLLECT_COLLECT_H

#include <trail/export.h>

#include "collect/area.h"
#include "collect/process.h"
#include "collect/samples.h"
#include "collect/switches.h"
#include "collect/ticks.h"
#include "shm/shm.h"

struct collect;

/* What happens is written so much later, at least. */
#define COLLECT_DELAY_NS 200000000

struct collect_options {
    struct area *area;      /* the collector closes it when it is closed */
    struct process process; /* that has claimed it */
    struct ticks *ticks;    /* the area's; has to stay */
    int version;            /* 22, 23, 25, 26 */
    trail_sink sink;
    trail_resolve_fn resolve; /* NULL: no names */
    /* The variable at an address of a module's file, for a lock's name; NULL: not known. */
    bool (*object)(void *context, const trail_module *module, uint64_t address, char *text,
                   size_t size);
    void *resolve_context; /* of both */
    int64_t generation_ns; /* 0: 1 s */
    uint64_t max_bytes;    /* nothing is written when the trace is so large; 0: no limit */
    bool switches;         /* collect_switch will be called */
    /* Called between generations, with the time at which the next begins; NULL: not. */
    void (*generation)(void *context, int64_t ns);
    void *generation_context;
    /* Whether the user wants the recording to end: asked while the last records are written. NULL: no. */
    bool (*is_hurried)(void *context);
    void *is_hurried_context;
};

/* For the process that has claimed the area. NULL with *err. */
struct collect *collect_open(const struct collect_options *options, trail_error *err);

/*
 * What the kernel tells of the process's threads, before the step that comes next. Without it, when a thread was
 * only ready is inferred from its records.
 */
void collect_switch(struct collect *c, const struct switch_record *record);
/* The same of CPU samples. */
void collect_sample(struct collect *c, const struct cpu_sample *sample);

/* Each AREA_TICK_NS or so while there is one: the coarse clock; 0: from now on there is none. */
void collect_tick(struct collect *c, uint64_t ticks);

/* Every few milliseconds: takes what there is, and writes what is old enough. */
void collect_step(struct collect *c);

/* Of the time before the last step. */
struct collect_rates {
    uint64_t records; /* that were taken */
    bool many_locks;  /* a coarse clock costs less than reading the clock at each of them */
};
struct collect_rates collect_rates(const struct collect *c);

/*
 * The process executes another program, which has claimed `area`: the old one is read to its end and unmapped.
 * The trace goes on; the old program's threads have ended.
 */
void collect_next_area(struct collect *c, struct area *area);

/* Ends the generation, so that all before is in the sink. */
void collect_cut(struct collect *c);

/* Which calls the program records from now on. */
void collect_set_groups(struct collect *c, uint32_t groups);

/* Whether the process has executed another program, which has claimed no area (yet). */
bool collect_has_left(const struct collect *c);

/* Whether a child that it has forked has not said yet whether it is recorded, too. */
bool collect_forking(const struct collect *c);

/* The trace's size so far; whether it is as large as it may be. */
uint64_t collect_bytes(const struct collect *c);
bool collect_is_full(const struct collect *c);

/*
 * The program has ended, or its recording: takes and writes the rest. False with *err if anything failed at any time.
 *
 * When the user wants the recording to end it takes HURRY_NS at most: what is not named until then keeps its addresses,
 * and what is not written then is lost.
 */
#define COLLECT_HURRY_NS 1000000000
bool collect_finish(struct collect *c, trail_error *err);

/* MARK: What it was about */

struct collect_wait_place {
    int64_t total_ns, longest_ns;
    uint64_t count;
    uint8_t wait;    /* enum shm_wait */
    char place[200]; /* function that waited */
    char waker[200]; /* function that let it in most often; empty: nobody known */
};

struct collect_summary {
    int64_t wall_ns;
    uint64_t threads, most_threads;
    int64_t running_ns, ready_ns;
    int64_t wait_ns[SHM_WAITS];
    int64_t short_ns; /* of waits too short to be recorded; without switches of their calls */
    uint64_t waits, waits_with_waker;
    uint64_t events, stacks;
    uint64_t lost_records, lost_stacks, lost_threads;
    uint64_t damage;  /* records, and links between them, that contradict the rules of the area */
    uint64_t unnamed; /* places in the code that there was no time to name */
    bool left; /* the process has executed another program, which has claimed no area (yet) */
    uint64_t refused_stacks; /* of calls that lasted, by the kernel */
    bool heap_wanted;        /* the recorder's */
    bool has_heap;           /* something was allocated that could be seen */
    int64_t heap_peak;
    bool gcc_openmp; /* it uses gcc's library, which tells nothing of what it does */
    uint64_t samples;
    uint64_t lost_samples, lost_switches; /* the recorder's to fill in */
    /* Why no context switches were recorded, and what to do; NULL: they were. The recorder fills this in, too. */
    const char *switches;
    struct collect_wait_place worst[3];
};

void collect_summarize(struct collect *c, struct collect_summary *summary);
void collect_close(struct collect *c);

#endif
