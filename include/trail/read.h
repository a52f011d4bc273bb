/*
 * Reading Go execution traces, formats 1.5 to 1.26 (Go 1.5 to 1.27).
 *
 * Three layers, each useful alone:
 *
 *   source   where the bytes come from: path, descriptor, memory, callback; plain, gzip or zstd
 *   walk     batches and generations, without decoding their events: to skip, cut or count
 *   reader   the ordered stream of events, with strings and stacks
 *
 * A consumer sees one event model whatever the file's version; files of Go 1.21 and before are
 * converted on the fly. Their own view of their events stays reachable (TRAIL_VIEW_V1).
 *
 * Threads: an object may be used by one thread at a time; different objects are independent. There
 * is no global state. Nothing here is async-signal-safe.
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
 * Reads up to `size` bytes into `buf`. Returns how many (at least 1), 0 at the end, -1 on an error
 * with errno set. Called from the thread that uses the source, or one of a reader that reads ahead.
 */
typedef ssize_t (*trail_read_fn)(void *context, void *buf, size_t size);

/*
 * Open a source. gzip and zstd are recognised by their first bytes and decompressed. On failure
 * NULL, and *err says why. trail_source_close accepts NULL.
 *
 * _path     a file that is cut short while it is being read is an error, TRAIL_IO
 * _fd       reads from the descriptor's position on; the descriptor stays the caller's and must
 *           stay open as long as the source
 * _memory   `data` must stay readable and unchanged as long as the source
 * _callback `context` is passed through
 */
TRAIL_API trail_source *trail_source_open_path(const char *path, trail_error *err);
TRAIL_API trail_source *trail_source_open_fd(int fd, trail_error *err);
TRAIL_API trail_source *trail_source_open_memory(const void *data, size_t size, trail_error *err);
TRAIL_API trail_source *trail_source_open_callback(trail_read_fn read, void *context,
                                                   trail_error *err);
TRAIL_API void trail_source_close(trail_source *source);

/*
 * How much may come out of a compressed source: `max_bytes` in all, and `max_ratio` times the compressed
 * bytes taken so far, the first 64 MiB excepted; 0: as it is, UINT64_MAX: any. What would give more is
 * an error, TRAIL_LIMIT. A trace of Go 1.21 and before is held in memory whole when it is compressed;
 * real ones are 3 to 30 times as large as their compressed form.
 */
#define TRAIL_INFLATED_MAX   (UINT64_C(16) << 30)
#define TRAIL_INFLATED_RATIO UINT64_C(250)
TRAIL_API void trail_source_limit_inflated(trail_source *source, uint64_t max_bytes,
                                           uint64_t max_ratio);

/* Size in bytes of what is underneath (compressed if it is), -1 when unknown (pipes, callbacks). */
TRAIL_API int64_t trail_source_size(const trail_source *source);

/* Bytes taken from underneath so far; with trail_source_size this makes a progress bar. */
TRAIL_API int64_t trail_source_position(const trail_source *source);

/* "none", "gzip" or "zstd". */
TRAIL_API const char *trail_source_compression(const trail_source *source);

/* MARK: Versions */

/*
 * A format is named by the minor number of its header: `go 1.N trace`. The known ones are 5, 7, 8,
 * 9, 10, 11, 19, 21 (v1: one stream of per-P batches) and 22, 23, 25, 26 (v2: generations).
 */
static inline bool trail_version_is_v2(int version)
{
    return version >= 22;
}

/* The releases that write a format, for people: 11 -> "Go 1.11-1.18". NULL if no such format. */
TRAIL_API const char *trail_version_writers(int version);

/* MARK: What made a trace */

typedef enum trail_made_by {
    TRAIL_MADE_BY_GO,     /* a Go program, and any trace that names nothing else */
    TRAIL_MADE_BY_RECORD, /* trail record: goroutines are threads of a C or C++ program */
    TRAIL_MADE_BY_HOST    /* a program with libtrail-record: goroutines are what it runs */
} trail_made_by;

