/*
 * libtrail-record: writes Go execution traces from C and C++ programs.
 *
 *   a runtime     embeds a trail_m in each worker thread, a trail_p in each processor slot and a
 *                 trail_g in each coroutine or job, and reports what happens to them
 *   any program   writes tasks, regions and logs, from any thread, without set-up
 *   a consumer    starts, stops and reads a trace, or keeps the newest seconds in memory
 *
 * One tracer per process, as in Go. While it is off, a call costs a load and a branch (annotations)
 * or a few plain stores (the scheduler's calls, which keep the states that a start needs). While it
 * is on, a call reads the clock and writes a few bytes to a buffer of its thread: no lock, no
 * system call, no shared cache line. The library keeps sequence numbers, status events and tables
 * itself.
 *
 * Threads: every function may be called from any thread, unless its comment restricts it. A
 * scheduler's call takes the trail_m of the calling thread, never another's. Calls about one
 * goroutine or P must be ordered by the host's own synchronization, as its states are.
 *
 * Signals: annotations and trail_cpu_sample may be called in a signal handler if the thread has an
 * M or has annotated before, and the signal did not interrupt a call that takes a trail_error,
 * trail_stats_get or trail_advance. A call that interrupts the writing of an event is dropped and
 * counted (trail_stats.reentrant). A handler must return to a call that it interrupted: one that
 * ends the thread or jumps out of the call (pthread_exit, siglongjmp) may leave a lock behind.
 *
 * Fork: the child does not write to the parent's trace; it may start its own.
 *
 * Times are in nanoseconds, sizes in bytes. Functions that return bool return false on failure.
 */
#ifndef TRAIL_RECORD_H
#define TRAIL_RECORD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* MARK: Goroutines, Ps, Ms
 *
 * The host embeds these in its own structs. Names that end in _ belong to the library. The init
 * functions initialize all fields. An object must neither move nor be freed while the library uses
 * it: an M from trail_m_start to trail_m_exit, a G from its creation to its end, a P from
 * trail_p_init to trail_p_fini.
 *
 * M and P are handles: what other threads read is a copy that the library owns (inner_). So the end
 * of a thread or of the program finds what it needs even if the host's memory is gone.
 *
 * Every call checks that its M is the calling thread's and that its G and P were initialized and
 * have not moved (check_). A call that fails the check is not written, changes nothing, and is
 * counted (trail_stats.misuse).
 */

/* The write position in the buffer that receives events. */
struct trail_writer_ {
    uint8_t *at, *end;
    uint64_t last_ticks;
    struct trail_buffer_ *buffer;
    struct trail_buffer_ *own; /* its first buffer, which it takes without a lock; NULL: none */
};

#define TRAIL_RECENT_STRINGS_  16
#define TRAIL_CHECKED_REGIONS_ 16 /* regions nested deeper are not checked */
#define TRAIL_RECENT_STACKS_   8

/* A state and the generation that last wrote it to the trace: generation << 3 | state. */
typedef uint64_t trail_state_;

#define TRAIL_NAME_MAX 63 /* bytes of a goroutine's name */
#define TRAIL_KIND_MAX 31

/* A goroutine: what the host runs, blocks and wakes, for example a coroutine, job or thread. */
typedef struct trail_g {
    uint64_t id; /* set by trail_g_init; all tools show it */
    /*
     * The stack it runs on, [stack_low, stack_high), for walking frame pointers. Both NULL: its
     * thread's stack. The host may set them after trail_g_init.
     */
    const void *stack_low, *stack_high;
    /*
     * For a job that runs on a worker's stack: the frame of the function that calls the job, as
     * that function's __builtin_frame_address(0), set before trail_go_start. Stacks end before that
     * frame, so that they begin with the job. Ignored unless it lies on the stack that is walked.
     * NULL: stacks are whole.
     */
    const void *stack_root;
    uintptr_t start_; /* its start function; 0: unknown */
    /* Twice the number of changes of the texts below; odd while they change. */
    uint32_t named_;
    uint64_t name_[TRAIL_NAME_MAX / 8 + 1], kind_[TRAIL_KIND_MAX / 8 + 1];
    trail_state_ state_;
    uint64_t seq_;      /* generation << 32 | sequence number in that generation */
    struct trail_m *m_; /* the M that runs it or is in a system call with it */
    struct trail_p *last_p_;
    uint64_t syscall_exit_ticks_, syscall_block_ticks_; /* v1 */
    const uint8_t *started_at_; /* v1: end of its GoStart in the P's buffer */
    /* v2: the stack it waits with, and the generations whose tables hold the entries */
    const void *block_stack_, *kept_stack_;
    uint64_t block_generation_, kept_generation_;
    uint64_t assist_session_; /* session that has its GC assist; TRAIL_ASSIST_: none yet; 0: none */
    /* session of the fields below: its open regions, outermost first */
    uint64_t regions_session_;
    uint32_t regions_[TRAIL_CHECKED_REGIONS_], region_count_;
    bool woken_; /* v1: woken by an event, and only started or preempted since */
    /* It waits, but the session that has its state shows it otherwise: TRAIL_SHOWN_. */
    uint8_t shown_;
    bool rooted_;    /* its stacks end at stack_root */
    uint64_t check_; /* its address and ID: see trail_check_ */
} trail_g;

/* A P: a slot of concurrency; at most one thread holds it. The rest is used in the inner P only. */
typedef struct trail_p {
    int32_t id;             /* set by trail_p_init */
    uint64_t check_;        /* its address, while it is initialized */
    struct trail_p *inner_; /* the library's */
    struct trail_p *outer_; /* in the inner P: the host's, which is compared and never read */
    bool may_sweep_;
    bool abandoned_; /* v1: its thread left a system call without it; idle for readers */
    uint32_t lock_;  /* in a system call: its thread annotates, or another one takes it */
    trail_state_ state_;
    uint64_t seq_;
    struct trail_m *m_;           /* the M that holds it */
    struct trail_writer_ writer_; /* v1 */
    struct trail_p *next_;
    uint64_t swept_, reclaimed_, sweep_session_;
    uint64_t retired_session_; /* in which it was finished */
} trail_p;

/*
 * An M: a thread. `g` and `p` are what it runs and holds, as of the thread's last call; the host
 * may read them. The rest is used in the inner M only.
 */
typedef struct trail_m {
    trail_g *g;
    trail_p *p;
    uint64_t id;            /* the kernel's thread ID (gettid) at its start */
    uint64_t check_;        /* its address, from trail_m_start to trail_m_exit */
    struct trail_m *inner_; /* the library's */
    struct trail_m *outer_; /* in the inner M: the host's, which other threads never read */
    uintptr_t frame_;       /* in a call: the frame of the function that the host called */
    uint32_t busy_;
    uint32_t borrowed_;   /* BORROWED_ bits: what it runs and holds for this call only */
    uint64_t generation_; /* the newest generation in which it wrote */
    uint64_t closed_;     /* the newest generation whose statuses are complete for it */
    struct trail_writer_ writers_[2]; /* v2: by generation & 1 */
    struct trail_writer_ strings_[2];
    uint64_t string_ids_, string_ids_end_; /* reserved IDs */
    const void *stack_low_, *stack_high_;
    uint64_t shown_session_;        /* in which another thread wrote what it runs */
    uint64_t unlike_;               /* of its goroutine; see section.h */
    struct trail_own_thread_ *own_; /* set for a thread without trail_m_start */
    /* Entries that it interned in this generation. */
    const void *recent_[TRAIL_RECENT_STRINGS_], *recent_stacks_[TRAIL_RECENT_STACKS_];
    uint64_t paused_; /* not announced, and outside of regions in this generation (v2) */
    uint32_t lock_;
    uint32_t in_use_;
    uint64_t seen_id_; /* ID of the goroutine that readers see on it */
    uint64_t spare_[2];
} trail_m;

