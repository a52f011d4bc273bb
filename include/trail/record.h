/*
 * libtrail-record: writes Go execution traces from C and C++ programs.
 *
 *   for a runtime        embed a trail_m in each worker thread, a trail_p in each processor slot, a
 *                        trail_g in each coroutine or job, and say what happens to them
 *   for any program      tasks, regions and logs, from any thread, with nothing set up
 *   for whoever records  start, stop and read; or the newest seconds kept in memory
 *
 * One tracer per process, as in Go. While it is off, a call costs a load and a branch (annotations) or
 * a few plain stores (the scheduler's calls, which keep the states that a start needs). While it is on,
 * a call reads the clock and writes a few bytes to a buffer of its thread: no lock, no system call, no
 * shared cache line. The library keeps sequence numbers, status events and tables itself.
 *
 * Threads: every function may be called from any thread, unless it says otherwise. A scheduler's call
 * takes the trail_m of the calling thread, never another's. Calls about one goroutine or P must be
 * ordered by the host's own synchronization, as its states are.
 * Signals: annotations and trail_cpu_sample may be called in a signal handler of a thread that has an M, or
 * has annotated before, and is not in any call that takes a trail_error, trail_stats_get or trail_advance;
 * what interrupts an event is dropped and
 * counted (trail_stats.reentrant).
 * Fork: the child does not write into the parent's trace; it may start one of its own.
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
 * The host embeds these in its own structs. Names that end in _ belong to the library. Nothing needs to
 * be zeroed: the init functions do it. None may move, nor be freed while the library knows of it: an M
 * from trail_m_start to trail_m_exit; a G from its creation to its end; a P from trail_p_init to
 * trail_p_fini.
 */

/* Where events go until a buffer is full. */
struct trail_writer_ {
    uint8_t *at, *end;
    uint64_t last_ticks;
    struct trail_buffer_ *buffer;
};

#define TRAIL_RECENT_STRINGS_  16
#define TRAIL_CHECKED_REGIONS_ 16 /* deeper ones are not checked for nesting */
#define TRAIL_RECENT_STACKS_   8

/* A state with the generation in which readers were told of it: generation << 3 | state. */
typedef uint64_t trail_state_;

/* A goroutine: whatever the host runs, blocks and wakes: a coroutine, a job, a thread. */
typedef struct trail_g {
    uint64_t id; /* set by trail_g_init; shown by every tool */
    /*
     * The stack that it runs on, for walking frame pointers: [stack_low, stack_high). Both NULL: that
     * of its thread. May be set by the host after trail_g_init.
     */
    const void *stack_low, *stack_high;
    trail_state_ state_;
    uint64_t seq_;      /* generation << 32 | sequence number in it */
    struct trail_m *m_; /* whose it is while it runs or is in a system call */
    struct trail_p *last_p_;
    uint64_t syscall_exit_ticks_, syscall_block_ticks_; /* v1 */
    const uint8_t *started_at_;                         /* v1: in its P's buffer */
    const void *block_stack_, *kept_stack_;             /* v2: where it waits, in the tables of */
    uint64_t block_generation_, kept_generation_;       /*     these generations */
    uint64_t assist_session_;  /* in a GC assist that this session knows of */
    uint64_t regions_session_; /* of what follows: the regions that it is in, outermost first */
    uint32_t regions_[TRAIL_CHECKED_REGIONS_], region_count_;
    bool woken_;          /* v1: by an event, and did nothing since but start and be preempted */
    bool shown_runnable_; /* though it was created waiting, and was not woken yet */
} trail_g;

/* A P: a slot of concurrency; at most one thread holds it. */
typedef struct trail_p {
    int32_t id; /* set by trail_p_init; from 0 on */
    bool may_sweep_;
    bool abandoned_; /* v1: idle for readers; its thread has left a system call for good */
    trail_state_ state_;
    uint64_t seq_;
    struct trail_m *m_;           /* who holds it */
    struct trail_writer_ writer_; /* v1 */
    struct trail_p *next_;
    uint64_t swept_, reclaimed_, sweep_session_;
} trail_p;

