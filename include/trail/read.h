/*
 * Reading Go execution traces, formats 1.5 to 1.26 (Go 1.5 to 1.27).
 *
 * Three layers, each useful alone:
 *
 *   source   the bytes of a trace: path, descriptor, memory or callback; plain, gzip, zstd or xz
 *   walk     batches and generations without decoding their events: to skip, cut or count
 *   reader   the ordered stream of events, with strings and stacks
 *
 * Consumers see one event model for every version; files of Go 1.21 and earlier are converted on
 * the fly. The original events of those files are available with TRAIL_VIEW_V1.
 *
 * Threads: one thread at a time may use an object; different objects are independent. There is no
 * global state. Nothing here is async-signal-safe.
 */
#ifndef TRAIL_READ_H
#define TRAIL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <trail/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* MARK: Sources */

typedef struct trail_source trail_source;

/*
 * Reads up to `size` bytes into `buf`. Returns the number of bytes (at least 1), 0 at the end, or
 * -1 on an error with errno set. Called by the thread that uses the source, or by a thread of a
 * reader with the option `ahead`.
 */
typedef ssize_t (*trail_read_fn)(void *context, void *buf, size_t size);

/*
 * Opens a source. gzip, zstd and xz are recognised by their first bytes and decompressed, and the
 * forms of trail_source_compression undone. Returns NULL with *err on failure. trail_source_close
 * accepts NULL.
 *
 * _path      fails with TRAIL_IO if the file is truncated while it is read
 * _fd        reads from the descriptor's current position; the caller keeps the descriptor and must
 *            leave it open as long as the source
 * _memory    `data` must stay readable and unchanged as long as the source
 * _callback  `context` is passed through
 *
 * Opening waits for the 16 bytes of a header; if there is none, for up to 256 KiB, which show
 * whether the data are a trace.
 */
TRAIL_API trail_source *trail_source_open_path(const char *path, trail_error *err);
TRAIL_API trail_source *trail_source_open_fd(int fd, trail_error *err);
TRAIL_API trail_source *trail_source_open_memory(const void *data, size_t size, trail_error *err);
TRAIL_API trail_source *trail_source_open_callback(trail_read_fn read, void *context,
                                                   trail_error *err);
TRAIL_API void trail_source_close(trail_source *source);

/*
 * Opens trace number `number` (from 1 on) of a file with several, one after another. The source
 * also contains what follows it, but a reader ends there. The limits are those of
 * trail_source_limit_inflated.
 */
TRAIL_API trail_source *trail_source_open_part(const char *path, unsigned number,
                                               uint64_t max_bytes, uint64_t max_ratio,
                                               trail_error *err);

/*
 * Limits the output of a compressed source: to `max_bytes` in total, and to `max_ratio` times the
 * compressed bytes read so far, where the first 64 MiB are exempt. 0 keeps the current limit;
 * UINT64_MAX removes it. More output is an error, TRAIL_LIMIT. A compressed trace of Go 1.21 or
 * earlier is held in memory completely; real traces are 3 to 30 times as large as their compressed
 * form.
 */
#define TRAIL_INFLATED_MAX   (UINT64_C(16) << 30)
#define TRAIL_INFLATED_RATIO UINT64_C(250)
TRAIL_API void trail_source_limit_inflated(trail_source *source, uint64_t max_bytes,
                                           uint64_t max_ratio);

/*
 * Returns the size in bytes of the underlying file (compressed, if it is), or -1 if unknown (pipes,
 * callbacks).
 */
TRAIL_API int64_t trail_source_size(const trail_source *source);

/* Returns the bytes read from the underlying file so far: with trail_source_size, the progress. */
TRAIL_API int64_t trail_source_position(const trail_source *source);

/*
 * Reads a source to its end and sets *hash to a hash of its content with compression undone: the
 * same on every machine, and whether or how a file is compressed. It does not protect against
 * forgery. Returns -1 with *err set on an error; *hash then covers the part before it.
 */
TRAIL_API int trail_source_hash(trail_source *source, uint64_t *hash, trail_error *err);