/*
 * trail_m_attach returns the calling thread's M, which the library owns: valid until the thread
 * ends or calls trail_m_exit. If the thread has an M, returns that. NULL: no memory. Not
 * async-signal-safe, like the next two.
 */
TRAIL_API trail_m *trail_m_attach(void);

/*
 * trail_m_start registers the calling thread as `m`, which the host owns; it precedes every other
 * call with `m`. trail_m_exit is the last; what the thread wrote is kept. The exit of a thread
 * without trail_m_exit is detected, even if the memory of `m` is gone by then; a goroutine that
 * still runs on it ends there, and is counted as misuse.
 */
TRAIL_API void trail_m_start(trail_m *m);
TRAIL_API void trail_m_exit(trail_m *m);

/* Returns the calling thread's M, or NULL if it has none. */
TRAIL_API trail_m *trail_m_current(void);

/*
 * Initializes an idle P with number `id`, from 0 to TRAIL_MAX_PROC, that no other P has; otherwise
 * calls with `p` are misuse. Call trail_p_fini, while it is idle, before its memory is freed.
 */
#define TRAIL_MAX_PROC 9999
TRAIL_API void trail_p_init(trail_p *p, int32_t id);
TRAIL_API void trail_p_fini(trail_p *p);

/*
 * Initializes a G that is not created yet, with an ID that is unique in this process and must not
 * be changed. If a goroutine in the same memory is still running, it ends, which is misuse.
 */
TRAIL_API void trail_g_init(trail_g *g);

/*
 * Set the name that trail shows for `g` instead of its start function, and its kind ("accept loop",
 * "timer"). UTF-8, copied, and cut to TRAIL_NAME_MAX or TRAIL_KIND_MAX bytes; NULL or "" removes
 * it. May be called at any time after trail_g_init, from any thread, by one thread at a time for
 * one goroutine. Every trace and snapshot with the goroutine has them, even if it starts later;
 * after a change within a trace, trail shows the last one. Go's tools show the start function. Not
 * async-signal-safe.
 */
TRAIL_API void trail_g_set_name(trail_g *g, const char *name);
TRAIL_API void trail_g_set_kind(trail_g *g, const char *kind);

/* MARK: The host */

#define TRAIL_MAX_FRAMES 128

/* The kinds of wrong calls. */
typedef enum trail_misuse_kind {
    TRAIL_MISUSE_CONTEXT, /* the thread lacks a P or a goroutine, or has one already */
    TRAIL_MISUSE_STATE,   /* the goroutine or P is in a state that does not allow it */
    TRAIL_MISUSE_THREAD,  /* the M was not started, or is another thread's */
    TRAIL_MISUSE_OBJECT, /* a G or P was not initialized, was moved, or has an ID it may not have */
    TRAIL_MISUSE_NESTING, /* a region, collection, assist or pause that is not the innermost or is
                             not open */
    TRAIL_MISUSE_KIND_COUNT
} trail_misuse_kind;

#define TRAIL_MISUSE_FRAMES 16

/* A wrong call. Valid during the callback; the strings always. */
typedef struct trail_misuse {
    trail_misuse_kind kind;
    const char *call, *reason;
    uint64_t thread;         /* the kernel's thread ID */
    int64_t goroutine, proc; /* IDs; -1: none */
    size_t frames;
    uintptr_t pcs[TRAIL_MISUSE_FRAMES]; /* return addresses of the stack, leaf first */
} trail_misuse;

/* The name of a frame. The strings must stay valid until the next call of `symbolize`. */
typedef struct trail_pc_name {
    const char *function, *file;
    unsigned line;
} trail_pc_name;

/*
 * Callbacks into the host's runtime; each may be NULL. `context` is passed through.
 *
 * each_goroutine  calls visit(g, arg) for every goroutine that was created and has not ended. None
 *                 may be freed during the walk: hold the lock that guards the list (a reader-writer
 *                 lock for reading: see stop_world). Add a goroutine to the list after trail_g_init
 *                 and before trail_go_create: a thread that is preempted between creation and
 *                 insertion would hide it for a whole generation.
 *                 Listed goroutines that are not created yet are skipped. Called by the thread that
 *                 starts a trace, or ends a generation or the trace (v2), while other threads run.
 *                 The host must not call the library while it holds that lock, nor take a lock under
 *                 which it calls the library: those calls wait while a v1 trace starts. Remove a
 *                 goroutine after its end. Required for hosts with trail_g of their own.
 * stop_world,     optional; called around the snapshot with which a v1 trace starts. The library
 * start_world     itself holds all threads outside of its calls meanwhile: a scheduler's call
 *                 waits; an annotation is dropped, as before the start, so that a signal handler
 *                 never waits. A host needs stop_world only for what it changes without calls. A
 *                 stop_world that takes a lock which prefers readers may never get it.
 * symbolize       names a PC that the dynamic loader cannot (interpreters, JIT code), or returns
 *                 false. Called for every PC, before the dynamic loader is asked; PCs are return
 *                 addresses. Called by the thread that ends a generation (v2) or the trace.
 * misuse          receives the first wrong call of a trace, or of the process before it. Called in
 *                 that call, so that a debugger or abort() shows its place; once. It must not call
 *                 the library, and must be async-signal-safe if signal handlers annotate.
 * ended           receives the reason why a trace has ended by itself: no memory, a reader that is
 *                 too slow, a consumer that failed. Called by the reading thread after its last
 *                 event; not if trail_stop comes first. It must not start or stop a trace.
 * callers         writes up to `max` return addresses of the calling thread's stack, leaf first,
 *                 and returns their number; the first is the frame of skip 0. Used with
 *                 TRAIL_UNWIND_HOST. Must be async-signal-safe if signal handlers annotate; CPU
 *                 samples do not use it.
 *
 * None is called once exit() has begun, because what they use may be destroyed: a trace that is
 * still on is completed from what the library owns.
 */
typedef struct trail_host {
    void *context;
    void (*each_goroutine)(void *context, void (*visit)(trail_g *g, void *arg), void *arg);
    void (*stop_world)(void *context);
    void (*start_world)(void *context);
    bool (*symbolize)(void *context, uintptr_t pc, trail_pc_name *name);
    size_t (*callers)(void *context, uintptr_t *pcs, size_t max);
    void (*misuse)(void *context, const trail_misuse *first);
    void (*ended)(void *context, const trail_error *why);
} trail_host;

/*
 * Sets the host's callbacks; call it before the first start. *host is copied; NULL removes them.
 * Before a plugin is unloaded, it must stop its trace and remove its callbacks.
 */
TRAIL_API void trail_host_set(const trail_host *host);

/* MARK: Start, stop, read */

/*
 * What happens when an event needs a buffer, and `memory` is used up by unread chunks or the system
 * has no more.
 */
typedef enum trail_when_full {
    /*
     * Wait up to wait_ns for the reader, then act as TRAIL_FULL_END. The reading thread does not
     * wait for itself: its own events may take up to twice `memory` before the trace ends.
     */
    TRAIL_FULL_WAIT,
    TRAIL_FULL_END,         /* end the trace, as at trail_stop: a consistent prefix */
    TRAIL_FULL_DROP_OLDEST, /* v2: drop whole generations, the oldest unread one first */
} trail_when_full;

