/*
 * Analyses of the events of a trace: where the time of goroutines, regions and tasks went, what
 * garbage collection took, which locks and waits cost time.
 *
 * An analysis makes one pass: it takes events in batches as a reader returns them, computes several
 * answers at once, and returns them after the last event. Memory grows with what is alive and with
 * the answers: a goroutine that ends is folded into a row, or, if only groups are requested, into
 * the row of its group.
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
 * The figures equal those of Go 1.27's own analyses, to the nanosecond. Where Go's figure is
 * misleading, a separate member holds the corrected one.
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

/* What to compute. The values are flags and may be ORed. */
enum {
    TRAIL_ANALYZE_GOROUTINES = 1, /* one row per goroutine */
    TRAIL_ANALYZE_GROUPS = 2,     /* one row for all goroutines with the same start function */
    TRAIL_ANALYZE_REGIONS = 4,    /* one row per user region */
    TRAIL_ANALYZE_REGION_GROUPS = 8,
    TRAIL_ANALYZE_TASKS = 16,
    TRAIL_ANALYZE_LOGS = 32, /* with tasks: the texts of their logs, not only their number */
    TRAIL_ANALYZE_DISTRIBUTIONS = 64, /* with groups: a histogram of each of their columns */
    TRAIL_ANALYZE_MMU = 128,
    TRAIL_ANALYZE_GC = 256,
    TRAIL_ANALYZE_ACTIVITY = 512,  /* use of the Ps; each wait; heap; tasks by type */
    TRAIL_ANALYZE_FINDINGS = 1024, /* known problems; with ACTIVITY, GC and MMU (corrected) */
    TRAIL_ANALYZE_PROFILES = 2048, /* the profiles in options.profile */
    TRAIL_ANALYZE_THREADS = 4096,  /* threads (Ms) and Ps */
    TRAIL_ANALYZE_PATH = 8192,     /* the critical path that options.path selects */
    TRAIL_ANALYZE_LOCKS = 16384,   /* waits by lock; options.locks selects goroutines */
    TRAIL_ANALYZE_FIND = 32768,    /* hits of options.find, reported as they are found */
    /* All findings, and what they are computed from; mmu_flags[0] must be TRAIL_MMU_OF_FINDINGS. */
    TRAIL_ANALYZE_ALL_FINDINGS = TRAIL_ANALYZE_FINDINGS | TRAIL_ANALYZE_GROUPS |
                                 TRAIL_ANALYZE_REGION_GROUPS | TRAIL_ANALYZE_DISTRIBUTIONS |
                                 TRAIL_ANALYZE_MMU | TRAIL_ANALYZE_GC | TRAIL_ANALYZE_ACTIVITY
};

/* What a profile counts, per stack. */
typedef enum trail_profile_type {
    TRAIL_PROFILE_NET,     /* waits for the network */
    TRAIL_PROFILE_SYNC,    /* waits for channels, select, locks */
    TRAIL_PROFILE_SYSCALL, /* system calls */
    TRAIL_PROFILE_SCHED,   /* time from ready to running; the stack is the waker's */
    TRAIL_PROFILE_CPU,     /* samples */
    TRAIL_PROFILE_RUNNING, /* running; the stack is where it ended */
    TRAIL_PROFILE_OFFCPU,  /* waits of any kind, with the waker's stack */
    TRAIL_PROFILES
} trail_profile_type;

/* Which time counts as taken from the program when its utilisation is computed. */
enum {
    TRAIL_MMU_STW = 1,
    TRAIL_MMU_BACKGROUND = 2,
    TRAIL_MMU_ASSIST = 4,
    TRAIL_MMU_SWEEP = 8,
    TRAIL_MMU_PER_PROC = 16,  /* the utilisation of each P, instead of all together */
    TRAIL_MMU_CORRECTED = 32, /* count background workers once, which Go counts twice */
    TRAIL_MMU_DEFAULT = TRAIL_MMU_STW | TRAIL_MMU_BACKGROUND | TRAIL_MMU_ASSIST,
    TRAIL_MMU_OF_FINDINGS = TRAIL_MMU_DEFAULT | TRAIL_MMU_CORRECTED
};

/*
 * For TRAIL_ANALYZE_PROFILES. All conditions that are set must hold: goroutines with this start
 * function, with these IDs; time in regions with this name, in regions of these tasks (including
 * those that goroutines inherit). The caller owns everything here; it must outlive the analysis.
 */