#define TRAIL_TASK_WORD_MAX 32 /* bytes */

typedef struct trail_maker {
    trail_made_by made_by;
    /* TRAIL_MADE_BY_HOST: the program's word for one goroutine ("fiber"), printable UTF-8; else empty. */
    char task_word[TRAIL_TASK_WORD_MAX + 1];
} trail_maker;

/* "Go", "trail record" or "libtrail-record". */
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
    /* In ticks of the file's frequency. v2: the batch's base time; v1: the time of its Batch record. */
    uint64_t time_ticks;
    int64_t offset;       /* of the first byte of the batch header */
    uint64_t header_size; /* bytes */
    uint64_t size;        /* bytes after the header */
    uint64_t records; /* v1: records in it, without the Batch record; v2: 0 (not known undecoded) */
} trail_batch;

/* "events", "strings", "stacks", "CPU samples", "sync", "experiment", "end of generation". */
TRAIL_API const char *trail_batch_kind_name(trail_batch_kind kind);

typedef struct trail_walk trail_walk;

/*
 * Walks the batches of a trace in file order. The walk uses `source` (at its start) but does not
 * own it. v2 skips the batches' data, by seeking where the source can; v1 has no sizes and lexes
 * every record. v1 records outside any batch come as batches with header_size 0: before 1.21 the
 * frequency (and until 1.13 timer goroutines), until 1.10 also the stacks and strings that follow.
 */
TRAIL_API trail_walk *trail_walk_open(trail_source *source, trail_error *err);
TRAIL_API int trail_walk_version(const trail_walk *walk);

/* Returns 1 and fills *batch, 0 at the end, -1 on an error: trail_walk_error has it. */
TRAIL_API int trail_walk_next(trail_walk *walk, trail_batch *batch);

/*
 * The data of the batch that trail_walk_next delivered last (batch->size bytes, without the
 * header). Valid until the next call with this walk. NULL on an error: trail_walk_error has it.
 */
TRAIL_API const uint8_t *trail_walk_data(trail_walk *walk);
TRAIL_API const trail_error *trail_walk_error(const trail_walk *walk);
TRAIL_API void trail_walk_close(trail_walk *walk);

/* MARK: Records */

/* Text in a trace: not NUL-terminated, any bytes. */
typedef struct trail_string {
    const char *data;
    size_t size;
} trail_string;

/*
 * One record as it stands in the file, decoded but not ordered or judged. `arg` are its uvarints in
 * wire order (without a v1 length prefix; with the leading time fields). In v2 the header of a
 * batch is itself a record (EventBatch gen m time size), followed by those of its data.
 */
typedef struct trail_record {
    int64_t offset;
    uint64_t size; /* bytes in the file */
    unsigned type;
    const char *name;
    unsigned args;
    const uint64_t *arg;
    const char *const *arg_name; /* `args` of them, for ordinary records */
    unsigned frames;             /* Stack: frames of `frame_fields` numbers each, in `frame` */
    unsigned frame_fields;       /* 4 (pc func file line), or 1 (pc) in 1.5 */
    const uint64_t *frame;
    bool has_data; /* String, ExperimentalBatch, v1 UserLog */
    trail_string data;
} trail_record;

typedef struct trail_records trail_records;

/* Reads the records of a trace in file order. `source` is used from its start, and not owned. */
TRAIL_API trail_records *trail_records_open(trail_source *source, trail_error *err);
TRAIL_API int trail_records_version(const trail_records *records);

/* Returns 1 and sets *record (valid until the next call), 0 at the end, -1: trail_records_error. */
TRAIL_API int trail_records_next(trail_records *records, const trail_record **record);
TRAIL_API const trail_error *trail_records_error(const trail_records *records);
TRAIL_API void trail_records_close(trail_records *records);

/* MARK: Events */

