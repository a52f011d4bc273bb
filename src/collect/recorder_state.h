/*
 * The state of a recording, which all its parts change. Each part uses only those below it:
 *
 *     recorder.c            the schedule: steps, pauses, the end
 *     recorder_claims.c     the spare area, and the process that claims it
 *     recorder_traces.c     the traces, their files, and their failures
 *     recorder_snapshots.c  what a flight recorder writes, and when
 *     recorder_kernel.c     context switches and samples of all processes
 *     account.c             what was recorded and missed
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "collect/board.h"
#include "collect/coarse_clock.h"
#include "collect/collect.h"
#include "collect/cpu_limits.h"
#include "collect/executed.h"
#include "collect/handover.h"
#include "collect/switch_pause.h"
#include "collect/trace_output.h"
#include "symbols/modules.h"

enum recorder_switches { SWITCHES_AUTO, SWITCHES_OFF, SWITCHES_NEED };

/* A failure of one trace: the others continue. */
struct recorder_failure {
    const trail_error *error;
    const char *path; /* of the trace; NULL: the message names the file */
};

/* A snapshot of something slow. */
struct recorder_snapshot {
    const struct slow_event *event;
    const char *path; /* NULL: it was not written, because it would exceed snapshot_max */
};

struct recorder_options {
    /* The program's trace. A child's own trace has the child's PID before the suffix. */
    const char *output;
    int version;
    uint32_t stacks; /* enum shm_stacks */
    uint32_t groups; /* bits of enum shm_group */
    int64_t min_wait_ns, hold_ns;
    bool all_holds;
    bool children;  /* also record the processes that the program starts */
    bool outliving; /* ... until they end, even if they outlive it */
    bool split;     /* each process has a trace of its own */
    bool heap;
    enum recorder_switches switches;
    unsigned max_switches; /* per second and CPU, above which they are not recorded; 0: no limit */
    unsigned cpu_samples;  /* per second of CPU time; 0: none */
    bool cpu_signal;       /* by a timer in the program */
    const char *shm; /* the area is this file, for other programs; NULL: for the started program */
    pid_t process;   /* the running process to record; 0: the program is started */
    struct trace_limits limits;
    int64_t delay_ns;              /* when recording begins; 0: at once */
    int64_t duration_ns;           /* how long to record; 0: to the end */
    uint64_t max_size;             /* limit of a whole trace; 0: none */
    const struct slow_limit *slow; /* flight recorder: what exceeds one of these has a snapshot, */
    size_t slow_count;
    int64_t snapshot_every_ns;      /* ... at most one in this time, */
    uint64_t snapshot_max;          /* ... and no more bytes than this in all; 0: no limit */
    const char *const *skip_frames; /* frames that do not name a place: see frame_rank; NULL:
                                     * none */
    /* Whether the user wants the recording to end now; called while traces are completed. */
    bool (*is_hurried)(void *context);
    void *is_hurried_context;
    /* Called for each failure by all functions except recorder_open, on the calling thread. */
    void (*failed)(void *context, const struct recorder_failure *failure);
    void *failed_context;
    /* Called for each snapshot of something slow, and for the first that is too large. */
    void (*snapshot)(void *context, const struct recorder_snapshot *snapshot);
    void *snapshot_context;
};

/* Limits the cost of a look; waits without a row are not judged. */
#define OTHER_ENDS 64
/* The processes with the other end, those with the same socket, and its own. */
#define OTHER_ENDS_PROCESSES 17

/* Zero-initialized: empty. Owned by other_ends.c; other_ends_free releases it. */
struct other_ends {
    struct other_ends_row {
        uint64_t thread;                          /* the goroutine's ID */
        uint64_t processes[OTHER_ENDS_PROCESSES]; /* their blocks of IDs; the first has the end */
        size_t count;
    } * rows;
    size_t count, capacity;
    uint64_t threads; /* of all processes in the trace at that time */
    int64_t at_ns;    /* when the ends were looked up */
    int64_t last_ns;  /* of the last event in the trace before that look */
};

/* A trace and its file. */
struct recorded_trace {
    struct recorder *recorder;
    struct trace *trace;
    struct trace_output out;
    char *path;
    struct cpu_limits cpus; /* of its processes */
    struct other_ends ends; /* of what its threads wait for */
    bool over;              /* it is complete */
};