typedef struct trail_profile_options {
    unsigned types;   /* 1 << trail_profile_type, ORed */
    const char *name; /* NULL: any */
    const char *region;
    const int64_t *goroutines;
    size_t goroutine_count;
    const int64_t *tasks;
    size_t task_count;
    /* Whether waits of goroutines that have not run yet count. Go's profiles leave them out. */
    bool first_waits;
    /* TRAIL_PROFILE_SYNC: a row for each stack and kind of wait, where kinds are recorded. */
    bool by_kind;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_profile_options;

/* What the critical path is computed for. */
typedef enum trail_path_of {
    TRAIL_PATH_LONGEST, /* the longest task or region; without any, the window */
    TRAIL_PATH_TASK,
    TRAIL_PATH_REGION,
    TRAIL_PATH_GOROUTINE,
    TRAIL_PATH_WINDOW /* the whole window, followed back from the goroutine that ran last in it */
} trail_path_of;

typedef struct trail_path_request {
    trail_path_of of;
    uint64_t task;
    const char *region; /* name */
    uint64_t nth;       /* the nth region with that name, by start time, from 1; 0: the longest */
    int64_t goroutine;
} trail_path_request;

/* Selects goroutines. The caller owns the lists; they must outlive the analysis. */
typedef struct trail_goroutine_filter {
    const char *name; /* start function; NULL: any */
    const int64_t *goroutines;
    size_t goroutine_count; /* 0: any */
} trail_goroutine_filter;

typedef struct trail_locks_options {
    trail_goroutine_filter filter; /* whose waits count; the holders may be any goroutines */
    bool channels;                 /* waits for channels and select count as well */
    uint64_t reserved[4];          /* 0: room for members of later versions */
} trail_locks_options;

/* A parsed pattern. docs/finding-patterns.md describes the language. */
typedef struct trail_pattern trail_pattern;
struct trail_hit;

typedef struct trail_find_options {
    const trail_pattern *pattern; /* must outlive the analysis */
    trail_goroutine_filter filter;
    /*
     * Called with each hit when its last step ends, while events are fed, or from
     * trail_analysis_finish for states that are still open. Returns false to end the search.
     */
    bool (*visit)(void *context, const struct trail_hit *hit);
    void *context;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_find_options;

typedef struct trail_analysis_options {
    unsigned what;
    trail_path_request path; /* with TRAIL_ANALYZE_PATH; its text must outlive the analysis */
    unsigned mmu_flags[2];   /* with TRAIL_ANALYZE_MMU: up to two curves; 0: none */
    /*
     * Restricts the analysis to this window, in ns from the first event. Goroutines that ended
     * before or began after it are left out; anything that crosses its edges counts only with the
     * part inside.
     */
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    void (*progress)(void *context); /* called regularly during the run; or NULL */
    void *progress_context;
    /* Called with each batch before the analysis takes it; or NULL. Returns false if out of memory,
     * which ends the run. */
    bool (*observe)(void *context, const trail_event *events, long count);
    void *observe_context;
    /* Vocabulary of the texts of findings: Go's, that of threads, or by what made the trace. */
    trail_words words;
    /*
     * Further frames that do not name a place, NULL-terminated: patterns of functions, or "file:"
     * and patterns of files; * matches any text. NULL: none. They must outlive the analysis.
     */
    const char *const *skip_frames;
    trail_profile_options profile;
    trail_locks_options locks; /* with TRAIL_ANALYZE_LOCKS */
    trail_find_options find;   /* with TRAIL_ANALYZE_FIND */
    uint64_t reserved[4];      /* 0: room for members of later versions */
} trail_analysis_options;

/* Opens an analysis. `reader` remains the caller's and must outlive it. Returns NULL on error, with
 * *err set. */
TRAIL_API trail_analysis *trail_analysis_open(const trail_reader *reader,
                                              const trail_analysis_options *options,
                                              trail_error *err);
TRAIL_API void trail_analysis_close(trail_analysis *analysis);

/*
 * Takes the batch of events that the reader returned last. Returns 1 if later events can matter, 0
 * if they are all past the window, -1 if out of memory.
 */
TRAIL_API int trail_analysis_feed(trail_analysis *analysis, const trail_event *events, long count);

/* Computes the answers; called after the last event. Returns 0, or -1 if out of memory. */
TRAIL_API int trail_analysis_finish(trail_analysis *analysis);

/*
 * Feeds all events that `reader` has left, and finishes. `reader` must be the one that the analysis
 * was opened with. Returns 0, or -1 with *err set. After an error of the trace, the answers cover
 * the events before it.
 */
TRAIL_API int trail_analysis_run(trail_analysis *analysis, trail_reader *reader, trail_error *err);

/* MARK: Span of the analysis */

typedef struct trail_analysis_span {
    int64_t origin_ns;        /* time of the first event */
    int64_t begin_ns, end_ns; /* of the analysed window */
    int64_t last_ns;          /* time of the last event analysed */
    uint64_t events;          /* number of events in the window */
    /* Goroutines in the window, and alive at its end; 0 without an analysis of goroutines, regions
     * or tasks. */
    uint64_t goroutines, goroutines_alive;
} trail_analysis_span;
TRAIL_API void trail_analysis_get_span(const trail_analysis *analysis, trail_analysis_span *span);

/*
 * A name (of a function, reason, range, type) as a number: equal for equal text, 0 for none. The
 * text is valid as long as the analysis.
 */
typedef uint32_t trail_name;
TRAIL_API trail_string trail_analysis_text(const trail_analysis *analysis, trail_name name);

/*
 * The parts of a wait's name. In answers (`reason` of a wait, a step or a segment, and the names of
 * trail_times.block) the name is Go's reason. In recordings of C programs it is what the recorder
 * logged before the wait, "mutex stats_mu", or "mutex" where waits of a kind are added up.
 */
typedef struct trail_wait_for {
    trail_name reason; /* Go's reason: "sync"; of other names, the name itself */
    const char *kind;  /* "mutex", "condition", "read", ... (trail-record(1)); NULL: not recorded */
    const char *phrase; /* the words before the object: "waiting for a mutex"; NULL: not recorded */
    trail_name object;  /* "stats_mu"; 0: no name, or a sum over several objects */
} trail_wait_for;
TRAIL_API trail_wait_for trail_analysis_wait_for(const trail_analysis *analysis, trail_name wait);

/* A frame of a stack. */
typedef struct trail_place {
    uint64_t pc, line;
    trail_name function, file;
} trail_place;

/* A stack as a number, 0 for none. trail_analysis_stack returns the number of its frames and sets
 * *places to them, leaf first. */
typedef uint32_t trail_stack;
TRAIL_API size_t trail_analysis_stack(const trail_analysis *analysis, trail_stack stack,
                                      const trail_place **places);

/*
 * Returns the index of the frame that names the place: the innermost frame of the program itself,
 * which is not in Go's runtime, the C and C++ libraries or a library of threads and locks, nor
 * matched by options.skip_frames. Without such a frame, the innermost one with a name.
 */
TRAIL_API size_t trail_analysis_stack_own(const trail_analysis *analysis, trail_stack stack);

/* MARK: Histograms */

/*
 * Keeps up to 128 durations; with more, counts them in buckets of 1/8 of a power of two. The sum,
 * minimum and maximum are always exact. Memory: at most 1 KiB for 128 durations, at most 4 KiB.
 */
typedef struct trail_histogram {
    uint64_t count;
    int64_t sum_ns, min_ns, max_ns;
    uint64_t *bins; /* private: use trail_histogram_next */
    size_t bin_count;
} trail_histogram;

/*
 * Adds a duration to a histogram owned by the caller; a zero-initialised one is empty. Negative
 * durations count as 0. Returns false if out of memory.
 */
TRAIL_API bool trail_histogram_add(trail_histogram *histogram, int64_t ns);

/* Adds the counts of `more`. Returns false if out of memory; `histogram` may then only be freed. */
TRAIL_API bool trail_histogram_merge(trail_histogram *histogram, const trail_histogram *more);
TRAIL_API void trail_histogram_free(trail_histogram *histogram);

/*
 * Returns the quantile `q` (0 to 1) in ns: exact for up to 128 durations; for more, to 1/8,
 * interpolated within a bucket, and never outside min and max.
 */
TRAIL_API int64_t trail_histogram_quantile(const trail_histogram *histogram, double q);

/*
 * Iterates over the buckets that are not empty, in order: start with *at = 0; each call sets
 * *bucket and *count and advances *at. Returns false after the last.
 *
 *     for (size_t at = 0, bucket; trail_histogram_next(histogram, &at, &bucket, &count);) {
 *         trail_histogram_bucket(bucket, &from_ns, &to_ns);
 *         printf("%lld to %lld ns: %llu\n", (long long)from_ns, (long long)to_ns,
 *                (unsigned long long)count);
 *     }
 */
TRAIL_API bool trail_histogram_next(const trail_histogram *histogram, size_t *at, size_t *bucket,
                                    uint64_t *count);

/* Sets the range of bucket i: durations in [from, to). */
TRAIL_API void trail_histogram_bucket(size_t i, int64_t *from_ns, int64_t *to_ns);

/* MARK: Goroutines */

typedef struct trail_named_time {
    trail_name name;
    int64_t ns;
} trail_named_time;

/*
 * Where time went. Running, ready, blocked and in system calls do not overlap; ranges
 * (stop-the-world, assists, sweeps) overlap those.
 *
 * A system call whose P was released counts as syscall_ns until the release and as syscall_block_ns
 * after it. But where it had not ended when it was counted (at the end of the trace or of a
 * region), Go counts all of it as syscall_ns, and the part without a P again as sched_wait_ns.
 * open_block_ns is that part; trail_times_corrected counts it as syscall_block_ns only.
 */
typedef struct trail_times {
    int64_t exec_ns;
    int64_t sched_wait_ns;
    int64_t syscall_ns;
    int64_t syscall_block_ns;
    int64_t total_ns; /* without lost_ns */
    int64_t lost_ns;  /* time in unknown states, in a damaged trace */
    int64_t open_block_ns;
    const trail_named_time *block; /* by reason or kind (trail_wait_for), in order of appearance */
    const trail_named_time *range; /* by name */
    uint32_t block_count, range_count;
} trail_times;

struct trail_region;

typedef struct trail_goroutine {
    int64_t id;
    trail_name name; /* of its start function; 0: unknown */
    uint64_t pc;     /* of the start function in its stack */
    int64_t creation_ns;
    int64_t start_ns; /* when it first ran; 0: never */
    int64_t end_ns;   /* 0: alive */
    trail_times times;
    const struct trail_region *regions; /* with TRAIL_ANALYZE_REGIONS; by start */
    uint32_t region_count;
} trail_goroutine;

/* By ID. Valid as long as the analysis. */
TRAIL_API size_t trail_analysis_goroutines(const trail_analysis *analysis,
                                           const trail_goroutine **rows);

/* Whether Go counts it as a goroutine of the runtime; also true for goroutines without a name. */
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

/* Returns the times with open_block_ns counted once, as syscall_block_ns. */
TRAIL_API trail_times trail_times_corrected(const trail_times *times);

/* Goroutines with one start function, or regions with one name: sums and distributions. */
typedef struct trail_group {
    trail_name name;
    uint64_t count;
    uint64_t alive; /* goroutines or regions still open at the end */
    trail_times times;
    const trail_histogram *columns; /* TRAIL_COLUMNS of them; NULL without DISTRIBUTIONS */
} trail_group;

/* By total time, greatest first. */
TRAIL_API size_t trail_analysis_groups(const trail_analysis *analysis, const trail_group **rows);

/* MARK: Regions and tasks */

typedef struct trail_region {
    int64_t goroutine;
    uint64_t task;
    trail_name name; /* 0: none; inherited regions have no name */
    bool has_start;
    bool has_end;
    bool is_inherited; /* inherited from the creating goroutine; it spans the whole goroutine */
    int64_t start_ns, end_ns; /* 0: not in the trace */
    trail_times times;
} trail_region;

/* By goroutine, then start. */
TRAIL_API size_t trail_analysis_regions(const trail_analysis *analysis, const trail_region **rows);
TRAIL_API size_t trail_analysis_region_groups(const trail_analysis *analysis,
                                              const trail_group **rows);

/* A message that belongs to a task. */
typedef struct trail_task_log {
    int64_t time_ns;
    int64_t goroutine;
    trail_name category;
    trail_string message;
} trail_task_log;

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
    const trail_task_log *logs; /* with TRAIL_ANALYZE_LOGS: log_count of them; else NULL */
    const int64_t *goroutines;  /* goroutines that took part, by number */
    size_t goroutine_count;
    const uint32_t *children; /* indexes of tasks, in order of appearance */
    size_t child_count;
} trail_task;

/* By ID. */
TRAIL_API size_t trail_analysis_tasks(const trail_analysis *analysis, const trail_task **rows);

/* MARK: Garbage collection */

/*
 * Returns the minimum mutator utilisation: the smallest share of its Ps, 0 to 1, that the program
 * had in any window of that length. `curve` is the index into options.mmu_flags. A window longer
 * than the trace counts as the trace. Takes time in proportion to the number of changes.
 */
TRAIL_API double trail_analysis_mmu(const trail_analysis *analysis, unsigned curve,
                                    int64_t window_ns);

/*
 * Returns the share of its Ps that the program had in at least the share `quantile` (0 to 1) of all
 * windows of that length: a quantile of the distribution of mutator utilisation. 0.99: one window
 * in a hundred has less; 1: what trail_analysis_mmu returns; 0: the greatest. Exact to 1e-6.
 */
TRAIL_API double trail_analysis_mmu_quantile(const trail_analysis *analysis, unsigned curve,
                                             int64_t window_ns, double quantile);

typedef struct trail_mmu_window {
    int64_t begin_ns, end_ns;
    double mutator; /* the program's share */
} trail_mmu_window;

/*
 * Sets the windows of that length with the least utilisation: worst first, at most `most`, not
 * overlapping. Returns their number.
 */
TRAIL_API size_t trail_analysis_mmu_worst(const trail_analysis *analysis, unsigned curve,
                                          int64_t window_ns, trail_mmu_window *worst, size_t most);

/* One cycle: from the start of its mark phase to the start of the next one. */
typedef struct trail_gc_cycle {
    bool has_begin, has_end; /* of the mark phase; false: not in the trace */
    int64_t begin_ns, end_ns;
    uint64_t heap_at_begin, heap_at_end; /* bytes in use; 0: unknown */
    uint64_t heap_goal;                  /* at its start */
    uint64_t assists, sweeps;
    int64_t assist_ns, longest_assist_ns; /* goroutines' time, running or not */
    int64_t sweep_ns;
    uint64_t swept_bytes, reclaimed_bytes;
} trail_gc_cycle;
TRAIL_API size_t trail_analysis_gc_cycles(const trail_analysis *analysis,
                                          const trail_gc_cycle **rows);

/* A stop-the-world pause, for any reason. */
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
    int64_t running_ns;        /* with a goroutine running on it */
    int64_t syscall_ns;        /* with a goroutine in a system call on it */
    int64_t idle_ns;           /* neither */
    uint64_t runs;             /* times that a goroutine began to run */
    uint64_t syscalls;         /* system calls begun */
    uint64_t procs;            /* times that it took a P */
    uint64_t events;
    /*
     * The last goroutine that ran on it; TRAIL_NONE: none. In recordings of `trail record`, the
     * thread itself, in the last program that it executed.
     */
    int64_t goroutine;
    const int64_t *running_slices; /* see trail_analysis_thread_slices */
} trail_thread;

