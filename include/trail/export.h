/*
 * Export: writes a trace in other forms: as text, as JSON, as profiles, in the formats of other
 * tools, and as a new trace (converted, merged, symbolized, assembled from text).
 *
 * All output goes to a trail_sink, in large pieces. Reading stops as soon as no later event can
 * pass the filter.
 */
#ifndef TRAIL_EXPORT_H
#define TRAIL_EXPORT_H

#include <trail/read.h>

#ifdef __cplusplus
extern "C" {
#endif

/* trail/analyze.h */
typedef struct trail_analysis trail_analysis;
typedef struct trail_profile trail_profile;

/* MARK: Sinks */

/*
 * Destination of output. `write` takes all `size` bytes and returns true, or returns false with
 * errno set; after a failure it is not called again. Called on the thread of the function that
 * writes.
 */
typedef struct trail_sink {
    bool (*write)(void *context, const void *data, size_t size);
    void *context;
} trail_sink;

/* MARK: Filters */

/*
 * Which events to print. All zero prints everything; an event must meet every condition that is
 * set. The arrays belong to the caller. Times are in ns since the first event of the trace, both
 * inclusive.
 */
typedef struct trail_filter {
    const int64_t *goroutines; /* the event is by, or about, one of them */
    size_t goroutine_count;
    const int64_t *procs; /* the same for Ps */
    size_t proc_count;
    const int64_t *threads; /* the event happened on one of them */
    size_t thread_count;
    bool has_kinds;
    uint64_t kinds[4]; /* one bit per event type (trail_event.wire, or trail_v1_event.type) */
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    uint64_t limit; /* maximum number of events; 0: no limit */
} trail_filter;

/*
 * Returns the i-th name that trail_filter_add_kind accepts for a view: first the kinds
 * ("StateTransition"), then the types in the file ("GoBlock"). NULL after the last.
 */
TRAIL_API const char *trail_filter_kind_name(trail_view view, size_t i);

/* Adds the events of that name, ignoring case. Returns false if there is no such name. */
TRAIL_API bool trail_filter_add_kind(trail_filter *filter, trail_view view, const char *name);

/* MARK: Printing events */

typedef enum trail_format {
    TRAIL_FORMAT_TEXT,  /* for reading */
    TRAIL_FORMAT_GO,    /* byte for byte `go tool trace -d=parsed` of Go 1.26 and 1.27 */
    TRAIL_FORMAT_GO_V1, /* byte for byte `go tool trace -d` of Go 1.21; needs TRAIL_VIEW_V1 */
    TRAIL_FORMAT_JSONL  /* one JSON object per event; keys: docs/jsonl.md */
} trail_format;

typedef struct trail_print_options {
    trail_format format;
    const trail_filter *filter; /* NULL: everything */
    bool stacks;                /* text, jsonl: with all frames */
    bool colour;                /* text: with terminal colours */
    trail_words words;          /* text: what goroutines, Ps and threads are called */
    bool micro_sign;            /* text: microseconds as "\xc2\xb5s" in UTF-8, else as "us" */
    bool flush;                 /* write to the sink after each batch of events, for live output */
    void (*progress)(void *context); /* called regularly while reading, if not NULL */
    void *progress_context;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_print_options;

/*
 * Prints the events of a reader up to its end, or up to the end of the filter's range. Returns 0,
 * or -1 with *err set: the reader's error (all events before it were printed), or TRAIL_IO if the
 * sink failed.
 *
 * TRAIL_FORMAT_GO prints wall clock times in the local time zone, as Go does.
 */
TRAIL_API int trail_print(trail_reader *reader, const trail_print_options *options,
                          const trail_sink *sink, trail_error *err);

/* MARK: Profiles */

typedef enum trail_profile_format {
    TRAIL_PROFILE_AS_PPROF,      /* gzipped protocol buffers, for `go tool pprof` and others */
    TRAIL_PROFILE_AS_FOLDED,     /* one stack per line, for flame graphs: "main;run;wait 1234" */
    TRAIL_PROFILE_AS_SPEEDSCOPE, /* JSON for speedscope.app */
    TRAIL_PROFILE_AS_JSON        /* all fields of the profile */
} trail_profile_format;

/*
 * Writes a profile of `analysis`. Values are nanoseconds, or counts for profiles of samples; pprof
 * files have both. Names may be any bytes: invalid UTF-8 becomes U+FFFD, and bytes with a meaning
 * in the format (; and line ends in folded stacks) are replaced. Returns 0, or -1 with *err set.
 */
TRAIL_API int trail_profile_write(const trail_analysis *analysis, const trail_profile *profile,
                                  trail_profile_format format, const trail_sink *sink,
                                  trail_error *err);

/* MARK: The text form of records */

/*
 * Prints every record of a trace as text (docs/wire-text.md): for v2 byte for byte as `go tool
 * trace -d=wire`, for v1 in the same style after a first line `Trace Go1.NN`. Writes all records
 * read so far before it waits for more input. Returns 0, or -1 with *err set: an error in the
 * records (all records before it were printed), or TRAIL_IO if the sink failed.
 */
TRAIL_API int trail_print_wire(trail_source *source, const trail_sink *sink, trail_error *err);

/*
 * The inverse of trail_print_wire: makes a trace from text. `version` is the format (5 ... 26), or
 * 0 to take it from a first line `Trace Go1.NN`; if both are given they must agree. If the text is
 * an archive with a line `-- trace --`, the text after that line is used. Returns 0, or -1 with
 * *err set: the message begins with the line number. Output before the error has been written.
 */
TRAIL_API int trail_assemble(trail_source *text, int version, const trail_sink *sink,
                             trail_error *err);

/* MARK: Symbols */

/*
 * A mapped piece of code in the traced process. libtrail-record writes it to the trace as a string
 * that no event refers to:
 *
 *   trail.module start=0x7f12... end=0x7f13... bias=0x7f12... build-id=HEX path=/usr/lib/x.so
 *
 * The path comes last and may contain spaces; a path that was too long has lost its beginning.
 */
typedef struct trail_module {
    uint64_t start, end;   /* addresses [start, end) */
    uint64_t bias;         /* address in memory minus address in the file */
    trail_string build_id; /* lower-case hexadecimal digits; empty: not known */
    trail_string path;     /* as in the traced process; never empty */
} trail_module;

/* One frame of a PC: its function, or a call inlined into it. Empty texts: not known. */
typedef struct trail_symbol {
    trail_string function, file;
    uint64_t line;
} trail_symbol;

/*
 * Resolves an address in a module's file. `address` is PC - 1 - bias: PCs are return addresses, so
 * PC - 1 lies in the call. Returns the number of frames and sets *symbols to them, innermost first:
 * several where calls were inlined, 0 if nothing is known. *symbols must stay valid until the next
 * call.
 *
 * Called once per PC and generation. All of `module` comes from the trace and is not to be trusted:
 * the path may name any file.
 */
typedef size_t (*trail_resolve_fn)(void *context, const trail_module *module, uint64_t address,
                                   const trail_symbol **symbols);

typedef struct trail_symbolize_options {
    trail_resolve_fn resolve;
    void *resolve_context;
    void (*progress)(void *context); /* called regularly while reading, if not NULL */
    void *progress_context;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_symbolize_options;

typedef struct trail_symbolize_stats {
    uint64_t modules;    /* of the generation that has the most */
    uint64_t pcs;        /* distinct PCs without a line (approximate above a million) */
    uint64_t resolved;   /* of these: got a name or a line */
    uint64_t homeless;   /* of these: in no module */
    uint64_t cut_stacks; /* stacks cut at their outermost frames, at the readers' limit */
} trail_symbolize_stats;

/*
 * Copies a trace (Go 1.7 or later) and adds the symbols that `resolve` knows to its stacks. Frames
 * that already have a line, PCs in no module, and PCs that `resolve` does not know are unchanged.
 * Everything else is copied byte for byte, apart from the added strings, which keep only their last
 * bytes where readers limit their length. Applying it twice changes nothing.
 *
 * The innermost frame keeps the PC. Readers of Go 1.23 and later allow one frame per PC, so the
 * frames that it was inlined into get numbers from 2^48 up in place of PCs, where no code can be;
 * frames with the same function, file and line get the same number.
 *
 * v2 is processed as a stream: at most one generation is in memory, and its events only if they
 * come after its tables. Returns 0, or -1 with *err set. After an error in the trace the rest is
 * copied unchanged, so the copy is as usable as the original; after TRAIL_IO and TRAIL_NO_MEMORY
 * the output is incomplete. *stats (may be NULL) is filled in any case.
 */
TRAIL_API int trail_symbolize(trail_source *source, const trail_symbolize_options *options,
                              const trail_sink *sink, trail_symbolize_stats *stats,
                              trail_error *err);

/* MARK: Converting */

/* All zero: the whole trace, in the newest version. */
typedef struct trail_convert_options {
    int version; /* 22, 23, 25 or 26; 0: 26 */
    /*
     * Time window in ns since the first event, both inclusive. Opening the reader with from_ns as
     * well avoids reading what comes before it.
     */
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    /*
     * Keep only these goroutines, with all their events; in ascending order. NULL: all. Events of
     * Ps and of no goroutine are kept. A wake-up names its waker only if that is one of them, and
     * garbage collection is kept only if the goroutines that perform it are: see
     * trail_convert_related.
     */
    const int64_t *goroutines;
    size_t goroutine_count;
    /*
     * Replace the texts of events, functions and files that are not of the language's own library
     * with stand-ins, equal for equal texts. The same `secret` gives the same stand-ins in other
     * traces; NULL: a random key that is discarded.
     */
    bool anonymize;
    const char *secret;
    void (*progress)(void *context); /* called regularly while reading, if not NULL */
    void *progress_context;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_convert_options;

typedef struct trail_convert_stats {
    uint64_t events;          /* written */
    uint64_t added;           /* records written that stand for no event of the trace */
    uint64_t left_out;        /* events that no valid trace of the version can contain */
    uint64_t unknown_batches; /* of experiments: not, or not completely, in an anonymous trace */
    uint64_t generations; /* 0: the window contains no event, and the output is no readable trace */
} trail_convert_stats;

/*
 * Writes the events of a reader (TRAIL_VIEW_EVENTS, not yet read from) as a v2 trace. The output is
 * always a valid trace; docs/converting-traces.md lists how it can differ from the input.
 *
 * Memory: the reader's, the tables of one generation, the live objects, and at most 16 MiB of
 * batches. Returns 0, or -1 with *err set: the reader's error (all events before it were written),
 * or TRAIL_IO if the sink failed. *stats (may be NULL) is filled in any case.
 */
TRAIL_API int trail_convert(trail_reader *reader, const trail_convert_options *options,
                            const trail_sink *sink, trail_convert_stats *stats, trail_error *err);

/*
 * Finds the goroutines that belong to `goroutines` (ascending): these themselves, those that
 * created or woke them, and those that stopped the world, began or ended a garbage collection
 * cycle, or changed GOMAXPROCS; of a merged trace, in the same programs. Reads `reader` to its end.
 * *related is ascending; the caller frees it with free(). Returns 0, or -1 with *err set: after an
 * error in the trace *related holds those found before it; it is NULL only if out of memory.
 */
TRAIL_API int trail_convert_related(trail_reader *reader, const int64_t *goroutines, size_t count,
                                    int64_t **related, size_t *related_count, trail_error *err);

/* MARK: Merging */

#define TRAIL_MERGE_MOST 64 /* traces */

typedef struct trail_merge trail_merge;

/* All zero: the newest version, aligned by wall clocks, start functions prefixed with names. */
typedef struct trail_merge_options {
    int version;                     /* 23, 25 or 26; 0: 26 */
    bool align_start;                /* traces without an offset begin when the first one does */
    bool plain;                      /* leave the names of start functions unchanged */
    void (*progress)(void *context); /* called regularly while writing, if not NULL */
    void *progress_context;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_merge_options;

typedef struct trail_merge_source {
    trail_reader *reader; /* TRAIL_VIEW_EVENTS, not yet read from; in use until trail_merge_close */
    /*
     * Another reader of the same trace, used only inside trail_merge_add, which reads its first
     * generation: what already exists when the trace begins, for a trace that begins later than
     * others. NULL: each object begins when an event first mentions it.
     */
    trail_reader *ahead;
    /* The prefix of the names of start functions, as in "NAME: main.main"; copied. */
    const char *name;
    bool has_offset;
    int64_t offset_ns; /* start of this trace after the start of the first; may be negative */
} trail_merge_source;

/*
 * Merges traces of several programs, of any versions, into one. Numbers are shifted by a constant
 * per trace, so their last digits stay: goroutines, threads and tasks by 10^9 for the second trace,
 * twice that for the third; Ps by 1,000. Values that exist once per trace are added up: heap size,
 * heap goal, GOMAXPROCS. A garbage collection cycle lasts from its start in the first program to
 * its end in the last. docs/converting-traces.md has the details.
 *
 *     trail_merge *merge = trail_merge_open(&options, &err);
 *     if (merge && trail_merge_add(merge, &web, &err) == 0 &&
 *         trail_merge_add(merge, &database, &err) == 0)
 *         trail_merge_write(merge, &sink, &stats, &err);
 *     trail_merge_close(merge);
 *
 * Memory: the readers', the tables of one generation, and the live objects.
 *
 * Returns NULL with *err set: TRAIL_NO_MEMORY, or TRAIL_USAGE for a version that cannot be written.
 */
TRAIL_API trail_merge *trail_merge_open(const trail_merge_options *options, trail_error *err);

/* Returns 0, or -1 with *err set; the merge is then unchanged, and others may be added. */
TRAIL_API int trail_merge_add(trail_merge *merge, const trail_merge_source *source,
                              trail_error *err);

/*
 * Writes the merged trace; may be called once. Returns 0, or -1 with *err set: TRAIL_USAGE if the
 * traces cannot be aligned (nothing was written), or TRAIL_IO if the sink failed. A damaged trace
 * is merged up to its error: see trail_merge_source_error. *stats (may be NULL) is filled in any
 * case.
 */
TRAIL_API int trail_merge_write(trail_merge *merge, const trail_sink *sink,
                                trail_convert_stats *stats, trail_error *err);

/* The error of the trace that was added as number `number` (from 0), or NULL if it has none. */
TRAIL_API const trail_error *trail_merge_source_error(const trail_merge *merge, size_t number);

/* Accepts NULL. */
TRAIL_API void trail_merge_close(trail_merge *merge);

/* MARK: Formats of other tools */

/*
 * What is exported. All zero: everything. Times are in ns since the first event, both inclusive.
 * States and ranges that cross an edge of the window are cut there. For goroutines that are not
 * selected, only the tasks that they began are written; events of Ps, threads and the garbage
 * collector are written where selected goroutines cause them. The texts and the array belong to the
 * caller.
 *
 * Goroutines that exist when the trace begins may have no stack at first: with `name` set, their
 * events before their start function is known are left out.
 */
/* An attribute of OTLP; both texts are UTF-8. */
typedef struct trail_export_attribute {
    const char *key, *value;
} trail_export_attribute;

typedef struct trail_export_options {
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    const int64_t *goroutines;       /* numbers of the selected goroutines */
    size_t goroutine_count;          /* 0: all */
    const char *name;                /* start function of the selected goroutines; NULL: all */
    const char *title;               /* title in the output; NULL: "trail" */
    void (*progress)(void *context); /* called regularly while reading, if not NULL */
    void *progress_context;
    /* OTLP: attributes of the resource. "service.name" is `title` unless it is one of them. */
    const trail_export_attribute *resource;
    size_t resource_count;
    bool otlp_protobuf;       /* OTLP: protocol buffers instead of JSON */
    bool perfetto_compressed; /* Perfetto: packets compressed with zlib, a tenth of the size */
    /* Perfetto, compressed: maximum number of compressing threads, including the caller's; 0: 1. */
    unsigned perfetto_threads;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_export_options;

typedef struct trail_export_stats {
    uint64_t events;     /* in the window */
    uint64_t goroutines; /* written */
    uint64_t spans;      /* OTLP: tasks and regions, or series of metrics, written */
} trail_export_stats;

/*
 * These functions write the events of a reader (TRAIL_VIEW_EVENTS, not yet read from) for another
 * tool: spans of each goroutine's states (running, runnable, waiting with its reason, syscall with
 * and without a P: those of one goroutine add up to its trail_times), what runs on each P and
 * thread, wake-ups, ranges of the runtime, regions, tasks, logs, metrics and CPU samples, with
 * stacks. docs/exporting-traces.md describes the mapping for each format.
 *
 * Texts are UTF-8: invalid bytes become U+FFFD. Memory: the live objects, and each distinct name
 * and stack.
 *
 * They return 0, or -1 with *err set: the reader's error (the output is complete and covers the
 * events before it), TRAIL_IO if a sink failed, or TRAIL_NO_MEMORY. *stats (may be NULL) is filled
 * in any case.
 */

/* JSON of Chrome's trace event format, for chrome://tracing, Perfetto, speedscope and others. */
TRAIL_API int trail_export_chrome(trail_reader *reader, const trail_export_options *options,
                                  const trail_sink *sink, trail_export_stats *stats,
                                  trail_error *err);

/* Perfetto's protocol buffers (messages TracePacket), for ui.perfetto.dev and trace_processor. */
TRAIL_API int trail_export_perfetto(trail_reader *reader, const trail_export_options *options,
                                    const trail_sink *sink, trail_export_stats *stats,
                                    trail_error *err);

/*
 * OTLP as JSON, one TracesData message per line, or as protocol buffers, for OpenTelemetry's
 * collector, Jaeger and others: tasks and regions as spans, logs as their events. Each call of the
 * sink passes one complete message. Writes nothing if the trace has none. Without a wall clock in
 * the trace (Go 1.24 and before), trace times are written as Unix times.
 */
TRAIL_API int trail_export_otlp(trail_reader *reader, const trail_export_options *options,
                                const trail_sink *sink, trail_export_stats *stats,
                                trail_error *err);

/*
 * OTLP metrics in the same forms: a histogram of the waits that ended, by wait.kind and
 * wait.object, and one of the times ready. Each call of the sink passes one complete MetricsData
 * message, with delta temporality from the start to the end of the trace or window. Waits have at
 * most 2,000 series; those for the last kinds and objects to appear are in one, with the attribute
 * otel.metric.overflow.
 */
TRAIL_API int trail_export_otlp_metrics(trail_reader *reader, const trail_export_options *options,
                                        const trail_sink *sink, trail_export_stats *stats,
                                        trail_error *err);

/*
 * Common Trace Format 1.8, for babeltrace2 and Trace Compass: a folder that contains a stream file
 * of any name and its description, a file named `metadata`, which is written last.
 */
TRAIL_API int trail_export_ctf(trail_reader *reader, const trail_export_options *options,
                               const trail_sink *stream, const trail_sink *metadata,
                               trail_export_stats *stats, trail_error *err);

#ifdef __cplusplus
}
#endif
#endif