typedef enum trail_unwinder {
    TRAIL_UNWIND_AUTO, /* frame pointers if the caller of the start has them, else tables */
    TRAIL_UNWIND_FRAME_POINTERS, /* about 15 ns for 8 frames; needs -fno-omit-frame-pointer */
    /*
     * x86-64: .eh_frame, which all compilers write. A frame's rule is read once and then takes some
     * 5 ns. Elsewhere libunwind.
     */
    TRAIL_UNWIND_TABLES,
    TRAIL_UNWIND_LIBUNWIND, /* loaded at run time if available, else glibc's backtrace (1 us) */
    TRAIL_UNWIND_HOST,      /* trail_host.callers */
    TRAIL_UNWIND_NONE,      /* no stacks */
} trail_unwinder;

/* Zero selects the default of each field: `trail_options options = {0};` */
typedef struct trail_options {
    int format; /* N of `go 1.N trace`: 7, 11, 19, 21 (v1), 22, 23, 26 (v2); 0: 23 */
    /*
     * Limit in bytes for all unread chunks together; 0: 64 MiB; at least 256 KiB. On top of it,
     * each writing thread has up to 64 KiB for events and as much for texts; a quiet one has 8 KiB
     * in each of two generations.
     */
    size_t memory;
    trail_when_full when_full;
    int64_t wait_ns;       /* how long to wait for the reader; 0: 10 s; < 0: not at all */
    int64_t generation_ns; /* v2: length of a generation; 0: 1 s */
    trail_unwinder unwinder;
    unsigned max_frames; /* 1 to 128; 0: 128 */
    /* CPU samples per second of CPU time (SIGPROF), at most 1000; 0: none. Formats 19, 21, v2. */
    unsigned cpu_hz;
    bool alloc_free; /* record the calls of the AllocFree experiment (formats 23, 26) */
    bool no_symbols; /* leave PCs without names, for `trail symbolize` */
    /*
     * The word for a goroutine in trail's output: "fiber", "job". Singular, at most 32 bytes of
     * printable UTF-8, copied. NULL: "task", or "thread" if no host lists goroutines. Go's tools
     * ignore it.
     */
    const char *task_word;
    /* While it records, the reader gets full buffers at the latest after this time; 0: 100 ms. */
    int64_t live_ns;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_options;

/*
 * Starts a trace that the program reads with trail_read. `options` may be NULL. Fails with "tracing
 * is already enabled" if a stream is on, or if an option is wrong. A trace that ended by itself is
 * stopped first, and its unread part is dropped. While a v1 format takes its snapshot, scheduler's
 * calls of other threads wait.
 */
TRAIL_API bool trail_start(const trail_options *options, trail_error *err);

typedef struct trail_chunk {
    const uint8_t *data;
    size_t size;
    uint64_t generation; /* v2; 0 in v1 and for the header */
    bool new_file;       /* the 16-byte header: in the first chunk, and in the first after a gap */
} trail_chunk;

/*
 * Waits for the next chunk: the header, then buffers as they fill and generations as they end (v2),
 * or buffers, then the frequency and the tables (v1). Returns 1, 0 when the trace is complete, or
 * -1 on an error with *err, for example if another thread is inside trail_read. The chunk is valid
 * until the next call. The reading thread also ends v2's generations when they are due.
 */
TRAIL_API int trail_read(trail_chunk *chunk, trail_error *err);

/*
 * Like trail_start, with a thread of the library that reads the trace and writes it to `fd`, or
 * passes it to `sink`. The library writes to a duplicate of `fd`: the caller may close its own at
 * once. `sink` returns false to end the trace. After a gap (TRAIL_FULL_DROP_OLDEST) nothing more is
 * written to a descriptor; a sink receives a chunk with new_file set.
 */
typedef bool (*trail_chunk_fn)(void *context, const trail_chunk *chunk);
TRAIL_API bool trail_start_fd(const trail_options *options, int fd, trail_error *err);
TRAIL_API bool trail_start_sink(const trail_options *options, trail_chunk_fn sink, void *context,
                                trail_error *err);

/*
 * Ends the trace. Returns when everything recorded has been read or written, or when the consumer
 * has taken nothing for wait_ns although it had CPU time. Do not call it from the thread that calls
 * trail_read, or from a sink. Returns false with *err if events were lost or could not be written;
 * true without a trace. Lost texts, stacks and CPU samples are counted only (trail_stats). Wrong
 * calls are missing in an otherwise good trace, and *err (TRAIL_USAGE) has the function, reason,
 * thread and stack of the first one.
 *
 * A trace to a descriptor is completed at exit(), without calling the host. A sink is not called
 * once exit() has begun, so stop such a trace before.
 */
TRAIL_API bool trail_stop(trail_error *err);

typedef enum trail_trace_state {
    TRAIL_STATE_OFF,
    TRAIL_STATE_ON,
    TRAIL_STATE_ENDED /* ended by itself: trail_stop returns the reason; a start replaces it */
} trail_trace_state;

/* Returns the state of the trace and the flight recorder. Takes a lock. */
TRAIL_API trail_trace_state trail_state(void);

/* Whether a trace, the flight recorder or `trail record` records the process. Costs one load. */
static inline bool trail_enabled(void);

/*
 * v2: ends the generation now. Returns when it can be read. Does nothing in v1 and while off. While
 * another goroutine has stopped the world it waits for up to a second, then does nothing; from the
 * goroutine that has, the call is misuse.
 */
TRAIL_API void trail_advance(void);

/* MARK: Flight recorder (v2) */

typedef struct trail_flight_options {
    trail_options trace;  /* as for trail_start; a stream that is already on keeps its own */
    int64_t min_age_ns;   /* how far back to keep at least; 0: 10 s */
    size_t max_bytes;     /* but no more generations than fit in about this; 0: 10 MiB */
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_flight_options;

/*
 * Keeps the newest generations in memory, with a thread of the library. A stream may be started and
 * stopped at the same time. trail_flight_snapshot ends the current generation and writes everything
 * kept, as a complete trace, to `fd`; *bytes (may be NULL) receives its size. Recording continues.
 * While a goroutine has stopped the world, no generation ends: a snapshot, and the trail_stop of a
 * stream, then fail.
 */
TRAIL_API bool trail_flight_start(const trail_flight_options *options, trail_error *err);
TRAIL_API bool trail_flight_snapshot(int fd, uint64_t *bytes, trail_error *err);
TRAIL_API void trail_flight_stop(void);

typedef struct trail_flight_slow {
    size_t size;        /* sizeof(trail_flight_slow) */
    const char *name;   /* of tasks and regions; NULL: all */
    int64_t limit_ns;   /* what lasts longer is slow */
    const char *folder; /* for the files slow-TIME-PID.trace, with mode 0600; must exist */
    int64_t every_ns;   /* write at most one in this time; 0: 1 min; at least 1 s */
    uint64_t max_bytes; /* stop when one would make all of them larger than this; 0: 1 GiB */
    /*
     * Called after each attempt, on a thread of the library, with the file or with the reason why
     * there is none; the other is NULL. May be NULL. Must not call trail_flight_stop, nor this
     * function.
     */
    void (*written)(void *context, const char *path, const trail_error *err);
    void *context;
} trail_flight_slow;

/*
 * Writes a snapshot of the flight recorder when a task or region takes longer than a limit, at its
 * end, or if it has lasted for twice the limit. One limit at a time: a call replaces it, NULL and
 * trail_flight_stop remove it, each after a snapshot in progress. Each call counts anew. What began
 * before is not timed.
 * A thread of the library checks 20 times a second, and writes; the program's threads only
 * note when something begins and ends, for about 1,000 tasks and regions that are open at once.
 */
TRAIL_API bool trail_flight_on_slow(const trail_flight_slow *options, trail_error *err);

/* MARK: What was lost */

/* Calls for which a format has no event. */
typedef enum trail_left_out {
    TRAIL_LEFT_OUT_ANNOTATION, /* tasks, regions, logs: 7 */
    TRAIL_LEFT_OUT_LABEL,      /* trail_go_label: v1; that of trail_go_start_labelled: 7 */
    TRAIL_LEFT_OUT_CALL_END,   /* trail_go_destroy_syscall without a P: v1; the goroutine stays */
    TRAIL_LEFT_OUT_ASSIST,     /* trail_gc_assist_begin: 7 */
    TRAIL_LEFT_OUT_STOPPED,    /* trail_stw_begin, of most kinds: before 21 */
    TRAIL_LEFT_OUT_SAMPLE,     /* trail_cpu_sample: before 19 */
    TRAIL_LEFT_OUT_TIMER,      /* trail_timer_goroutine, from the 65th goroutine on */
    TRAIL_LEFT_OUT_COUNT
} trail_left_out;

typedef struct trail_stats {
    uint64_t bytes;            /* handed to the consumer */
    uint64_t generations;      /* v2: generations ended */
    uint64_t lost_generations; /* dropped (TRAIL_FULL_DROP_OLDEST) */
    uint64_t lost_bytes;       /* in buffers that were dropped */
    uint64_t lost_events;      /* because memory ran out */
    uint64_t lost_stacks;      /* events written without their stack */
    uint64_t lost_strings;     /* texts written as empty */
    uint64_t lost_samples;     /* CPU samples lost to a full ring */
    uint64_t reentrant;        /* from signal handlers that interrupted the tracer */
    uint64_t misuse;           /* wrong calls, not written; by kind in misuse_of */
    uint64_t not_expressible;  /* calls for which the format has no event; see left_out */
    uint64_t misuse_of[TRAIL_MISUSE_KIND_COUNT];
    uint64_t waits;           /* events that waited for the reader (TRAIL_FULL_WAIT) */
    uint64_t wait_ns;         /* time that they waited, together */
    uint64_t longest_wait_ns; /* of one event */
    uint64_t left_out[TRAIL_LEFT_OUT_COUNT]; /* not_expressible, by what it was */
    uint64_t lock_waits;   /* calls that waited for a lock of the library, not for the reader */
    uint64_t lock_wait_ns; /* time that they waited, together */
    uint64_t longest_lock_wait_ns; /* of one wait */
} trail_stats;

/* Fills *stats for the current trace, or for the last one. */
TRAIL_API void trail_stats_get(trail_stats *stats);

/* MARK: Goroutines
 *
 * All take the calling thread's M. `skip` is the number of frames to leave out of the stack: 0
 * begins with the caller; TRAIL_NO_STACK writes no stack. They return false if the event was lost
 * (trail_stats has the reason); a host may ignore that. A call in an impossible order is not
 * written and is counted (trail_stats.misuse); readers see nothing of it. trail_host.misuse and
 * trail_stop report the first one. With -Dcheck=true it is reported on stderr, and the process
 * aborts.
 *
 * "Needs P, G": the thread must hold a P and run a goroutine. "Has": it may, but need not.
 */
#define TRAIL_NO_STACK (-1)

/* Why a goroutine waits: name, and text in v2. v1 has event types of their own (§2.11). */
#define TRAIL_BLOCK_REASONS(X)                                                                     \
    X(UNSPECIFIED, "unspecified")                                                                  \
    X(FOREVER, "forever")                                                                          \
    X(NETWORK, "network")                                                                          \
    X(SELECT, "select")                                                                            \
    X(COND, "sync.(*Cond).Wait")                                                                   \
    X(SYNC, "sync")                                                                                \
    X(CHAN_SEND, "chan send")                                                                      \
    X(CHAN_RECEIVE, "chan receive")                                                                \
    X(GC_ASSIST, "GC mark assist wait for work")                                                   \
    X(GC_SWEEP, "GC background sweeper wait")                                                      \
    X(SYSTEM, "system goroutine wait")                                                             \
    X(PREEMPTED, "preempted")                                                                      \
    X(DEBUG_CALL, "wait for debug call")                                                           \
    X(UNTIL_GC_ENDS, "wait until GC ends")                                                         \
    X(SLEEP, "sleep")

typedef enum trail_block_reason {
#define TRAIL_BLOCK_REASON_(name, text) TRAIL_BLOCK_##name,
    TRAIL_BLOCK_REASONS(TRAIL_BLOCK_REASON_)
#undef TRAIL_BLOCK_REASON_
        TRAIL_BLOCK_REASON_COUNT
} trail_block_reason;

/*
 * Creates `g`, runnable; `function` is the address of its start function, or 0. Has P, G. The
 * goroutine keeps the address, so traces and snapshots that begin after its creation have it, too.
 * A thread without a P, or in a system call, borrows a P for the event, or interrupts the call (see
 * "Tasks, regions, logs").
 */
static inline bool trail_go_create(trail_m *m, trail_g *g, uintptr_t function, int skip);
/*
 * Creates `g`, waiting. Formats before 23 show it as runnable until its first unblock, which is not
 * written.
 */
static inline bool trail_go_create_blocked(trail_m *m, trail_g *g, uintptr_t function, int skip);
/* The thread begins to run `g`. Needs P, no G. `label` is copied and may be NULL. */
static inline bool trail_go_start(trail_m *m, trail_g *g);
static inline bool trail_go_start_labelled(trail_m *m, trail_g *g, const char *label);
/* The current goroutine ends, yields, is preempted, or waits. Need P, G. */
static inline bool trail_go_end(trail_m *m);
static inline bool trail_go_sched(trail_m *m, int skip);
static inline bool trail_go_preempt(trail_m *m, int skip);
static inline bool trail_go_block(trail_m *m, trail_block_reason reason, int skip);
/* Like trail_go_block, after a futile wake-up, for which format 7 writes an event first. */
static inline bool trail_go_block_futile(trail_m *m, trail_block_reason reason, int skip);
/*
 * `g`, which waits, becomes runnable. Call it before any thread can start `g`. Has P, G. The stack
 * is the calling thread's. The waker is the goroutine that the thread runs, or is in a system call
 * with (v2); no format has a wake-up on behalf of another goroutine.
 */
static inline bool trail_go_unblock(trail_m *m, trail_g *g, int skip);
/*
 * The thread switches from its goroutine, which waits or ends, directly to `g`, which waits. One
 * event in formats 23 and 26; an unblock, a block or end, and a start in the others. Need P, G.
 */
static inline bool trail_go_switch(trail_m *m, trail_g *g);
static inline bool trail_go_switch_end(trail_m *m, trail_g *g);
/*
 * Ends `g`, which waits or is runnable: a suspended coroutine is destroyed. It is shown running for
 * this moment, and the thread's own goroutine waiting. Has P, G; a thread without a P, or in a
 * system call, borrows one as trail_go_create does.
 */
TRAIL_API bool trail_go_destroy(trail_m *m, trail_g *g);

/* Formats 7 and 11: `g` runs timers; tools show its wake-ups as those of timers. At most 64. */
TRAIL_API void trail_timer_goroutine(const trail_g *g);

/* MARK: System calls
 *
 * trail_syscall_enter, then trail_syscall_exit if the P was kept. If another thread took the P with
 * trail_proc_steal, or this one released it with trail_proc_stop, trail_syscall_exit_blocked: the
 * goroutine is then runnable, and trail_go_start follows on any P. The thread may call
 * trail_proc_start before that.
 */
static inline bool trail_syscall_enter(trail_m *m, int skip);
static inline bool trail_syscall_exit(trail_m *m);
static inline bool trail_syscall_exit_blocked(trail_m *m);
/* v1: notes the time of return for the trail_syscall_exit_blocked of `g` to follow. Any thread. */
TRAIL_API void trail_syscall_returned(trail_g *g);
/*
 * A foreign thread enters the runtime (a callback), with `g` created in a system call; leaves it.
 */
static inline bool trail_go_create_syscall(trail_m *m, trail_g *g);
static inline bool trail_go_destroy_syscall(trail_m *m);

/* MARK: Ps */

/* The thread takes `p`, which is idle; releases its own P (also in a system call). */
static inline bool trail_proc_start(trail_m *m, trail_p *p);
static inline bool trail_proc_stop(trail_m *m);
/*
 * Takes `p` from a thread that is in a system call; `p` is idle afterwards. The host must ensure
 * that its owner does not return with it at the same time.
 */
static inline bool trail_proc_steal(trail_m *m, trail_p *p);
/* Sets the number of Ps; also valid before the first start. */
TRAIL_API bool trail_procs_change(trail_m *m, unsigned n, int skip);

/* MARK: Garbage collection, heap */

TRAIL_API bool trail_gc_begin(trail_m *m, int skip);
TRAIL_API bool trail_gc_end(trail_m *m);
TRAIL_API bool trail_gc_assist_begin(trail_m *m, int skip);
TRAIL_API bool trail_gc_assist_end(trail_m *m);
/*
 * A sweep on the thread's P. Nothing is written before the first span, or without one. Spans
 * outside a sweep are permitted but not written, as in Go.
 */
TRAIL_API bool trail_gc_sweep_begin(trail_m *m);
TRAIL_API bool trail_gc_sweep_span(trail_m *m, uint64_t swept, uint64_t reclaimed, int skip);
TRAIL_API bool trail_gc_sweep_end(trail_m *m);

/* Why the world stops: name and text (§1.3). */
#define TRAIL_STW_KINDS(X)                                                                         \
    X(UNKNOWN, "unknown")                                                                          \
    X(GC_MARK_TERM, "GC mark termination")                                                         \
    X(GC_SWEEP_TERM, "GC sweep termination")                                                       \
    X(WRITE_HEAP_DUMP, "write heap dump")                                                          \
    X(GOROUTINE_PROFILE, "goroutine profile")                                                      \
    X(GOROUTINE_PROFILE_CLEANUP, "goroutine profile cleanup")                                      \
    X(ALL_STACKS, "all goroutines stack trace")                                                    \
    X(READ_MEM_STATS, "read mem stats")                                                            \
    X(ALL_THREADS_SYSCALL, "AllThreadsSyscall")                                                    \
    X(GOMAXPROCS, "GOMAXPROCS")                                                                    \
    X(START_TRACE, "start trace")                                                                  \
    X(STOP_TRACE, "stop trace")

typedef enum trail_stw_kind {
#define TRAIL_STW_KIND_(name, text) TRAIL_STW_##name,
    TRAIL_STW_KINDS(TRAIL_STW_KIND_)
#undef TRAIL_STW_KIND_
        TRAIL_STW_KIND_COUNT
} trail_stw_kind;

/*
 * Need P, G. Begun and ended by the same goroutine, in format 7 on the same P; a goroutine that ends
 * ends its pause. Formats before 21 have only the two kinds of GC.
 */
TRAIL_API bool trail_stw_begin(trail_m *m, trail_stw_kind kind, int skip);
TRAIL_API bool trail_stw_end(trail_m *m);

/* Has P; without one, as trail_go_create. */
TRAIL_API bool trail_heap_alloc(trail_m *m, uint64_t live_bytes);
TRAIL_API bool trail_heap_goal(trail_m *m, uint64_t bytes); /* UINT64_MAX: no goal */

/* MARK: AllocFree: single objects, for trail_options.alloc_free in formats 23 and 26
 *
 * Addresses are written relative to `lowest`, in units of page_size (spans), object_align (objects)
 * and min_stack (stacks). Each call needs a thread; P and G may be absent.
 */
typedef struct trail_alloc_info {
    uintptr_t lowest;
    uint64_t page_size, object_align, min_stack;
} trail_alloc_info;

/* Call before a start, which calls `snapshot` (if not NULL) to call the _exists functions. */
TRAIL_API void trail_alloc_host(const trail_alloc_info *info, void (*snapshot)(void *context),
                                void *context);
/* Defines a type: number (an address), size, bytes that hold pointers, name. */
TRAIL_API bool trail_alloc_type(trail_m *m, uint64_t type, uint64_t size, uint64_t pointer_bytes,
                                const char *name);
/*
 * kind_class: class << 1 for a span in use, 1 for any other. type 0: unknown. size: a power of two.
 */
TRAIL_API bool trail_span_exists(trail_m *m, uintptr_t base, uint64_t pages, uint64_t kind_class);
TRAIL_API bool trail_span_alloc(trail_m *m, uintptr_t base, uint64_t pages, uint64_t kind_class);
TRAIL_API bool trail_span_free(trail_m *m, uintptr_t base);
TRAIL_API bool trail_object_exists(trail_m *m, uintptr_t address, uint64_t type);
TRAIL_API bool trail_object_alloc(trail_m *m, uintptr_t address, uint64_t type);
TRAIL_API bool trail_object_free(trail_m *m, uintptr_t address);
TRAIL_API bool trail_stack_exists(trail_m *m, uintptr_t base, uint64_t size);
TRAIL_API bool trail_stack_alloc(trail_m *m, uintptr_t base, uint64_t size);
TRAIL_API bool trail_stack_free(trail_m *m, uintptr_t base);

/* MARK: Tasks, regions, logs
 *
 * From any thread. A thread without trail_m_start gets a goroutine and a P of its own until it
 * exits. It is shown in a system call, and as running only while it has a region open.
 *
 * A thread with an M need not run a goroutine on a P. For the moment of the event it then borrows
 * what readers require:
 *
 *   in a system call    its goroutine, which leaves the call and enters it again; if the P is lost,
 *                       on one of the library's
 *   otherwise           a goroutine of the library's, the same each time, on the thread's P or one
 *                       of the library's; it waits in between
 *
 * These Ps have numbers above TRAIL_MAX_PROC. Formats before 11 have no annotations
 * (trail_stats.left_out). Strings are copied, and cut to what readers of the format accept (1,024
 * bytes in v2, about 64,000 in v1).
 */

/* Returns the ID of a new task; 0 while nothing is recorded. parent 0: none. */
static inline uint64_t trail_task_begin(uint64_t parent, const char *name);
static inline void trail_task_end(uint64_t task);

/*
 * Regions nest within their goroutine and end in it, with the same task and name: the thread that
 * ends one runs the goroutine, which may have waited and continued on another thread meanwhile.
 * task 0: none.
 */
static inline void trail_region_begin(uint64_t task, const char *name);
static inline void trail_region_end(uint64_t task, const char *name);

static inline void trail_log(uint64_t task, const char *category, const char *message);
/* Like printf; formats only while something is recorded. Not async-signal-safe. */
#define trail_logf(task, category, ...)                                                            \
    do {                                                                                           \
        if (trail_enabled())                                                                       \
            trail_logf_((task), (category), __VA_ARGS__);                                          \
    } while (0)

/*
 * Logs typed fields:
 *
 *     trail_log_fields(task, "request", trail_field_int("status", 200),
 *                      trail_field_double("ms", 1.5), trail_field_text("path", path));
 *
 * The message is text in logfmt, status=200 ms=1.5 path="/", from which `trail sql` reads typed
 * values (int_field, double_field, text_field). The arguments are evaluated only while something is
 * recorded. Not async-signal-safe.
 *
 * Names and texts are copied. A name consists of letters, digits, _ . and -; other bytes become _.
 * Doubles are exact. A message has at most 1,024 bytes in every format: a text that does not fit is
 * cut, any other field left out.
 */
typedef enum trail_field_kind {
    TRAIL_FIELD_INT,
    TRAIL_FIELD_DOUBLE,
    TRAIL_FIELD_TEXT
} trail_field_kind;

typedef struct trail_field {
    const char *name;
    trail_field_kind kind;
    union {
        int64_t integer;
        double number;
        const char *text; /* NULL: empty */
    } value;
} trail_field;

static inline trail_field trail_field_int(const char *name, int64_t value);
static inline trail_field trail_field_double(const char *name, double value);
static inline trail_field trail_field_text(const char *name, const char *value);
#define trail_log_fields(task, category, ...)                                                      \
    do {                                                                                           \
        if (trail_enabled()) {                                                                     \
            const trail_field trail_fields_[] = {__VA_ARGS__};                                     \
            trail_log_fields_((task), (category), trail_fields_,                                   \
                              sizeof trail_fields_ / sizeof *trail_fields_);                       \
        }                                                                                          \
    } while (0)

/*
 * A region that ends with its scope: `TRAIL_REGION("parse");` (GNU C; C++ has trail::region). If
 * its goroutine waits when the scope ends, or has moved to another thread, the region ends as soon
 * as the goroutine runs and the region is its innermost one; at the latest with the goroutine.
 */
#define TRAIL_REGION(name) TRAIL_TASK_REGION(0, name)
#define TRAIL_TASK_REGION(task, name)                                                              \
    TRAIL_SCOPE_(trail_scope_enter_((task), (name)), __COUNTER__) /* of a task */

/* MARK: Categories
 *
 * A program turns categories of annotations on and off while it runs. A log has one; other
 * annotations can be given one. All are on at first, or those of the environment variable
 * TRAIL_CATEGORIES.
 */
#define TRAIL_CATEGORIES_MAX 255

/*
 * Sets the categories that are recorded, by a list of names separated by commas: "net,db.*" has
 * these on, and others off; "-net" has all on but that; "db.*,-db.pool" both. A * at the end stands
 * for any rest, and of several entries for one category the last decides. NULL or "": all. Applies
 * to calls that begin afterwards, in any trace, until it is set again. Returns false if the list is
 * longer than TRAIL_CATEGORIES_MAX bytes, and changes nothing. Any thread; not async-signal-safe.
 */
TRAIL_API bool trail_categories_set(const char *list, trail_error *err);

/*
 * A category for regions, tasks and costly arguments:
 *
 *     static trail_category net = TRAIL_CATEGORY("net");
 *     uint64_t task = trail_category_enabled(&net) ? trail_task_begin(0, "connect") : 0;
 *     TRAIL_CATEGORY_REGION(&net, task, "resolve");
 *
 * Needs no initialization and no end; any number may have the same name, which must stay valid.
 */
typedef struct trail_category {
    const char *name;
    uint32_t seen_; /* version of the list in which it was looked up; lowest bit: on */
} trail_category;
#define TRAIL_CATEGORY(name)                                                                       \
    {                                                                                              \
        (name), 0                                                                                  \
    }

/*
 * Whether something is recorded and the category is on. Costs one load while nothing is, and three
 * otherwise. Async-signal-safe.
 */
static inline bool trail_category_enabled(trail_category *category);

/*
 * TRAIL_TASK_REGION if trail_category_enabled(category) when the scope begins, whatever is on when
 * it ends; otherwise nothing is recorded. task 0: none.
 */
#define TRAIL_CATEGORY_REGION(category, task, name)                                                \
    TRAIL_SCOPE_(trail_scope_enter_in_((category), (task), (name)), __COUNTER__)

/* Sets the current goroutine's label until its next start (v2). Needs P, G. */
TRAIL_API bool trail_go_label(trail_m *m, const char *label);

/*
 * Adds a CPU sample of the calling thread, taken by the host's own profiler; `pcs` leaf first. With
 * trail_options.cpu_hz the library samples by itself. Async-signal-safe.
 */
TRAIL_API bool trail_cpu_sample(const uintptr_t *pcs, size_t n);

/* MARK: Implementation of the inline calls
 *
 * While off, a scheduler's call changes the states itself; while on, the function behind it does,
 * and writes the event. Both happen while busy_ of the inner M is set; a thread that starts a trace
 * or ends a generation waits until it is clear. The order of the store to busy_ and the load of
 * trail_tracing_ is enforced by a barrier of that thread (membarrier).
 *
 * Inlined even without optimization, so that they are never frames of a stack. `trail symbolize`
 * removes the inlined frames of this file.
 */
#define TRAIL_INLINE_ static inline __attribute__((always_inline))

/* After a call: prevents a tail call, so that the caller stays a frame of the stack. */
#define TRAIL_STAY_() __asm__ volatile("")

/*
 * Bits. 1: a trace or the flight recorder is on. 2: no asymmetric barrier; take the slow path. 4: a
 * v1 trace begins; take the slow path, which waits.
 */
extern TRAIL_API uint32_t trail_tracing_;

enum { TRAIL_G_NONE_, TRAIL_G_RUNNABLE_, TRAIL_G_RUNNING_, TRAIL_G_SYSCALL_, TRAIL_G_WAITING_ };
enum { TRAIL_P_NONE_, TRAIL_P_RUNNING_, TRAIL_P_IDLE_, TRAIL_P_SYSCALL_ };
enum { TRAIL_SHOWN_WAITING_, TRAIL_SHOWN_RUNNABLE_, TRAIL_SHOWN_ENDED_ };
#define TRAIL_ASSIST_ UINT64_MAX

TRAIL_INLINE_ bool trail_enabled(void)
{
    return __builtin_expect((__atomic_load_n(&trail_tracing_, __ATOMIC_RELAXED) & 1) != 0, 0);
}

/*
 * Returns the value of check_ in an initialized object at `at`. In memory that was never
 * initialized, was overwritten or was copied from elsewhere it differs, and no pointer there is
 * followed.
 */
TRAIL_INLINE_ uint64_t trail_check_(const void *at)
{
    return (uint64_t)(uintptr_t)at ^ 0x9e3779b97f4a7c15u;
}

TRAIL_INLINE_ void trail_set_(trail_state_ *state, trail_state_ value)
{
    __atomic_store_n(state, value, __ATOMIC_RELAXED);
}

/* For inner Ms, like the next two. */
TRAIL_INLINE_ void trail_set_current_(trail_m *m, trail_g *g)
{
    __atomic_store_n(&m->g, g, __ATOMIC_RELAXED);
}

/* The thread now runs `g`, or is in a system call with it. */
TRAIL_INLINE_ void trail_set_runs_(trail_m *m, trail_g *g)
{
    __atomic_store_n(&g->m_, m, __ATOMIC_RELAXED);
    trail_set_current_(m, g);
}

TRAIL_INLINE_ void trail_set_proc_(trail_m *m, trail_p *p)
{
    __atomic_store_n(&m->p, p, __ATOMIC_RELAXED);
}

/* Returns the inner P; NULL if `p` is not initialized. */
TRAIL_INLINE_ trail_p *trail_inner_p_(const trail_p *p)
{
    return __builtin_expect(p && p->check_ == trail_check_(p), 1) ? p->inner_ : NULL;
}

/*
 * Begins a call while nothing is recorded: returns the inner M, with busy_ set. NULL: something is
 * recorded, or `m` is not started; the function in the library takes the call.
 */
TRAIL_INLINE_ trail_m *trail_off_begin_(const trail_m *m)
{
    trail_m *inner;
    if (__builtin_expect(__atomic_load_n(&trail_tracing_, __ATOMIC_RELAXED) != 0, 0) ||
        __builtin_expect(!m || m->check_ != trail_check_(m), 0))
        return NULL;
    inner = m->inner_;
    __atomic_store_n(&inner->busy_, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(__atomic_load_n(&trail_tracing_, __ATOMIC_ACQUIRE) == 0, 1))
        return inner;
    __atomic_store_n(&inner->busy_, 0, __ATOMIC_RELEASE);
    return NULL;
}

/* Ends it. */
TRAIL_INLINE_ bool trail_off_end_(trail_m *inner)
{
    __atomic_store_n(&inner->busy_, 0, __ATOMIC_RELEASE);
    return true;
}

/* The version of the list of categories, an even number. */
extern TRAIL_API uint32_t trail_categories_;

TRAIL_API bool trail_category_look_up_(trail_category *category);

TRAIL_INLINE_ bool trail_category_enabled(trail_category *category)
{
    uint32_t seen;
    if (!trail_enabled())
        return false;
    seen = __atomic_load_n(&category->seen_, __ATOMIC_RELAXED);
    if (__builtin_expect((seen & ~1u) == __atomic_load_n(&trail_categories_, __ATOMIC_RELAXED), 1))
        return seen & 1;
    return trail_category_look_up_(category);
}

/*
 * A region that ends with a scope, its goroutine's ID, and the session in which it began; 0:
 * nothing was recorded; TRAIL_SCOPE_OFF_: its end is not recorded either.
 */
struct trail_scope_ {
    const char *name;
    uint64_t task, goroutine, session;
};
#define TRAIL_SCOPE_OFF_ UINT64_MAX

TRAIL_API bool trail_go_create_(trail_m *m, trail_g *g, uintptr_t function, int skip, bool blocked);
TRAIL_API bool trail_go_start_(trail_m *m, trail_g *g, const char *label);
TRAIL_API bool trail_go_end_(trail_m *m);
TRAIL_API bool trail_go_stop_(trail_m *m, int skip, bool preempted);
TRAIL_API bool trail_go_block_(trail_m *m, trail_block_reason reason, int skip, bool futile);
TRAIL_API bool trail_go_unblock_(trail_m *m, trail_g *g, int skip);
TRAIL_API bool trail_go_switch_(trail_m *m, trail_g *g, bool ends);
TRAIL_API bool trail_syscall_enter_(trail_m *m, int skip);
TRAIL_API bool trail_syscall_exit_(trail_m *m);
TRAIL_API bool trail_syscall_exit_blocked_(trail_m *m);
TRAIL_API bool trail_go_create_syscall_(trail_m *m, trail_g *g);
TRAIL_API bool trail_go_destroy_syscall_(trail_m *m);
TRAIL_API bool trail_proc_start_(trail_m *m, trail_p *p);
TRAIL_API bool trail_proc_stop_(trail_m *m);
TRAIL_API bool trail_proc_steal_(trail_m *m, trail_p *p);
TRAIL_API uint64_t trail_task_begin_(uint64_t parent, const char *name);
TRAIL_API void trail_task_end_(uint64_t task);
TRAIL_API void trail_region_begin_(uint64_t task, const char *name);
TRAIL_API void trail_region_end_(uint64_t task, const char *name);
TRAIL_API void trail_scope_begin_(struct trail_scope_ *scope);
TRAIL_API void trail_scope_end_(const struct trail_scope_ *scope);
TRAIL_API void trail_log_(uint64_t task, const char *category, const char *message);
TRAIL_API void trail_logf_(uint64_t task, const char *category, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
TRAIL_API void trail_log_fields_(uint64_t task, const char *category, const trail_field *fields,
                                 size_t n);

/*
 * What the calls do to the states of `off`, the inner M of `m`, while nothing is recorded. Each ends
 * the call.
 */
TRAIL_INLINE_ bool trail_off_create_(trail_m *off, trail_g *g, uintptr_t function,
                                     trail_state_ state)
{
    __atomic_store_n(&g->start_, function, __ATOMIC_RELAXED);
    trail_set_(&g->state_, state);
    return trail_off_end_(off);
}

/* The thread runs `g`, or is in a system call with it. */
TRAIL_INLINE_ bool trail_off_run_(trail_m *m, trail_m *off, trail_g *g, trail_state_ state)
{
    trail_set_(&g->state_, state);
    trail_set_runs_(off, g);
    m->g = g;
    return trail_off_end_(off);
}

/* The current goroutine leaves its thread in `state`. */
TRAIL_INLINE_ bool trail_off_leave_(trail_m *m, trail_m *off, trail_state_ state)
{
    if (off->g)
        trail_set_(&off->g->state_, state);
    trail_set_current_(off, NULL);
    m->g = NULL;
    return trail_off_end_(off);
}

TRAIL_INLINE_ bool trail_off_ready_(trail_m *off, trail_g *g)
{
    trail_set_(&g->state_, TRAIL_G_RUNNABLE_);
    return trail_off_end_(off);
}

TRAIL_INLINE_ bool trail_off_switch_(trail_m *m, trail_m *off, trail_g *g, trail_state_ old)
{
    if (off->g)
        trail_set_(&off->g->state_, old);
    return trail_off_run_(m, off, g, TRAIL_G_RUNNING_);
}

TRAIL_INLINE_ bool trail_off_syscall_(trail_m *off, trail_state_ g_state, trail_state_ p_state)
{
    if (off->g)
        trail_set_(&off->g->state_, g_state);
    if (off->p)
        trail_set_(&off->p->state_, p_state);
    return trail_off_end_(off);
}

TRAIL_INLINE_ bool trail_off_exit_blocked_(trail_m *m, trail_m *off)
{
    /* A P that it kept is in use again. */
    if (off->p)
        trail_set_(&off->p->state_, TRAIL_P_RUNNING_);
    else
        m->p = NULL;
    return trail_off_leave_(m, off, TRAIL_G_RUNNABLE_);
}

/* The P that it holds becomes idle, unless another thread has taken it. */
TRAIL_INLINE_ void trail_off_idle_(trail_m *off)
{
    trail_p *p = off->p;
    if (p && __atomic_load_n(&p->m_, __ATOMIC_RELAXED) == off) {
        trail_set_(&p->state_, TRAIL_P_IDLE_);
        __atomic_store_n(&p->m_, (trail_m *)NULL, __ATOMIC_RELAXED);
    }
    trail_set_proc_(off, NULL);
}

TRAIL_INLINE_ bool trail_off_destroy_(trail_m *m, trail_m *off)
{
    trail_off_idle_(off);
    m->p = NULL;
    return trail_off_leave_(m, off, TRAIL_G_NONE_);
}

TRAIL_INLINE_ bool trail_go_create(trail_m *m, trail_g *g, uintptr_t function, int skip)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_create_(off, g, function, TRAIL_G_RUNNABLE_)
               : trail_go_create_(m, g, function, skip, false);
}

TRAIL_INLINE_ bool trail_go_create_blocked(trail_m *m, trail_g *g, uintptr_t function, int skip)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_create_(off, g, function, TRAIL_G_WAITING_)
               : trail_go_create_(m, g, function, skip, true);
}

TRAIL_INLINE_ bool trail_go_start_labelled(trail_m *m, trail_g *g, const char *label)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_run_(m, off, g, TRAIL_G_RUNNING_) : trail_go_start_(m, g, label);
}