/* Handles, not IDs of the file: 0 is the empty string and "no stack". See trail_reader_string. */
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
 * A flag: no record of the file stands for this event alone. A GoSwitch or GoSwitchDestroy tells the
 * two events that follow it, a GoDestroySyscall the ProcSteal in front of it.
 */
#define TRAIL_EVENT_IMPLIED 1

#define TRAIL_NONE            (-1)       /* no goroutine, proc or thread */
#define TRAIL_NO_TASK         UINT64_MAX /* no parent task */
#define TRAIL_BACKGROUND_TASK 0u

/*
 * v1 files know lanes that are not Ps. An event's `proc` may be one of these; none is a real P.
 */
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
    uint32_t wall_ns; /* and nanoseconds, < 1e9 */
} trail_clock_snapshot;

/*
 * One event. `proc`, `thread` and `goroutine` are the context in which it happened (who did it),
 * before the event took effect; what it happened to is in the union.
 */
typedef struct trail_event {
    int64_t time_ns; /* strictly increasing over a trace */
    int64_t thread;
    int64_t proc;
    int64_t goroutine;
    uint8_t kind;  /* trail_kind: says which member of the union is set */
    uint8_t wire;  /* the event type in the file: v2 numbers, also for v1 files (what it became) */
    uint8_t flags; /* TRAIL_EVENT_IMPLIED */
    uint8_t reserved;
    trail_stack_handle stack; /* of the context */
    union {
        struct {
            uint64_t n; /* counts from 1 */
            /* The clocks at this moment; NULL if the file has none here. Valid as long as a string. */
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
            trail_string_handle name; /* whole: "stop-the-world (GC sweep termination)" */
            bool has_swept;           /* the two below are set (end of a sweep) */
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
            uint8_t status;   /* ProcStatus of v2: the number in the file; else 0 */
            trail_string_handle reason;
            trail_stack_handle stack; /* of the resource that changed state */
            int64_t id;
        } transition;
        struct {
            uint8_t args; /* how many of `arg` are set; names: trail_experimental_arg */
            uint64_t arg[4];
        } experimental;
    };
} trail_event;

/* Names as Go's tools print them. Never NULL; "?" for a number out of range. */
TRAIL_API const char *trail_kind_name(trail_kind kind);
TRAIL_API const char *trail_go_state_name(trail_go_state state);
TRAIL_API const char *trail_proc_state_name(trail_proc_state state);
TRAIL_API const char *trail_metric_name(trail_metric metric);

/* Name of an experimental event ("SpanAlloc"), and of its argument `i`, from event->wire. */
TRAIL_API const char *trail_experimental_name(const trail_event *event);
TRAIL_API const char *trail_experimental_arg(const trail_event *event, unsigned i);

/* MARK: Reader */

/*
 * How strict the verdict on a v1 trace is (v2 has one verdict only).
 *
 * TRAIL_VERDICT_AUTO is the rules of the newest Go that reads the format: for 1.5-1.10 those of Go
 * 1.21's parser, from 1.11 on those of Go 1.23's and later.
 */
typedef enum trail_verdict { TRAIL_VERDICT_AUTO, TRAIL_VERDICT_GO121 } trail_verdict;

typedef enum trail_view {
    TRAIL_VIEW_EVENTS, /* trail_event, for every version */
    TRAIL_VIEW_V1      /* trail_v1_event, v1 files only: as Go 1.21's parser sees them */
} trail_view;

/*
 * Resolves a PC of a 1.5 file, whose stacks have no symbols. Called with `pc` - 1 of a return
 * address. Returns true and fills the three; the strings must stay valid until the reader is
 * closed.
 */
typedef bool (*trail_symbolize_fn)(void *context, uint64_t pc, const char **function,
                                   const char **file, uint64_t *line);