/*
 * Returns "none", "gzip", "zstd" or "xz"; or the form that a transfer left the trace in: "base64",
 * "hex dump", "hex digits", "HTTP chunks", "CRLF line ends", "tar", "zip", "zero bytes before it",
 * "7 bytes of text before it", or "a trace without its header, as go 1.26", or "as go 1.25
 * (assumed)". "gzip, followed by other bytes" once these have been found. Valid as long as the
 * source.
 */
TRAIL_API const char *trail_source_compression(const trail_source *source);

/* MARK: Versions */

/*
 * A format is named by the minor number of its header, `go 1.N trace`: 5, 7, 8, 9, 10, 11, 19, 21
 * (v1: one stream of per-P batches) and 22, 23, 25, 26 (v2: generations).
 */
static inline bool trail_version_is_v2(int version)
{
    return version >= 22;
}

/* Returns the Go releases that write a format: 11 gives "Go 1.11-1.18". NULL: unknown format. */
TRAIL_API const char *trail_version_writers(int version);

/* MARK: What made a trace */

typedef enum trail_made_by {
    TRAIL_MADE_BY_GO,     /* a Go program; also if the trace names no maker */
    TRAIL_MADE_BY_RECORD, /* trail record: goroutines are threads of a C or C++ program */
    TRAIL_MADE_BY_HOST,   /* a program with libtrail-record: goroutines are what it schedules */
    TRAIL_MADE_BY_IMPORT  /* trail import: goroutines are threads recorded by another tool */
} trail_made_by;

#define TRAIL_TASK_WORD_MAX 32 /* bytes */

typedef struct trail_maker {
    trail_made_by made_by;
    /*
     * TRAIL_MADE_BY_HOST: the program's word for one goroutine ("fiber"), printable UTF-8; else "".
     */
    char task_word[TRAIL_TASK_WORD_MAX + 1];
} trail_maker;

/* The vocabulary for a trace: that of what made it, Go's, or that of programs with threads. */
typedef enum trail_words { TRAIL_WORDS_BY_TRACE, TRAIL_WORDS_GO, TRAIL_WORDS_THREADS } trail_words;

/* Returns "Go", "trail record", "libtrail-record" or "trail import". */
TRAIL_API const char *trail_made_by_name(trail_made_by made_by);

/* MARK: Walking batches */

typedef enum trail_batch_kind {
    TRAIL_BATCH_EVENTS,        /* v1: any batch; v2: events of one thread */
    TRAIL_BATCH_STRINGS,       /* v2 */
    TRAIL_BATCH_STACKS,        /* v2 */
    TRAIL_BATCH_CPU_SAMPLES,   /* v2 */
    TRAIL_BATCH_SYNC,          /* v2: frequency and, from 1.25 on, clock snapshot */
    TRAIL_BATCH_EXPERIMENT,    /* v2 from 1.23 on */
    TRAIL_BATCH_END_GENERATION /* v2 from 1.26 on: the bare byte that ends a generation */
} trail_batch_kind;

typedef struct trail_batch {
    trail_batch_kind kind;
    uint8_t experiment;  /* TRAIL_BATCH_EXPERIMENT: its number */
    uint64_t generation; /* v2; 0 in v1 */
    int64_t thread;      /* v2: M, -1 if none */
    int64_t proc;        /* v1: P, -1 if none */
    /* v1: time of the Batch record; v2: base time; in units of the file's frequency */
    uint64_t time_ticks;
    int64_t offset;       /* of the first byte of the batch header */
    uint64_t header_size; /* bytes */
    uint64_t size;        /* bytes after the header */
    uint64_t records;     /* v1: without the Batch record; v2: 0, as nothing is decoded */
} trail_batch;

/*
 * Returns "events", "strings", "stacks", "CPU samples", "sync", "experiment", "end of generation".
 */
TRAIL_API const char *trail_batch_kind_name(trail_batch_kind kind);

typedef struct trail_walk trail_walk;

/*
 * Walks the batches of a trace in file order. `source` must be at its start; the caller keeps it,
 * and it must outlive the walk. In v2 the data of batches is skipped, by seeking if the source can;
 * v1 has no sizes, so every record is lexed. v1 records outside batches are delivered as batches
 * with header_size 0: before 1.21 the frequency (until 1.13 with timer goroutines), until 1.10 also
 * the stacks and strings that follow.
 */
TRAIL_API trail_walk *trail_walk_open(trail_source *source, trail_error *err);
TRAIL_API int trail_walk_version(const trail_walk *walk);