/* An M: a thread. `g` and `p` are what it runs and holds, kept by the calls below; read them freely. */
typedef struct trail_m {
    trail_g *g;
    trail_p *p;
    uint64_t id; /* of the operating system (gettid) */
    uint32_t busy_;
    uint64_t generation_;             /* the newest in which it wrote */
    uint64_t closed_;                 /* the newest that was closed for it */
    struct trail_writer_ writers_[2]; /* v2: by generation & 1 */
    struct trail_writer_ strings_[2];
    struct trail_writer_ experiment_[2];
    uint64_t string_ids_, string_ids_end_; /* reserved IDs */
    const void *stack_low_, *stack_high_;
    uint64_t stw_session_;
    const trail_p *stw_p_; /* 1.7 */
    struct trail_m *next_, *prev_;
    struct trail_own_thread_ *own_; /* set for threads that nobody announced */
    /* What it has interned in this generation. */
    const void *recent_[TRAIL_RECENT_STRINGS_], *recent_stacks_[TRAIL_RECENT_STACKS_];
    uint32_t lock_;
    uint64_t spare_[4];
} trail_m;

/*
 * Announces the calling thread, before any other call with `m`; trail_m_exit is its last (what it wrote
 * is kept). A thread that ends without trail_m_exit is noticed. Not in signal handlers.
 */
TRAIL_API void trail_m_start(trail_m *m);
TRAIL_API void trail_m_exit(trail_m *m);

/* The calling thread's M, NULL if it has none. */
TRAIL_API trail_m *trail_m_current(void);

/* A P with number `id` >= 0, idle. trail_p_fini before its memory is freed; it must be idle. */
TRAIL_API void trail_p_init(trail_p *p, int32_t id);
TRAIL_API void trail_p_fini(trail_p *p);

/* A G, not created yet, with an ID that no other goroutine of this process has or had. */
TRAIL_API void trail_g_init(trail_g *g);

/* MARK: The host */

#define TRAIL_MAX_FRAMES 128

/* How a frame is named; the strings must live until the call of `symbolize` after this one. */
typedef struct trail_pc_name {
    const char *function, *file;
    unsigned line;
} trail_pc_name;

/*
 * What the tracer asks of a runtime; each may be NULL. `context` is passed through.
 *
 * each_goroutine  calls visit(g, arg) for every goroutine that was created and has not ended. None may
 *                 be freed during the walk: hold the lock that guards the list. Put one into the list
 *                 after trail_g_init and before trail_go_create, not after: a thread may be held up
 *                 between the two for a whole generation, which would lack the goroutine. What is listed
 *                 and not created yet is passed over.
 *                 Called by the thread that starts (v1) or ends a generation or the trace (v2) while
 *                 others run. Nobody calls the library under that lock. A host that has trail_g of its
 *                 own must give it.
 * stop_world      returns when no thread but the caller is inside or will enter a scheduler's call, until
 * start_world     start_world. Used by trail_start in v1 formats only, whose first events are a snapshot.
 * symbolize       names a PC that the dynamic loader cannot (of an interpreter, of jitted code); returns
 *                 false for those it does not know. Asked first, also about the program's own PCs, which
 *                 are return addresses. Called by the thread that ends a generation (v2) or the trace.
 * callers         writes up to `max` return addresses of the calling thread's stack, leaf first, and returns
 *                 how many; the first is what skip 0 begins with. Used with TRAIL_UNWIND_HOST. Must be
 *                 async-signal-safe if annotations are made in signal handlers; CPU samples do not use it.
 */
typedef struct trail_host {
    void *context;
    void (*each_goroutine)(void *context, void (*visit)(trail_g *g, void *arg), void *arg);
    void (*stop_world)(void *context);
    void (*start_world)(void *context);
    bool (*symbolize)(void *context, uintptr_t pc, trail_pc_name *name);
    size_t (*callers)(void *context, uintptr_t *pcs, size_t max);
} trail_host;

/* Sets the host, before the first start. *host must stay; NULL: none. */
TRAIL_API void trail_host_set(const trail_host *host);