TRAIL_INLINE_ bool trail_go_start(trail_m *m, trail_g *g)
{
    return trail_go_start_labelled(m, g, NULL);
}

TRAIL_INLINE_ bool trail_go_end(trail_m *m)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_leave_(m, off, TRAIL_G_NONE_) : trail_go_end_(m);
}

TRAIL_INLINE_ bool trail_go_sched(trail_m *m, int skip)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_leave_(m, off, TRAIL_G_RUNNABLE_) : trail_go_stop_(m, skip, false);
}

TRAIL_INLINE_ bool trail_go_preempt(trail_m *m, int skip)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_leave_(m, off, TRAIL_G_RUNNABLE_) : trail_go_stop_(m, skip, true);
}

TRAIL_INLINE_ bool trail_go_block(trail_m *m, trail_block_reason reason, int skip)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_leave_(m, off, TRAIL_G_WAITING_)
               : trail_go_block_(m, reason, skip, false);
}

TRAIL_INLINE_ bool trail_go_block_futile(trail_m *m, trail_block_reason reason, int skip)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_leave_(m, off, TRAIL_G_WAITING_)
               : trail_go_block_(m, reason, skip, true);
}

TRAIL_INLINE_ bool trail_go_unblock(trail_m *m, trail_g *g, int skip)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_ready_(off, g) : trail_go_unblock_(m, g, skip);
}

