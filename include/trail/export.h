/*
 * Writing what is in a trace in other forms: as text for people, as Go's tools print it, as JSON;
 * and as a trace again, whose stacks have got names.
 *
 * Everything is written to a sink, in large pieces. Nothing here reads more than it needs: what a
 * filter shows to be over is not read to its end.
 */
#ifndef TRAIL_EXPORT_H
#define TRAIL_EXPORT_H

#include <trail/analyze.h>
#include <trail/read.h>

#ifdef __cplusplus
extern "C" {
#endif

/* MARK: Sinks */

/*
 * Takes all `size` bytes or fails: false, with errno set. It is not called again after that. Called
 * from the thread that called the function that writes.
 */
typedef struct trail_sink {
    bool (*write)(void *context, const void *data, size_t size);
    void *context;
} trail_sink;

/* MARK: Filters */

/*
 * Which events to print. All zero prints everything; conditions combine: an event must meet each
 * that is set. The arrays stay the caller's. Times are relative to the first event of the trace,
 * both inclusive.
 */
typedef struct trail_filter {
    const int64_t *goroutines; /* did it, or it happened to one of them */
    size_t goroutine_count;
    const int64_t *procs; /* the same */
    size_t proc_count;
    const int64_t *threads; /* did it */
    size_t thread_count;
    bool has_kinds;
    uint64_t kinds[4]; /* a bit a type of event (trail_event.wire, or trail_v1_event.type) */
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    uint64_t limit; /* at most so many events; 0: all */
} trail_filter;

/*
 * The names that trail_filter_add_kind takes for a view, one after the other: those of kinds
 * ("StateTransition"), then those of the types in the file ("GoBlock"). NULL after the last.
 */
TRAIL_API const char *trail_filter_kind_name(trail_view view, size_t i);

/* Lets events of that name pass (in any case of letters). False if there is no such name. */
TRAIL_API bool trail_filter_add_kind(trail_filter *filter, trail_view view, const char *name);

/* MARK: Printing events */

typedef enum trail_format {
    TRAIL_FORMAT_TEXT,  /* for people */
    TRAIL_FORMAT_GO,    /* byte for byte `go tool trace -d=parsed` of Go 1.26 and 1.27 */
    TRAIL_FORMAT_GO_V1, /* byte for byte `go tool trace -d` of Go 1.21; needs TRAIL_VIEW_V1 */
    TRAIL_FORMAT_JSONL  /* one JSON object an event; its keys are described in docs/jsonl.md */
} trail_format;

typedef struct trail_print_options {
    trail_format format;
    const trail_filter *filter; /* NULL: everything */
    bool stacks;                /* text and jsonl: with all frames */
    bool colour;                /* text: with terminal colours */
    bool flush; /* hand over to the sink after each batch of events, for a live reader */
    void (*progress)(void *context); /* called now and then while reading, if not NULL */
    void *progress_context;
} trail_print_options;

/*
 * Prints the events of a reader to its end, or to where the filter ends. Returns 0, or -1 with *err
 * set: that of the reader (everything before it was printed), or TRAIL_IO if the sink failed.
 *
 * TRAIL_FORMAT_GO shows wall clock times in the local time zone, as Go does.
 */
TRAIL_API int trail_print(trail_reader *reader, const trail_print_options *options,
                          const trail_sink *sink, trail_error *err);

/* MARK: Profiles */

typedef enum trail_profile_format {
    TRAIL_PROFILE_AS_PPROF,      /* gzipped protocol buffers, for `go tool pprof` and others */
    TRAIL_PROFILE_AS_FOLDED,     /* a line a stack, for flame graphs: "main;run;wait 1234" */
    TRAIL_PROFILE_AS_SPEEDSCOPE, /* JSON for speedscope.app */
    TRAIL_PROFILE_AS_JSON        /* all that is known */
} trail_profile_format;

/*
 * Writes a profile of `analysis`. Values are nanoseconds, of a profile of samples counts; pprof has
 * both. Names may be any bytes: what is no UTF-8 becomes U+FFFD, and where a format gives a byte a
 * meaning (; and line ends in folded stacks) it is replaced. Returns 0, or -1 with *err set.
 */
TRAIL_API int trail_profile_write(const trail_analysis *analysis, const trail_profile *profile,
                                  trail_profile_format format, const trail_sink *sink,
                                  trail_error *err);

/* MARK: The text form of records */

/*
 * Prints every record of a trace as text (docs/wire-text.md): for v2 byte for byte what `go tool
 * trace -d=wire` prints, for v1 the same way after a first line `Trace Go1.NN`. What was read is
 * written before waiting for more. Returns 0, or -1 with *err set: that of the records (everything
 * before it was printed), or TRAIL_IO if the sink failed.
 */
TRAIL_API int trail_print_wire(trail_source *source, const trail_sink *sink, trail_error *err);

/*
 * The inverse: makes a trace of a text, hand-written or printed. `version` is the format (5 ...
 * 26), or 0 if the text says it in a first line `Trace Go1.NN`; if both do they must agree. Of an
 * archive with a line
 * `-- trace --`, what follows it is taken. Returns 0, or -1 with *err set: the message begins with
 * the number of the line. What was made before an error is written.
 */
TRAIL_API int trail_assemble(trail_source *text, int version, const trail_sink *sink,
                             trail_error *err);

/* MARK: Symbols */

/*
 * A piece of code in the memory of the traced process, as libtrail-record writes it into the trace,
 * in a string that no event refers to:
 *
 *   trail.module start=0x7f12... end=0x7f13... bias=0x7f12... build-id=HEX path=/usr/lib/x.so
 *
 * The path is the last and may contain spaces; one that was too long has lost its beginning.
 */
typedef struct trail_module {
    uint64_t start, end;   /* addresses [start, end) */
    uint64_t bias;         /* what the addresses of the file have less */
    trail_string build_id; /* lower-case hexadecimal digits; empty: not known */
    trail_string path;     /* as the traced process had it; never empty */
} trail_module;

/* What a PC, or a call of it that was inlined, stands for; the texts are empty if not known. */
typedef struct trail_symbol {
    trail_string function, file;
    uint64_t line;
} trail_symbol;

/*
 * Resolves an address of a module's file: a PC less 1, because PCs are return addresses, and less
 * the bias. Returns how many frames it stands for and sets *symbols to them, innermost first: where
 * calls were inlined, several; 0 if nothing is known. They must stay until the next call.
 *
 * Called once for a PC in each generation. Everything in `module` comes from the trace: the path may
 * be that of any file.
 */
typedef size_t (*trail_resolve_fn)(void *context, const trail_module *module, uint64_t address,
                                   const trail_symbol **symbols);

typedef struct trail_symbolize_options {
    trail_resolve_fn resolve;
    void *resolve_context;
    void (*progress)(void *context); /* called now and then while reading, if not NULL */
    void *progress_context;
} trail_symbolize_options;

typedef struct trail_symbolize_stats {
    uint64_t modules;    /* in the generation that has most */
    uint64_t pcs;        /* different ones that had no line (about, if they are over a million) */
    uint64_t resolved;   /* of these: got a name or a line */
    uint64_t homeless;   /* of these: in no module */
    uint64_t cut_stacks; /* lost their outermost frames, because readers take no more */
} trail_symbolize_stats;

/*
 * Copies a trace, of Go 1.7 on, and puts what `resolve` knows into its stacks. Frames that have a
 * line already, and PCs that are in no module or that `resolve` does not know, stay as they are, and
 * so does everything else, byte for byte, but that strings are added; their text is cut to its last
 * bytes where readers take no more. Doing it again changes nothing.
 *
 * The innermost frame keeps the PC. Readers of Go 1.23 and later know one frame for each PC, so the
 * frames that it was inlined into get numbers in place of PCs, from 2^48 on, where no code can be:
 * equal ones for equal function, file and line.
 *
 * v2 is a stream: at most one generation is in memory, and its events only if they come after its
 * tables. Returns 0, or -1 with *err set. After an error in the trace, what follows it is copied as
 * it is: the copy is as good as the original. After TRAIL_IO and TRAIL_NO_MEMORY it is not.
 * *stats (or NULL) is filled in any case.
 */
TRAIL_API int trail_symbolize(trail_source *source, const trail_symbolize_options *options,
                              const trail_sink *sink, trail_symbolize_stats *stats,
                              trail_error *err);

/* MARK: Converting */

/* All zero: all of the trace, as the newest version. */
typedef struct trail_convert_options {
    int version; /* 22, 23, 25 or 26; 0: 26 */
    /*
     * Only what is in the window. Times are relative to the first event, both inclusive. A reader
     * that is opened with from_ns as well has less to read.
     */
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    /*
     * Only these goroutines, each with all that it did; in ascending order. NULL: all. What Ps did,
     * and what is of no goroutine, stays. Who wakes them is told only if it is one of them, and so is
     * garbage collection if those that work for it are: see trail_convert_related.
     */
    const int64_t *goroutines;
    size_t goroutine_count;
    /*
     * Texts that are not of the language's own library get stand-ins, equal for equal texts: those of
     * events, functions, files. Under the same `secret` they are the same in other traces; NULL: one
     * that nobody knows.
     */
    bool anonymize;
    const char *secret;
    void (*progress)(void *context); /* called now and then while reading, if not NULL */
    void *progress_context;
} trail_convert_options;

typedef struct trail_convert_stats {
    uint64_t events;      /* written */
    uint64_t added;       /* records written for which the trace has no event */
    uint64_t left_out;    /* events that no valid trace of the version can hold */
    uint64_t generations; /* 0: no event was in the window, and there is nothing to read */
} trail_convert_stats;

/*
 * Writes the events of a reader (TRAIL_VIEW_EVENTS, from its first on) as a trace of a version of v2.
 * What is written is always a valid trace; how it differs, docs/converting-traces.md tells.
 *
 * Memory is that of the reader, the tables of a generation, what is alive, and at most 16 MiB of
 * batches. Returns 0, or -1 with *err set: that of the reader (what was written is what came before
 * it), or TRAIL_IO if the sink failed. *stats (or NULL) is filled in any case.
 */
TRAIL_API int trail_convert(trail_reader *reader, const trail_convert_options *options,
                            const trail_sink *sink, trail_convert_stats *stats, trail_error *err);

/*
 * What belongs to `goroutines` (ascending): these, those that created or woke them, and those that
 * stopped the world, began or ended a cycle of garbage collection, or changed GOMAXPROCS. Takes all
 * that `reader` has. *related is to be freed, ascending, and there unless memory is out; after an
 * error of the trace (-1, with *err set) it is what was found before.
 */
TRAIL_API int trail_convert_related(trail_reader *reader, const int64_t *goroutines, size_t count,
                                    int64_t **related, size_t *related_count, trail_error *err);

/* MARK: Merging */

#define TRAIL_MERGE_MOST 64 /* traces */

typedef struct trail_merge trail_merge;

/* All zero: as the newest version, aligned by wall clocks, with the names of sources. */
typedef struct trail_merge_options {
    int version;                     /* 23, 25 or 26; 0: 26 */
    bool align_start;                /* traces without an offset begin with the first one */
    bool plain;                      /* names of start functions stay as they are */
    void (*progress)(void *context); /* called now and then while writing, if not NULL */
    void *progress_context;
} trail_merge_options;

typedef struct trail_merge_source {
    trail_reader *reader; /* TRAIL_VIEW_EVENTS, from its first event on; until trail_merge_close */
    /*
     * Another reader of the same trace, of which only the first generation is read, in the call: it
     * tells what is there when the trace begins, for one that does so later than others. NULL: it comes
     * to be when it is first told of.
     */
    trail_reader *ahead;
    /* The prefix of the names of start functions, as in "NAME: main.main"; copied. */
    const char *name;
    bool has_offset;
    int64_t offset_ns; /* begins so long after the first trace begins; negative: before */
} trail_merge_source;

/*
 * Joins traces of several programs, of any versions, into one. What is of one trace keeps the last
 * digits of its numbers; goroutines, threads and tasks of the second have 10^9 more, those of the third
 * twice that, Ps 1,000. What a trace has once is added up: the heap, its goal, GOMAXPROCS; cycles of
 * garbage collection last from where the first program begins one to where the last ends.
 * docs/converting-traces.md tells the rest.
 *
 *     trail_merge *merge = trail_merge_open(&options, &err);
 *     if (merge && trail_merge_add(merge, &web, &err) == 0 &&
 *         trail_merge_add(merge, &database, &err) == 0)
 *         trail_merge_write(merge, &sink, &stats, &err);
 *     trail_merge_close(merge);
 *
 * Memory is that of the readers, the tables of a generation, and what is alive. Returns NULL with *err set: out of memory,
 * or a version that a merge is not written in (TRAIL_USAGE).
 */
TRAIL_API trail_merge *trail_merge_open(const trail_merge_options *options, trail_error *err);

/* Returns 0; or -1 with *err set, and it is as if it had not been asked: others may follow. */
TRAIL_API int trail_merge_add(trail_merge *merge, const trail_merge_source *source,
                              trail_error *err);

/*
 * Writes the trace; once. Returns 0, or -1 with *err set: TRAIL_USAGE if the traces cannot be aligned
 * (nothing was written), or TRAIL_IO if the sink failed. Of a damaged trace it is the good part:
 * trail_merge_source_error. *stats (or NULL) is filled in any case.
 */
TRAIL_API int trail_merge_write(trail_merge *merge, const trail_sink *sink,
                                trail_convert_stats *stats, trail_error *err);

/* What is wrong with the trace that was the number-th to be added, from 0; NULL: nothing is. */
TRAIL_API const trail_error *trail_merge_source_error(const trail_merge *merge, size_t number);

/* May be called with NULL. */
TRAIL_API void trail_merge_close(trail_merge *merge);

/* MARK: For other tools */

/*
 * What is exported; all zero: everything. Times are relative to the first event, both inclusive.
 * What began before the window begins with it, and what goes on after it ends with it. Of goroutines
 * that are not wanted nothing is written but the tasks that they began; what Ps, threads and the
 * garbage collector did is written as far as wanted goroutines did it. The texts and the array stay
 * the caller's.
 *
 * Some goroutines are found in a trace without a stack: what these did before their start function
 * is known is left out where `name` is set.
 */
typedef struct trail_export_options {
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    const int64_t *goroutines;       /* numbers of the wanted ones */
    size_t goroutine_count;          /* 0: all */
    const char *name;                /* start function of the wanted ones; NULL: all */
    const char *title;               /* of what is shown; NULL: "trail" */
    void (*progress)(void *context); /* called now and then while reading, if not NULL */
    void *progress_context;
} trail_export_options;

typedef struct trail_export_stats {
    uint64_t events;     /* in the window */
    uint64_t goroutines; /* written */
    uint64_t spans;      /* OTLP: tasks and regions written */
} trail_export_stats;

/*
 * Write the events of a reader (TRAIL_VIEW_EVENTS, from its first on) for another tool: spans of
 * what each goroutine was doing (running, runnable, waiting for what, system call, system call
 * without a P: those of one goroutine add up to its trail_times), who ran on each P and thread, who
 * woke whom, ranges of the runtime, regions, tasks, logs, metrics, CPU samples, with stacks.
 * docs/exporting-traces.md tells what is where.
 *
 * Texts are UTF-8 whatever the trace has: what is none becomes U+FFFD. Memory is for what is alive,
 * and for each different name and stack.
 *
 * Return 0, or -1 with *err set: that of the reader (what was written is whole, and of what came
 * before it), or TRAIL_IO if a sink failed, or TRAIL_NO_MEMORY. *stats (or NULL) is filled in any
 * case.
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
 * OTLP as JSON, a message TracesData a line, for OpenTelemetry's collector, Jaeger and others: tasks
 * and regions as spans, logs as their events. Nothing is written if there are none. A trace without
 * a wall clock (Go 1.24 and before) has its own times for Unix times.
 */
TRAIL_API int trail_export_otlp(trail_reader *reader, const trail_export_options *options,
                                const trail_sink *sink, trail_export_stats *stats,
                                trail_error *err);

/*
 * The Common Trace Format 1.8, for babeltrace2 and Trace Compass: a folder with a stream of any name
 * and with its description, which is called `metadata` and is written last.
 */
TRAIL_API int trail_export_ctf(trail_reader *reader, const trail_export_options *options,
                               const trail_sink *stream, const trail_sink *metadata,
                               trail_export_stats *stats, trail_error *err);

#ifdef __cplusplus
}
#endif
#endif