/* MARK: Start, stop, read */

/* What an emitter does when `memory` is used up because nobody reads, or the system gives no more. */
typedef enum trail_when_full {
    TRAIL_FULL_WAIT,        /* wait up to wait_ns for the reader, then as END */
    TRAIL_FULL_END,         /* the trace ends there, as at a stop, and is a consistent prefix */
    TRAIL_FULL_DROP_OLDEST, /* v2: whole generations are given up, the oldest that nobody has read */
} trail_when_full;

typedef enum trail_unwinder {
    TRAIL_UNWIND_AUTO, /* frame pointers if the caller of start has them, else libunwind */
    TRAIL_UNWIND_FRAME_POINTERS, /* about 15 ns for 8 frames; the program needs -fno-omit-frame-pointer */
    TRAIL_UNWIND_LIBUNWIND, /* loaded at run time if it is there, else glibc's backtrace (1 us) */
    TRAIL_UNWIND_HOST,      /* trail_host.callers */
    TRAIL_UNWIND_NONE,      /* no stacks */
} trail_unwinder;

/* Zeroes stand for the defaults: `trail_options options = {0};` */
typedef struct trail_options {
    int format;    /* N of `go 1.N trace`: 7, 11, 19, 21 (v1), 22, 23, 26 (v2); 0: 23 */
    size_t memory; /* bytes of buffers at once; 0: 64 MiB */
    trail_when_full when_full;
    int64_t wait_ns;       /* of an emitter, and of trail_stop for the reader; 0: 10 s; < 0: none */
    int64_t generation_ns; /* v2: length of a generation; 0: 1 s */
    trail_unwinder unwinder;
    unsigned max_frames; /* 1 to 128; 0: 128 */
    unsigned cpu_hz; /* CPU samples a second of CPU time, by SIGPROF; 0: none. v1.19, 1.21, v2 */
    bool alloc_free; /* the AllocFree experiment's calls are recorded (1.23, 1.26) */
    bool no_symbols; /* leave PCs without names; `trail symbolize` puts them in */
    /*
     * What one goroutine is called where people read the trace with trail: "fiber", "job"; singular, at most 32
     * bytes of printable UTF-8, copied. NULL: "task", or "thread" where no host gives goroutines. Go's tools
     * do not see it.
     */
    const char *task_word;
} trail_options;

/*
 * Starts a trace that trail_read hands out. Fails with "tracing is already enabled" while another one
 * is, and when an option is wrong. `options` may be NULL. A v1 format calls the host's stop_world.
 */
TRAIL_API bool trail_start(const trail_options *options, trail_error *err);

typedef struct trail_chunk {
    const uint8_t *data;
    size_t size;
    uint64_t generation; /* v2; 0 for v1 and for the header */
    bool new_file;       /* the 16-byte header: the first chunk, and the first after a gap */
} trail_chunk;

/*
 * Waits for the next chunk: the header first, then buffers as they are full and generations as they end
 * (v2), or buffers, then the frequency and the tables (v1). Returns 1; 0 when the trace is complete; -1
 * on an error, among others when another thread is inside trail_read already. The chunk is valid until
 * the next call. The thread that reads also advances v2's generations.
 */
TRAIL_API int trail_read(trail_chunk *chunk, trail_error *err);

/*
 * As trail_start, with a thread of the library that reads and writes to `fd` (to a duplicate:
 * the caller may close it at once); or that calls `sink`, which returns false to end the trace.
 * After a gap (TRAIL_FULL_DROP_OLDEST) nothing more is written to a descriptor; a sink sees new_file.
 */
typedef bool (*trail_chunk_fn)(void *context, const trail_chunk *chunk);
TRAIL_API bool trail_start_fd(const trail_options *options, int fd, trail_error *err);
TRAIL_API bool trail_start_sink(const trail_options *options, trail_chunk_fn sink, void *context,
                                trail_error *err);