TRAIL_INLINE_ bool trail_go_switch(trail_m *m, trail_g *g)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_switch_(m, off, g, TRAIL_G_WAITING_) : trail_go_switch_(m, g, false);
}

TRAIL_INLINE_ bool trail_go_switch_end(trail_m *m, trail_g *g)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_switch_(m, off, g, TRAIL_G_NONE_) : trail_go_switch_(m, g, true);
}

TRAIL_INLINE_ bool trail_syscall_enter(trail_m *m, int skip)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_syscall_(off, TRAIL_G_SYSCALL_, TRAIL_P_SYSCALL_)
               : trail_syscall_enter_(m, skip);
}

TRAIL_INLINE_ bool trail_syscall_exit(trail_m *m)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_syscall_(off, TRAIL_G_RUNNING_, TRAIL_P_RUNNING_)
               : trail_syscall_exit_(m);
}

TRAIL_INLINE_ bool trail_syscall_exit_blocked(trail_m *m)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_exit_blocked_(m, off) : trail_syscall_exit_blocked_(m);
}

TRAIL_INLINE_ bool trail_go_create_syscall(trail_m *m, trail_g *g)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_run_(m, off, g, TRAIL_G_SYSCALL_) : trail_go_create_syscall_(m, g);
}

TRAIL_INLINE_ bool trail_go_destroy_syscall(trail_m *m)
{
    trail_m *off = trail_off_begin_(m);
    return off ? trail_off_destroy_(m, off) : trail_go_destroy_syscall_(m);
}

