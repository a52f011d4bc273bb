/*
 * v2 parallel: a verdict on a trace by several threads. Each reads generations independently
 * (v2/guess.h); the reader's thread joins them in order, and itself reads those that no other
 * thread has begun.
 *
 * A generation's extent is found by its batch headers. If they are not those of an undamaged trace,
 * or a generation has errors, nothing is taken and the reader continues as if it were the only
 * thread, so that its errors and their positions are the same.
 */
#pragma once

#include <trail/read.h>

/* The extent of a generation: bytes of the source, from its first batch on. */
struct v2_extent {
    uint64_t offset, size;
    uint64_t number;
};

/* A generation that was read independently; see v2/reader.c. */
struct v2_alone;

/*
 * Reads a generation of a plain file, by the rules of a reader that is `strict` or not. Returns
 * NULL if anything is wrong with it, or might depend on other generations. Any thread.
 */
struct v2_alone *v2_alone_read(const trail_source *source, int version, bool strict,
                               const struct v2_extent *extent);
void v2_alone_free(struct v2_alone *alone);

struct v2_parallel;

/*
 * Returns NULL if the source is not a plain file, is small, or only one thread may be used. The
 * source must outlive the result; the reader may continue to read it.
 */
struct v2_parallel *v2_parallel_open(const trail_source *source, int version, bool strict,
                                     unsigned threads);

/*
 * Takes the generation at an offset, which is not before that of the last call. Returns NULL if the
 * caller has to read it; otherwise the caller owns the result, and *extent is the generation's
 * extent.
 */
struct v2_alone *v2_parallel_take(struct v2_parallel *parallel, uint64_t offset,
                                  struct v2_extent *extent);

/* Waits until no thread is reading; NULL is allowed. */
void v2_parallel_close(struct v2_parallel *parallel);