/* By ID. */
TRAIL_API size_t trail_analysis_threads(const trail_analysis *analysis, const trail_thread **rows);

typedef struct trail_proc {
    int64_t id;
    int64_t running_ns; /* with a goroutine running */
    int64_t syscall_ns; /* kept by a goroutine in a system call */
    int64_t other_ns;   /* in use otherwise: looking for work, the runtime itself */
    int64_t idle_ns;
    uint64_t runs;     /* times that a goroutine began to run */
    uint64_t syscalls; /* system calls begun */
    uint64_t taken;    /* times that it was taken from a system call */
    uint64_t starts;   /* times that it left the idle state */
    const int64_t *running_slices;
} trail_proc;

/* By ID. */
TRAIL_API size_t trail_analysis_procs(const trail_analysis *analysis, const trail_proc **rows);

/*
 * The distribution of running_ns of threads and Ps over time: time is cut into slices, at most 128,
 * each *slice_ns long but the last, and running_slices has one value per slice. running_slices is
 * NULL for rows that never ran, and for threads and Ps beyond the first 1024 to appear.
 */
TRAIL_API size_t trail_analysis_thread_slices(const trail_analysis *analysis, int64_t *slice_ns);

/* MARK: Profiles */

typedef struct trail_profile_frame {
    uint64_t pc; /* 0: unknown */
    trail_name function, file;
    uint64_t line;
} trail_profile_frame;