TRAIL_INLINE_ bool trail_proc_start(trail_m *m, trail_p *p)
{
    trail_p *inner = trail_inner_p_(p);
    trail_m *off = inner ? trail_off_begin_(m) : NULL;
    if (!off)
        return trail_proc_start_(m, p);
    trail_set_(&inner->state_, TRAIL_P_RUNNING_);
    __atomic_store_n(&inner->m_, off, __ATOMIC_RELAXED);
    trail_set_proc_(off, inner);
    m->p = p;
    return trail_off_end_(off);
}

TRAIL_INLINE_ bool trail_proc_stop(trail_m *m)
{
    trail_m *off = trail_off_begin_(m);
    if (!off)
        return trail_proc_stop_(m);
    trail_off_idle_(off);
    m->p = NULL;
    return trail_off_end_(off);
}

TRAIL_INLINE_ bool trail_proc_steal(trail_m *m, trail_p *p)
{
    trail_p *inner = trail_inner_p_(p);
    trail_m *off = inner ? trail_off_begin_(m) : NULL, *owner;
    if (!off)
        return trail_proc_steal_(m, p);
    owner = __atomic_load_n(&inner->m_, __ATOMIC_RELAXED);
    /* It may hold another one since. */
    if (owner && __atomic_load_n(&owner->p, __ATOMIC_RELAXED) == inner)
        trail_set_proc_(owner, NULL);
    __atomic_store_n(&inner->m_, (trail_m *)NULL, __ATOMIC_RELAXED);
    trail_set_(&inner->state_, TRAIL_P_IDLE_);
    return trail_off_end_(off);
}