/* A recorded process. */
struct recorded {
    pid_t pid;              /* in our namespace; part of the file name of its own trace */
    pid_t number;           /* in its own namespace */
    struct process process; /* as the kernel confirmed it */
    int pidfd;              /* -1: not supported, or the process had already ended */
    struct recorded_trace *to;
    struct collect *collect; /* of the program that it executes now; NULL: completely written, see
                              * summary */
    /* Of the programs that it executed before, until they are completely written. */
    struct collect **formers;
    size_t former_count, former_room;
    struct collect_summary summary; /* of the programs whose collectors have been closed */
    char title[80];                 /* its command line, or the path of the program's file */
    char label[80];   /* prefix of its threads in a trace of several processes; "" in a trace of its
                       * own */
    int64_t began_ns; /* CLOCK_MONOTONIC */
    int64_t cpu_ns;   /* its CPU time at the last reading */
    int64_t cpu_before_ns; /* ... and before the recording */
    int64_t cost_ns;       /* the recorder's cost of reading its records */
    enum wire_missed
        why;     /* why the program that it executes now, which has no collector, did not load the
              * recorder */
    bool titled; /* `title` belongs to the program that it executes now */
    bool ended;  /* it has ended; its last records have yet to be read */
    bool over;   /* all its records have been read */
    int64_t over_ns; /* ... since; CLOCK_MONOTONIC */
    struct recorded *next, *next_live, *next_unwritten;
};

/*
 * Switches of processes that have not claimed an area yet, and wake-ups of threads that are not
 * known to belong to any process: the first record of the process or thread may be read later.
 */
struct early_switches {
    struct early_switch {
        struct switch_record record;
        unsigned steps; /* the steps since it was read */
    } * at;
    size_t count, room;
};

/* Snapshots of what is slow. Owned by recorder_snapshots.c. Zero-initialised: none. */
struct slow_snapshots {
    struct recorded_trace *to; /* whose snapshot is due at due_ns; NULL: none */
    struct slow_event event;
    int64_t due_ns;
    int64_t next_ns; /* none is written before this */
    uint64_t bytes;  /* of all that were written */
    uint64_t written, too_soon, too_large;
};

#define RECORDER_REFUSED 64

struct recorder {
    struct recorder_options options;
    struct modules *modules;
    struct ticks ticks;
    pid_t root;
    /* For all areas. Its lock protects what its thread reads: the list of processes, their areas
     * and the spare. */
    struct coarse_clock clock;
    struct area *spare;
    int fd; /* of the spare */
    struct board board;
    struct handover handover;
    struct recorded *processes;
    struct recorded *live;      /* not over yet: a build has thousands of finished ones */
    struct recorded *unwritten; /* those with a collector: live, or not completely written */
    struct idmap numbers;       /* the `number` of each */
    struct recorded *program;   /* the first process; NULL: it has not claimed an area yet */
    struct recorded_trace
        *shared;               /* the trace of all processes; NULL: each has its own, or there is
                                * none yet */
    struct samples *samples;   /* NULL: not wanted */
    struct switches *switches; /* NULL: not reported by the kernel */
    struct switch_pause switch_pause;
    struct early_switches early;
    char why_not[256];   /* why the kernel does not report them */
    int64_t begin_ns;    /* CLOCK_MONOTONIC */
    int64_t claimed_ns;  /* when an area was claimed last */
    int64_t titled_ns;   /* when the processes' titles were read last */
    int64_t clocks_ns;   /* ... and their CPU clocks */
    int64_t cpus_ns;     /* when struct cpu_limits is read next */
    int64_t ends_ns;     /* when struct other_ends may be read next */
    int64_t missed_ns;   /* when programs without the recorder were looked for last */
    int64_t snapshot_ns; /* when the requested snapshot is due; 0: none was requested */
    struct slow_snapshots slow;
    bool ended;   /* the program has ended */
    bool begun;   /* recording has begun */
    bool stopped; /* ... and has ended */
    bool busy;    /* much was recorded before the last step */
    /* The PIDs of the newest claims that were not confirmed. */
    uint64_t refused;
    pid_t refused_numbers[RECORDER_REFUSED];
    struct executed_list executed;
    bool failed; /* an area or a trace could not be made: no area is tried again */
};

static inline bool recorder_is_on(const struct recorder *r)
{
    return r->begun && !r->stopped;
}
