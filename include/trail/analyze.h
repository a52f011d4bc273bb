/*
 * What the events of a trace add up to: where the time of goroutines, regions and tasks went, and
 * what garbage collection left to the program.
 *
 * One pass: events are fed in as they come from a reader, to several analyses at once, and answers
 * are asked for at the end. Memory follows what is alive, and the answers themselves: what has ended
 * is folded into a row, or, if only groups are asked for, into the row of its group.
 *
 *     trail_analysis *analysis = trail_analysis_open(reader, &options, &err);
 *     if (analysis && trail_analysis_run(analysis, reader, &err) == 0) {
 *         const trail_goroutine *rows;
 *         size_t count = trail_analysis_goroutines(analysis, &rows);
 *         for (size_t i = 0; i < count; i++)
 *             printf("goroutine %lld began at %lld ns\n", (long long)rows[i].id,
 *                    (long long)rows[i].creation_ns);
 *     }
 *     trail_analysis_close(analysis);
 *
 * The figures are those of Go 1.27's own analyses, nanosecond for nanosecond; where these mislead,
 * the right figure is told beside.
 *
 * Threads: an analysis may be used by one thread at a time.
 */
#ifndef TRAIL_ANALYZE_H
#define TRAIL_ANALYZE_H

#include <trail/read.h>