TRAIL_INLINE_ uint64_t trail_task_begin(uint64_t parent, const char *name)
{
    return trail_enabled() ? trail_task_begin_(parent, name) : 0;
}

TRAIL_INLINE_ void trail_task_end(uint64_t task)
{
    if (trail_enabled()) {
        trail_task_end_(task);
        TRAIL_STAY_();
    }
}

TRAIL_INLINE_ void trail_region_begin(uint64_t task, const char *name)
{
    if (trail_enabled()) {
        trail_region_begin_(task, name);
        TRAIL_STAY_();
    }
}

TRAIL_INLINE_ void trail_region_end(uint64_t task, const char *name)
{
    if (trail_enabled()) {
        trail_region_end_(task, name);
        TRAIL_STAY_();
    }
}

TRAIL_INLINE_ void trail_log(uint64_t task, const char *category, const char *message)
{
    if (trail_enabled()) {
        trail_log_(task, category, message);
        TRAIL_STAY_();
    }
}

TRAIL_INLINE_ struct trail_scope_ trail_scope_enter_(uint64_t task, const char *name)
{
    struct trail_scope_ scope = {name, task, 0, 0};
    if (trail_enabled())
        trail_scope_begin_(&scope);
    return scope;
}

TRAIL_INLINE_ struct trail_scope_ trail_scope_enter_in_(trail_category *category, uint64_t task,
                                                        const char *name)
{
    struct trail_scope_ scope = {name, task, 0, TRAIL_SCOPE_OFF_};
    return trail_category_enabled(category) ? trail_scope_enter_(task, name) : scope;
}