/* Returns 1 and fills *batch, 0 at the end, -1 on an error (see trail_walk_error). */
TRAIL_API int trail_walk_next(trail_walk *walk, trail_batch *batch);

/*
 * Several traces in one file: when trail_walk_next has returned 0, _next_trace returns the offset
 * of the trace that follows, -1 if none does, and _go_on begins to walk it; offsets remain those
 * in the file. _go_on returns -1 on an error (see trail_walk_error).
 */
TRAIL_API int64_t trail_walk_next_trace(const trail_walk *walk);
TRAIL_API int trail_walk_go_on(trail_walk *walk);

/*
 * Returns the data of the batch last delivered by trail_walk_next: batch->size bytes, without the
 * header. Valid until the next call with this walk. NULL on an error (see trail_walk_error).
 */
TRAIL_API const uint8_t *trail_walk_data(trail_walk *walk);
TRAIL_API const trail_error *trail_walk_error(const trail_walk *walk);
TRAIL_API void trail_walk_close(trail_walk *walk);

/* MARK: Records */

/* Text from a trace: not NUL-terminated, any bytes. */
typedef struct trail_string {
    const char *data;
    size_t size;
} trail_string;

/*
 * One record of the file, decoded but neither ordered nor validated. `arg` are its uvarints in wire
 * order, without a v1 length prefix and with the leading time fields. In v2 a batch header is
 * itself a record (EventBatch gen m time size), followed by the records of its data.
 */
typedef struct trail_record {
    int64_t offset;
    uint64_t size; /* bytes in the file */
    unsigned type;
    const char *name;
    unsigned args;
    const uint64_t *arg;
    const char *const *arg_name; /* `args` names, for ordinary records */
    unsigned frames;             /* Stack: frames in `frame`, of `frame_fields` numbers each */
    unsigned frame_fields;       /* 4 (pc func file line), or 1 (pc) in 1.5 */
    const uint64_t *frame;
    bool has_data; /* String, ExperimentalBatch, v1 UserLog */
    trail_string data;
} trail_record;

typedef struct trail_records trail_records;

/*
 * Reads the records of a trace in file order. `source` must be at its start; the caller keeps it,
 * and it must outlive the reader.
 */
TRAIL_API trail_records *trail_records_open(trail_source *source, trail_error *err);
TRAIL_API int trail_records_version(const trail_records *records);

/*
 * Returns 1 and sets *record, valid until the next call; 0 at the end; -1 on an error (see
 * trail_records_error).
 */
TRAIL_API int trail_records_next(trail_records *records, const trail_record **record);
TRAIL_API const trail_error *trail_records_error(const trail_records *records);
TRAIL_API void trail_records_close(trail_records *records);

/* MARK: Events */

/*
 * Handles of this reader, not IDs of the file. 0 is the empty string and the empty stack. See
 * trail_reader_string.
 */
typedef uint32_t trail_string_handle;
typedef uint32_t trail_stack_handle;

typedef struct trail_frame {
    uint64_t pc; /* a return address, not decremented; 0 if unknown */
    trail_string_handle function;
    trail_string_handle file;
    uint64_t line;
} trail_frame;

/* Kinds of events, numbered as Go's internal/trace.EventKind. */
typedef enum trail_kind {
    TRAIL_BAD,
    TRAIL_SYNC,
    TRAIL_METRIC,
    TRAIL_LABEL,
    TRAIL_STACK_SAMPLE,
    TRAIL_RANGE_BEGIN,
    TRAIL_RANGE_ACTIVE,
    TRAIL_RANGE_END,
    TRAIL_TASK_BEGIN,
    TRAIL_TASK_END,
    TRAIL_REGION_BEGIN,
    TRAIL_REGION_END,
    TRAIL_LOG,
    TRAIL_STATE_TRANSITION,
    TRAIL_EXPERIMENTAL,
    TRAIL_KINDS
} trail_kind;

typedef enum trail_resource {
    TRAIL_RESOURCE_NONE,
    TRAIL_RESOURCE_GOROUTINE,
    TRAIL_RESOURCE_PROC,
    TRAIL_RESOURCE_THREAD
} trail_resource;