typedef struct trail_reader_options {
    trail_view view;
    trail_verdict verdict;
    /* v1: deliver the consistent prefix of a damaged trace before the error. */
    bool partial;
    /* v1: infer events and shift times so that the trace is consistent; see trail_repair. */
    bool repair;
    /*
     * v1: judge only. trail_reader_next_batch (or _v1_batch) returns 0 at once if the trace is
     * good, -1 if not; the stats are those of a reader that delivered everything. Saves the second
     * of two passes.
     */
    bool verdict_only;
    /*
     * v2, in memory or a plain file: events earlier than so long after the first event are not
     * wanted. Reading begins with a generation that is over later, as if the trace began there;
     * stats.skipped_bytes tells if so.
     */
    int64_t from_ns;
    /*
     * Events are read by a thread of the reader's own while the caller looks at those before: what takes as long to
     * look at as to read is done in half the time. Not for pipes and terminals, not with `symbolize`, and only where
     * there is a second processor. All functions of the reader stay for one thread at a time, the caller's; a
     * callback of the source is called by the reader's, and trail_reader_close waits until it returns.
     */
    bool ahead;
    trail_symbolize_fn symbolize; /* NULL: PCs stay PCs */
    void *symbolize_context;
    /* As trail_source_limit_inflated; 0: what the source has. */
    uint64_t inflated_max, inflated_ratio;
} trail_reader_options;

typedef struct trail_reader trail_reader;

/*
 * Opens a reader on `source`, which must be at its start. The source stays the caller's and must
 * outlive the reader. `options` may be NULL (all zero). On failure NULL, and *err says why.
 *
 * A v1 trace is judged as a whole before its first event is delivered (§3.3: ErrTimeOrder is known
 * only at the end): this happens in the first trail_reader_next_batch, not here.
 */
TRAIL_API trail_reader *trail_reader_open(trail_source *source, const trail_reader_options *options,
                                          trail_error *err);
TRAIL_API void trail_reader_close(trail_reader *reader);

/* The format of the file: 5 ... 26. */
TRAIL_API int trail_reader_version(const trail_reader *reader);

/*
 * What made the trace, known from the first trail_reader_next_batch on; before that, Go. Of a trace whose
 * generations disagree, what the first that names anything says. Valid as long as the reader.
 */
TRAIL_API const trail_maker *trail_reader_maker(const trail_reader *reader);

/*
 * Delivers the next events, in order. Returns how many are at *events (at least 1), 0 at the end,
 * -1 on an error: trail_reader_error has it, and everything before the error was delivered. The
 * events, and the handles and pointers in them, are valid until the next call with this reader.
 */
TRAIL_API long trail_reader_next_batch(trail_reader *reader, const trail_event **events);

/* The same, one at a time. Returns 1, 0 or -1; *event is valid until the next call. */
TRAIL_API int trail_reader_next(trail_reader *reader, const trail_event **event);

TRAIL_API const trail_error *trail_reader_error(const trail_reader *reader);

/*
 * The text behind a handle of an event or frame just delivered. Handles of v2 files belong to a
 * generation: do not keep them over calls, keep the text. Out of range gives the empty string.
 */
TRAIL_API trail_string trail_reader_string(const trail_reader *reader, trail_string_handle handle);

/*
 * The frames of a stack, leaf first; *count is 0 for no stack. Valid as the event is.
 */
TRAIL_API const trail_frame *trail_reader_stack(const trail_reader *reader,
                                                trail_stack_handle handle, size_t *count);

/*
 * Changes whenever handles may mean something else (a new generation): whoever caches by handle
 * drops the cache then. Handles of one epoch are dense: all are below trail_reader_stack_count /
 * _string_count.
 */
TRAIL_API uint64_t trail_reader_epoch(const trail_reader *reader);
TRAIL_API size_t trail_reader_stack_count(const trail_reader *reader);
TRAIL_API size_t trail_reader_string_count(const trail_reader *reader);