TRAIL_INLINE_ void trail_scope_leave_(const struct trail_scope_ *scope)
{
    if (trail_enabled() && scope->session != TRAIL_SCOPE_OFF_) {
        trail_scope_end_(scope);
        TRAIL_STAY_();
    }
}

TRAIL_INLINE_ trail_field trail_field_int(const char *name, int64_t value)
{
    trail_field field;
    field.name = name;
    field.kind = TRAIL_FIELD_INT;
    field.value.integer = value;
    return field;
}

TRAIL_INLINE_ trail_field trail_field_double(const char *name, double value)
{
    trail_field field;
    field.name = name;
    field.kind = TRAIL_FIELD_DOUBLE;
    field.value.number = value;
    return field;
}

TRAIL_INLINE_ trail_field trail_field_text(const char *name, const char *value)
{
    trail_field field;
    field.name = name;
    field.kind = TRAIL_FIELD_TEXT;
    field.value.text = value;
    return field;
}

#define TRAIL_SCOPE_NAME_(name, number)  TRAIL_SCOPE_NAME2_(name, number)
#define TRAIL_SCOPE_NAME2_(name, number) name##number
#define TRAIL_SCOPE_(scope, number)                                                                \
    __attribute__((cleanup(trail_scope_leave_), unused)) const struct trail_scope_                 \
    TRAIL_SCOPE_NAME_(trail_region_, number) = (scope)

#ifdef __cplusplus
}
#endif
#endif