/*
 * Ends the trace and returns when everything recorded was read or written, or after wait_ns: not for the
 * thread that calls trail_read. False if something was lost or could not be written, and *err says what.
 * Without a trace it does nothing. At exit() a trace to a descriptor or sink is stopped.
 */
TRAIL_API bool trail_stop(trail_error *err);

/* Whether a trace or the flight recorder is on. A load. */
static inline bool trail_enabled(void);

/* v2: ends the generation now. Returns when it can be read. Nothing in v1 and when off. */
TRAIL_API void trail_advance(void);

/* MARK: Flight recorder (v2) */

typedef struct trail_flight_options {
    trail_options trace; /* as for trail_start; a stream that is on already decides instead */
    int64_t min_age_ns;  /* keep at least what is this new; 0: 10 s */
    size_t max_bytes;    /* but not more generations than fit in about this; 0: 10 MiB */
} trail_flight_options;

/*
 * Keeps the newest generations in memory, by a thread of the library. A stream may be started and
 * stopped beside it. A snapshot ends the current generation and writes everything that is kept, a
 * complete trace, to `fd`; *bytes (may be NULL) is its size. Recording goes on meanwhile.
 */
TRAIL_API bool trail_flight_start(const trail_flight_options *options, trail_error *err);
TRAIL_API bool trail_flight_snapshot(int fd, uint64_t *bytes, trail_error *err);
TRAIL_API void trail_flight_stop(void);

/* MARK: What was lost */

typedef struct trail_stats {
    uint64_t bytes;            /* handed out */
    uint64_t generations;      /* v2: ended */
    uint64_t lost_generations; /* given up (TRAIL_FULL_DROP_OLDEST) */
    uint64_t lost_bytes;       /* in buffers that were given up */
    uint64_t lost_events;      /* for want of memory */
    uint64_t lost_stacks;      /* events that were written without theirs */
    uint64_t lost_strings;     /* texts that were written as empty */
    uint64_t lost_samples;     /* CPU samples that found the ring full */
    uint64_t reentrant;        /* from signal handlers that interrupted the tracer */
    uint64_t misuse;           /* in an impossible order: not written */
    uint64_t not_expressible;  /* the format has no such event */
} trail_stats;

/* Of the trace that is on, or of the last one. */
TRAIL_API void trail_stats_get(trail_stats *stats);

/* MARK: Goroutines
 *
 * All take the calling thread's M. `skip` frames are left out of the stack: 0 begins with the caller;
 * TRAIL_NO_STACK writes none. They return false if the event was lost (trail_stats says why); a host may
 * ignore that. A call in an impossible order is not written, is counted (trail_stats.misuse), and changes
 * nothing of what readers know; with -Dcheck=true it says so on stderr and aborts.
 *
 * "Needs P, G": the thread must hold a P and run a goroutine. "Has": may, does not need to.
 */
#define TRAIL_NO_STACK (-1)

/* Why a goroutine waits: name, text in v2. In v1 these are event types of their own (§2.11). */
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

/* `g` is created, runnable; it will begin at `function` (an address, or 0). Needs P; has G. */
static inline bool trail_go_create(trail_m *m, trail_g *g, uintptr_t function, int skip);
/* The same, waiting. Formats before 1.23 show it as runnable until its first unblock, which is left out. */
static inline bool trail_go_create_blocked(trail_m *m, trail_g *g, uintptr_t function, int skip);
/* The thread begins to run `g`. Needs P, no G. `label` (kept by the host for ever) may be NULL. */
static inline bool trail_go_start(trail_m *m, trail_g *g);
static inline bool trail_go_start_labelled(trail_m *m, trail_g *g, const char *label);
/* The current goroutine: ends; yields; is preempted; waits. Need P, G. */
static inline bool trail_go_end(trail_m *m);
static inline bool trail_go_sched(trail_m *m, int skip);
static inline bool trail_go_preempt(trail_m *m, int skip);
static inline bool trail_go_block(trail_m *m, trail_block_reason reason, int skip);
/* The same after a wake-up that was in vain: an event of 1.7 comes in front, nothing else differs. */
static inline bool trail_go_block_futile(trail_m *m, trail_block_reason reason, int skip);
/* `g`, which waits, becomes runnable. Call it before anybody can start it. Has P, G. */
static inline bool trail_go_unblock(trail_m *m, trail_g *g, int skip);
/*
 * The thread goes from its goroutine straight to `g`, which waits; the current one waits, or ends. An
 * event of its own in 1.23 and 1.26; an unblock, a block or end, and a start in the others. Need P, G.
 */