typedef enum trail_go_state {
    TRAIL_GO_UNDETERMINED,
    TRAIL_GO_NOT_EXIST,
    TRAIL_GO_RUNNABLE,
    TRAIL_GO_RUNNING,
    TRAIL_GO_WAITING,
    TRAIL_GO_SYSCALL,
    TRAIL_GO_STATES
} trail_go_state;

typedef enum trail_proc_state {
    TRAIL_PROC_UNDETERMINED,
    TRAIL_PROC_NOT_EXIST,
    TRAIL_PROC_RUNNING,
    TRAIL_PROC_IDLE,
    TRAIL_PROC_STATES
} trail_proc_state;

typedef enum trail_metric {
    TRAIL_METRIC_GOMAXPROCS, /* threads */
    TRAIL_METRIC_HEAP_LIVE,  /* bytes */
    TRAIL_METRIC_HEAP_GOAL,  /* bytes */
    TRAIL_METRICS
} trail_metric;

typedef enum trail_range {
    TRAIL_RANGE_STW,         /* scope: goroutine */
    TRAIL_RANGE_GC,          /* scope: none */
    TRAIL_RANGE_SWEEP,       /* scope: proc */
    TRAIL_RANGE_MARK_ASSIST, /* scope: goroutine */
    TRAIL_RANGES
} trail_range;

/*
 * A flag: the event has no record of its own in the file. The two events after a GoSwitch or
 * GoSwitchDestroy are implied by it, and the ProcSteal before a GoDestroySyscall.
 */
#define TRAIL_EVENT_IMPLIED 1

/*
 * A flag, with TRAIL_EVENT_IMPLIED: the event is inferred where events are lost. It ends a state or
 * range that may not have lasted longer (to TRAIL_GO_UNDETERMINED), or begins the state that the
 * next event requires (from TRAIL_GO_NOT_EXIST). On a Sync: events of the generation that begins
 * are lost.
 */
#define TRAIL_EVENT_INFERRED 4

/*
 * A flag: the program used a task, region or log against the rules, such as a region that ends
 * before one that began inside it. The event is in the trace as delivered; Go's tools reject the
 * trace at this place (see trail_reader_options.strict).
 */
#define TRAIL_EVENT_MISUSED 2

#define TRAIL_NONE            (-1)       /* no goroutine, proc or thread */
#define TRAIL_NO_TASK         UINT64_MAX /* no parent task */
#define TRAIL_BACKGROUND_TASK 0u

/* v1 files have lanes that are not Ps; an event's `proc` may be one of these numbers. */
enum {
    TRAIL_FAKE_PROC = 1000000,
    TRAIL_TIMER_PROC = 1000001,
    TRAIL_NETPOLL_PROC = 1000002,
    TRAIL_SYSCALL_PROC = 1000003,
    TRAIL_GC_PROC = 1000004,
    TRAIL_PROFILE_PROC = 1000005
};

typedef struct trail_clock_snapshot {
    int64_t trace_ns; /* trace time */
    uint64_t mono_ns; /* the runtime's monotonic clock */
    int64_t wall_s;   /* wall clock, Unix seconds */
    uint32_t wall_ns; /* plus nanoseconds, < 1e9 */
} trail_clock_snapshot;

/*
 * One event. `proc`, `thread` and `goroutine` are the context in which it happened, before the
 * event took effect; the union holds what it is about.
 */