/*
 * The total for one stack. Stacks are leaf first and cut off after 128 frames, as in Go. Waits that
 * do not end in the trace are counted by TRAIL_PROFILE_OFFCPU only; in a window that ends before
 * the trace, by all profiles.
 */
typedef struct trail_profile_sample {
    const uint32_t *frames; /* indexes into the profile's frames */
    uint32_t frame_count;
    /*
     * TRAIL_PROFILE_OFFCPU: the index at which the waiter's stack begins. The frames before it are
     * what ended the wait, so that the stack reads, root first: the waiter, "[chan receive]" or
     * another reason, and the waker's stack, leaf first; or "[not woken]".
     */
    uint32_t own_frames;
    uint64_t count;
    int64_t ns;
    trail_histogram times; /* with TRAIL_ANALYZE_DISTRIBUTIONS */
    trail_name wait;       /* OFFCPU: what was waited for; SYNC by kind: the kind; else 0 */
    uint64_t timed_out;    /* SYNC by kind: waits that timed out, as far as recorded */
    uint64_t
        idle_count; /* SYNC by kind: waits for work, as in trail_wait; not those open at the end */
    int64_t idle_ns;
    bool nameless; /* the stack is empty; the one counted last had a frame, but no name or PC */
} trail_profile_sample;

typedef struct trail_profile {
    trail_profile_type type;
    const trail_profile_frame *frames; /* each frame once; shared by all profiles of the analysis */
    size_t frame_count;
    const trail_profile_sample *samples; /* longest first */
    size_t sample_count;
    uint64_t count; /* of all samples */
    int64_t ns;
    uint64_t goroutines;   /* that match options.profile */
    uint64_t regions;      /* that match, if options.profile names regions */
    trail_histogram times; /* of all samples, with TRAIL_ANALYZE_DISTRIBUTIONS */
} trail_profile;