static inline bool trail_go_switch(trail_m *m, trail_g *g);
static inline bool trail_go_switch_end(trail_m *m, trail_g *g);

/* 1.7 and 1.11: `g` is the one that runs timers; tools show its wake-ups as the timers'. */
TRAIL_API void trail_timer_goroutine(const trail_g *g);

/* MARK: System calls
 *
 * enter, then one of: exit (the P was kept); the P is taken meanwhile by trail_proc_steal of another
 * thread, or given up by this one's trail_proc_stop, then exit_blocked: the goroutine is runnable, and
 * trail_go_start follows, on a P, sooner or later. The thread may call trail_proc_start before that.
 */
static inline bool trail_syscall_enter(trail_m *m, int skip);
static inline bool trail_syscall_exit(trail_m *m);
static inline bool trail_syscall_exit_blocked(trail_m *m);
/* The moment of return for an exit_blocked of `g` that is told later, from any thread (v1; v2 ignores it). */
TRAIL_API void trail_syscall_returned(trail_g *g);
/* A foreign thread enters the runtime (a call-back): `g` is created in a system call; leaves it. */
static inline bool trail_go_create_syscall(trail_m *m, trail_g *g);
static inline bool trail_go_destroy_syscall(trail_m *m);

/* MARK: Ps */

/* The thread takes `p`, which is idle; gives up its own (also within a system call). */
static inline bool trail_proc_start(trail_m *m, trail_p *p);
static inline bool trail_proc_stop(trail_m *m);
/* Takes `p` from a thread that is in a system call; `p` is idle after it. The host makes sure that its
 * owner does not return with it at the same time. */
static inline bool trail_proc_steal(trail_m *m, trail_p *p);
/* There are `n` Ps now (also: how many there are, before the first start). */
TRAIL_API bool trail_procs_change(trail_m *m, unsigned n, int skip);

/* MARK: Garbage collection, heap */

TRAIL_API bool trail_gc_begin(trail_m *m, int skip);
TRAIL_API bool trail_gc_end(trail_m *m);
TRAIL_API bool trail_gc_assist_begin(trail_m *m, int skip);
TRAIL_API bool trail_gc_assist_end(trail_m *m);
/* Sweeping on the thread's P. Nothing is written until the first span, nor if there was none. */
TRAIL_API bool trail_gc_sweep_begin(trail_m *m);
TRAIL_API bool trail_gc_sweep_span(trail_m *m, uint64_t swept, uint64_t reclaimed, int skip);
TRAIL_API bool trail_gc_sweep_end(trail_m *m);

/* Why the world stops: name, text, and the versions that can tell (§1.3). */
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

/* Need P, G. begin and end by the same thread, in 1.7 on the same P. Formats before 1.21 know the two kinds of GC only. */
TRAIL_API bool trail_stw_begin(trail_m *m, trail_stw_kind kind, int skip);
TRAIL_API bool trail_stw_end(trail_m *m);

TRAIL_API bool trail_heap_alloc(trail_m *m, uint64_t live_bytes); /* Needs P. */
TRAIL_API bool trail_heap_goal(trail_m *m, uint64_t bytes);       /* UINT64_MAX: no goal */

/* MARK: AllocFree: single objects, for trail_options.alloc_free in 1.23 and 1.26
 *
 * Addresses are written relative to `lowest`, in units: pages of page_size (spans), of object_align
 * (objects), of min_stack (stacks). Each needs a thread; P and G may be absent.
 */
typedef struct trail_alloc_info {
    uintptr_t lowest;
    uint64_t page_size, object_align, min_stack;
} trail_alloc_info;