/* Raw data of experiments in the current generation; with a TRAIL_SYNC event that is not final. */
typedef struct trail_experiment_batch {
    uint8_t experiment; /* 1 = AllocFree */
    int64_t thread;
    const uint8_t *data;
    size_t size;
} trail_experiment_batch;
TRAIL_API size_t trail_reader_experiment_batches(const trail_reader *reader,
                                                 const trail_experiment_batch **batches);

/* What was repaired in a v1 trace (trail_reader_options.repair); more of it below. */
typedef enum trail_repair_kind {
    TRAIL_REPAIR_SEQUENCE,     /* a goroutine was put into the state that its next event needs */
    TRAIL_REPAIR_TIME,         /* an event's time was raised to that of the event before it */
    TRAIL_REPAIR_SYSCALL_EXIT, /* an exit's own time was impossible: that of the event is used */
    TRAIL_REPAIR_STATE, /* an event contradicted the state of its G or P: the state was corrected */
    TRAIL_REPAIRS
} trail_repair_kind;

/* What is known after (or while) reading. */
typedef struct trail_reader_stats {
    uint64_t events;      /* delivered */
    uint64_t wire_events; /* timed records read from the file */
    uint64_t generations; /* v2: whole generations delivered */
    uint64_t bytes;       /* of the uncompressed trace, read so far */
    uint64_t good_bytes;  /* everything before this offset was delivered or is consistent */
    uint64_t strings, stacks, cpu_samples; /* summed over generations */
    uint64_t repairs;                      /* all, and by trail_repair_kind */
    uint64_t repairs_by_kind[TRAIL_REPAIRS];
    uint64_t skipped_bytes; /* trail_reader_options.from_ns: not read; 0: everything is */
    int64_t first_ns;       /* skipped_bytes > 0: time of the first event of the trace */
    bool frequency_assumed; /* v1 with partial: the frequency record is missing */
} trail_reader_stats;
TRAIL_API void trail_reader_get_stats(const trail_reader *reader, trail_reader_stats *stats);

/* MARK: Repairs (v1, trail_reader_options.repair) */

typedef struct trail_repair {
    trail_repair_kind kind;
    int64_t offset; /* of the event's record */
    int64_t proc;
    int64_t goroutine;
    int64_t time_ns;  /* of the event after the repair */
    int64_t shift_ns; /* TRAIL_REPAIR_TIME, _SYSCALL_EXIT: by how much it was moved */
} trail_repair;

TRAIL_API const char *trail_repair_kind_name(trail_repair_kind kind);

/*
 * The repairs made, in order; complete once the first event has been delivered. All are counted in
 * the stats; at most the first 10,000 are kept here.
 */
TRAIL_API size_t trail_reader_repairs(const trail_reader *reader, const trail_repair **repairs);

/* MARK: v1 events (TRAIL_VIEW_V1) */

/*
 * An event as Go 1.21's parser delivers it: after ordering, with Local variants rewritten, lanes
 * replaced by fake procs, futile wake-ups removed. `type` numbers are those of the file.
 */
typedef struct trail_v1_event {
    int64_t time_ns;
    int64_t proc;
    int64_t goroutine; /* 0 if none */
    int64_t offset;    /* of the record in the file */
    uint64_t arg[4];   /* without the stack */
    trail_stack_handle stack;
    uint8_t type;
    /* A label, a name, a category and a message, or a kind of stop-the-world pause: see trail_v1_type. */
    trail_string_handle text[2];
} trail_v1_event;

/* Names of a v1 event type and of its arguments, in NULL-terminated lists; NULL: no such type. */
typedef struct trail_v1_type {
    const char *name;
    const char *arg[5];
    const char *text[3];
} trail_v1_type;
TRAIL_API const trail_v1_type *trail_v1_type_get(unsigned type);

/* As trail_reader_next_batch, for a reader opened with TRAIL_VIEW_V1. */
TRAIL_API long trail_reader_next_v1_batch(trail_reader *reader, const trail_v1_event **events);

#ifdef __cplusplus
}
#endif
#endif
