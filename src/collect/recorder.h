/*
 * The recording of a program and, if asked for, of its children: who has which area, and where each trace goes.
 *
 * One area is always spare: the variable in the program's environment names a file descriptor of ours, which is
 * the spare's. What claims it, the program at its start, what it executes instead of itself, or a child, gets it
 * for good, and the descriptor becomes that of the next.
 */
#ifndef TRAIL_COLLECT_RECORDER_H
#define TRAIL_COLLECT_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/coarse_clock.h"
#include "collect/collect.h"
#include "collect/handover.h"
#include "collect/trace_output.h"
#include "symbols/modules.h"

enum recorder_switches { SWITCHES_AUTO, SWITCHES_OFF, SWITCHES_NEED };

/* What went wrong with one trace: the others go on. */
struct recorder_failure {
    const trail_error *error;
    const char *path; /* of the trace; NULL: the message names the file */
};

struct recorder_options {
    const char *output; /* of the program; a child's has its PID before the suffix */
    int version;
    uint32_t stacks; /* enum shm_stacks */
    uint32_t groups; /* bits of enum shm_group */
    int64_t min_wait_ns, hold_ns;
    bool all_holds;
    bool children;
    bool heap;
    enum recorder_switches switches;
    unsigned cpu_samples; /* a second of CPU time; 0: none */
    bool cpu_signal;      /* by a timer in the program */
    const char *shm; /* a file in which programs find the area; NULL: the one that we start does */
    struct trace_limits limits;
    int64_t delay_ns, duration_ns; /* of the recording; 0: at once, to the end */
    uint64_t max_size;             /* of all of a trace; 0: no limit */
    /* Whether the user wants the recording to end now: asked while traces are completed. */
    bool (*is_hurried)(void *context);
    void *is_hurried_context;
    /* Called with each failure, by all functions but recorder_open, and from their thread. */
    void (*failed)(void *context, const struct recorder_failure *failure);
    void *failed_context;
};

/* A process with its trace. */
struct recorded {
    pid_t pid;               /* ours, which names its trace */
    struct process process;  /* as the kernel confirmed it */
    int pidfd;               /* -1: the kernel has none, or it had ended already */
    struct collect *collect; /* NULL: it is over, and there is the summary */
    struct collect_summary summary;
    struct trace_output out;
    char *path;
    bool ended;      /* the process has; what it told last is to be read */
    bool over;       /* its trace is complete */
    int64_t over_ns; /* ... since; CLOCK_MONOTONIC */
    struct recorded *next;
};

#define RECORDER_REFUSED 64

struct recorder {
    struct recorder_options options;
    struct modules *modules;
    struct ticks ticks;
    pid_t root;
    /* The areas'. Its lock is for the list of processes, their areas and the spare, which it goes through. */
    struct coarse_clock clock;
    struct area *spare;
    int fd; /* the spare's */
    struct handover handover;
    struct recorded *processes;
    struct recorded *program;  /* the first; NULL: it has not claimed an area yet */
    struct samples *samples;   /* NULL: none asked for */
    struct switches *switches; /* NULL: the kernel does not tell */
    char why_not[256];         /* ... because */
    int64_t begin_ns;          /* CLOCK_MONOTONIC */
    int64_t claimed_ns;        /* when an area was claimed last */
    int64_t snapshot_ns;       /* when the snapshot that was asked for is due; 0: none was */
    bool ended;                /* the program has */
    bool begun;                /* recording is on, and was not yet */
    bool stopped;              /* ... not any more */
    bool busy;                 /* much was recorded before the last step */
    /* Claims of processes that are none of the program's, as far as is known; the newest numbers. */
    uint64_t refused;
    pid_t refused_numbers[RECORDER_REFUSED];
    bool failed; /* something was lost: no further area is made */
};

/*
 * False with *err; recorder_close is called all the same. The code is TRAIL_USAGE, and the message names the option, if what
 * one asks for cannot be had.
 */
bool recorder_open(struct recorder *r, const struct recorder_options *options, trail_error *err);

/* Of a recorded process, with what the recorder knows. */
void recorder_summarize(const struct recorder *r, const struct recorded *process,
                        struct collect_summary *summary);

/* The value of the variable SHM_VARIABLE. */
void recorder_variable(const struct recorder *r, char *text, size_t size);

/* In the process that is going to be the program, before it executes it. */
void recorder_announce(void *recorder);

/* Every few milliseconds: takes and writes what there is, and gives out areas. */
void recorder_step(struct recorder *r);

/* For how long there will be nothing to do for recorder_step. */
int64_t recorder_pause_ns(const struct recorder *r);

/* The program has ended, what it has started may go on. */
void recorder_program_ended(struct recorder *r);

/* Whether a process is recorded still, or is about to be. */
bool recorder_goes_on(const struct recorder *r);

/* Flight: a snapshot is written soon, when all up to now is there. */
void recorder_snapshot(struct recorder *r);

/* The program has ended: completes all traces. */
void recorder_finish(struct recorder *r);
void recorder_close(struct recorder *r);

#endif