/* Set before a start. `snapshot` (may be NULL) is called once in it and calls the _exists functions. */
TRAIL_API void trail_alloc_host(const trail_alloc_info *info, void (*snapshot)(void *context),
                                void *context);
/* A type: its number (an address), size, bytes that hold pointers, name. */
TRAIL_API bool trail_alloc_type(trail_m *m, uint64_t type, uint64_t size, uint64_t pointer_bytes,
                                const char *name);
/* kind_class: class << 1 of a span in use, 1 of any other. type 0: not known. size: a power of two. */
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
 * From any thread. One that nobody announced gets a goroutine and a P of its own for as long as it lives;
 * one that was announced must run a goroutine on a P.
 * Formats before 1.11 have none of these. Strings are copied; what is longer than the format's readers
 * accept (1,024 bytes in v2, about 64,000 in v1) is cut.
 */

/* The ID of a new task; 0 while nothing is recorded. parent 0: none. */
static inline uint64_t trail_task_begin(uint64_t parent, const char *name);
static inline void trail_task_end(uint64_t task);

/* Regions nest within their goroutine and end in it, with the same task and name. task 0: none. */
static inline void trail_region_begin(uint64_t task, const char *name);
static inline void trail_region_end(uint64_t task, const char *name);

static inline void trail_log(uint64_t task, const char *category, const char *message);
/* As printf; formatted only while something is recorded. Not in signal handlers. */
#define trail_logf(task, category, ...)                                                            \
    do {                                                                                           \
        if (trail_enabled())                                                                       \
            trail_logf_((task), (category), __VA_ARGS__);                                          \
    } while (0)

/* The region ends where the scope does: `TRAIL_REGION("parse");` (GNU C; C++ has trail::region). */
#define TRAIL_REGION(name) TRAIL_REGION_AT_(name, __LINE__)

/* The current goroutine's label, until it is started again (v2). Needs P, G. */
TRAIL_API bool trail_go_label(trail_m *m, const char *label);

/*
 * A CPU sample of the calling thread, taken by the host's own profiler. `pcs` leaf first. For
 * trail_options.cpu_hz the library does this itself. Async-signal-safe.
 */
TRAIL_API bool trail_cpu_sample(const uintptr_t *pcs, size_t n);

/* MARK: Implementation of the inline calls
 *
 * Off, a scheduler's call changes the states; on, the function behind it does, and writes the event.
 * Either happens while m->busy_ is set, for which whoever starts a trace or ends a generation waits. The
 * order of the store to busy_ and the load of trail_tracing_ is made by a barrier on that other side.
 *
 * Inlined also where nothing else is: they are never frames of a stack. `trail symbolize` leaves out what was
 * inlined from here.
 */
#define TRAIL_INLINE_ static inline __attribute__((always_inline))

/* After a call: it is no jump, and its caller a frame, also where it is the last thing that a function does. */
#define TRAIL_STAY_() __asm__ volatile("")

/* Bits. 1: a trace or the flight recorder is on. 2: no asymmetric barrier here, take the slow path. */
extern TRAIL_API uint32_t trail_tracing_;

enum { TRAIL_G_NONE_, TRAIL_G_RUNNABLE_, TRAIL_G_RUNNING_, TRAIL_G_SYSCALL_, TRAIL_G_WAITING_ };
enum { TRAIL_P_NONE_, TRAIL_P_RUNNING_, TRAIL_P_IDLE_, TRAIL_P_SYSCALL_ };

TRAIL_INLINE_ bool trail_enabled(void)
{
    return __builtin_expect((__atomic_load_n(&trail_tracing_, __ATOMIC_RELAXED) & 1) != 0, 0);
}