/* Sets *profile to one of options.profile.types. Valid as long as the analysis. */
TRAIL_API void trail_analysis_profile(const trail_analysis *analysis, trail_profile_type type,
                                      trail_profile *profile);

/* "net", "sync", "syscall", "sched", "cpu", "running", "offcpu". */
TRAIL_API const char *trail_profile_type_name(trail_profile_type type);

/* MARK: Activity */

/* A slice of time; all have equal length but the last. */
typedef struct trail_activity_slice {
    int64_t running_ns;  /* goroutines' time, summed over all that ran */
    int64_t runnable_ns; /* the same for ready goroutines */
    int64_t procs_ns;    /* time of all Ps that were not idle */
} trail_activity_slice;

/*
 * Use of the Ps. The time of an idle P has one of three causes: work was ready, or nothing was
 * ready and a goroutine waited for a lock, or nothing was ready and all goroutines waited for
 * channels, networks or timers.
 */
typedef struct trail_activity {
    uint64_t procs; /* the largest GOMAXPROCS; if not in the trace, the most Ps seen together */
    int64_t running_ns, runnable_ns; /* as in a slice */
    int64_t procs_ns;
    int64_t available_ns; /* Ps' time, the sum over all */
    int64_t idle_work_ns, idle_lock_ns, idle_nothing_ns;
    const trail_activity_slice *slices;
    size_t slice_count; /* up to 128 */
    int64_t slice_ns;
    bool has_heap;
    uint64_t heap_first, heap_peak, heap_last; /* bytes in use */
    int64_t heap_peak_ns;
    /* Recordings of C programs: the time in which context switches were not recorded, so that
     * running and ready are inferred. */
    int64_t inferred_ns;
    /*
     * Damaged traces: the time in which the state of a goroutine or P is unknown, from lost events
     * to the next generation. It is not in available_ns and idle_*; more may have run or been ready
     * in it.
     */
    int64_t lost_ns;
} trail_activity;
TRAIL_API void trail_analysis_activity(const trail_analysis *analysis, trail_activity *activity);

