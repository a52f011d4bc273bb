/*
 * The common part of the decoders of v1 and v2: each embeds a trail_reader as its first member and
 * fills in reader_ops. Used by one thread at a time.
 */
#pragma once

#include <trail/read.h>

#include "read/ahead.h"
#include "read/tables.h"

enum { READER_ROOM = 192 };

struct reader_ops {
    long (*next_batch)(trail_reader *reader, const trail_event **events);
    long (*next_v1_batch)(trail_reader *reader, const trail_v1_event **events); /* NULL in v2 */
    size_t (*experiment_batches)(const trail_reader *reader,
                                 const trail_experiment_batch **batches);
    size_t (*repairs)(const trail_reader *reader, const trail_repair **repairs);
    void (*close)(trail_reader *reader); /* frees the whole decoder */
};

struct trail_reader {
    const struct reader_ops *ops;
    trail_source *source; /* owned by the caller */
    trail_reader_options options;
    int version;
    struct tables tables; /* the tables for the handles delivered last */
    trail_reader_stats stats;
    trail_error error;
    /*
     * Room for the next batch, of at least READER_ROOM events; NULL: none. A decoder may always
     * return its own memory instead.
     */
    trail_event *room;
    size_t room_size;
    bool began;          /* reading has begun */
    struct ahead *ahead; /* NULL: the caller's thread reads */
    /* For trail_reader_next: the rest of the batch delivered last. */
    const trail_event *pending;
    long pending_count;
};

/*
 * Call before tables or texts of delivered events change. Returns false if the reader is being
 * closed.
 */
static inline bool reader_settle(trail_reader *reader)
{
    return !reader->ahead || ahead_settle(reader->ahead);
}

/*
 * Returns the version in the trace's header without consuming it; -1 with *err if it is not a
 * trace.
 */
int reader_peek_version(trail_source *source, trail_error *err);

/* Returns the version in a header of 16 bytes; -1 with *err if no known trace has such a header. */
int reader_version(const uint8_t *header, trail_error *err);

/* Open a decoder on a source whose header, of a known `version`, has not been consumed. */
trail_reader *v1_reader_open(trail_source *source, int version, const trail_reader_options *options,
                             trail_error *err);
trail_reader *v2_reader_open(trail_source *source, int version, const trail_reader_options *options,
                             trail_error *err);