TRAIL_INLINE_ bool trail_enter_(trail_m *m)
{
    __atomic_store_n(&m->busy_, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return __builtin_expect(__atomic_load_n(&trail_tracing_, __ATOMIC_ACQUIRE) != 0, 0);
}

TRAIL_INLINE_ bool trail_leave_(trail_m *m)
{
    __atomic_store_n(&m->busy_, 0, __ATOMIC_RELEASE);
    return true;
}

TRAIL_INLINE_ void trail_set_(trail_state_ *state, trail_state_ value)
{
    __atomic_store_n(state, value, __ATOMIC_RELAXED);
}

TRAIL_INLINE_ void trail_set_current_(trail_m *m, trail_g *g)
{
    __atomic_store_n(&m->g, g, __ATOMIC_RELAXED);
}

/* The thread has `g` now: runs it, or is in a system call with it. */
TRAIL_INLINE_ void trail_set_runs_(trail_m *m, trail_g *g)
{
    __atomic_store_n(&g->m_, m, __ATOMIC_RELAXED);
    trail_set_current_(m, g);
}

TRAIL_INLINE_ void trail_set_proc_(trail_m *m, trail_p *p)
{
    __atomic_store_n(&m->p, p, __ATOMIC_RELAXED);
}

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
TRAIL_API void trail_log_(uint64_t task, const char *category, const char *message);
TRAIL_API void trail_logf_(uint64_t task, const char *category, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

TRAIL_INLINE_ bool trail_go_create(trail_m *m, trail_g *g, uintptr_t function, int skip)
{
    if (trail_enter_(m))
        return trail_go_create_(m, g, function, skip, false);
    trail_set_(&g->state_, TRAIL_G_RUNNABLE_);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_go_create_blocked(trail_m *m, trail_g *g, uintptr_t function, int skip)
{
    if (trail_enter_(m))
        return trail_go_create_(m, g, function, skip, true);
    trail_set_(&g->state_, TRAIL_G_WAITING_);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_go_start_labelled(trail_m *m, trail_g *g, const char *label)
{
    if (trail_enter_(m))
        return trail_go_start_(m, g, label);
    trail_set_(&g->state_, TRAIL_G_RUNNING_);
    trail_set_runs_(m, g);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_go_start(trail_m *m, trail_g *g)
{
    return trail_go_start_labelled(m, g, NULL);
}

/* The current goroutine leaves its thread in `state`. */
TRAIL_INLINE_ bool trail_off_(trail_m *m, trail_state_ state)
{
    if (m->g)
        trail_set_(&m->g->state_, state);
    trail_set_current_(m, NULL);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_go_end(trail_m *m)
{
    return trail_enter_(m) ? trail_go_end_(m) : trail_off_(m, TRAIL_G_NONE_);
}

TRAIL_INLINE_ bool trail_go_sched(trail_m *m, int skip)
{
    return trail_enter_(m) ? trail_go_stop_(m, skip, false) : trail_off_(m, TRAIL_G_RUNNABLE_);
}

TRAIL_INLINE_ bool trail_go_preempt(trail_m *m, int skip)
{
    return trail_enter_(m) ? trail_go_stop_(m, skip, true) : trail_off_(m, TRAIL_G_RUNNABLE_);
}

TRAIL_INLINE_ bool trail_go_block(trail_m *m, trail_block_reason reason, int skip)
{
    return trail_enter_(m) ? trail_go_block_(m, reason, skip, false)
                           : trail_off_(m, TRAIL_G_WAITING_);
}

TRAIL_INLINE_ bool trail_go_block_futile(trail_m *m, trail_block_reason reason, int skip)
{
    return trail_enter_(m) ? trail_go_block_(m, reason, skip, true)
                           : trail_off_(m, TRAIL_G_WAITING_);
}

TRAIL_INLINE_ bool trail_go_unblock(trail_m *m, trail_g *g, int skip)
{
    if (trail_enter_(m))
        return trail_go_unblock_(m, g, skip);
    trail_set_(&g->state_, TRAIL_G_RUNNABLE_);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_off_switch_(trail_m *m, trail_g *g, trail_state_ old)
{
    if (m->g)
        trail_set_(&m->g->state_, old);
    trail_set_(&g->state_, TRAIL_G_RUNNING_);
    trail_set_runs_(m, g);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_go_switch(trail_m *m, trail_g *g)
{
    return trail_enter_(m) ? trail_go_switch_(m, g, false)
                           : trail_off_switch_(m, g, TRAIL_G_WAITING_);
}

TRAIL_INLINE_ bool trail_go_switch_end(trail_m *m, trail_g *g)
{
    return trail_enter_(m) ? trail_go_switch_(m, g, true) : trail_off_switch_(m, g, TRAIL_G_NONE_);
}

TRAIL_INLINE_ bool trail_syscall_enter(trail_m *m, int skip)
{
    if (trail_enter_(m))
        return trail_syscall_enter_(m, skip);
    if (m->g)
        trail_set_(&m->g->state_, TRAIL_G_SYSCALL_);
    if (m->p)
        trail_set_(&m->p->state_, TRAIL_P_SYSCALL_);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_syscall_exit(trail_m *m)
{
    if (trail_enter_(m))
        return trail_syscall_exit_(m);
    if (m->g)
        trail_set_(&m->g->state_, TRAIL_G_RUNNING_);
    if (m->p)
        trail_set_(&m->p->state_, TRAIL_P_RUNNING_);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_syscall_exit_blocked(trail_m *m)
{
    if (trail_enter_(m))
        return trail_syscall_exit_blocked_(m);
    /* A P that was kept is taken again. */
    if (m->p)
        trail_set_(&m->p->state_, TRAIL_P_RUNNING_);
    return trail_off_(m, TRAIL_G_RUNNABLE_);
}

TRAIL_INLINE_ bool trail_go_create_syscall(trail_m *m, trail_g *g)
{
    if (trail_enter_(m))
        return trail_go_create_syscall_(m, g);
    trail_set_(&g->state_, TRAIL_G_SYSCALL_);
    trail_set_runs_(m, g);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_go_destroy_syscall(trail_m *m)
{
    if (trail_enter_(m))
        return trail_go_destroy_syscall_(m);
    /* A P that is still held belongs to nobody now. */
    if (m->p)
        __atomic_store_n(&m->p->m_, (trail_m *)NULL, __ATOMIC_RELAXED);
    trail_set_proc_(m, NULL);
    return trail_off_(m, TRAIL_G_NONE_);
}

TRAIL_INLINE_ bool trail_proc_start(trail_m *m, trail_p *p)
{
    if (trail_enter_(m))
        return trail_proc_start_(m, p);
    trail_set_(&p->state_, TRAIL_P_RUNNING_);
    __atomic_store_n(&p->m_, m, __ATOMIC_RELAXED);
    trail_set_proc_(m, p);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_proc_stop(trail_m *m)
{
    if (trail_enter_(m))
        return trail_proc_stop_(m);
    if (m->p) {
        trail_set_(&m->p->state_, TRAIL_P_IDLE_);
        __atomic_store_n(&m->p->m_, (trail_m *)NULL, __ATOMIC_RELAXED);
    }
    trail_set_proc_(m, NULL);
    return trail_leave_(m);
}

TRAIL_INLINE_ bool trail_proc_steal(trail_m *m, trail_p *p)
{
    trail_m *owner;
    if (trail_enter_(m))
        return trail_proc_steal_(m, p);
    owner = __atomic_load_n(&p->m_, __ATOMIC_RELAXED);
    if (owner)
        trail_set_proc_(owner, NULL);
    __atomic_store_n(&p->m_, (trail_m *)NULL, __ATOMIC_RELAXED);
    trail_set_(&p->state_, TRAIL_P_IDLE_);
    return trail_leave_(m);
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

/* What the cleanup of TRAIL_REGION is given. */
TRAIL_INLINE_ void trail_region_leave_(const char *const *name)
{
    trail_region_end(0, *name);
}

#define TRAIL_REGION_NAME_(name, line)  TRAIL_REGION_NAME2_(name, line)
#define TRAIL_REGION_NAME2_(name, line) name##line
#define TRAIL_REGION_AT_(text, line)                                                               \
    __attribute__((cleanup(trail_region_leave_), unused)) const char *TRAIL_REGION_NAME_(          \
        trail_region_, line) = (trail_region_begin(0, (text)), (text))

#ifdef __cplusplus
}
#endif
#endif