/* The longest case: when it began, and its goroutine. */
typedef struct trail_longest {
    int64_t ns, begin_ns;
    int64_t goroutine;
} trail_longest;

/* Ended waits for one reason, or of one kind (trail_wait_for). */
typedef struct trail_wait {
    trail_name reason;
    trail_histogram spread;
    trail_longest longest;
    uint64_t timed_out; /* that timed out, as far as recorded */
    /* In recordings of C programs: waits for work, to which a thread returns again and again. */
    uint64_t idle_count;
    int64_t idle_ns;
} trail_wait;

/* Goroutines with one start function, or threads whose own names differ in a number at the end
 * ("worker-*"): each time that they were ready, and each wait. */
typedef struct trail_wait_group {
    trail_name name;
    uint64_t created, ended;
    trail_histogram ready; /* from ready to running */
    trail_longest ready_longest;
    const trail_wait *waits; /* by reason, in order of appearance */
    size_t wait_count;
} trail_wait_group;

/* By time ready, greatest first. */
TRAIL_API size_t trail_analysis_waits(const trail_analysis *analysis,
                                      const trail_wait_group *const **rows);

/* Tasks of one type. */
typedef struct trail_task_kind {
    trail_name name;
    uint64_t begun, ended;
    trail_histogram spread; /* of tasks with begin and end */
    trail_longest longest;  /* `goroutine` is the task's ID */
} trail_task_kind;
TRAIL_API size_t trail_analysis_task_kinds(const trail_analysis *analysis,
                                           const trail_task_kind *const **rows);

/* MARK: Locks */

/* Waits for a lock, or holds of it, with the same stack. */
typedef struct trail_lock_place {
    trail_stack stack;    /* of the wait, or where the lock was taken */
    trail_stack released; /* holds: where it was released, if that woke a waiter */
    uint64_t count;
    int64_t ns;
    trail_longest longest;
} trail_lock_place;