typedef struct trail_event {
    int64_t time_ns; /* strictly increasing over a trace */
    int64_t thread;
    int64_t proc;
    int64_t goroutine;
    uint8_t kind;  /* trail_kind: selects the member of the union */
    uint8_t wire;  /* event type, numbered as in v2; for v1 files the type it was converted to */
    uint8_t flags; /* TRAIL_EVENT_IMPLIED, _MISUSED, _INFERRED */
    uint8_t reserved;
    trail_stack_handle stack; /* of the context */
    union {
        struct {
            uint64_t n; /* counts from 1 */
            /* NULL if the file has none here; valid like a string */
            const trail_clock_snapshot *snapshot;
            bool final; /* after the last event */
        } sync;
        struct {
            trail_metric metric;
            uint64_t value;
        } metric;
        struct {
            int64_t goroutine;
            trail_string_handle text;
        } label;
        struct {
            trail_range range;
            trail_resource scope;
            int64_t scope_id;
            trail_string_handle name; /* full name: "stop-the-world (GC sweep termination)" */
            bool has_swept;           /* the two fields below are set (end of a sweep) */
            uint64_t swept_bytes;
            uint64_t reclaimed_bytes;
        } range;
        struct {
            uint64_t id;
            uint64_t parent; /* TRAIL_NO_TASK if none */
            trail_string_handle type;
        } task;
        struct {
            uint64_t task;
            trail_string_handle type;
        } region;
        struct {
            uint64_t task;
            trail_string_handle category;
            trail_string_handle message;
        } log;
        struct {
            uint8_t resource; /* TRAIL_RESOURCE_GOROUTINE or _PROC */
            uint8_t from, to; /* trail_go_state or trail_proc_state */
            uint8_t status;   /* ProcStatus of v2: the number in the file; otherwise 0 */
            trail_string_handle reason;
            trail_stack_handle stack; /* of the resource that changed state */
            int64_t id;
        } transition;
        struct {
            uint8_t args; /* number of `arg` set; names: trail_experimental_arg */
            uint64_t arg[4];
        } experimental;
    };
} trail_event;

/* Return names as Go's tools print them. Never NULL; "?" for a number out of range. */
TRAIL_API const char *trail_kind_name(trail_kind kind);
TRAIL_API const char *trail_go_state_name(trail_go_state state);
TRAIL_API const char *trail_proc_state_name(trail_proc_state state);
TRAIL_API const char *trail_metric_name(trail_metric metric);

/*
 * Return the name of an experimental event ("SpanAlloc"), and of its argument `i`, from
 * event->wire.
 */
TRAIL_API const char *trail_experimental_name(const trail_event *event);
TRAIL_API const char *trail_experimental_arg(const trail_event *event, unsigned i);

/* MARK: Reader */

/*
 * The rules by which a v1 trace is judged consistent (v2 has one set only).
 *
 * TRAIL_VERDICT_AUTO uses the rules of the newest Go that reads the format: Go 1.21's parser for
 * 1.5-1.10, Go 1.23's and later from 1.11 on.
 */
typedef enum trail_verdict { TRAIL_VERDICT_AUTO, TRAIL_VERDICT_GO121 } trail_verdict;

typedef enum trail_view {
    TRAIL_VIEW_EVENTS, /* trail_event, for every version */
    TRAIL_VIEW_V1      /* trail_v1_event, v1 files only: as Go 1.21's parser delivers them */
} trail_view;

/*
 * Resolves a PC of a 1.5 file, whose stacks have no symbols. `pc` is a return address minus 1.
 * Returns true and sets the three results; the strings must stay valid until the reader is closed.
 */
typedef bool (*trail_symbolize_fn)(void *context, uint64_t pc, const char **function,
                                   const char **file, uint64_t *line);