#ifdef __cplusplus
extern "C" {
#endif

/* MARK: The pass */

typedef struct trail_analysis trail_analysis;

/* What to find out; add up. */
enum {
    TRAIL_ANALYZE_GOROUTINES = 1, /* a row a goroutine */
    TRAIL_ANALYZE_GROUPS = 2,     /* a row for all goroutines with the same start function */
    TRAIL_ANALYZE_REGIONS = 4,    /* a row a user region */
    TRAIL_ANALYZE_REGION_GROUPS = 8,
    TRAIL_ANALYZE_TASKS = 16,
    TRAIL_ANALYZE_LOGS = 32,          /* with tasks: the texts of their logs, not only how many */
    TRAIL_ANALYZE_DISTRIBUTIONS = 64, /* with groups: a histogram of each of their columns */
    TRAIL_ANALYZE_MMU = 128,
    TRAIL_ANALYZE_GC = 256,
    TRAIL_ANALYZE_ACTIVITY = 512,  /* how busy the Ps were; each wait; heap; tasks by type */
    TRAIL_ANALYZE_FINDINGS = 1024, /* known problems; with ACTIVITY, GC and MMU (corrected) */
    TRAIL_ANALYZE_PROFILES = 2048, /* those of options.profile */
    TRAIL_ANALYZE_THREADS = 4096,  /* threads (Ms) and Ps */
    TRAIL_ANALYZE_PATH = 8192,     /* the critical path of what options.path asks for */
    TRAIL_ANALYZE_LOCKS = 16384,   /* waits by lock; options.locks says of whom */
    TRAIL_ANALYZE_FIND = 32768     /* what options.find looks for, as it is found */
};

/* What a profile counts, stack by stack. */
typedef enum trail_profile_type {
    TRAIL_PROFILE_NET,     /* waits for the network */
    TRAIL_PROFILE_SYNC,    /* waits for channels, select, locks */
    TRAIL_PROFILE_SYSCALL, /* system calls */
    TRAIL_PROFILE_SCHED,   /* time from ready to running; the stack is that of who made it ready */
    TRAIL_PROFILE_CPU,     /* samples */
    TRAIL_PROFILE_RUNNING, /* running; the stack is where that ended */
    TRAIL_PROFILE_OFFCPU,  /* waits of any kind, with the stack of who ended them */
    TRAIL_PROFILES
} trail_profile_type;

/* What takes time from the program, for its utilisation. */
enum {
    TRAIL_MMU_STW = 1,
    TRAIL_MMU_BACKGROUND = 2,
    TRAIL_MMU_ASSIST = 4,
    TRAIL_MMU_SWEEP = 8,
    TRAIL_MMU_PER_PROC = 16,  /* the utilisation of each P, instead of that of all together */
    TRAIL_MMU_CORRECTED = 32, /* count background workers right, which Go counts double */
    TRAIL_MMU_DEFAULT = TRAIL_MMU_STW | TRAIL_MMU_BACKGROUND | TRAIL_MMU_ASSIST
};

/*
 * For TRAIL_ANALYZE_PROFILES. What is set must hold: goroutines of this start function, of these
 * numbers; the time in regions of this name, in regions of these tasks (those that goroutines
 * inherit included). Everything stays the caller's and must outlive the analysis.
 */
typedef struct trail_profile_options {
    unsigned types;   /* 1 << trail_profile_type; add up */
    const char *name; /* NULL: any */
    const char *region;
    const int64_t *goroutines;
    size_t goroutine_count;
    const int64_t *tasks;
    size_t task_count;
    /* Whether the waits of goroutines before they first ran count, too; Go's profiles leave them out. */
    bool first_waits;
    /* TRAIL_PROFILE_SYNC: a row for each stack and kind of wait, where kinds are recorded. */
    bool by_kind;
} trail_profile_options;

/* Whose critical path is asked for. */
typedef enum trail_path_of {
    TRAIL_PATH_LONGEST, /* the longest task or region; where there is none, the window */
    TRAIL_PATH_TASK,
    TRAIL_PATH_REGION,
    TRAIL_PATH_GOROUTINE,
    TRAIL_PATH_WINDOW /* from its end, of the goroutine that ran last in it */
} trail_path_of;

typedef struct trail_path_question {
    trail_path_of of;
    uint64_t task;
    const char *region; /* name */
    uint64_t nth; /* of the regions with that name, by their beginning, from 1; 0: the longest */
    int64_t goroutine;
} trail_path_question;

/* Which goroutines are meant. The lists stay the caller's and must outlive the analysis. */
typedef struct trail_who {
    const char *name; /* they began in this function; NULL: any */
    const int64_t *goroutines;
    size_t goroutine_count; /* 0: any */
} trail_who;

typedef struct trail_locks_options {
    trail_who who; /* whose waits count; who held what they waited for does not matter */
    bool channels; /* waits for channels and select count as well */
} trail_locks_options;

/* What is looked for: docs/finding-patterns.md tells the language. */
typedef struct trail_pattern trail_pattern;
struct trail_hit;

typedef struct trail_find_options {
    const trail_pattern *pattern; /* must outlive the analysis */
    trail_who who;
    /*
     * Told of each hit as soon as its last step is over, while events are fed; for states that are
     * not over, by trail_analysis_finish. Returns whether more are wanted.
     */
    bool (*visit)(void *context, const struct trail_hit *hit);
    void *context;
} trail_find_options;

typedef struct trail_analysis_options {
    unsigned what;
    trail_path_question path; /* with TRAIL_ANALYZE_PATH; its text must outlive the analysis */
    unsigned mmu_flags[2];    /* with TRAIL_ANALYZE_MMU: up to two curves; 0: none */
    /*
     * Only the time in this window counts, from the first event on. Goroutines that ended before it
     * or began after it are left out; what crosses its edges counts as far as it is inside.
     */
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    void (*progress)(void *context); /* called now and then while running, if not NULL */
    void *progress_context;
    /* Told of each batch before the analysis has it, if not NULL. False: memory is out, which ends the run. */
    bool (*observe)(void *context, const trail_event *events, long count);
    void *observe_context;
    /* In whose words findings are: those of what made the trace, or Go's, or of threads. */
    trail_words words;
    /*
     * Further frames that name no place, NULL behind the last: patterns of functions, or "file:" and patterns of
     * files; * stands for any text. NULL: none. They must outlive the analysis.
     */
    const char *const *skip_frames;
    trail_profile_options profile;
    trail_locks_options locks; /* with TRAIL_ANALYZE_LOCKS */
    trail_find_options find;   /* with TRAIL_ANALYZE_FIND */
} trail_analysis_options;

/* `reader` stays the caller's and must outlive the analysis. NULL: *err says why. */
TRAIL_API trail_analysis *trail_analysis_open(const trail_reader *reader,
                                              const trail_analysis_options *options,
                                              trail_error *err);
TRAIL_API void trail_analysis_close(trail_analysis *analysis);

/*
 * Takes a batch of events, as the reader delivered it last. Returns 1 if more can matter, 0 if what
 * follows is behind the window, -1 when memory is out.
 */
TRAIL_API int trail_analysis_feed(trail_analysis *analysis, const trail_event *events, long count);

/* After the last event: makes the answers. Returns 0, or -1 when memory is out. */
TRAIL_API int trail_analysis_finish(trail_analysis *analysis);

/*
 * Feeds all that `reader` has left, the one that the analysis was opened with, and finishes.
 * Returns 0, or -1 with *err set. If that is an error of the trace, the answers are those of what
 * was good before it.
 */
TRAIL_API int trail_analysis_run(trail_analysis *analysis, trail_reader *reader, trail_error *err);

/* MARK: Of the whole */

typedef struct trail_analysis_span {
    int64_t origin_ns;        /* time of the first event */
    int64_t begin_ns, end_ns; /* of what was analysed */
    int64_t last_ns;          /* time of the last event looked at */
    uint64_t events;          /* in it */
    /* How many were in it, and at its end; 0 without an analysis of goroutines, regions or tasks. */
    uint64_t goroutines, goroutines_alive;
} trail_analysis_span;
TRAIL_API void trail_analysis_get_span(const trail_analysis *analysis, trail_analysis_span *span);

/*
 * Names (of functions, reasons, ranges, types) are numbers, equal for equal text, 0 for none. The
 * text is valid as long as the analysis.
 */
typedef uint32_t trail_name;
TRAIL_API trail_string trail_analysis_text(const trail_analysis *analysis, trail_name name);

/*
 * What a wait is for. The name that stands for a wait among the answers (`reason` of a wait, a step or a
 * segment, and the names of trail_times.block) is that of Go's reason, or in recordings of C programs that of
 * what the recorder's log in front of the wait says: "mutex stats_mu", and where waits of a kind are added up
 * "mutex". This takes it apart.
 */
typedef struct trail_wait_for {
    trail_name reason; /* Go's word: "sync"; of other names, the name itself */
    const char *
        kind; /* "mutex", "condition", "read", ...: trail-record(1) lists them; NULL: not recorded */
    const char
        *phrase; /* "waiting for a mutex", or what the object's name follows; NULL: not recorded */
    trail_name object; /* "stats_mu"; 0: it has no name, or this is a sum of several */
} trail_wait_for;
TRAIL_API trail_wait_for trail_analysis_wait_for(const trail_analysis *analysis, trail_name wait);

/* A frame of a stack. */
typedef struct trail_place {
    uint64_t pc, line;
    trail_name function, file;
} trail_place;

/* Stacks are numbers too, 0 for none. Returns how many frames are at *places, leaf first. */
typedef uint32_t trail_stack;
TRAIL_API size_t trail_analysis_stack(const trail_analysis *analysis, trail_stack stack,
                                      const trail_place **places);

/*
 * The index of the frame that names the place: the innermost that is the program's own, not of Go's runtime, the C
 * and C++ libraries or a library of threads and locks, nor covered by options.skip_frames. Where there is no such
 * frame, the innermost that has a name.
 */
TRAIL_API size_t trail_analysis_stack_own(const trail_analysis *analysis, trail_stack stack);

/* MARK: Histograms */

/*
 * Counts durations in buckets of 1/8 of a power of two, and keeps the exact sum, least and greatest.
 * Its memory grows with the number of different buckets.
 */
typedef struct trail_histogram {
    uint64_t count;
    int64_t sum_ns, min_ns, max_ns;
    uint64_t *bins; /* the library's own: see trail_histogram_next */
    size_t bin_count;
} trail_histogram;

/* For one's own; zero-initialised is empty. Negative counts as 0. False when memory is out. */
TRAIL_API bool trail_histogram_add(trail_histogram *histogram, int64_t ns);

/* Adds what `more` has counted. False when memory is out; `histogram` is then good for freeing only. */
TRAIL_API bool trail_histogram_merge(trail_histogram *histogram, const trail_histogram *more);
TRAIL_API void trail_histogram_free(trail_histogram *histogram);

/* The value that a share `q` (0 to 1) of all is at most; within 1/8, and never outside min and max. */
TRAIL_API int64_t trail_histogram_quantile(const trail_histogram *histogram, double q);

/*
 * The buckets that are not empty, in order: starts with *at = 0, sets *bucket and *count, moves *at
 * on. Returns false when there are no more.
 *
 *     for (size_t at = 0, bucket; trail_histogram_next(histogram, &at, &bucket, &count);) {
 *         trail_histogram_bucket(bucket, &from_ns, &to_ns);
 *         printf("%lld to %lld ns: %llu\n", (long long)from_ns, (long long)to_ns,
 *                (unsigned long long)count);
 *     }
 */
TRAIL_API bool trail_histogram_next(const trail_histogram *histogram, size_t *at, size_t *bucket,
                                    uint64_t *count);

/* The bucket i holds durations of [from, to). */
TRAIL_API void trail_histogram_bucket(size_t i, int64_t *from_ns, int64_t *to_ns);

/* MARK: Goroutines */

typedef struct trail_named_time {
    trail_name name;
    int64_t ns;
} trail_named_time;

/*
 * Where time went. Running, ready, blocked and in system calls do not overlap; ranges (stop-the-world,
 * assists, sweeps) overlap those.
 *
 * A system call whose P was taken away counts as syscall_ns until then and as syscall_block_ns from
 * then on; but where it had not ended yet when it was counted (at the end of the trace or of a
 * region), Go counts all of it as syscall_ns, and the part without a P again as sched_wait_ns.
 * open_block_ns is that part: less of it in those two and more in syscall_block_ns is right.
 */
typedef struct trail_times {
    int64_t exec_ns;
    int64_t sched_wait_ns;
    int64_t syscall_ns;
    int64_t syscall_block_ns;
    int64_t total_ns;
    int64_t open_block_ns;
    const trail_named_time *block; /* by reason or kind (trail_wait_for), in order of appearance */
    const trail_named_time *range; /* by name */
    uint32_t block_count, range_count;
} trail_times;

struct trail_region;

typedef struct trail_goroutine {
    int64_t id;
    trail_name name; /* of its start function; 0: not known */
    uint64_t pc;     /* of that in its stack */
    int64_t creation_ns;
    int64_t start_ns; /* ran first; 0: never */
    int64_t end_ns;   /* 0: alive */
    trail_times times;
    const struct trail_region *regions; /* with TRAIL_ANALYZE_REGIONS; by start */
    uint32_t region_count;
} trail_goroutine;

/* By ID. Valid as long as the analysis. */
TRAIL_API size_t trail_analysis_goroutines(const trail_analysis *analysis,
                                           const trail_goroutine **rows);

/* Go's word for goroutines of the runtime, and for those without a name. */
TRAIL_API bool trail_is_system_goroutine(trail_string name);

/* The columns of a group that have distributions. */
typedef enum trail_column {
    TRAIL_COLUMN_TOTAL,
    TRAIL_COLUMN_EXEC,
    TRAIL_COLUMN_SCHED_WAIT,
    TRAIL_COLUMN_BLOCK, /* all reasons */
    TRAIL_COLUMN_SYSCALL,
    TRAIL_COLUMN_SYSCALL_BLOCK,
    TRAIL_COLUMNS
} trail_column;

/* "total", "exec", "sched-wait", "block", "syscall", "syscall-block". */
TRAIL_API const char *trail_column_name(trail_column column);
TRAIL_API int64_t trail_times_column(const trail_times *times, trail_column column);

/* Goroutines with one start function, or regions with one name: sums, and how they spread. */
typedef struct trail_group {
    trail_name name;
    uint64_t count;
    uint64_t alive; /* goroutines that did not end, regions that did not */
    trail_times times;
    const trail_histogram *columns; /* TRAIL_COLUMNS of them; NULL without DISTRIBUTIONS */
} trail_group;

/* By total time, greatest first. */
TRAIL_API size_t trail_analysis_groups(const trail_analysis *analysis, const trail_group **rows);

/* MARK: Regions and tasks */

typedef struct trail_region {
    int64_t goroutine;
    uint64_t task;
    trail_name name; /* 0: inherited from the goroutine that created this one */
    bool has_start;
    bool has_end;
    int64_t start_ns, end_ns; /* 0: not in the trace */
    trail_times times;
} trail_region;

/* By goroutine, then start. */
TRAIL_API size_t trail_analysis_regions(const trail_analysis *analysis, const trail_region **rows);
TRAIL_API size_t trail_analysis_region_groups(const trail_analysis *analysis,
                                              const trail_group **rows);

typedef struct trail_log {
    int64_t time_ns;
    int64_t goroutine;
    trail_name category;
    trail_string message;
} trail_log;

typedef struct trail_task {
    uint64_t id;
    trail_name name;
    bool has_parent;
    uint64_t parent;
    bool has_start, has_end;
    int64_t start_ns, end_ns; /* 0: not in the trace */
    int64_t start_goroutine;
    uint64_t regions;
    uint64_t log_count;
    const trail_log *logs;     /* with TRAIL_ANALYZE_LOGS: log_count of them; else NULL */
    const int64_t *goroutines; /* that took part, in order of their number */
    size_t goroutine_count;
    const uint32_t *children; /* indexes of tasks, in order of appearance */
    size_t child_count;
} trail_task;

/* By ID. */
TRAIL_API size_t trail_analysis_tasks(const trail_analysis *analysis, const trail_task **rows);

/* MARK: Garbage collection */

/*
 * The least share of its Ps that the program had in any window of that length (minimum mutator
 * utilisation), 0 to 1. `curve` is the index into options.mmu_flags. Longer windows than the trace
 * count as the trace. Takes time in proportion to the number of changes.
 */
TRAIL_API double trail_analysis_mmu(const trail_analysis *analysis, unsigned curve,
                                    int64_t window_ns);

/*
 * The share of its Ps that the program had in at least so many (0 to 1) of all windows of that
 * length, wherever they begin: a quantile of the mutator utilisation's distribution. 0.99: only one
 * window in a hundred has less; 1: what trail_analysis_mmu returns; 0: the greatest. Within 1e-6.
 */
TRAIL_API double trail_analysis_mmu_quantile(const trail_analysis *analysis, unsigned curve,
                                             int64_t window_ns, double quantile);

typedef struct trail_mmu_window {
    int64_t begin_ns, end_ns;
    double mutator; /* the program's share */
} trail_mmu_window;

/*
 * The worst windows of that length, the worst first, at most `most`, none of which overlap. Returns
 * how many there are.
 */
TRAIL_API size_t trail_analysis_mmu_worst(const trail_analysis *analysis, unsigned curve,
                                          int64_t window_ns, trail_mmu_window *worst, size_t most);

/* One cycle: from the begin of its mark phase to the begin of the next one's. */
typedef struct trail_gc_cycle {
    bool has_begin, has_end; /* of the mark phase; false: not in the trace */
    int64_t begin_ns, end_ns;
    uint64_t heap_at_begin, heap_at_end; /* bytes in use; 0: not known */
    uint64_t heap_goal;                  /* at its begin */
    uint64_t assists, sweeps;
    int64_t assist_ns, longest_assist_ns; /* goroutines' time, whether they ran or not */
    int64_t sweep_ns;
    uint64_t swept_bytes, reclaimed_bytes;
} trail_gc_cycle;
TRAIL_API size_t trail_analysis_gc_cycles(const trail_analysis *analysis,
                                          const trail_gc_cycle **rows);

/* The world was stopped, by whomever. */
typedef struct trail_gc_pause {
    int64_t begin_ns, end_ns;
    int64_t goroutine;
    trail_name name; /* "stop-the-world (GC mark termination)" */
} trail_gc_pause;
TRAIL_API size_t trail_analysis_gc_pauses(const trail_analysis *analysis,
                                          const trail_gc_pause **rows);

/* MARK: Threads and Ps */

/* A thread, from its first event on. */
typedef struct trail_thread {
    int64_t id;
    int64_t first_ns, last_ns; /* of its events */
    int64_t running_ns;        /* goroutines ran on it */
    int64_t syscall_ns;        /* a goroutine was in a system call on it */
    int64_t idle_ns;           /* neither */
    uint64_t runs;             /* goroutines began to run */
    uint64_t syscalls;         /* began */
    uint64_t procs;            /* how often it took a P */
    uint64_t events;
    int64_t
        goroutine; /* the first that ran on it: of trail record the thread itself; TRAIL_NONE: none did */
    const int64_t *running_slices; /* see below */
} trail_thread;

/* By ID. */
TRAIL_API size_t trail_analysis_threads(const trail_analysis *analysis, const trail_thread **rows);

typedef struct trail_proc {
    int64_t id;
    int64_t running_ns; /* a goroutine ran on it */
    int64_t syscall_ns; /* it was kept by a goroutine in a system call */
    int64_t other_ns;   /* in use otherwise: looking for work, the runtime's own */
    int64_t idle_ns;
    uint64_t runs;     /* goroutines began to run */
    uint64_t syscalls; /* began */
    uint64_t taken;    /* from a goroutine in a system call */
    uint64_t starts;   /* from being idle */
    const int64_t *running_slices;
} trail_proc;

/* By ID. */
TRAIL_API size_t trail_analysis_procs(const trail_analysis *analysis, const trail_proc **rows);

/*
 * How running_ns of threads and Ps lies over the time: it is cut into so many slices, at most 128,
 * all *slice_ns long but the last, and running_slices has as many values. It is NULL where nothing
 * ran; and of more than 1024 threads or Ps for those that came last.
 */
TRAIL_API size_t trail_analysis_thread_slices(const trail_analysis *analysis, int64_t *slice_ns);

/* MARK: Profiles */

typedef struct trail_profile_frame {
    uint64_t pc; /* 0: not known */
    trail_name function, file;
    uint64_t line;
} trail_profile_frame;

/*
 * What one stack adds up to. Stacks are leaf first, and cut off after 128 frames, as Go does. Waits
 * that do not end in the trace are counted by TRAIL_PROFILE_OFFCPU only; in a window that ends
 * before the trace, by all.
 */
typedef struct trail_profile_sample {
    const uint32_t *frames; /* indexes of the profile's frames */
    uint32_t frame_count;
    /*
     * TRAIL_PROFILE_OFFCPU: the stack of who waited begins here. In front of it stands what ended
     * the wait, so that the whole reads, root first: who waited, "[chan receive]" or what else it
     * waited for, and the stack of the waker, leaf first; or "[not woken]".
     */
    uint32_t own_frames;
    uint64_t count;
    int64_t ns;
    trail_histogram times; /* with TRAIL_ANALYZE_DISTRIBUTIONS */
    trail_name wait;       /* of OFFCPU what was waited for, of SYNC by kind the kind; else 0 */
    uint64_t timed_out;    /* of SYNC by kind: ended by their time limit, as far as recorded */
} trail_profile_sample;

typedef struct trail_profile {
    trail_profile_type type;
    const trail_profile_frame *frames; /* each once; shared by all profiles of the analysis */
    size_t frame_count;
    const trail_profile_sample *samples; /* longest first */
    size_t sample_count;
    uint64_t count; /* of all samples */
    int64_t ns;
    uint64_t goroutines;   /* with the wanted name and number */
    uint64_t regions;      /* the wanted ones of these, if options.profile names any */
    trail_histogram times; /* of all samples, with TRAIL_ANALYZE_DISTRIBUTIONS */
} trail_profile;

/* One of options.profile.types. Valid as long as the analysis. */
TRAIL_API void trail_analysis_profile(const trail_analysis *analysis, trail_profile_type type,
                                      trail_profile *profile);

/* "net", "sync", "syscall", "sched", "cpu", "running", "offcpu". */
TRAIL_API const char *trail_profile_type_name(trail_profile_type type);

/* MARK: Activity */

/* A piece of the time, all of equal length but the last. */
typedef struct trail_activity_slice {
    int64_t running_ns;  /* goroutines' time, summed over all that ran */
    int64_t runnable_ns; /* the same of those that could have run */
    int64_t procs_ns;    /* Ps' time, of those that were not idle */
} trail_activity_slice;

/*
 * How busy the Ps were. A P that is idle is one of three: work was waiting, or nothing was to do but
 * somebody waited for a lock, or nothing was to do at all (all others wait for channels, networks,
 * timers).
 */
typedef struct trail_activity {
    uint64_t procs; /* GOMAXPROCS, the greatest; if the trace does not tell, Ps seen at once */
    int64_t running_ns, runnable_ns; /* as in a slice */
    int64_t procs_ns;
    int64_t available_ns; /* Ps' time that there was */
    int64_t idle_work_ns, idle_lock_ns, idle_nothing_ns;
    const trail_activity_slice *slices;
    size_t slice_count; /* up to 128 */
    int64_t slice_ns;
    bool has_heap;
    uint64_t heap_first, heap_peak, heap_last; /* bytes in use */
    int64_t heap_peak_ns;
} trail_activity;
TRAIL_API void trail_analysis_activity(const trail_analysis *analysis, trail_activity *activity);

/* The longest of something: when it began and whose it was. */
typedef struct trail_longest {
    int64_t ns, begin_ns;
    int64_t goroutine;
} trail_longest;

/* Waits for one reason, or of one kind (trail_wait_for); those that ended. */
typedef struct trail_wait {
    trail_name reason;
    trail_histogram spread;
    trail_longest longest;
    uint64_t timed_out; /* ended by their time limit, as far as recorded */
    /* Of recordings of C programs: those for work, which a thread returns to most of its life. */
    uint64_t idle_count;
    int64_t idle_ns;
} trail_wait;

/* Goroutines with one start function: each time that they were ready, and that they waited. */
typedef struct trail_wait_group {
    trail_name name;
    uint64_t created, ended;
    trail_histogram ready; /* from ready to running */
    trail_longest ready_longest;
    const trail_wait *waits; /* by reason, in order of appearance */
    size_t wait_count;
} trail_wait_group;

/* By time waited for a P, greatest first. */
TRAIL_API size_t trail_analysis_waits(const trail_analysis *analysis,
                                      const trail_wait_group *const **rows);

/* Tasks of one type. */
typedef struct trail_task_kind {
    trail_name name;
    uint64_t begun, ended;
    trail_histogram spread; /* of those with begin and end */
    trail_longest longest;  /* `goroutine` is the task's ID */
} trail_task_kind;
TRAIL_API size_t trail_analysis_task_kinds(const trail_analysis *analysis,
                                           const trail_task_kind *const **rows);

/* MARK: Locks */

/* Waits or holds of a lock with the same stack. */
typedef struct trail_lock_place {
    trail_stack stack;    /* where it was waited for; where it was taken */
    trail_stack released; /* of holds: where it was given up, if somebody was let in there */
    uint64_t count;
    int64_t ns;
    trail_longest longest;
} trail_lock_place;

/*
 * Something that goroutines wait for until another lets them in. In recordings of C programs it has
 * an identity; elsewhere it is the stack of the wait and that of who ended it.
 */
typedef struct trail_lock {
    trail_name kind; /* "mutex", "rwlock", "condition"; "sync.(*Mutex).Lock"; "chan receive" */
    trail_name name; /* "stats_mu", "0x7f... (first seen locked in f x.c:7)"; 0: none */
    trail_stack waited, woken; /* 0 if it has a name; woken: 0 where nobody in the trace did it */
    trail_histogram wait;      /* those that ended */
    trail_longest longest;
    uint64_t open; /* those that did not */
    int64_t open_ns;
    trail_longest longest_open;
    uint64_t timed_out;   /* waits that their time limit ended, as far as recorded */
    trail_histogram hold; /* as far as recorded; a length has three digits */
    trail_longest longest_hold;
    const trail_lock_place *waiters; /* those that ended, by stack; longest time first */
    const trail_lock_place *held;
    size_t waiter_count, held_count;
} trail_lock;

/* By time waited for it, the greatest first. */
TRAIL_API size_t trail_analysis_locks(const trail_analysis *analysis,
                                      const trail_lock *const **rows);

/* One that waits, in a chain. */
typedef struct trail_lock_link {
    int64_t goroutine;
    trail_name name;        /* its start function */
    const trail_lock *lock; /* may have no row, if it counts for nobody who is asked for */
    int64_t begin_ns, end_ns;
    int64_t holder; /* who ended the wait; TRAIL_NONE: nobody in the trace */
    trail_name holder_name;
} trail_lock_link;

/*
 * From begin to end the first waited for its holder, who is the second and waited meanwhile for its
 * own, and so on. At least two waits.
 */
typedef struct trail_lock_chain {
    int64_t begin_ns, end_ns;
    const trail_lock_link *links;
    size_t link_count;
    uint64_t others; /* waits with another goroutine in front and the same chain behind */
} trail_lock_chain;

/* The chains with most links first, and of these those that lasted longest; at most 64. */
TRAIL_API size_t trail_analysis_lock_chains(const trail_analysis *analysis,
                                            const trail_lock_chain **rows);

/* MARK: Finding */

/* What is wrong with a pattern: bytes [begin, end) of its text. */
typedef struct trail_pattern_error {
    size_t begin, end;
    char message[240];
} trail_pattern_error;

/* Copies what it needs of the text. NULL: *err says why. */
TRAIL_API trail_pattern *trail_pattern_parse(const char *text, trail_pattern_error *err);
TRAIL_API void trail_pattern_free(trail_pattern *pattern);

/* A state of a goroutine, or a moment. */
typedef struct trail_hit_step {
    const char *what;         /* the pattern's word for it: "block" */
    int64_t begin_ns, end_ns; /* of a moment they are the same */
    bool lasts;               /* a state */
    bool open;                /* a state that is not over at the end */
    trail_name
        reason; /* of a wait (trail_wait_for); of others, what stands in brackets: a region's name */
    trail_stack stack; /* of a state: where it began; of running: where it ended */
    int64_t waker;     /* who ended a wait, or created; TRAIL_NONE: nobody in the trace */
    trail_stack waker_stack;
} trail_hit_step;

/* Valid during the call that tells of it. Hits of one goroutine do not overlap. */
typedef struct trail_hit {
    int64_t goroutine;
    trail_name name; /* its start function */
    int64_t begin_ns, end_ns;
    const trail_hit_step *steps; /* one for each of the pattern */
    size_t step_count;
} trail_hit;

/* MARK: Findings */

/* A problem that the trace shows. */
typedef struct trail_finding {
    const char *kind; /* "lock-serialises" "futile-wakeups" "one-runs-alone" "ready-while-idle"
                         "keeps-p" "delays-stop" "long-pause" "gc-share" "leak"
                         "deadlock" "open-wait" "slow-task" "ready" */
    const char *text; /* a sentence; names in it are any bytes of the trace but NUL */
    double weight;    /* orders them: about the share of the time */
    bool has_moment;  /* the three below are of the worst case */
    int64_t begin_ns, end_ns;
    int64_t goroutine; /* TRAIL_NONE: of no one */
} trail_finding;

/* The weightiest first. */
TRAIL_API size_t trail_analysis_findings(const trail_analysis *analysis,
                                         const trail_finding **rows);
/* MARK: The critical path */

/*
 * Where the time of a span went, whoever's it was: from its end back through the wake-ups. While a
 * goroutine waited for another, the time is the other's; but no longer than it really waited: before
 * that the path is with the waiter itself again. What nobody in the trace ended (timers, the
 * network) stays with the waiter.
 */
typedef struct trail_path {
    trail_path_of of;  /* what it is of: never TRAIL_PATH_LONGEST */
    uint64_t task;     /* of a task or region */
    trail_name name;   /* of the task or region, or start function of the goroutine */
    uint64_t nth;      /* of regions: which with that name, from 1 */
    int64_t goroutine; /* where it ends */
    bool complete;     /* false: begins before the window or trace, or ends after it */
    int64_t begin_ns, end_ns;
} trail_path;

/* What the analysis was asked for. False if there is no such thing in the trace. */
TRAIL_API bool trail_analysis_path(const trail_analysis *analysis, trail_path *path);

typedef enum trail_path_state {
    TRAIL_PATH_RUNNING,
    TRAIL_PATH_READY,   /* could have run */
    TRAIL_PATH_SYSCALL, /* in a system call */
    TRAIL_PATH_BLOCKED, /* waited, and nobody in the trace ended that */
    TRAIL_PATH_UNKNOWN, /* before the goroutine began, created by nobody in the trace */
    TRAIL_PATH_STATES
} trail_path_state;
TRAIL_API const char *trail_path_state_name(trail_path_state state);

typedef struct trail_path_segment {
    int64_t begin_ns, end_ns; /* begin < end */
    int64_t goroutine;
    trail_name group; /* its start function */
    trail_path_state state;
    trail_name reason;     /* of BLOCKED, and of SYSCALL where it is recorded; see trail_wait_for */
    trail_stack stack;     /* RUNNING: where it ended; else where it began */
    trail_name function;   /* of that stack: see trail_analysis_stack_own */
    uint32_t depth;        /* 0: the goroutine asked for; 1: one that it waited for; ... */
    int64_t wakes;         /* who was woken, or created, at its end; TRAIL_NONE */
    trail_name awaited;    /* and what for it had waited */
    bool timed_out;        /* BLOCKED: its time limit ended it, as recorded */
    int64_t held_ns;       /* how long `goroutine` had held that; 0: not recorded */
    trail_stack waited_at; /* and where */
} trail_path_segment;

/*
 * Hands out the segments from the last to the first. Each begins where the next one ends, the first
 * one ends with the path's end, and the last one begins with its begin. After trail_analysis_finish;
 * may be called again. Returns 0, or -1 when memory is out or the temporary file cannot be read.
 */
typedef void (*trail_path_visit)(void *context, const trail_path_segment *segment);
TRAIL_API int trail_analysis_path_walk(trail_analysis *analysis, trail_path_visit visit,
                                       void *context);

/* All segments with the same group, state, reason and function. */
typedef struct trail_path_total {
    trail_name group, reason, function;
    trail_path_state state;
    uint64_t count;
    int64_t ns;
} trail_path_total;

/* Of the last walk, by time, the greatest first; valid until the next. */
TRAIL_API size_t trail_analysis_path_totals(const trail_analysis *analysis,
                                            const trail_path_total **rows);

#ifdef __cplusplus
}
#endif
#endif