/*
 * Something that goroutines wait for until another one wakes them. In recordings of C programs it
 * is an object; elsewhere a mutex is identified by the stack of the wait, others also by that of
 * the waker.
 */
typedef struct trail_lock {
    trail_name kind; /* "mutex", "rwlock", "condition"; "sync.(*Mutex).Lock"; "chan receive" */
    trail_name name; /* "stats_mu", "0x7f... (first seen locked in f x.c:7)"; 0: none */
    /* 0 if it has a name. woken: for a mutex, the stack that ended most of the waiting; 0 without a
     * waker in the trace. */
    trail_stack waited, woken;
    trail_histogram wait; /* waits that ended */
    trail_longest longest;
    uint64_t open; /* waits that did not */
    int64_t open_ns;
    trail_longest longest_open;
    uint64_t timed_out;   /* waits that timed out, as far as recorded */
    trail_histogram hold; /* as far as recorded; lengths have three significant digits */
    trail_longest longest_hold;
    const trail_lock_place *waiters; /* ended waits, by stack; longest time first */
    const trail_lock_place *held;
    size_t waiter_count, held_count;
    int64_t holder; /* during the longest open wait; TRAIL_NONE: not known */
    trail_name holder_name;
    /*
     * Of the goroutines of `longest`, `longest_hold` and `longest_open`: their start functions; 0:
     * not known.
     */
    trail_name longest_name, longest_hold_name, longest_open_name;
    bool can_be_held; /* waits for it end when a holder releases it: not a WaitGroup or condition */
} trail_lock;

/*
 * By wait time, greatest first; then conditions and the like, which deliver work; last, by hold
 * time, locks that nothing waited for.
 */
TRAIL_API size_t trail_analysis_locks(const trail_analysis *analysis,
                                      const trail_lock *const **rows);

/* One waiting goroutine of a chain. */
typedef struct trail_lock_link {
    int64_t goroutine;
    trail_name name;        /* its start function */
    const trail_lock *lock; /* has no row if none of its waits is by a selected goroutine */
    int64_t begin_ns, end_ns;
    int64_t holder; /* the goroutine that ended the wait; TRAIL_NONE: none in the trace */
    trail_name holder_name;
} trail_lock_link;

/*
 * From begin to end, the first goroutine waited for the second, which held the lock and itself
 * waited for the third, and so on. At least two waits.
 */
typedef struct trail_lock_chain {
    int64_t begin_ns, end_ns;
    const trail_lock_link *links;
    size_t link_count;
    uint64_t others; /* waits of other goroutines in front of the same chain */
} trail_lock_chain;

/* The chains with most links first, among these the longest first; at most 64. */
TRAIL_API size_t trail_analysis_lock_chains(const trail_analysis *analysis,
                                            const trail_lock_chain **rows);

/* MARK: Finding */

/* An error in a pattern: bytes [begin, end) of its text. */
typedef struct trail_pattern_error {
    size_t begin, end;
    char message[240];
} trail_pattern_error;

/* Parses a pattern. Copies what it needs of the text. Returns NULL on error, with *err set. */
TRAIL_API trail_pattern *trail_pattern_parse(const char *text, trail_pattern_error *err);
TRAIL_API void trail_pattern_free(trail_pattern *pattern);

/* A state of a goroutine, or a point in time. */
typedef struct trail_hit_step {
    const char *what;         /* the pattern's keyword: "block" */
    int64_t begin_ns, end_ns; /* equal for a point in time */
    bool lasts;               /* a state */
    bool open;                /* the state had not ended when the trace or window did */
    trail_name
        reason; /* of a wait (trail_wait_for); else the text in brackets, such as a region's name */
    trail_stack stack; /* of a state: where it began; of running: where it ended */
    int64_t waker;     /* the goroutine that ended the wait or created this one; TRAIL_NONE: none */
    trail_stack waker_stack;
} trail_hit_step;

/* Valid during the call of `visit`. Hits of one goroutine do not overlap. */
typedef struct trail_hit {
    int64_t goroutine;
    trail_name name; /* its start function */
    int64_t begin_ns, end_ns;
    const trail_hit_step *steps; /* its start function */
    size_t step_count;
} trail_hit;

/* MARK: Findings */