typedef struct trail_reader_options {
    trail_view view;
    trail_verdict verdict;
    /* Fails at an annotation that breaks Go's rules, as Go does: see TRAIL_EVENT_MISUSED. */
    bool strict;
    /*
     * v1: delivers everything readable in a damaged trace before the error: also what follows
     * damage, with repairs; with `strict`, only the consistent events before it.
     */
    bool partial;
    /* Infers events and, in v1, shifts times to make the trace consistent; see trail_repair. */
    bool repair;
    /*
     * v1: only judges the trace. trail_reader_next_batch (or _v1_batch) returns 0 immediately if it
     * is consistent, -1 if not; the stats are those of a reader that delivered everything. Saves
     * the second of two passes. Has no effect if annotations were misused, so that they can be
     * listed.
     *
     * v2, with `ahead`, of a plain file: several threads judge generations at the same time. Of a
     * generation judged by another thread, only the Sync is delivered, and an event of kind
     * TRAIL_BAD at the time of its last event; errors, stats and generations with misused
     * annotations are as usual.
     */
    bool verdict_only;
    /*
     * v2, from memory or a plain file: skips generations that end earlier than this long after the
     * first event; the rest is read as if the trace began there. stats.skipped_bytes is the number
     * of bytes skipped.
     */
    int64_t from_ns;
    /*
     * Reads events in a thread of the reader while the caller processes the previous ones: halves
     * the time if both take equally long. Has no effect for pipes and terminals, with `symbolize`,
     * or on a single processor. The reader's functions still belong to one thread at a time. A
     * callback of the source is called by the reader's thread, and trail_reader_close waits until
     * it returns.
     */
    bool ahead;
    /*
     * With `ahead`: the most threads, the caller's included; no more are started than have work. 0:
     * one for each processor that the process may use, by its affinity and its control group's
     * quota.
     */
    unsigned threads;
    trail_symbolize_fn symbolize; /* NULL: PCs stay unresolved */
    void *symbolize_context;
    /* As in trail_source_limit_inflated; 0: the limits of the source. */
    uint64_t inflated_max, inflated_ratio;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_reader_options;

typedef struct trail_reader trail_reader;

/*
 * Opens a reader on `source`, which must be at its start. The caller keeps the source, which must
 * outlive the reader. `options` may be NULL (all zero). Returns NULL with *err on failure.
 *
 * A v1 trace is judged as a whole before its first event is delivered, because a time order error
 * is known only at the end (§3.3). This happens in the first trail_reader_next_batch, not here.
 */
TRAIL_API trail_reader *trail_reader_open(trail_source *source, const trail_reader_options *options,
                                          trail_error *err);
TRAIL_API void trail_reader_close(trail_reader *reader);

/* Returns the format of the file: 5 to 26. */
TRAIL_API int trail_reader_version(const trail_reader *reader);

/*
 * Returns what made the trace, known after the first trail_reader_next_batch; before that, Go. If
 * generations disagree, the first that names a maker counts. Valid as long as the reader.
 */
TRAIL_API const trail_maker *trail_reader_maker(const trail_reader *reader);

/* The kind of a row of trail_reader_recorded, and the fields of trail_recorded that it sets. */
typedef enum trail_recorded_what {
    TRAIL_RECORDED_RECORDER, /* trail record itself: cpu_ns */
    TRAIL_RECORDED_PROCESS,  /* a process: pid, cpu_ns, recorder_ns, name: its command line */
    TRAIL_RECORDED_LEFT,     /* a process that executed a program without the recorder: pid, name,
                                count: a number of src/wire/missed.def, or 0 */
    TRAIL_RECORDED_MISSED,   /* a process without the recorder: pid, name, count: the same */
    TRAIL_RECORDED_LATE,     /* processes that started too fast to be listed: count */
    TRAIL_RECORDED_UNKNOWN,  /* processes that may or may not be recorded: count */
    /*
     * The machine. count: its CPUs; cpu_ns: an upper bound of the CPU time that programs which were
     * not recorded used during recorder_ns, the length of the recording.
     */
    TRAIL_RECORDED_MACHINE,
    /*
     * The CPUs that sched_setaffinity(2) allows to the threads that wanted one. count: their
     * number; name: "0-2,4".
     */
    TRAIL_RECORDED_CPUS,
    /*
     * The CPU quota of the program's control group. count: thousandths of a CPU; cpu_ns: throttled
     * time during the recording, summed over the CPUs.
     */
    TRAIL_RECORDED_QUOTA,
    /* A thread whose scheduling is or was not the default; repeated after a change. pid: its TID;
     * count: CPUs that it may use; name: "CPU 0; nice 5; SCHED_FIFO 10". */
    TRAIL_RECORDED_THREAD,
    /* Context switches were recorded from the kernel, but wake-ups were not: since when a thread
     * was ready after a wait is inferred. count: 1. */
    TRAIL_RECORDED_READY,
    /* The processes that alone can end the wait of a thread for a child, or at a pipe or
     * connection. pid: its goroutine; cpu_ns: the trace's time at which they were found; count: the
     * threads of all processes in the trace then; name: the number of each process's block of 10^9
     * goroutines, "1 0"; the first is of a process that has the other end. */
    TRAIL_RECORDED_ENDS,
    /* Something that exceeded a limit of a flight recorder; the last one caused this snapshot.
     * name: "task request took 312 ms (> 200 ms)". Of a wait that has ended, count: its goroutine;
     * cpu_ns: its length; recorder_ns: when it began, in the trace's time. */
    TRAIL_RECORDED_SLOW
} trail_recorded_what;

/* The cost of a recording by `trail record`, and what it missed. */
typedef struct trail_recorded {
    trail_recorded_what what;
    uint64_t pid, count;
    int64_t cpu_ns;      /* CPU time */
    int64_t recorder_ns; /* CPU time of trail record, for the process's records */
    trail_string name;   /* any bytes */
} trail_recorded;

/*
 * Sets *rows to the cost and the gaps of the recording, which `trail record` notes at the end of a
 * trace, so they are complete after the last event. Returns their number. Valid until the next
 * read.
 */
TRAIL_API size_t trail_reader_recorded(const trail_reader *reader, const trail_recorded **rows);

/*
 * Returns the wall clock of a trace at a Sync event, which must be one of the batch that the reader
 * delivered last. It is the file's own reading (Go 1.25 and later), or that noted by `trail record`
 * and libtrail-record in earlier formats. Returns false, with *clocks unchanged, if it is unknown:
 * the event is no Sync or the final one, the trace has no reading, or its reading is the trace's
 * own time, as in traces that were converted from earlier formats. Any thread that may use the
 * reader.
 */
TRAIL_API bool trail_reader_wall_clock(const trail_reader *reader, const trail_event *sync,
                                       trail_clock_snapshot *clocks);

/* The name and kind that a program with libtrail-record gave to a goroutine; each may be empty. */
typedef struct trail_goroutine_label {
    trail_string name, kind;
} trail_goroutine_label;

/*
 * Returns false if the program has never given the goroutine a name or kind, in the generation
 * delivered last (v2) or in the file (v1). Of several names in that range, the last is returned;
 * both texts are empty if they were removed. They are valid as long as its handles.
 */
TRAIL_API bool trail_reader_goroutine(const trail_reader *reader, int64_t id,
                                      trail_goroutine_label *label);

/*
 * Delivers the next events, in order. Returns the number of events at *events (at least 1), 0 at
 * the end, or -1 on an error (see trail_reader_error), after everything before the error was
 * delivered. The events, and the handles and pointers in them, are valid until the next call with
 * this reader.
 */
TRAIL_API long trail_reader_next_batch(trail_reader *reader, const trail_event **events);

/*
 * Lends the thread of a reader with `ahead`. After trail_reader_has_work, that thread calls `work`
 * when it has nothing to read or the caller waits for events, and repeats it while it returns true.
 * Calls do not overlap. NULL for `work` ends this; no call is in progress then. Returns false if
 * the reader has no thread.
 */
TRAIL_API bool trail_reader_lend(trail_reader *reader, bool (*work)(void *context), void *context);
TRAIL_API void trail_reader_has_work(trail_reader *reader);

/*
 * Like trail_reader_next_batch, one event at a time. Returns 1, 0 or -1; *event is valid until the
 * next call.
 */
TRAIL_API int trail_reader_next(trail_reader *reader, const trail_event **event);

TRAIL_API const trail_error *trail_reader_error(const trail_reader *reader);

/*
 * Returns the text of a handle. Handles are valid as long as the event or frame that has them; in
 * v2 they belong to a generation, so keep the text, not the handle. Returns the empty string for a
 * handle out of range.
 */
TRAIL_API trail_string trail_reader_string(const trail_reader *reader, trail_string_handle handle);

/* Returns a stack's frames, leaf first; *count is 0 for the empty stack. Valid like the event. */
TRAIL_API const trail_frame *trail_reader_stack(const trail_reader *reader,
                                                trail_stack_handle handle, size_t *count);

/*
 * Changes whenever handles may change their meaning (a new generation): caches by handle must be
 * dropped then. Handles of one epoch are dense, below trail_reader_stack_count and _string_count.
 */
TRAIL_API uint64_t trail_reader_epoch(const trail_reader *reader);
TRAIL_API size_t trail_reader_stack_count(const trail_reader *reader);
TRAIL_API size_t trail_reader_string_count(const trail_reader *reader);

/* Raw data of experiments in the current generation, available at each TRAIL_SYNC except the final
 * one. */
typedef struct trail_experiment_batch {
    uint8_t experiment; /* 1 = AllocFree */
    int64_t thread;
    const uint8_t *data;
    size_t size;
} trail_experiment_batch;
TRAIL_API size_t trail_reader_experiment_batches(const trail_reader *reader,
                                                 const trail_experiment_batch **batches);

/* Kinds of repairs (trail_reader_options.repair); v2 has sequence and state. */
typedef enum trail_repair_kind {
    TRAIL_REPAIR_SEQUENCE, /* a goroutine was put into the state that its next event requires */
    TRAIL_REPAIR_TIME,     /* an event's time was raised to that of the event before it */
    /* the separate time of a syscall exit was impossible: the event's time is used */
    TRAIL_REPAIR_SYSCALL_EXIT,
    TRAIL_REPAIR_STATE, /* an event contradicted the state of its G or P, which was corrected */
    TRAIL_REPAIRS
} trail_repair_kind;

/* Statistics, complete at the end of reading. */
typedef struct trail_reader_stats {
    uint64_t events;            /* delivered */
    uint64_t wire_events;       /* timed records read from the file */
    uint64_t generations;       /* v2: whole generations delivered */
    uint64_t generations_alone; /* of these, judged independently of earlier ones: verdict_only */
    uint64_t bytes;             /* of the uncompressed trace, read so far */
    uint64_t good_bytes;        /* everything before this offset was delivered or is consistent */
    uint64_t strings, stacks, cpu_samples; /* summed over generations */
    /* In total, and by trail_repair_kind. In v2 also without the option, where events are lost. */
    uint64_t repairs;
    uint64_t repairs_by_kind[TRAIL_REPAIRS];
    uint64_t skipped_bytes; /* not read, because of trail_reader_options.from_ns */
    int64_t first_ns;       /* if skipped_bytes > 0: time of the first event of the trace */
    uint64_t misused;       /* events with TRAIL_EVENT_MISUSED */
    /* Without `strict`: what was skipped. */
    uint64_t holes;         /* places of damage; after each, all states are determined anew */
    uint64_t lost_bytes;    /* damaged or in a generation without order */
    uint64_t text_bytes;    /* text that the program wrote into the trace */
    int64_t text_offset;    /* where it begins; -1: none */
    int64_t next_trace;     /* offset of another trace after this one; -1: none */
    bool unstopped;         /* ends in a generation that has only begun: tracing was not stopped */
    bool frequency_assumed; /* v1 with partial: the frequency record is missing */
} trail_reader_stats;
TRAIL_API void trail_reader_get_stats(const trail_reader *reader, trail_reader_stats *stats);

/* MARK: Repairs (trail_reader_options.repair) */

typedef struct trail_repair {
    trail_repair_kind kind;
    int64_t offset; /* of the event's record */
    int64_t proc;
    int64_t goroutine;
    int64_t time_ns;  /* of the event, after the repair */
    int64_t shift_ns; /* TRAIL_REPAIR_TIME, _SYSCALL_EXIT: how far it was moved */
} trail_repair;

TRAIL_API const char *trail_repair_kind_name(trail_repair_kind kind);

/*
 * Returns the repairs, in order; complete once the first event was delivered (v1), or the last
 * (v2). The stats count all of them; at most the first 10,000 are kept here.
 */
TRAIL_API size_t trail_reader_repairs(const trail_reader *reader, const trail_repair **repairs);

/* MARK: v1 events (TRAIL_VIEW_V1) */

/*
 * An event as Go 1.21's parser delivers it: ordered, with Local variants rewritten, lanes replaced
 * by fake procs, and futile wake-ups removed. `type` is the number in the file.
 */
typedef struct trail_v1_event {
    int64_t time_ns;
    int64_t proc;
    int64_t goroutine; /* 0 if none */
    int64_t offset;    /* of the record in the file */
    uint64_t arg[4];   /* without the stack */
    trail_stack_handle stack;
    uint8_t type;
    /* label; name; category and message; STW kind: see trail_v1_type */
    trail_string_handle text[2];
} trail_v1_event;

/*
 * Returns the names of a v1 event type and of its arguments, in NULL-terminated lists. NULL for an
 * unknown type.
 */
typedef struct trail_v1_type {
    const char *name;
    const char *arg[5];
    const char *text[3];
} trail_v1_type;
TRAIL_API const trail_v1_type *trail_v1_type_get(unsigned type);

/* Like trail_reader_next_batch, for a reader opened with TRAIL_VIEW_V1. */
TRAIL_API long trail_reader_next_v1_batch(trail_reader *reader, const trail_v1_event **events);

#ifdef __cplusplus
}
#endif
#endif
