/*
 * Writing what is in a trace in other forms: as text for people, as Go's tools print it, as JSON.
 *
 * Everything is written to a sink, in large pieces. Nothing here reads more than it needs: what a
 * filter shows to be over is not read to its end.
 */
#ifndef TRAIL_EXPORT_H
#define TRAIL_EXPORT_H

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

#ifdef __cplusplus
}
#endif
#endif