/* A problem found in the trace. */
typedef struct trail_finding {
    const char *kind; /* "lock-serialises" "futile-wakeups" "one-runs-alone" "ready-while-idle"
                         "keeps-p" "delays-stop" "long-pause" "gc-share" "leak"
                         "deadlock" "maybe-deadlock" "open-wait" "slow-task" "slow-region"
                         "ready" */
    /* Sentences; names in them may be any bytes of the trace except NUL. `text` is the others
     * joined: the problem (here without its full stop), the evidence, and the possible gain and
     * remedy; the last two may be empty. */
    const char *text, *heading, *details, *remedy;
    /*
     * An upper bound on the time saved by fixing the problem; for a lock, by removing the waits for
     * it. For a wait that never ended, its length.
     */
    int64_t gain_ns;
    /*
     * Sorts the findings: the share of all time that the problem took (usually gain_ns), plus 1 for
     * a hang, 2 for a deadlock.
     */
    double weight;
    bool note; /* about other programs: sorted after the rest unless it takes half of the time */
    trail_name function, object; /* the culprit, and what is waited for; 0: none, or unknown */
    bool has_moment;             /* the three members below are set, to the worst case */
    int64_t begin_ns, end_ns;
    int64_t goroutine; /* TRAIL_NONE: no particular one */
    int64_t task;      /* "slow-task": the slowest; else TRAIL_NONE */
    trail_name region; /* "slow-region": its name; else 0 */
    /*
     * The result of a replay without the problem, as a sentence, and the one or two options of
     * `trail whatif` that request that replay. NULL in the library, which does not replay.
     */
    const char *replayed, *whatif[2];
    /*
     * Its main figure, as recorded and as replayed. "end": the time to the end; "median", "p99": of
     * the length of tasks; "threads": the time until the waiting threads have done their work;
     * "waits": the time in which threads wait for each other. Equal figures: nothing is gained.
     */
    const char *replayed_of;
    int64_t replayed_now_ns, replayed_then_ns;
} trail_finding;

/* By weight, greatest first. */
TRAIL_API size_t trail_analysis_findings(const trail_analysis *analysis,
                                         const trail_finding **rows);
/* MARK: The critical path */

/*
 * Where the time of a span went, on any goroutine, followed from its end back through the wake-ups.
 * While a goroutine waited for another, the path is on the other one; before that wait it is on the
 * waiter again. Waits that no goroutine in the trace ended (timers, the network) stay with the
 * waiter.
 */
typedef struct trail_path {
    trail_path_of of;  /* kind of the span: never TRAIL_PATH_LONGEST */
    uint64_t task;     /* of a task or region */
    trail_name name;   /* of the task or region, or the goroutine's start function */
    uint64_t nth;      /* of regions: number among those with that name, from 1 */
    int64_t goroutine; /* on which it ends */
    bool complete;     /* false: begins before the window or trace, or ends after it */
    int64_t begin_ns, end_ns;
} trail_path;

/* Sets *path to the requested critical path. Returns false if the trace has no such span. */
TRAIL_API bool trail_analysis_path(const trail_analysis *analysis, trail_path *path);

typedef enum trail_path_state {
    TRAIL_PATH_RUNNING,
    TRAIL_PATH_READY,   /* ready, not running */
    TRAIL_PATH_SYSCALL, /* in a system call */
    TRAIL_PATH_BLOCKED, /* waiting, not woken by a goroutine of the trace */
    TRAIL_PATH_UNKNOWN, /* before the goroutine began; no creator in the trace */
    TRAIL_PATH_STATES
} trail_path_state;
TRAIL_API const char *trail_path_state_name(trail_path_state state);

typedef struct trail_path_segment {
    int64_t begin_ns, end_ns; /* begin < end */
    int64_t goroutine;
    trail_name group; /* its start function */
    trail_path_state state;
    trail_name reason;     /* of BLOCKED, and of SYSCALL where recorded; see trail_wait_for */
    trail_stack stack;     /* RUNNING: where it ended; else where it began */
    trail_name function;   /* of that stack: see trail_analysis_stack_own */
    uint32_t depth;        /* 0: the goroutine of the span; 1: one that it waited for; ... */
    int64_t wakes;         /* the goroutine woken or created at its end; TRAIL_NONE */
    trail_name awaited;    /* what that one had waited for */
    bool timed_out;        /* BLOCKED: the wait timed out, as recorded */
    int64_t held_ns;       /* hold time of `awaited` by `goroutine`; 0: not recorded */
    trail_stack waited_at; /* the stack of that wait */
} trail_path_segment;

/*
 * Calls `visit` with the segments from the last to the first, without gaps: the first one ends
 * where the path ends, the last one begins where it begins. Called after trail_analysis_finish, any
 * number of times. Returns 0, or -1 if out of memory or if the temporary file cannot be read.
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

/* Totals of the last walk, by time, greatest first; valid until the next walk. */
TRAIL_API size_t trail_analysis_path_totals(const trail_analysis *analysis,
                                            const trail_path_total **rows);

#ifdef __cplusplus
}
#endif
#endif
